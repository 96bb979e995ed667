//! Which patterns ask for blanks at the end of a text. A line means the same with and without blanks at its end, so it
//! is read without them; a pattern that asks for some (`^Error: $`, `^ \* .*`) is tried again with blanks behind the
//! text. What could stand before those tells for which texts: hardly any. Nothing here looks at a text.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::ends::{Ends, first_bytes};

/// A class of more bytes, like `.`, asks for text, although it has a blank.
const MAX_BLANK_CLASS: usize = 8;

/// Returns the last bytes of the texts that match only with blanks behind them,
/// "no byte" among them if a match is nothing but blanks. `None` if there are no such texts.
pub(super) fn before_blanks(hir: &Hir) -> Option<Ends> {
    let mut set = Ends::default();
    let reached = back(hir, Reached { bare: true, padded: false }, &mut set);
    if reached.padded && first_bytes(hir).is_some_and(|first| first.is_of_blanks()) {
        set.add_none();
    }
    (set.count() > 0).then_some(set)
}

/// How a place in a pattern can be reached from its end: without a blank that is asked for, or over one or more.
#[derive(Clone, Copy)]
struct Reached {
    bare: bool,
    padded: bool,
}

impl Reached {
    const NOT: Self = Self { bare: false, padded: false };

    fn or(self, other: Self) -> Self {
        Self { bare: self.bare || other.bare, padded: self.padded || other.padded }
    }

    fn over_blank(self) -> Self {
        Self { bare: false, padded: self.bare || self.padded }
    }
}

/// Goes from the end of `hir` to its beginning; adds the bytes that stand before blanks.
fn back(hir: &Hir, from: Reached, set: &mut Ends) -> Reached {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => from,
        HirKind::Literal(literal) => literal.0.iter().rev().fold(from, |from, byte| over_bytes(&[*byte], from, set)),
        HirKind::Class(class) => over_bytes(&class_bytes(class), from, set),
        HirKind::Repetition(repeat) if repeat.min == 0 => {
            back(&repeat.sub, from, set);
            // If it is nothing but blanks, nobody asks for them.
            let inside = back(&repeat.sub, Reached { bare: false, ..from }, set);
            from.or(inside)
        }
        HirKind::Repetition(repeat) => {
            let once = back(&repeat.sub, from, set);
            if repeat.max == Some(1) { once } else { once.or(back(&repeat.sub, once, set)) }
        }
        HirKind::Capture(group) => back(&group.sub, from, set),
        HirKind::Concat(parts) => parts.iter().rev().fold(from, |from, part| back(part, from, set)),
        HirKind::Alternation(branches) => branches.iter().fold(Reached::NOT, |all, branch| all.or(back(branch, from, set))),
    }
}

fn over_bytes(bytes: &[u8], from: Reached, set: &mut Ends) -> Reached {
    if from.padded {
        bytes.iter().filter(|byte| !is_blank(**byte)).for_each(|byte| set.add(*byte));
    }
    let asks_for_blank = bytes.len() <= MAX_BLANK_CLASS && bytes.contains(&b' ');
    if asks_for_blank { from.over_blank() } else { Reached::NOT }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns the last bytes of the characters of a class.
fn class_bytes(class: &Class) -> Vec<u8> {
    match class {
        Class::Bytes(class) => class.iter().flat_map(|range| range.start()..=range.end()).collect(),
        Class::Unicode(class) => {
            let ascii = class.iter().flat_map(|range| u32::from(range.start())..=u32::from(range.end()).min(0x7f)).map(|byte| byte as u8);
            let further = class.iter().any(|range| range.end() > '\x7f').then_some(0x80..=0xbf);
            ascii.chain(further.into_iter().flatten()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::source::parsed;

    #[test]
    fn blanks_are_asked_for_behind_these_bytes() {
        let of = |source: &str| {
            let found = before_blanks(&parsed(source, false).expect("parses"))?;
            let bytes: String = (0..0x80).filter(|byte| found.has(Some(*byte))).map(char::from).collect();
            Some((bytes, found.has(None)))
        };
        for (source, bytes, none) in [
            ("^Error: $", ":", false),
            (r"^ \* .*", "*", false),
            ("^a(?:: (?P<message>.*))?$", ":", false),
            (r"^\d+[.)]  .*$", ").", false),
            (r"^[ab]c?\s$", "abc", false),
            (r"^(?:\[\d\] )*\s*$", "]", false),
            (r"^ {4}\s*$", "", true),
            (r"^\s+$", "\n\x0b\x0c\r", true),
        ] {
            assert_eq!(of(source), Some((bytes.to_owned(), none)), "{source}");
        }
        for source in ["^Error:$", r"^a\s*$", "^a .$", r"^a\b *.*", "^$", r"^\s*$", "^ {2}.*"] {
            assert_eq!(of(source), None, "{source}");
        }
    }
}
