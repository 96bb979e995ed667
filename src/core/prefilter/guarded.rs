//! A literal and its allowed neighbours: the final test of an occurrence. The callers know where to look.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;

use super::{WINDOW, WORD, window, word};
use crate::rules::LiteralForm;

/// How many bytes before a literal an escape may stand.
const ESCAPE_BYTES: usize = 12;
/// The end of a line, and what represents it in a JSON string (`\n`, the closing quote), may always follow a literal.
const ALWAYS_AFTER: &[u8] = b"\n\r\\\"\x1b";
/// What may stand between a literal and the end of a line that it ends.
const BLANKS: [u8; 2] = *b" \t";

/// A literal, ready for comparison. It fills one cache line: there are thousands, and a scan meets them in any order.
pub(super) struct Guarded {
    bytes: Box<[u8]>,
    head: Head,
    /// `None`: any byte may follow.
    after: Option<Arc<Set>>,
    not_before: Option<Arc<Set>>,
    /// The only byte that may precede.
    before: Option<u8>,
    rare: Option<Box<Rare>>,
    /// Whether the head is the whole literal.
    is_head: bool,
    /// Which of the blanks may follow only if nothing but blanks does up to the line's end.
    only_at_end: [bool; BLANKS.len()],
}

/// What few literals have.
struct Rare {
    /// Positions at which other bytes than that in `bytes` may stand, and which.
    classes: Box<[(u8, Set)]>,
    not_preceded_by: Box<[u8]>,
    /// What may follow a number behind the literal; `None`: any byte.
    after_number: Option<Set>,
    /// What may follow a word behind the literal; `None`: any byte.
    after_word: Option<Set>,
}

impl Rare {
    /// Whether the literal may stand between `left` and `right`.
    fn allows(&self, left: &[u8], right: &[u8]) -> bool {
        let is_refused = !self.not_preceded_by.is_empty() && left.ends_with(&self.not_preceded_by);
        !is_refused
            && may_follow(self.after_number.as_ref(), behind(right, u8::is_ascii_digit))
            && may_follow(self.after_word.as_ref(), behind(right, u8::is_ascii_alphabetic))
    }
}

/// Returns what follows the run of members with which `text` begins.
fn behind(text: &[u8], is_member: impl Fn(&u8) -> bool) -> Option<u8> {
    let run = text.iter().take_while(|byte| is_member(byte)).count();
    text.get(run).copied().filter(|_| run > 0)
}

/// Whether a byte is among those that may follow; `None` is nothing, and accepted.
fn may_follow(allowed: Option<&Set>, next: Option<u8>) -> bool {
    allowed.zip(next).is_none_or(|(set, next)| set.contains(next))
}

/// The first bytes of a literal, compared in one step, and a mask of the bits that count.
#[derive(Clone, Copy)]
struct Head {
    value: u64,
    mask: u64,
}

/// What may stand at a position in or beside a literal.
#[derive(Clone, Copy)]
pub(super) enum Byte<'a> {
    Only(u8),
    Of(&'a Set),
    Any,
}

/// A set of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Set {
    /// One bit for each byte.
    bits: [u64; 4],
    /// What all members have in common: the value, and the bits of it that count.
    common: (u8, u8),
}

impl Set {
    fn of(bytes: &[u8]) -> Self {
        let bits = bits(bytes);
        let (all, any) = bytes.iter().fold((u8::MAX, 0), |(all, any), byte| (all & byte, any | byte));
        Self { bits, common: (all, all | !any) }
    }

    /// Makes a set of most bytes, which have nothing in common.
    fn of_most(bits: [u64; 4]) -> Self {
        Self { bits, common: (0, 0) }
    }

