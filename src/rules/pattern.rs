//! The patterns of rules, over bytes: compiled at first use, linear in time, limited in size.
//! Most run as a [`Program`]; `regex` runs what a program cannot. Few need Unicode tables.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::clue::{Clue, clues};
use super::compiled::{Compiled, has_groups, reader};
use super::ends::first_visible;
use super::forms::forms;
use super::program::{MAX_NAMED, Program, Slots, UNSET};
use super::prove::required_words;
use super::shelf::Form;
use super::source::{self, NOTHING, parsed};
use super::state::Shown;

/// Largest compiled size of one pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 2 << 20;

/// Cost of one call of `regex`, and of each byte of its text, in the fuel of a program.
const REGEX_FUEL: usize = 300;
const REGEX_FUEL_PER_BYTE: usize = 2;
/// What is put behind a text that has lost its blanks, in this order: what most patterns ask for, and what suffices for the others.
const PADDINGS: [&[u8]; 2] = [b" ", b"            "];
/// Longest text that is tried again with blanks, in bytes.
const MAX_PADDED_BYTES: usize = 4 << 10;
/// A program is no longer run once its slowness counter exceeds this.
const MAX_SLOW: u32 = 64;

/// A pattern that is compiled when it is first used.
#[derive(Debug)]
pub struct Pattern {
    source: String,
    ignore_case: bool,
    /// Boxed, as is the reader: a run uses few of the patterns.
    compiled: OnceLock<Box<Compiled>>,
    /// The program that reads the groups.
    reader: OnceLock<Option<Box<Program>>>,
    regex: OnceLock<Regex>,
    names: OnceLock<Box<[Box<str>]>>,
    keyed: bool,
    has_pre: bool,
    /// Slowness counter of the program: each slow run adds 2, each other run takes 1 away.
    slow: AtomicU32,
}

/// The named groups of a match.
pub struct Groups<'p, 't> {
    text: &'t [u8],
    names: &'p [Box<str>],
    slots: Slots,
}

impl<'t> Groups<'_, 't> {
    /// Returns what group `name` matched; `None` when the group took no part.
    #[must_use]
    pub fn name(&self, name: &str) -> Option<&'t [u8]> {
        let at = 2 * self.names.iter().position(|known| **known == *name)?;
        let (from, to) = (self.slots[at], self.slots[at + 1]);
        if from == UNSET || to == UNSET { None } else { self.text.get(from as usize..to as usize) }
    }
}

impl Pattern {
    /// Keeps the source without compiling it.
    #[must_use]
    pub fn new(source: impl Into<String>, ignore_case: bool) -> Self {
        let source = source.into();
        let keyed = source.contains("(?P<key>") || source.contains("(?P<name>");
        let has_pre = source.contains("(?P<pre>");
        Self {
            source,
            ignore_case,
            compiled: OnceLock::new(),
            reader: OnceLock::new(),
            regex: OnceLock::new(),
            names: OnceLock::new(),
            keyed,
            has_pre,
            slow: AtomicU32::new(0),
        }
    }

    /// Returns what the text is about, for status lines that claim each other: group `key`, or else `name`.
    #[must_use]
    pub fn key(&self, text: &[u8]) -> Option<Vec<u8>> {
        if !self.keyed {
            return None;
        }
        let groups = self.groups(text)?;
        groups.name("key").or_else(|| groups.name("name")).map(<[u8]>::to_vec)
    }

    /// Returns the source, as written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Compiles now and returns the names of the groups.
    ///
    /// # Errors
    /// A syntax error, or a compiled size above 2 MiB.
    pub fn check(&self) -> Result<Vec<String>, regex::Error> {
        self.build().map(|regex| regex.capture_names().flatten().map(str::to_owned).collect())
    }

