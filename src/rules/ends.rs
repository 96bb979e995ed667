//! What every match of a pattern has, derived from its parts: the byte that it can begin with,
//! the byte that it can end with, and a literal that it contains. A pattern tests these first,
//! because most texts fail at one of them. Each may be unknown; none rules out a match.

use std::ops::RangeInclusive;

use regex_syntax::hir::{Class, Hir, HirKind, Look};
use serde::{Deserialize, Serialize};

/// Most literals of which every match contains one, and the shortest such literal in bytes.
const MAX_NEEDED: usize = 2;
const MIN_NEEDED_BYTES: usize = 3;

/// Places in a table by the byte at an end of a text: the values of a byte, followed by one for "no byte".
pub const PLACES: usize = 257;

/// Returns the place of a byte.
#[inline(always)]
#[must_use]
pub fn place(byte: Option<u8>) -> usize {
    byte.map_or(PLACES - 1, usize::from)
}

/// Returns what has a place, in the order of the places.
pub fn placed() -> impl Iterator<Item = Option<u8>> {
    (0..=u8::MAX).map(Some).chain([None])
}

/// Bytes that something may begin or end with: one bit for each place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Ends([u64; PLACES.div_ceil(64)]);

impl Ends {
    /// Whether `byte` is in the set.
    #[inline(always)]
    pub(super) fn has(&self, byte: Option<u8>) -> bool {
        let place = place(byte);
        self.0[place / 64] & 1 << (place % 64) != 0
    }

    /// Returns the number of bytes in the set.
    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }

    /// Whether nothing but "no byte" and white space is in the set.
    pub(super) fn is_of_blanks(&self) -> bool {
        let blanks = BLANKS.iter().filter(|byte| self.has(Some(**byte))).count() as u32;
        self.has(None) && self.count() == 1 + blanks
    }

    /// Adds "no byte".
    pub(super) fn add_none(&mut self) {
        self.insert(None);
    }

    pub(super) fn add(&mut self, byte: u8) {
        self.insert(Some(byte));
    }

    fn add_all(&mut self, bytes: RangeInclusive<u8>) {
        bytes.for_each(|byte| self.add(byte));
    }

    fn insert(&mut self, byte: Option<u8>) {
        let place = place(byte);
        self.0[place / 64] |= 1 << (place % 64);
    }
}

/// Returns the bytes with which the visible part of a match can begin,
/// for a pattern anchored at the start. `None` when nothing is known.
pub(super) fn first_bytes(hir: &Hir) -> Option<Ends> {
    if !is_anchored(hir) {
        return None;
    }
    let mut set = Ends::default();
    (!may_stay_blank(hir, &mut set)).then_some(set)
}

/// The bytes that `\s` matches.
const BLANKS: &[u8] = b" \t\n\x0b\x0c\r";

/// Whether a text begins with white space.
#[must_use]
pub fn is_indented(text: &[u8]) -> bool {
    text.first().is_some_and(|byte| BLANKS.contains(byte))
}

/// Whether a pattern's matches stand in texts with white space at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Margin {
    /// With or without.
    #[default]
    Any,
    /// Only in those that are [indented](is_indented).
    Indented,
    /// Only in the others.
    Flush,
}

impl Margin {
    /// Returns what is known of the matches of `hir`.
    pub(super) fn of(hir: &Hir) -> Self {
        match beginning(hir) {
            Beginning { blank: true, visible: false, empty: false } if is_anchored(hir) => Self::Indented,
            Beginning { blank: false, visible: true, empty: false } if is_anchored(hir) => Self::Flush,
            _ => Self::Any,
        }
    }

    /// Whether a text may hold a match.
    #[inline]
    #[must_use]
    pub fn fits(self, indented: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Indented => indented,
            Self::Flush => !indented,
        }
    }
}

/// How a match can begin: with white space, with another byte, or without any byte.
#[derive(Clone, Copy, Default)]
struct Beginning {
    blank: bool,
    visible: bool,
    empty: bool,
}

impl Beginning {
    fn or(self, other: Self) -> Self {
        Self { blank: self.blank || other.blank, visible: self.visible || other.visible, empty: self.empty || other.empty }
    }
}

