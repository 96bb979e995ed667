//! Which noise a line may be and which cancels may match in it, told before a regex is asked: those whose words stand in
//! it, without which they cannot match. One pass of a keyword gate settles most lines, and most patterns are never
//! compiled. It never says no wrongly; a yes is for the regex to decide.

use super::gate::Gate;
use crate::rules::{QuietWords, RuleSet};

/// Entries of a kind that have a bit of their own; the others share the last one, which is always set.
pub const MAX_OWN: usize = 127;

/// The words of the noise and of the cancels.
pub struct WordGate {
    gate: Gate,
    /// What each word of the gate stands for.
    owners: Vec<Maybe>,
    /// What needs no word, as far as is known.
    always: Maybe,
}

/// What a text may hold, a bit for each entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maybe {
    noise: u128,
    cancels: u128,
}

impl Maybe {
    /// Whether noise entry number `at` may match, in the order of [`RuleSet::noise`].
    #[must_use]
    pub fn noise(self, at: usize) -> bool {
        self.noise & bit(at) != 0
    }

    /// Whether cancel number `at` may match, in the order of [`RuleSet::cancels`].
    #[must_use]
    pub fn cancel(self, at: usize) -> bool {
        self.cancels & bit(at) != 0
    }

    fn add(&mut self, more: Self) {
        self.noise |= more.noise;
        self.cancels |= more.cancels;
    }
}

fn bit(at: usize) -> u128 {
    1 << at.min(MAX_OWN)
}

/// The noise and the cancels that have no bit of their own, by id: they are asked of every line that may hold an error.
pub fn crowded_out(rules: &RuleSet) -> impl Iterator<Item = &str> {
    let noise = rules.noise.iter().skip(MAX_OWN).map(|&entry| &rules.entries[usize::from(entry)].id);
    noise.chain(rules.cancels.iter().skip(MAX_OWN).map(|cancel| &cancel.id)).map(String::as_str)
}

impl WordGate {
    /// That of `rules`.
    #[must_use]
    pub fn new(rules: &RuleSet) -> Self {
        let QuietWords { noise, cancels } = rules.quiet_words();
        let noise = (0..).zip(noise).map(|(at, words)| (Maybe { noise: bit(at), cancels: 0 }, words));
        let cancels = (0..).zip(cancels).map(|(at, words)| (Maybe { noise: 0, cancels: bit(at) }, words));
        let (mut words, mut owners, mut always) = (Vec::new(), Vec::new(), Maybe { noise: bit(MAX_OWN), cancels: bit(MAX_OWN) });
        for (owner, required) in noise.chain(cancels) {
            match required {
                Some(required) => {
                    owners.resize(owners.len() + required.len(), owner);
                    words.extend(required.into_iter().map(|word| format!("*{word}*")));
                }
                None => always.add(owner),
            }
        }
        Self { gate: Gate::new(words.iter().map(|word| (word.as_str(), false))), owners, always }
    }

    /// What `text` or a part of it may hold.
    #[must_use]
    pub fn of(&self, text: &[u8]) -> Maybe {
        let mut found = self.always;
        self.gate.scan(text, |id, _| {
            found.add(self.owners[id]);
            true
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{ExampleSpec, Kind, Pattern};

    #[test]
    fn noise_and_cancels_are_never_missed() {
        let rules = RuleSet::builtin();
        let gate = WordGate::new(&rules);
        let noise = |entry: &u16| match &rules.entries[usize::from(*entry)].kind {
            Kind::Noise { regex, .. } => regex,
            other => panic!("{other:?}"),
        };
        let noise: Vec<&Pattern> = rules.noise.iter().map(noise).collect();
        let texts =
            |examples: &'_ ExampleSpec| examples.matching.iter().chain(&examples.no_match).flat_map(|text| text.lines()).map(str::to_owned).collect::<Vec<_>>();
        let of_noise = rules.noise.iter().flat_map(|entry| texts(&rules.entries[usize::from(*entry)].examples));
        let mut matched = 0;
        for text in of_noise.chain(rules.cancels.iter().flat_map(|cancel| texts(&cancel.examples))) {
            let maybe = gate.of(text.as_bytes());
            for (at, regex) in noise.iter().enumerate().filter(|(_, regex)| regex.is_match(text.as_bytes())) {
                assert!(maybe.noise(at), "{} in {text:?}", regex.source());
                matched += 1;
            }
            for (at, cancel) in rules.cancels.iter().enumerate().filter(|(_, cancel)| cancel.regex.is_match(text.as_bytes())) {
                assert!(maybe.cancel(at), "{} in {text:?}", cancel.id);
                matched += 1;
            }
        }
        assert!(matched >= rules.noise.len() + rules.cancels.len(), "{matched}");
    }

    #[test]
    fn every_built_in_noise_and_cancel_has_a_bit_of_its_own() {
        assert_eq!(
            crowded_out(&RuleSet::builtin()).collect::<Vec<_>>(),
            [""; 0],
            "room for {MAX_OWN} of a kind: more than one word for them, or fewer of them"
        );
    }

    #[test]
    fn an_ordinary_line_is_hardly_asked() {
        let rules = RuleSet::builtin();
        let maybe = WordGate::new(&rules).of(b"ValueError: invalid literal for int() with base 10: 'x'");
        assert!((0..rules.noise.len()).filter(|&at| maybe.noise(at)).count() < 3, "{maybe:?}");
        assert!((0..rules.cancels.len()).filter(|&at| maybe.cancel(at)).count() < rules.cancels.len() / 2, "{maybe:?}");
    }
}
