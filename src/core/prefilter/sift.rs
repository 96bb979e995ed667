//! Asks a sieve of every place of a block.

use super::sieve::{Sieve, Tables};
use super::{KNOWN, Scratch, WORD};
use crate::core::simd::{self, LANES};

/// Bytes of a block that are looked at before what was found is looked at: few enough to stay in the nearest cache.
const PART: usize = 16 << 10;
/// Bytes of a part that are not looked at, because a round and the words around its windows would reach beyond them: less than this.
const REST: usize = 2 * LANES + WORD;
/// The rest, and newlines behind it for the last round.
pub(super) const END: usize = REST + LANES + WORD;
/// Rounds that look at that.
const ROUNDS: usize = END / LANES;

/// A sieve, ready to be asked.
pub(super) struct Sift {
    tables: Tables,
}

impl Sift {
    pub(super) fn new(sieve: &Sieve) -> Self {
        Self { tables: sieve.tables() }
    }

    /// Which places from `from` on may hold a window: so many of `places`, and before it how many bytes were looked at. They are
    /// none when few are left, which [`mark_end`](Self::mark_end) looks at. A word is there at each place.
    pub(super) fn mark(&self, hay: &[u8], from: usize, Scratch { places, marks, .. }: &mut Scratch) -> (usize, usize) {
        let part = &hay[from..hay.len().min(from + PART)];
        if places.len() < part.len() + LANES {
            places.resize(part.len().max(END) + LANES, 0);
        }
        simd::sift(&self.tables, part, from as u32, places, marks.from(from))
    }

    /// What is left from `from` on, with newlines behind it, which may always follow, and which places of that may hold a window.
    pub(super) fn mark_end(&self, hay: &[u8], from: usize, places: &mut [u32]) -> ([u8; END], usize) {
        let (left, mut end) = (&hay[from..], [b'\n'; END]);
        end[..left.len()].copy_from_slice(left);
        let mut unused = ([0; ROUNDS], [0; ROUNDS]);
        let (_, marked) = simd::sift(&self.tables, &end[..left.len() + LANES + WORD], 0, places, (&mut unused.0, &mut unused.1));
        let windows = (left.len() + 1).saturating_sub(KNOWN);
        (end, places[..marked].partition_point(|place| (*place as usize) < windows))
    }
}
