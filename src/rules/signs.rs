//! Signs: bytes that tell something about a text because most texts lack them. One pass over a text finds which of them
//! it holds. Then a single test tells for each pattern, and for each other check, that what it needs is not there.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde::{Deserialize, Serialize};

/// The sign that each byte is, as one bit; 0: the byte is in most texts, and no sign. Bytes that are rarely asked for share one.
const SIGNS: [u64; 256] = {
    const DIGIT: u64 = 1 << 58;
    const TAB: u64 = 1 << 59;
    const CONTROL: u64 = 1 << 60;
    const HIGH: u64 = 1 << 61;
    const RARE: u64 = 1 << 62;
    let (mut signs, mut byte, mut used) = ([0; 256], 0, 0);
    while byte < 256 {
        signs[byte] = match byte as u8 {
            b'\t' => TAB,
            0..b' ' | 0x7f => CONTROL,
            0x80.. => HIGH,
            b'0'..=b'9' => DIGIT,
            b'j' | b'q' | b'x' | b'z' => RARE,
            b' ' | b'a'..=b'z' => 0,
            _ => {
                used += 1;
                1 << (used - 1)
            }
        };
        byte += 1;
    }
    assert!(1 << used == DIGIT);
    signs
};

/// A set of signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Signs(u64);

impl Signs {
    /// Returns the signs in `text`.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        Self(text.iter().fold(0, |signs, &byte| signs | sign(byte)))
    }

    /// Returns signs that every match of a pattern holds.
    pub(super) fn needed(hir: &Hir) -> Self {
        Self(needed(hir))
    }

    /// Whether `byte` may be in the text; certain for punctuation.
    #[inline]
    #[must_use]
    pub fn has(self, byte: u8) -> bool {
        self.hold(Self(sign(byte)))
    }

    /// Whether one of `any` is among them.
    #[inline]
    #[must_use]
    pub fn meet(self, any: Self) -> bool {
        any.0 & self.0 != 0
    }

    /// Whether all that are `needed` are among them.
    #[inline]
    #[must_use]
    pub fn hold(self, needed: Self) -> bool {
        needed.0 & !self.0 == 0
    }

    /// Whether a quotation mark is in the text.
    #[must_use]
    pub fn has_quote(self) -> bool {
        self.has(b'"') || self.has(b'\'') || self.has(b'`')
    }
}

#[inline]
fn sign(byte: u8) -> u64 {
    SIGNS[usize::from(byte)]
}

fn needed(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().fold(0, |all, &byte| all | sign(byte)),
        HirKind::Class(class) => shared(class),
        HirKind::Repetition(repeat) if repeat.min > 0 => needed(&repeat.sub),
        HirKind::Capture(group) => needed(&group.sub),
        HirKind::Concat(parts) => parts.iter().fold(0, |all, part| all | needed(part)),
        HirKind::Alternation(branches) => branches.iter().map(needed).reduce(|all, one| all & one).unwrap_or(0),
        HirKind::Repetition(_) | HirKind::Empty | HirKind::Look(_) => 0,
    }
}

/// Returns the sign that all bytes of the class share.
fn shared(class: &Class) -> u64 {
    let of = |from: u8, to: u8| (from..=to).map(sign).fold(u64::MAX, |all, one| all & one);
    // Of a longer character, the last byte is a sign, too.
    let byte = |c: char| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(0x80);
    let all = match class {
        Class::Bytes(class) => class.iter().map(|range| of(range.start(), range.end())).reduce(|all, one| all & one),
        Class::Unicode(class) => class.iter().map(|range| of(byte(range.start()), byte(range.end()))).reduce(|all, one| all & one),
    };
    all.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    #[test]
    fn punctuation_is_told_apart_and_letters_are_in_any_text() {
        let signs = Signs::of(b"f(\"A\")");
        for (byte, is_there) in [(b'(', true), (b'"', true), (b'A', true), (b'\'', false), (b'B', false), (b'7', false), (b'e', true), (b' ', true)] {
            assert_eq!(signs.has(byte), is_there, "{}", char::from(byte));
        }
        assert!(signs.has_quote() && !Signs::of(b"f(A)").has_quote());
    }

    #[test]
    fn a_pattern_needs_what_all_its_matches_hold() {
        for (source, held, lacking) in [
            (r"^\s*at (?P<f>\S+)\((?P<line>\d+)?\)", "at f()", "at f("),
            (r"(?:Error|Exception): ", "Exc: 1", "error: 1"),
            (r"(?:\[a\]|\[b)c+", "[", "]"),
            (r"x\d+", "xx9", "xx"),
            (r"(?i)Error", "", "\0"),
            (r"[é✗]", "é", "e"),
            (r"a?\t", "\t", " "),
        ] {
            let needed = Signs::needed(&parsed(source, false).expect("parses"));
            assert!(Signs::of(held.as_bytes()).hold(needed), "{source}");
            assert_eq!(Signs::of(lacking.as_bytes()).hold(needed), needed == Signs::default(), "{source}");
        }
    }
}
