//! Tests every position of a block with a sieve.

use super::sieve::{Sieve, Tables};
use super::{KNOWN, Scratch, WORD};
use crate::core::simd::{self, LANES};

/// Bytes of a block that are searched before what was found is compared: few enough to stay in the nearest cache.
const PART: usize = 16 << 10;
/// Upper bound on the bytes of a part that are not tested, because a
/// round, or the words around its windows, would reach beyond them.
const REST: usize = 2 * LANES + WORD;
/// The rest, followed by newlines for the last round.
pub(super) const END: usize = REST + LANES + WORD;
/// Rounds that test these bytes.
const ROUNDS: usize = END / LANES;

/// A sieve, ready for testing.
pub(super) struct Sift {
    tables: Tables,
}

impl Sift {
    pub(super) fn new(sieve: &Sieve) -> Self {
        Self { tables: sieve.tables() }
    }

    /// Finds the positions from `from` on that may hold a window. Returns how many bytes
    /// were tested, and how many `places` were found, each surrounded by a whole word. It
    /// tests no bytes when few are left, which is the task of [`mark_end`](Self::mark_end).
    pub(super) fn mark(&self, hay: &[u8], from: usize, Scratch { places, marks, .. }: &mut Scratch) -> (usize, usize) {
        let part = &hay[from..hay.len().min(from + PART)];
        if places.len() < part.len() + LANES {
            places.resize(part.len().max(END) + LANES, 0);
        }
        simd::sift(&self.tables, part, from as u32, places, marks.from(from))
    }

    /// Returns what is left from `from` on, followed by newlines, which
    /// may always follow, and how many of its positions may hold a window.
    pub(super) fn mark_end(&self, hay: &[u8], from: usize, places: &mut [u32]) -> ([u8; END], usize) {
        let (left, mut end) = (&hay[from..], [b'\n'; END]);
        end[..left.len()].copy_from_slice(left);
        let mut unused = ([0; ROUNDS], [0; ROUNDS]);
        let (_, marked) = simd::sift(&self.tables, &end[..left.len() + LANES + WORD], 0, places, (&mut unused.0, &mut unused.1));
        let windows = (left.len() + 1).saturating_sub(KNOWN);
        (end, places[..marked].partition_point(|place| (*place as usize) < windows))
    }
}
