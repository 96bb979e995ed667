//! Finds which noise a line is and which cancels match in it, asking only those alternatives of their patterns whose
//! clues the line shows. One pass of a keyword gate settles most lines: no pattern is asked, and most are never
//! compiled. The gate never rules an alternative out wrongly; whether it matches is for its own pattern to decide.

use std::collections::BTreeMap;

use super::gate::Gate;
use super::line::Line;
use crate::rules::{Clue, Clues, Looks, Pattern, RuleSet, Shown, Signs, first_visible, is_indented};

mod wordless;
use wordless::Wordless;

/// Room for the alternatives that most lines may match.
const TYPICAL_ALTERNATIVES: usize = 16;

/// The clues of the noise and of the cancels.
pub struct WordGate {
    gate: Gate,
    /// For each word of the gate, the alternatives that it points to.
    leads: Vec<Vec<u32>>,
    alternatives: Vec<Alternative>,
    wordless: Wordless,
}

/// What an alternative belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// A noise entry, by its number in [`RuleSet::noise`].
    Noise(usize),
    /// A cancel, by its number in [`RuleSet::cancels`].
    Cancel(usize),
}

struct Alternative {
    looks: Looks,
    owner: Owner,
    pattern: Pattern,
}

/// The alternatives that may match a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maybe(Vec<u32>);

/// What a text begins and ends with.
struct Ends {
    /// Its first visible byte.
    first: Option<u8>,
    last: Option<u8>,
    /// Whether it begins with white space.
    indented: bool,
}

impl Ends {
    fn of(text: &[u8]) -> Self {
        Self { first: first_visible(text), last: text.last().copied(), indented: is_indented(text) }
    }

    fn fit(&self, looks: &Looks) -> bool {
        looks.fits(self.first, self.last, self.indented)
    }
}

/// Returns the ids of the noise and the cancels about which nothing is known
/// before they are asked: they are asked of every line that may hold an error.
pub fn untold(rules: &RuleSet) -> impl Iterator<Item = &str> {
    let Clues { noise, cancels } = rules.clues();
    let noise = rules.noise.iter().map(|&entry| rules.entries[usize::from(entry)].id.as_str()).zip(noise);
    let all = noise.chain(rules.cancels.iter().map(|cancel| cancel.id.as_str()).zip(cancels));
    all.filter(|(_, clues)| clues.iter().any(Clue::tells_nothing)).map(|(id, _)| id)
}

impl WordGate {
    /// Builds the gate for `rules`.
    #[must_use]
    pub fn new(rules: &RuleSet) -> Self {
        let Clues { noise, cancels } = rules.clues();
        let noise = (0..).zip(noise).map(|(at, clues)| (Owner::Noise(at), clues));
        let cancels = (0..).zip(cancels).map(|(at, clues)| (Owner::Cancel(at), clues));
        let all: Vec<(Owner, Clue)> = noise.chain(cancels).flat_map(|(owner, clues)| clues.into_iter().map(move |clue| (owner, clue))).collect();
        let mut numbers: BTreeMap<String, usize> = all.iter().flat_map(|(_, clue)| &clue.words).map(|word| (word.clone(), 0)).collect();
        (0..).zip(numbers.values_mut()).for_each(|(at, number)| *number = at);
        let words: Vec<String> = numbers.keys().map(|word| format!("*{word}*")).collect();
        let gate = Gate::new(words.iter().map(|word| (word.as_str(), false)));
        let mut leads = vec![Vec::new(); words.len()];
        let wordless = (0..).zip(&all).filter(|(_, (_, clue))| clue.words.is_empty());
        let wordless: Vec<(u32, &Looks)> = wordless.map(|(at, (_, clue))| (at, &clue.looks)).collect();
        let wordless = Wordless::new(&wordless);
        let mut alternatives = Vec::with_capacity(all.len());
        for (at, (owner, clue)) in (0..).zip(all) {
            clue.words.iter().for_each(|word| leads[numbers[word]].push(at));
            alternatives.push(Alternative { pattern: Pattern::new(clue.source, false), looks: clue.looks, owner });
        }
        Self { gate, leads, alternatives, wordless }
    }

    /// Returns what the line may be, as a whole, without its prefix or
    /// behind a mark, and what may match in it; `signs` are those of the whole line.
    #[must_use]
    pub fn of(&self, line: &Line, signs: Signs) -> Maybe {
        let marked = line.marked();
        let parts = [line.text, line.body(), marked.unwrap_or_default()].map(Ends::of);
        let parts = if marked.is_some() { &parts[..] } else { &parts[..2] };
        let mut found = Vec::with_capacity(TYPICAL_ALTERNATIVES);
        let looks_of = |number: u32| &self.alternatives[number as usize].looks;
        self.wordless.fitting(parts, |number| {
            if looks_of(number).allow(signs) {
                found.push(number);
            }
        });
        self.gate.scan(line.text, |id, _| {
            for &number in &self.leads[id] {
                let looks = looks_of(number);
                if looks.allow(signs) && parts.iter().any(|part| part.fit(looks)) && !found.contains(&number) {
                    found.push(number);
                }
            }
            true
        });
        // The order of the rules: the first noise that matches is the one that counts.
        found.sort_unstable();
        Maybe(found)
    }