fn beginning(hir: &Hir) -> Beginning {
    let with =
        |byte: u8| if BLANKS.contains(&byte) { Beginning { blank: true, ..Default::default() } } else { Beginning { visible: true, ..Default::default() } };
    let empty = Beginning { empty: true, ..Default::default() };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => empty,
        HirKind::Literal(literal) => literal.0.first().map_or(empty, |byte| with(*byte)),
        HirKind::Class(Class::Bytes(class)) => class.iter().flat_map(|range| range.start()..=range.end()).map(with).fold(Beginning::default(), Beginning::or),
        HirKind::Class(Class::Unicode(_)) => Beginning { blank: true, visible: true, empty: false },
        HirKind::Repetition(repeat) => {
            let sub = beginning(&repeat.sub);
            Beginning { empty: sub.empty || repeat.min == 0, ..sub }
        }
        HirKind::Capture(group) => beginning(&group.sub),
        HirKind::Concat(parts) => parts.iter().fold(empty, |all, part| if all.empty { Beginning { empty: false, ..all }.or(beginning(part)) } else { all }),
        HirKind::Alternation(branches) => branches.iter().map(beginning).fold(Beginning::default(), Beginning::or),
    }
}

fn is_anchored(hir: &Hir) -> bool {
    hir.properties().look_set_prefix().contains(Look::Start)
}

/// Returns the bytes with which a match can end, for a pattern anchored at the end.
pub(super) fn last_bytes(hir: &Hir) -> Option<Ends> {
    if !hir.properties().look_set_suffix().contains(Look::End) {
        return None;
    }
    let mut set = Ends::default();
    (!may_be_empty(hir, &mut set)).then_some(set)
}

/// Adds the bytes with which a match of `hir` can end; `true` when it can match without any byte.
fn may_be_empty(hir: &Hir, set: &mut Ends) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            literal.0.last().iter().for_each(|byte| set.add(**byte));
            literal.0.is_empty()
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.iter().for_each(|range| set.add_all(range.start()..=range.end()));
            false
        }
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().for_each(|range| {
                (u32::from(range.start())..=u32::from(range.end()).min(0x7f)).for_each(|byte| set.add(byte as u8));
                if range.end() > '\x7f' {
                    // The last byte of any other character.
                    set.add_all(0x80..=0xbf);
                }
            });
            false
        }
        HirKind::Repetition(repeat) => may_be_empty(&repeat.sub, set) || repeat.min == 0,
        HirKind::Capture(group) => may_be_empty(&group.sub, set),
        HirKind::Concat(parts) => parts.iter().rev().all(|part| may_be_empty(part, set)),
        // No short circuit: each branch adds its bytes.
        HirKind::Alternation(branches) => branches.iter().filter(|branch| may_be_empty(branch, set)).count() > 0,
    }
}

/// Returns literals of which every match of `hir` contains one; the longest that are known.
pub(super) fn needed(hir: &Hir) -> Option<Vec<&[u8]>> {
    match hir.kind() {
        HirKind::Literal(literal) if literal.0.len() >= MIN_NEEDED_BYTES => Some(vec![&literal.0]),
        HirKind::Capture(group) => needed(&group.sub),
        HirKind::Repetition(repeat) if repeat.min > 0 => needed(&repeat.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(needed).max_by_key(|literals| literals.iter().map(|literal| literal.len()).min()),
        HirKind::Alternation(branches) => {
            let all = branches.iter().map(needed).collect::<Option<Vec<_>>>()?.concat();
            (all.len() <= MAX_NEEDED).then_some(all)
        }
        _ => None,
    }
}

/// Returns the first byte of a text that is not blank.
#[must_use]
pub fn first_visible(text: &[u8]) -> Option<u8> {
    text.iter().copied().find(|byte| !is_blank(*byte))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Adds the bytes with which the visible part of a match of `hir` can begin; `true` when it can match without any visible byte.
fn may_stay_blank(hir: &Hir, set: &mut Ends) -> bool {
    match hir.kind() {
        HirKind::Look(Look::End) => {
            set.insert(None);
            false
        }
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => match literal.0.iter().find(|b| !is_blank(**b)) {
            Some(byte) => {
                set.add(*byte);
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

fn class_may_be_blank(class: &Class, set: &mut Ends) -> bool {
    let mut blank = false;
    let mut add = |from: u8, to: u8| {
        for byte in from..=to {
            if is_blank(byte) {
                blank = true;
            } else {
                set.add(byte);
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
