//! Regexes of rules: compiled at their first use, linear in time, limited in size, over bytes.
//! Patterns that are pure ASCII run without Unicode tables, which halves their cost.

use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Largest compiled size of one pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 2 << 20;

/// A regex that is compiled when it is first asked.
#[derive(Debug)]
pub struct Pattern {
    source: String,
    ignore_case: bool,
    compiled: OnceLock<Compiled>,
    keyed: bool,
}

#[derive(Debug)]
struct Compiled {
    regex: Regex,
    first: Option<Box<[bool; 256]>>,
}

impl Pattern {
    /// Keeps the source; compiles nothing.
    #[must_use]
    pub fn new(source: impl Into<String>, ignore_case: bool) -> Self {
        let source = source.into();
        let keyed = source.contains("(?P<key>") || source.contains("(?P<name>");
        Self { source, ignore_case, compiled: OnceLock::new(), keyed }
    }

    /// What the text is about, for status lines that claim each other: group `key`, or `name`.
    #[must_use]
    pub fn key(&self, text: &[u8]) -> Option<Vec<u8>> {
        if !self.keyed {
            return None;
        }
        let captures = self.captures(text)?;
        let group = captures.name("key").or_else(|| captures.name("name"))?;
        Some(group.as_bytes().to_vec())
    }

    /// The source, as written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// As a group that keeps its flags inside a larger pattern.
    #[must_use]
    pub fn inline(&self) -> String {
        let unicode = if self.source.is_ascii() { "-u" } else { "" };
        let case = if self.ignore_case { "i" } else { "" };
        format!("(?{case}{unicode}:{})", self.source)
    }

    /// Compiles now.
    ///
    /// # Errors
    /// A syntax error, or a compiled size above 2 MiB.
    pub fn check(&self) -> Result<(), regex::Error> {
        self.build().map(drop)
    }

    fn build(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.source)
            .unicode(!self.source.is_ascii())
            .case_insensitive(self.ignore_case)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES)
            .build()
    }

    /// The regex. A pattern that `check` would reject matches nothing; the loader never lets one in.
    pub fn regex(&self) -> &Regex {
        &self.compiled().regex
    }

    fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| Compiled { regex: self.build().unwrap_or_else(|_| nothing()), first: self.first_bytes() })
    }

    /// Whether it matches somewhere in `text`. Most rows of a trace fail at the first visible byte
    /// of a line, which a table tells for a tenth of the price.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let compiled = self.compiled();
        if let Some(first) = &compiled.first {
            match text.iter().find(|b| !is_blank(**b)) {
                Some(byte) if first[usize::from(*byte)] => {}
                _ => return false,
            }
        }
        compiled.regex.is_match(text)
    }

    /// For a pattern that is anchored at the start: the bytes with which the visible part of a match
    /// can begin. `None` when nothing can be said.
    fn first_bytes(&self) -> Option<Box<[bool; 256]>> {
        let mut parser = ParserBuilder::new().utf8(false).unicode(!self.source.is_ascii()).case_insensitive(self.ignore_case).build();
        let hir = parser.parse(&self.source).ok()?;
        if !hir.properties().look_set_prefix().contains(Look::Start) {
            return None;
        }
        let mut set = Box::new([false; 256]);
        (!may_stay_blank(&hir, &mut set)).then_some(set)
    }

    /// The groups of its first match.
    pub fn captures<'t>(&self, text: &'t [u8]) -> Option<Captures<'t>> {
        self.regex().captures(text)
    }
}

fn nothing() -> Regex {
    Regex::new(r"[^\s\S]").expect("an empty class is a valid regex")
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Adds the bytes with which the visible part of a match of `hir` can begin; `true` when it can match
/// without any.
fn may_stay_blank(hir: &Hir, set: &mut [bool; 256]) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => match literal.0.iter().find(|b| !is_blank(**b)) {
            Some(byte) => {
                set[usize::from(*byte)] = true;
                false
            }
            None => true,
        },
        HirKind::Class(class) => class_may_be_blank(class, set),
        HirKind::Repetition(repeat) => may_stay_blank(&repeat.sub, set) || repeat.min == 0,
        HirKind::Capture(group) => may_stay_blank(&group.sub, set),
        HirKind::Concat(parts) => parts.iter().all(|part| may_stay_blank(part, set)),
        HirKind::Alternation(branches) => {
            let mut blank = false;
            for branch in branches {
                blank |= may_stay_blank(branch, set);
            }
            blank
        }
    }
}

fn class_may_be_blank(class: &Class, set: &mut [bool; 256]) -> bool {
    let mut blank = false;
    let mut add = |from: u8, to: u8| {
        for byte in from..=to {
            if is_blank(byte) {
                blank = true;
            } else {
                set[usize::from(byte)] = true;
            }
        }
    };
    match class {
        Class::Bytes(class) => class.iter().for_each(|range| add(range.start(), range.end())),
        Class::Unicode(class) => {
            let lead = |c: char| c.encode_utf8(&mut [0; 4]).as_bytes()[0];
            class.iter().for_each(|range| add(lead(range.start()), lead(range.end())));
        }
    }
    blank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_never_hides_a_match() {
        let patterns =
            [r"^\s*at \S", r"^[ |]*  File ", r"^\s*$", r"^(?:a|  b|\tc)d?", r"^x?", r"^ *(?:é|✗) ", r"^[^a]b", r"^\s+\S", r"^(?:\S.*)?error", "error"];
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