    fn build(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.source)
            .unicode(source::needs_unicode(&self.source))
            .case_insensitive(self.ignore_case)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES)
            .build()
    }

    /// Returns the regex. A pattern that `check` would reject matches nothing; the loader never lets one in.
    pub fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| self.build().unwrap_or_else(|_| nothing()))
    }

    pub(super) fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| Box::new(self.made(Form::Match).unwrap_or_else(|| Compiled::new(&self.source, self.ignore_case))))
    }

    /// Returns a form that the build has made of the same source.
    fn made<T: Deserialize<'static>>(&self, form: Form) -> Option<T> {
        forms().find(&self.source, self.ignore_case, form)
    }

    /// Returns words of which every matching text contains one, in any case; `None` if no such words are known.
    #[must_use]
    pub fn required_words(&self) -> Option<Vec<String>> {
        required_words(&parsed(&self.source, self.ignore_case)?)
    }

    /// Returns the clues that a matching text must show.
    #[must_use]
    pub fn clues(&self) -> Vec<Clue> {
        clues(&self.source, self.ignore_case)
    }

    fn reader(&self) -> Option<&Program> {
        self.reader.get_or_init(|| self.made(Form::Groups).or_else(|| reader(&self.source, self.ignore_case)).map(Box::new)).as_deref()
    }

    /// Whether the pattern matches somewhere in `text`. Most rows of a trace fail at the
    /// first visible byte of a line, which a table lookup decides for a tenth of the cost.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let compiled = self.compiled();
        compiled.may_match(text, first_visible(text)) && self.decide(compiled, text)
    }

    /// Whether the pattern is written for JSON objects as they stand in a log: it begins with their opening brace.
    #[must_use]
    pub fn spells_records(&self) -> bool {
        self.source.starts_with(r"^\{")
    }

    /// [`is_match`](Self::is_match) for a text whose signs are known.
    #[must_use]
    pub fn takes(&self, text: Shown) -> bool {
        let compiled = self.compiled();
        compiled.may_match(text.bytes, text.lead) && compiled.may_be_in(text.signs) && self.decide(compiled, text.bytes)
    }

    /// [`takes`](Self::takes) for a text whose ends are known to allow a match.
    #[must_use]
    pub fn decides(&self, text: Shown) -> bool {
        let compiled = self.compiled();
        compiled.may_be_in(text.signs) && self.decide(compiled, text.bytes)
    }

    /// Whether the pattern matches in `text` with the blanks behind it that the pattern asks for: a line has lost its own.
    #[must_use]
    pub fn takes_padded(&self, text: Shown) -> bool {
        let compiled = self.compiled();
        compiled.may_be_in(text.signs) && self.paddings(text.bytes).any(|padded| self.decide(compiled, &padded))
    }

    /// Returns the text with blanks behind it, if the pattern may ask for some.
    fn paddings<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = Vec<u8>> + use<'t> {
        let is_tried = self.compiled().may_lack_blanks(text.last().copied()) && text.len() <= MAX_PADDED_BYTES;
        let paddings = if is_tried { &PADDINGS[..] } else { &[] };
        paddings.iter().map(move |padding| [text, padding].concat())
    }

    fn decide(&self, compiled: &Compiled, text: &[u8]) -> bool {
        if !compiled.has_needed(text) {
            return false;
        }
        compiled.program.as_ref().and_then(|program| self.run(program, text)).unwrap_or_else(|| self.regex().is_match(text))
    }

    /// Runs the program, unless it has mostly been slower than `regex` would have been.
    fn run(&self, program: &Program, text: &[u8]) -> Option<bool> {
        let slow = self.slow.load(Relaxed);
        if slow > MAX_SLOW {
            return None;
        }
        let mut spent = 0;
        let found = program.run(text, None, &mut spent).ok();
        let is_slow = spent > REGEX_FUEL_PER_BYTE * text.len() + REGEX_FUEL;
        if is_slow || slow > 0 {
            self.slow.store(if is_slow { slow + 2 } else { slow - 1 }, Relaxed);
        }
        found
    }

    /// Returns where the pattern matches in `text`, one match after the other; those that are empty are left out.
    #[must_use]
    pub fn spans(&self, text: &[u8]) -> Vec<Range<usize>> {
        let of_regex = || self.regex().find_iter(text).map(|found| found.range()).filter(|span| !span.is_empty()).collect();
        self.reader().and_then(|program| program.spans(text).ok()).unwrap_or_else(of_regex)
    }

    /// Whether the pattern has group `pre`: the prefix before the text.
    #[must_use]
    pub fn has_pre(&self) -> bool {
        self.has_pre
    }

    /// Whether the pattern has named groups.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        has_groups(&self.source)
    }

    /// Returns the named groups of the first match, in the text as it is or with the blanks that the pattern asks for.
    pub fn groups<'t>(&self, text: &'t [u8]) -> Option<Groups<'_, 't>> {
        self.exact_groups(text).or_else(|| {
            self.paddings(text).find_map(|padded| {
                let Groups { names, mut slots, .. } = self.exact_groups(&padded)?;
                // What lies in the blanks is empty.
                slots.iter_mut().filter(|slot| **slot != UNSET).for_each(|slot| *slot = (*slot).min(text.len() as u32));
                Some(Groups { text, names, slots })
            })
        })
    }

    fn exact_groups<'t>(&self, text: &'t [u8]) -> Option<Groups<'_, 't>> {
        let mut slots = [UNSET; 2 * MAX_NAMED];
        if let Some(program) = self.reader()
            && let Ok(found) = program.run(text, Some(&mut slots), &mut 0)
        {
            return found.then_some(Groups { text, names: program.names(), slots });
        }
        self.regex_groups(text)
    }

    fn regex_groups<'t>(&self, text: &'t [u8]) -> Option<Groups<'_, 't>> {
        let regex = self.regex();
        let captures = regex.captures(text)?;
        let names = self.names.get_or_init(|| regex.capture_names().flatten().take(MAX_NAMED).map(Box::from).collect());
        let mut slots = [UNSET; 2 * MAX_NAMED];
        for (index, name) in names.iter().enumerate() {
            if let Some(found) = captures.name(name) {
                (slots[2 * index], slots[2 * index + 1]) = (found.start() as u32, found.end() as u32);
            }
        }
        Some(Groups { text, names, slots })
    }
}

