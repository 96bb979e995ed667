//! The newlines and escapes of a block, one bit for each byte: a by-product of looking at each of its bytes.

use std::ops::Range;

use crate::core::simd::{self, LANES};

/// The newlines and the escapes of a block.
#[derive(Default)]
pub struct Marks {
    /// The newlines.
    pub newlines: Bits,
    /// The escape bytes of terminal sequences.
    pub escapes: Bits,
}

/// The positions of one byte.
#[derive(Default)]
pub struct Bits(Vec<u64>);

impl Marks {
    /// Makes room for `bytes` bytes, without knowing their marks yet.
    pub(super) fn reset(&mut self, bytes: usize) {
        for bits in [&mut self.newlines, &mut self.escapes] {
            bits.0.resize(bytes.div_ceil(LANES), 0);
        }
    }

    /// Returns the words from byte `from` on, a multiple of [`LANES`], to be written.
    pub(super) fn from(&mut self, from: usize) -> (&mut [u64], &mut [u64]) {
        (&mut self.newlines.0[from / LANES..], &mut self.escapes.0[from / LANES..])
    }

    /// Writes the marks of `hay` from byte `from` on, a multiple of [`LANES`].
    pub(super) fn read(&mut self, hay: &[u8], from: usize) {
        let (newlines, escapes) = self.from(from);
        let steps = hay[from..].chunks_exact(LANES);
        let mut last = [0; LANES];
        last[..steps.remainder().len()].copy_from_slice(steps.remainder());
        simd::mark(&hay[from..], (&mut *newlines, &mut *escapes));
        if !steps.remainder().is_empty() {
            let at = steps.len();
            simd::mark(&last, (&mut newlines[at..], &mut escapes[at..]));
        }
    }
}

impl Bits {
    /// Returns the first position at or after `at`.
    #[must_use]
    pub fn first(&self, at: usize) -> Option<usize> {
        let step = at / LANES;
        let word = self.0.get(step)? & (u64::MAX << (at % LANES));
        if word != 0 {
            return Some(step * LANES + word.trailing_zeros() as usize);
        }
        let behind = self.0[step + 1..].iter().position(|word| *word != 0)? + step + 1;
        Some(behind * LANES + self.0[behind].trailing_zeros() as usize)
    }

    /// Returns the last position before `at`, which is within the block or its end.
    #[must_use]
    pub fn last(&self, at: usize) -> Option<usize> {
        let step = at / LANES;
        let word = self.0.get(step).map_or(0, |word| word & !(u64::MAX << (at % LANES)));
        if word != 0 {
            return Some(step * LANES + word.ilog2() as usize);
        }
        let before = self.0[..step].iter().rposition(|word| *word != 0)?;
        Some(before * LANES + self.0[before].ilog2() as usize)
    }

    /// Returns how many positions are in a range of the block.
    #[must_use]
    pub fn count(&self, range: Range<usize>) -> u64 {
        let before = |at: usize| u64::from(self.0.get(at / LANES).map_or(0, |word| (word & !(u64::MAX << (at % LANES))).count_ones()));
        let steps = range.start / LANES..range.end / LANES;
        let whole: u64 = self.0[steps].iter().map(|word| u64::from(word.count_ones())).sum();
        whole + before(range.end) - before(range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_a_search_says() {
        let mut seed = 5_u64;
        for round in 0..400 {
            let hay: Vec<u8> = (0..round)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    [b'\n', 0x1b, b'x', 0x8a, 0x0b][((seed >> 40) % (3 + round as u64 % 40)).min(4) as usize]
                })
                .collect();
            let mut marks = Marks::default();
            marks.reset(999);
            marks.newlines.0.fill(u64::MAX);
            marks.reset(hay.len());
            marks.read(&hay, 0);
            for at in 0..=hay.len() {
                assert_eq!(marks.newlines.first(at), memchr::memchr(b'\n', &hay[at..]).map(|found| at + found), "{at} of {hay:?}");
                assert_eq!(marks.escapes.last(at), memchr::memrchr(0x1b, &hay[..at]), "{at} of {hay:?}");
                let count = |from: usize| memchr::memchr_iter(b'\n', &hay[from..at]).count() as u64;
                assert_eq!(marks.newlines.count(at / 3..at), count(at / 3), "{at} of {hay:?}");
            }
        }
    }
}
