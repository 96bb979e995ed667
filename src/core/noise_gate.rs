//! Which noise a line may be, told before a regex is asked: that whose words stand in it, without which
//! it cannot match. One pass of a keyword gate settles most lines. It never says no wrongly; a yes is for
//! the regex to decide.

use super::gate::Gate;
use crate::rules::RuleSet;

/// Entries that have a bit of their own; the others share the last one, which is always set.
const MAX_OWN: usize = 63;

/// The words of the noise entries.
pub struct NoiseGate {
    gate: Gate,
    /// What each word of the gate stands for.
    bits: Vec<u64>,
    /// What needs no word, as far as is known.
    always: u64,
}

/// The noise that a text may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaybeNoise(u64);

impl MaybeNoise {
    /// Whether entry number `at` may match, in the order of [`RuleSet::noise`].
    #[must_use]
    pub fn has(self, at: usize) -> bool {
        self.0 & 1 << at.min(MAX_OWN) != 0
    }
}

impl NoiseGate {
    /// That of `rules`.
    #[must_use]
    pub fn new(rules: &RuleSet) -> Self {
        let (mut words, mut bits, mut always) = (Vec::new(), Vec::new(), 1 << MAX_OWN);
        for (at, required) in rules.noise_words().into_iter().enumerate().take(MAX_OWN) {
            match required {
                Some(required) => {
                    bits.resize(bits.len() + required.len(), 1 << at);
                    words.extend(required.into_iter().map(|word| format!("*{word}*")));
                }
                None => always |= 1 << at,
            }
        }
        Self { gate: Gate::new(words.iter().map(|word| (word.as_str(), false))), bits, always }
    }

    /// What `text` or a part of it may be.
    #[must_use]
    pub fn of(&self, text: &[u8]) -> MaybeNoise {
        let mut found = self.always;
        self.gate.scan(text, |id, _| {
            found |= self.bits[id];
            true
        });
        MaybeNoise(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Kind;

    #[test]
    fn noise_is_never_missed() {
        let rules = RuleSet::builtin();
        let gate = NoiseGate::new(&rules);
        let mut matched = 0;
        for &entry in &rules.noise {
            let entry = &rules.entries[usize::from(entry)];
            for text in entry.examples.matching.iter().chain(&entry.examples.no_match).flat_map(|text| text.lines()) {
                for (at, &other) in rules.noise.iter().enumerate() {
                    let Kind::Noise { regex, .. } = &rules.entries[usize::from(other)].kind else { continue };
                    let is_noise = regex.is_match(text.as_bytes());
                    matched += usize::from(is_noise);
                    assert!(gate.of(text.as_bytes()).has(at) || !is_noise, "{} in {text:?}", regex.source());
                }
            }
        }
        assert!(matched >= rules.noise.len(), "{matched}");
    }

    #[test]
    fn an_ordinary_line_is_hardly_asked() {
        let rules = RuleSet::builtin();
        let maybe = NoiseGate::new(&rules).of(b"ValueError: invalid literal for int() with base 10: 'x'");
        assert!((0..rules.noise.len()).filter(|&at| maybe.has(at)).count() < 3, "{maybe:?}");
    }
}