fn nothing() -> Regex {
    Regex::new(NOTHING).expect("an empty class is a valid regex")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RuleSet;

    /// Asserts that the program and `regex` agree on the match and on each group.
    fn agrees(pattern: &Pattern, text: &[u8]) {
        let shown = || format!("{} on {:?}", pattern.source(), String::from_utf8_lossy(text));
        assert_eq!(pattern.is_match(text), pattern.regex().is_match(text), "{}", shown());
        let whole: Vec<_> = pattern.regex().find_iter(text).map(|found| found.range()).filter(|span| !span.is_empty()).collect();
        assert_eq!(pattern.spans(text), whole, "{}", shown());
        let (mine, theirs) = (pattern.exact_groups(text), pattern.regex().captures(text));
        assert_eq!(mine.is_some(), theirs.is_some(), "{}", shown());
        if let (Some(mine), Some(theirs)) = (mine, theirs) {
            for name in pattern.regex().capture_names().flatten() {
                assert_eq!(mine.name(name), theirs.name(name).map(|group| group.as_bytes()), "{name} of {}", shown());
            }
        }
    }

    /// Tries short texts over the letters of the patterns, in every order, up to five bytes.
    #[test]
    fn a_program_finds_what_regex_finds() {
        let patterns = [
            r"^(?P<a>a*?)(?P<b>b*)c?$",
            r"(?P<a>a|ab)(?P<b>c|bcd)?(?P<d>d*)",
            r"^(?:(?P<a>[ab]+)c)+",
            r"^(?:.*[bc])?(?P<a>a+?)b{1,2}",
            r"(?:^|[bc])(?P<a>a.?)(?:c|$)",
            r"^(?P<a>(?:ab|a)*)(?P<b>b?c)?",
            r"^(?P<a>.{2,3}?)(?P<b>c|$)",
            r"\b(?P<a>a+)\b|(?P<b>\Bc)",
            r"^(?:(?P<a>a)|(?P<b>b))*c",
            r"^(?P<a>[^c]*)c(?P<b>.*)$",
            r"(?:a|b|c){2}(?P<a>a??)",
            r"^$|^(?P<a>a)",
            r"(?-u)^a*(?:é|✗|b)(?P<a>a|✔)?",
            // Anchored and free branches mixed; several with the same beginning; empty ones.
            r"^(?P<a>ab)|(?P<b>b+)c|^c(?P<c>.*)|ca",
            r"^ab|^ba|cc|^ca b",
            r"(?:ab|a|abc|b|)(?P<a>c| |)(?P<b>ca|b|c|bc|a)$",
            r"(?:(?:a|b|ab|ba)(?:c|ca|cab| )){2}(?P<a>.*)",
            r"\b(?:ab|ac|b)\b|^(?P<a> )+|$",
        ];
        let letters = b"abc ";
        for source in patterns {
            let pattern = Pattern::new(source, false);
            assert!(pattern.compiled().program.is_some() && pattern.reader().is_some(), "{source}");
            for length in 0..=5_u32 {
                for number in 0..4_usize.pow(length) {
                    let text: Vec<u8> = (0..length).map(|at| letters[number / 4_usize.pow(at) % 4]).collect();
                    agrees(&pattern, &text);
                }
            }
        }
    }

    /// It tells more bytes apart than a set has bits, unless its look-ahead is coarse.
    #[test]
    fn a_pattern_with_many_sets_runs_as_a_program() {
        let firsts: String = ('a'..='z').chain('A'..='Z').chain('0'..='5').map(|first| format!("{first}q|")).collect();
        let pattern = Pattern::new(format!(r"(?-u)^(?:{firsts}[\d.]z[\s-]|[a-f!]z[^,;]|\w\wx)"), false);
        assert!(pattern.compiled().program.is_some());
        for text in ["aq", "6z-", ".z ", "!z,", "fzz", "__x", "5q", "6q", "Zq", ""] {
            agrees(&pattern, text.as_bytes());
        }
    }

    /// A text for which a backtracker could take exponential time goes to `regex`.
    #[test]
    fn a_hostile_text_runs_out_of_fuel() {
        let pattern = Pattern::new(r"^(?:(?:a|aa)+(?:a|aa)+)+$", false);
        let text = [b"a".repeat(5000), b"!".to_vec()].concat();
        let program = pattern.compiled().program.as_ref().unwrap();
        assert!(program.run(&text, None, &mut 0).is_err());
        assert!(!pattern.is_match(&text));
    }

    /// The start of each run would have to compile the patterns that the build has left out.
    #[test]
    fn the_build_has_made_what_each_pattern_runs_as() {
        let rules = RuleSet::builtin();
        for pattern in rules.patterns() {
            let bytes = |compiled: &Compiled| postcard::to_allocvec(compiled).unwrap();
            let made = pattern.made::<Compiled>(Form::Match).unwrap_or_else(|| panic!("{}", pattern.source));
            assert!(bytes(&made) == bytes(&Compiled::new(&pattern.source, pattern.ignore_case)), "{}", pattern.source);
            let is_cancel = rules.cancels.iter().any(|cancel| cancel.regex.source == pattern.source);
            let anew = reader(&pattern.source, pattern.ignore_case).filter(|_| is_cancel || pattern.has_groups());
            assert!(pattern.made::<Program>(Form::Groups) == anew, "{}", pattern.source);
        }
    }

    #[test]
    fn every_built_in_pattern_agrees_with_regex() {
        let rules = RuleSet::builtin();
        let examples = rules.entries.iter().map(|entry| &entry.examples).chain(rules.cancels.iter().map(|cancel| &cancel.examples));
        let texts: Vec<&str> = examples.flat_map(|example| example.matching.iter().chain(&example.no_match)).flat_map(|text| text.lines()).collect();
        let (mut programs, mut count) = (0, 0);
        for (index, pattern) in rules.patterns().enumerate() {
            count += 1;
            programs += usize::from(pattern.compiled().program.is_some());
            // Each pattern is tried on a different part of the lines, one in 23.
            texts.iter().skip(index % 23).step_by(23).for_each(|text| agrees(pattern, text.as_bytes()));
        }
        assert!(programs * 10 >= count * 9, "{programs} of {count} patterns run as a program");
    }

    #[test]
    fn the_first_byte_never_hides_a_match() {
        let patterns = [
            r"^\s*at \S",
            r"^[ |]*  File ",
            r"^\s*$",
            r"^(?:a|  b|\tc)d?",
            r"^x?",
            r"^ *(?:é|✗) ",
            r"^[^a]b",
            r"^\s+\S",
            r"^(?:\S.*)?error",
            "error",
            r"^ *\|?$",
            r"^(?:[^b].*)?$",
            r"[at]$",
            r"^x*(?:é|✗)? ?$",
            r"\w(?: |r)??$",
        ];
        let texts =
            ["", " ", "\t", "  at x", "at x", "|  File ", "    File ", "ad", "  b", "\tc", "x", " é ", "✗ ", "bb", "\u{b}b", "  error", "an error", "error"];
        for source in patterns {
            for ignore_case in [false, true] {
                let pattern = Pattern::new(source, ignore_case);
                for text in texts {
                    assert_eq!(pattern.is_match(text.as_bytes()), pattern.regex().is_match(text.as_bytes()), "{source} on {text:?}");
                }
            }
        }
    }
}