    /// Returns the noise that the line may be, by its number in [`RuleSet::noise`],
    /// and the pattern that decides; a number may occur more than once.
    pub fn noise<'a>(&'a self, maybe: &'a Maybe) -> impl Iterator<Item = (usize, &'a Pattern)> {
        self.asked(maybe).filter_map(|asked| if let Owner::Noise(at) = asked.owner { Some((at, &asked.pattern)) } else { None })
    }

    /// Returns the numbers in [`RuleSet::cancels`] of the cancels that match in `text`, which is the line or a part of it.
    pub fn cancels(&self, maybe: &Maybe, text: Shown) -> Vec<usize> {
        let mut found = Vec::new();
        for Alternative { owner, pattern, .. } in self.asked(maybe) {
            if let Owner::Cancel(at) = *owner
                && !found.contains(&at)
                && pattern.takes(text)
            {
                found.push(at);
            }
        }
        found
    }

    fn asked<'a>(&'a self, maybe: &'a Maybe) -> impl Iterator<Item = &'a Alternative> {
        maybe.0.iter().map(|&number| &self.alternatives[number as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::Timestamp;
    use crate::core::line::Place;
    use crate::rules::{ExampleSpec, Kind};

    fn asked<'g>(gate: &'g WordGate, line: &Line) -> (Maybe, &'g WordGate) {
        (gate.of(line, Signs::of(line.text)), gate)
    }

    #[test]
    fn noise_and_cancels_are_as_their_patterns_say() {
        let rules = RuleSet::builtin();
        let gate = WordGate::new(&rules);
        let noise = |entry: &u16| match &rules.entries[usize::from(*entry)].kind {
            Kind::Noise { regex, .. } => regex,
            other => panic!("{other:?}"),
        };
        let noise: Vec<&Pattern> = rules.noise.iter().map(noise).collect();
        let texts =
            |examples: &'_ ExampleSpec| examples.matching.iter().chain(&examples.no_match).flat_map(|text| text.lines()).map(str::to_owned).collect::<Vec<_>>();
        let all = rules.entries.iter().map(|entry| &entry.examples).chain(rules.cancels.iter().map(|cancel| &cancel.examples));
        let mut matched = 0;
        for (number, text) in all.flat_map(texts).enumerate() {
            let dressed = [text.clone(), format!("  {text}"), format!("2026-11-20T10:00:00Z {text}"), format!("{text} "), format!("ERROR {text}")];
            let line = Line::new(Place::default(), dressed[number % dressed.len()].as_bytes(), Timestamp::default());
            let (maybe, gate) = asked(&gate, &line);
            for (at, regex) in noise.iter().enumerate() {
                let mine = |text| gate.noise(&maybe).any(|(noise, pattern)| noise == at && pattern.is_match(text));
                assert_eq!((mine(line.body()), mine(line.text)), (regex.is_match(line.body()), regex.is_match(line.text)), "{} in {text:?}", regex.source());
                matched += usize::from(regex.is_match(line.body()));
            }
            let wanted: Vec<usize> = (0..rules.cancels.len()).filter(|&at| rules.cancels[at].regex.is_match(line.body())).collect();
            let mut found = gate.cancels(&maybe, Shown::new(line.body(), line.signs()));
            found.sort_unstable();
            assert_eq!(found, wanted, "{text:?}");
            matched += found.len();
        }
        assert!(matched >= rules.noise.len() + rules.cancels.len(), "{matched}");
    }

    #[test]
    fn every_built_in_noise_and_cancel_is_told_by_something() {
        assert_eq!(untold(&RuleSet::builtin()).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn an_ordinary_line_is_hardly_asked() {
        let rules = RuleSet::builtin();
        let gate = WordGate::new(&rules);
        for text in ["ValueError: invalid literal for int() with base 10: 'x'", "src/cart.c:3:5: error: 'qty' undeclared (first use in this function)"] {
            let line = Line::new(Place::default(), text.as_bytes(), Timestamp::default());
            let (maybe, _) = asked(&gate, &line);
            assert!(maybe.0.len() < 8, "{:?}", gate.asked(&maybe).map(|asked| asked.pattern.source()).collect::<Vec<_>>());
        }
    }
}