    #[inline]
    fn contains(&self, byte: u8) -> bool {
        self.bits[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    fn len(&self) -> u32 {
        self.bits.iter().map(|part| part.count_ones()).sum()
    }
}

impl Byte<'_> {
    /// Returns the number of possible bytes.
    pub(super) fn count(self) -> u32 {
        match self {
            Self::Only(_) => 1,
            Self::Of(set) => set.len(),
            Self::Any => 256,
        }
    }

    /// Returns one byte for each value of the low five bits, which are all that the hash uses of the last byte of a window.
    pub(super) fn low_values(self) -> Vec<u8> {
        let low = self.low();
        (0..32).filter(|value| low >> value & 1 != 0).collect()
    }

    /// Returns how many bytes differ in what the hash uses of the last byte of a window.
    pub(super) fn low_bits(self) -> u32 {
        self.low().count_ones()
    }

    /// Returns a bit for each value of the low five bits.
    fn low(self) -> u32 {
        match self {
            Self::Only(byte) => 1 << (byte & 31),
            Self::Of(set) => set.bits.iter().fold(0, |all, part| all | *part as u32 | (part >> 32) as u32),
            Self::Any => u32::MAX,
        }
    }

    /// Returns what all possible bytes have in common: a value, and the bits of it that count.
    pub(super) fn common(self) -> (u8, u8) {
        match self {
            Self::Only(byte) => (byte, u8::MAX),
            Self::Of(set) => set.common,
            Self::Any => (0, 0),
        }
    }

    /// Returns the possible bytes.
    pub(super) fn values(self) -> Vec<u8> {
        match self {
            Self::Only(byte) => vec![byte],
            Self::Of(set) => (0..=u8::MAX).filter(|byte| set.contains(*byte)).collect(),
            Self::Any => (0..=u8::MAX).collect(),
        }
    }
}

impl Head {
    /// Whether the head matches at `start` of `hay`; `true` if too few bytes are left to tell.
    #[inline(always)]
    fn may_stand_at(self, hay: &[u8], start: usize) -> bool {
        start + WORD > hay.len() || (word(hay, start) ^ self.value) & self.mask == 0
    }
}

impl Guarded {
    pub(super) fn new(literal: &LiteralForm) -> Self {
        let classes: Box<[_]> = literal.classes.iter().map(|(at, members)| (*at, Set::of(members))).collect();
        let (mut head, mut mask) = ([0; WORD], [0; WORD]);
        for (at, byte) in literal.bytes.iter().enumerate().take(WORD).filter(|(at, _)| !classes.iter().any(|(place, _)| usize::from(*place) == *at)) {
            (head[at], mask[at]) = (*byte, 0xff);
        }
        let [after_number, after_word] =
            [&literal.after_number, &literal.after_word].map(|may| (!may.is_empty()).then(|| Set::of(&[may.as_slice(), ALWAYS_AFTER].concat())));
        let is_rare = !classes.is_empty() || !literal.not_preceded_by.is_empty() || after_number.is_some() || after_word.is_some();
        Self {
            bytes: literal.bytes.as_slice().into(),
            head: Head { value: u64::from_le_bytes(head), mask: u64::from_le_bytes(mask) },
            is_head: literal.bytes.len() <= WORD && classes.is_empty(),
            after: allowed_after(literal).map(Arc::new),
            only_at_end: only_at_end(literal),
            not_before: (!literal.not_before.is_empty()).then(|| Arc::new(Set::of(&literal.not_before))),
            before: literal.before,
            rare: is_rare.then(|| Box::new(Rare { classes, not_preceded_by: literal.not_preceded_by.as_slice().into(), after_number, after_word })),
        }
    }

    /// Makes all of `literals` ready. Equal sets, of which there are few, are in memory once.
    pub(super) fn all(literals: impl IntoIterator<Item: Borrow<LiteralForm>>) -> Vec<Self> {
        let mut known: HashSet<Arc<Set>> = HashSet::new();
        let mut shared = |set: Arc<Set>| match known.get(&set) {
            Some(known) => known.clone(),
            None => {
                known.insert(set.clone());
                set
            }
        };
        let shares = |literal: Self| Self { after: literal.after.map(&mut shared), not_before: literal.not_before.map(&mut shared), ..literal };
        literals.into_iter().map(|literal| Self::new(literal.borrow())).map(shares).collect()
    }

    fn classes(&self) -> &[(u8, Set)] {
        self.rare.as_ref().map_or(&[], |rare| &rare.classes)
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns what may stand `at` bytes after the literal's beginning.
    pub(super) fn byte(&self, at: isize) -> Byte<'_> {
        let Ok(at) = usize::try_from(at) else { return Byte::Any };
        match (self.bytes.get(at), &self.after) {
            (Some(&byte), _) => self.classes().iter().find(|(place, _)| usize::from(*place) == at).map_or(Byte::Only(byte), |(_, set)| Byte::Of(set)),
            (None, Some(set)) if at == self.bytes.len() => Byte::Of(set),
            _ => Byte::Any,
        }
    }

