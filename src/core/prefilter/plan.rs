//! Where to look for literals: their windows by slot, and what is known around them. Making a plan
//! costs more than the rest of the prefilter, so the build makes the plan of the built-in rules.

use serde::{Deserialize, Serialize};

use super::guarded::Guarded;
use super::sieve::Sieve;
use super::{MAX_BACK, WORD, slot, windows};
use crate::rules::LiteralForm;

/// The windows of all literals, in the order of their slots.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Plan {
    /// The sieve that every position is tested with, where the processor
    /// is fast at that; otherwise every second position is looked up.
    pub(super) sieve: Option<Sieve>,
    /// What is known about the windows of each slot; one extra element ends the entries of the last slot.
    pub(super) shared: Vec<Shared>,
    entries: Vec<Entry>,
}

/// What all literals of a slot have in common around their windows.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Shared {
    value: u64,
    /// The bits of `value` that all literals have.
    mask: u64,
    /// Where the word begins, counted from the earliest possible place.
    pub(super) from: u32,
    /// Index of the first entry; the entries end where those of the next slot begin.
    first: u32,
}

/// A literal that windows with a given hash represent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Entry {
    /// The known bits of the word that its slot compares, and their mask.
    value: u64,
    mask: u64,
    pub(super) hash: u32,
    pub(super) literal: u16,
    /// Distance from the start of the literal to its window; -1 when the window begins before the literal.
    pub(super) at: i8,
}

impl Plan {
    /// Makes a plan of `literals` for looking up every second position.
    #[must_use]
    pub fn stepping(literals: &[LiteralForm]) -> Self {
        Self::default().joined(literals, 0, |_| true)
    }

    /// Makes a plan of `literals` for testing every position with a sieve.
    #[must_use]
    pub fn sifting(literals: &[LiteralForm]) -> Self {
        Self { sieve: Some(Sieve::new()), ..Self::default() }.joined(literals, 0, |_| true)
    }

    /// Extends this plan, which is that of the first `known` of `literals`,
    /// to all of them, leaving out those that are not `wanted`.
    #[must_use]
    pub fn joined(&self, literals: &[LiteralForm], known: usize, wanted: impl Fn(usize) -> bool) -> Self {
        let new = Guarded::all(&literals[known..]);
        let mut joined = Self { sieve: self.sieve.clone(), ..Self::default() };
        let mut added = match &mut joined.sieve {
            None => {
                let seen = windows::seen();
                windows::entries(&new, |index| windows::by_parity(&new[index], &seen))
            }
            Some(sieve) => {
                let offsets = sieve.extend(&new, known == 0);
                windows::entries(&new, |index| vec![offsets[index]])
            }
        };
        added.iter_mut().for_each(|entry| entry.literal += known as u16);
        added.sort_by_key(Entry::slot);
        let mut added = added.chunk_by(|a, b| a.slot() == b.slot()).peekable();
        for (old, shared) in self.slots().zip(&self.shared) {
            while let Some(of_slot) = added.next_if(|of_slot| of_slot[0].slot() < old[0].slot()) {
                joined.push(of_slot.to_vec(), literals);
            }
            let more = added.next_if(|of_slot| of_slot[0].slot() == old[0].slot()).unwrap_or_default();
            if more.is_empty() && old.iter().all(|entry| wanted(usize::from(entry.literal))) {
                joined.shared.push(Shared { first: joined.entries.len() as u32, ..*shared });
                joined.entries.extend(old);
            } else {
                joined.push(old.iter().filter(|entry| wanted(usize::from(entry.literal))).chain(more).copied().collect(), literals);
            }
        }
        added.for_each(|of_slot| joined.push(of_slot.to_vec(), literals));
        joined.shared.push(Shared::new(std::iter::empty(), joined.entries.len() as u32));
        joined
    }

    /// Appends the entries of a slot.
    fn push(&mut self, of_slot: Vec<Entry>, literals: &[LiteralForm]) {
        if !of_slot.is_empty() {
            let around: Vec<_> = of_slot.iter().map(|entry| around(&Guarded::new(&literals[usize::from(entry.literal)]), entry.at)).collect();
            let shared = Shared::new(around.iter().copied(), self.entries.len() as u32);
            let part = |around: u128| (around >> (8 * shared.from)) as u64;
            self.entries.extend(of_slot.into_iter().zip(around).map(|(entry, (value, mask))| Entry { value: part(value), mask: part(mask), ..entry }));
            self.shared.push(shared);
        }
    }

    /// Returns the entries of each slot that has any.
    pub(super) fn slots(&self) -> impl Iterator<Item = &[Entry]> {
        (0..self.shared.len().saturating_sub(1)).map(|slot| self.entries_of(slot))
    }

    /// Returns the entries of a slot, by its number among the slots that have any.
    #[inline]
    pub(super) fn entries_of(&self, slot: usize) -> &[Entry] {
        &self.entries[self.shared[slot].first as usize..self.shared[slot + 1].first as usize]
    }
}

impl Shared {
    /// Finds what the entries of a slot have in common, in the word that shows most of it.
    fn new(around: impl Iterator<Item = (u128, u128)>, first: u32) -> Self {
        let (value, mask) = around.reduce(|(value, mask), (other, known)| (value, mask & known & !(value ^ other))).unwrap_or_default();
        let known = |from: &usize| ((mask >> (8 * from)) as u64).count_ones();
        let from = (0..=MAX_BACK).max_by_key(known).unwrap_or_default();
        Self { value: (value >> (8 * from)) as u64, mask: (mask >> (8 * from)) as u64, from: from as u32, first }
    }

    /// Whether a word has what all literals of the slot have.
    #[inline(always)]
    pub(super) fn fits(&self, word: u64) -> bool {
        (word ^ self.value) & self.mask == 0
    }
}

impl Entry {
    /// Makes an entry whose surroundings are not known yet.
    pub(super) fn new(hash: usize, literal: usize, at: isize) -> Self {
        Self { value: 0, mask: 0, hash: hash as u32, literal: literal as u16, at: at as i8 }
    }

    /// Whether the literal may stand where its slot compares `word`.
    #[inline(always)]
    pub(super) fn fits(&self, word: u64) -> bool {
        (word ^ self.value) & self.mask == 0
    }

    pub(super) fn slot(&self) -> usize {
        slot(self.hash as usize)
    }
}

/// Returns what is known from [`MAX_BACK`] bytes before a window to as many after it, and a mask of the known bits.
fn around(literal: &Guarded, at: i8) -> (u128, u128) {
    let (mut value, mut mask) = (0, 0);
    for place in 0..MAX_BACK + WORD {
        let (common, known) = literal.byte(isize::from(at) + place as isize - MAX_BACK as isize).common();
        value |= u128::from(common) << (8 * place);
        mask |= u128::from(known) << (8 * place);
    }
    (value, mask)
}
