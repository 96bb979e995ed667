//! Looks up every second position of a block. A table of 256 KiB, indexed by a
//! multiplicative hash of the window, answers "maybe" for sixteen windows at a time. What
//! remains is looked up by a second hash, which drops windows that share only the first.

use super::guarded::Guarded;
use super::plan::Plan;
use super::{HASH_BITS, Hashes, MAX_BACK, Scratch, WORD, hash, window, windows};
use crate::core::simd::widest;

/// Distance between the positions that are looked up.
pub(super) const STRIDE: usize = 2;
/// Positions of a step: one bit each.
const LANES: usize = 16;
/// Bytes that one round of the hot loop covers.
const STEP: usize = LANES * STRIDE;
/// The bytes of a step, with the words around its windows, rounded up.
const AROUND: usize = STEP + 2 * WORD;

/// 1 for the hash of a window, else 0.
type Table = [u8; 1 << HASH_BITS];

/// The hashes of the windows.
pub(super) struct Steps {
    table: Box<Table>,
    second: Hashes,
}

/// Returns another hash, for which the same bits of a window count: text that shares one of the two hashes with a window rarely shares both.
#[inline(always)]
fn second_hash(window: u32) -> usize {
    (window.wrapping_mul(0x9E37_79B8) >> (32 - HASH_BITS)) as usize
}

/// Appends the steps in which a position may hold a window, with these positions; returns where it stopped
/// and how many steps it kept. Everything is inlined, so that it is compiled for what the processor supports.
#[inline(always)]
fn keep_steps(table: &Table, hay: &[u8], steps: &mut [u64]) -> (usize, usize) {
    let (mut at, mut kept) = (MAX_BACK, 0);
    while let Some(bytes) = hay.get(at..at + AROUND - MAX_BACK) {
        let lanes = four(table, bytes, 0) + 16 * four(table, bytes, 4) + 256 * (four(table, bytes, 8) + 16 * four(table, bytes, 12));
        steps[kept] = (at as u64) << LANES | lanes;
        kept += usize::from(lanes != 0);
        at += STEP;
    }
    (at, kept)
}

/// Whether a position may hold a window.
#[inline(always)]
fn known(table: &Table, bytes: &[u8], lane: usize) -> u64 {
    u64::from(table[hash(window(bytes, lane * STRIDE))])
}

/// Returns a bit for each of four positions, from `lane` on, that may hold a window.
#[inline(always)]
fn four(table: &Table, bytes: &[u8], lane: usize) -> u64 {
    known(table, bytes, lane) + 2 * known(table, bytes, lane + 1) + 4 * (known(table, bytes, lane + 2) + 2 * known(table, bytes, lane + 3))
}

/// Returns those of `windows` positions that are before or after what [`Steps::mark`] looked up.
pub(super) fn beside((from, to): (usize, usize), windows: usize) -> impl Iterator<Item = usize> {
    (0..from.min(windows)).chain(to..windows).step_by(STRIDE)
}

impl Steps {
    /// Builds the tables of a plan for `literals`.
    pub(super) fn new(plan: &Plan, literals: &[Guarded]) -> Self {
        let mut table = Box::new([0; 1 << HASH_BITS]);
        plan.slots().flatten().for_each(|entry| table[entry.hash as usize] = 1);
        Self { table, second: second_hashes(plan, literals) }
    }

    /// Finds the positions that may hold a window. Returns the range that it looked at, and how many of `scratch.places` it found.
    pub(super) fn mark(&self, hay: &[u8], scratch: &mut Scratch) -> ((usize, usize), usize) {
        let (to, marked) = self.mark_steps(hay, &mut scratch.steps);
        ((MAX_BACK, to), self.mark_places(hay, &mut scratch.steps[..marked], &mut scratch.places))
    }

    /// The hot loop. Returns where it stopped, and how many steps have a position.
    #[inline(never)]
    fn mark_steps(&self, hay: &[u8], steps: &mut Vec<u64>) -> (usize, usize) {
        // Room for every step, so that appending needs no branch on the data.
        if steps.len() <= hay.len() / STEP {
            steps.resize(hay.len() / STEP + 1, 0);
        }
        let table = &*self.table;
        let steps = steps.as_mut_slice();
        widest(
            #[inline(always)]
            || keep_steps(table, hay, steps),
        )
    }

    /// Keeps the positions that also have the second hash of a window; returns their number.
    #[inline(never)]
    fn mark_places(&self, hay: &[u8], steps: &mut [u64], places: &mut Vec<u32>) -> usize {
        if places.len() < steps.len() * LANES {
            places.resize(steps.len() * LANES, 0);
        }
        let (mut marked, mut left) = (0, steps.len());
        // One position of each step, then the second of those that have
        // more, and so on: a branch could not predict how many a step has.
        while left > 0 {
            let mut more = 0;
            for index in 0..left {
                let step = steps[index];
                // The mask changes nothing; it shows the compiler that the index is in bounds.
                let place = (step >> LANES) as usize + (step.trailing_zeros() as usize & (LANES - 1)) * STRIDE;
                places[marked] = place as u32;
                marked += self.second.count(second_hash(window(hay, place)));
                let rest = step & (step - 1);
                steps[more] = rest;
                more += usize::from(rest & ((1 << LANES) - 1) != 0);
            }
            left = more;
        }
        marked
    }
}

/// Returns the second hashes of the windows of a plan.
fn second_hashes(plan: &Plan, literals: &[Guarded]) -> Hashes {
    let mut hashes = Hashes::new();
    // A literal that is expanded into many windows has an entry for each, but only one offset for each parity.
    let mut done = vec![[false; STRIDE]; literals.len()];
    for entry in plan.slots().flatten() {
        let (literal, at) = (&literals[usize::from(entry.literal)], isize::from(entry.at));
        match literal.window(at) {
            Some(window) => hashes.add(second_hash(window)),
            None if std::mem::replace(&mut done[usize::from(entry.literal)][at.rem_euclid(STRIDE as isize) as usize], true) => {}
            None => windows::windows(literal, at).into_iter().for_each(|window| hashes.add(second_hash(window))),
        }
    }
    hashes
}