    /// Returns the window at an offset, if only one is possible.
    pub(super) fn window(&self, at: isize) -> Option<u32> {
        let from = usize::try_from(at).ok()?;
        let is_class = |(at, _): &(u8, Set)| (from..from + WINDOW).contains(&usize::from(*at));
        (from + WINDOW <= self.bytes.len() && !self.classes().iter().any(is_class)).then(|| window(&self.bytes, from))
    }

    /// Whether the literal stands at `start` of `hay`, with allowed neighbours.
    #[inline]
    pub(super) fn stands_at(&self, hay: &[u8], start: usize) -> bool {
        let Some(text) = hay.get(start..start + self.bytes.len()) else { return false };
        if start + WORD <= hay.len() {
            return self.head.may_stand_at(hay, start) && (self.is_head || self.is(text)) && self.allows(hay, start);
        }
        self.is(text) && self.allows(hay, start)
    }

    fn is(&self, text: &[u8]) -> bool {
        let classes = self.classes();
        if classes.is_empty() {
            return *text == *self.bytes;
        }
        let mut classes = classes.iter().peekable();
        text.iter().zip(&self.bytes).enumerate().all(|(at, (&byte, &own))| match classes.next_if(|(place, _)| usize::from(*place) == at) {
            Some((_, set)) => set.contains(byte),
            None => byte == own,
        })
    }

    /// Whether `next`, which follows the literal, may do so only at the end of a line.
    fn must_end(&self, next: u8) -> bool {
        BLANKS.iter().zip(self.only_at_end).any(|(blank, is_restricted)| is_restricted && *blank == next)
    }

    fn allows(&self, hay: &[u8], start: usize) -> bool {
        let end = start + self.bytes.len();
        if let (Some(set), Some(&next)) = (&self.after, hay.get(end))
            && (!set.contains(next) || self.must_end(next) && !ends_a_line(&hay[end..]))
        {
            return false;
        }
        if self.rare.as_ref().is_some_and(|rare| !rare.allows(&hay[..start], &hay[end..])) {
            return false;
        }
        let Some((left, text)) = hay[..start].split_last() else { return true };
        let is_refused = self.before.is_some_and(|only| only != *left)
            || self.not_before.as_ref().is_some_and(|set| set.contains(*left) && (*left != b' ' || ends_a_word(text)));
        !is_refused || hay[start.saturating_sub(ESCAPE_BYTES)..start].iter().any(|&b| b == b'\\' || b == 0x1b)
    }
}

/// Whether only blanks are left of a line, or of what a JSON string holds of one.
fn ends_a_line(text: &[u8]) -> bool {
    text.iter().find(|byte| !BLANKS.contains(byte)).is_none_or(|byte| ALWAYS_AFTER.contains(byte))
}

/// Whether `text`, before a blank, ends in prose. After anything else,
/// such as a time, a level or a name with a colon, a message begins.
fn ends_a_word(text: &[u8]) -> bool {
    text.last().is_some_and(|last| last.is_ascii_lowercase() || *last == b',')
}

/// Returns the bytes that may follow a literal; `None` when all may.
fn allowed_after(literal: &LiteralForm) -> Option<Set> {
    if literal.after.is_empty() && literal.not_after.is_empty() {
        return None;
    }
    if !literal.after.is_empty() {
        let mut may: Vec<u8> = literal.after.iter().copied().filter(|byte| !literal.not_after.contains(byte)).collect();
        may.extend(ALWAYS_AFTER.iter().chain(&BLANKS));
        return Some(Set::of(&may));
    }
    let (not_after, always) = (bits(&literal.not_after), bits(&[ALWAYS_AFTER, &BLANKS].concat()));
    Some(Set::of_most(std::array::from_fn(|part| !not_after[part] | always[part])))
}

/// Returns which of the blanks may follow a literal only at the end of a line.
fn only_at_end(literal: &LiteralForm) -> [bool; BLANKS.len()] {
    BLANKS.map(|blank| !literal.after.is_empty() && !literal.after.contains(&blank) || literal.not_after.contains(&blank))
}

/// Returns a set of bits, one for each of `bytes`.
fn bits(bytes: &[u8]) -> [u64; 4] {
    let mut bits = [0; 4];
    bytes.iter().for_each(|byte| bits[usize::from(byte >> 6)] |= 1 << (byte & 63));
    bits
}
