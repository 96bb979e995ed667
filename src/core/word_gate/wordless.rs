//! The alternatives to which no word leads. The ends of a text rule most of them out: two lookups do so for all at once.

use super::Ends;
use crate::rules::{Looks, PLACES, place, placed};

/// Alternatives without words, one bit for each.
pub(super) struct Wordless {
    /// The number of each, ascending.
    numbers: Vec<u32>,
    /// How many words of bits a set of them takes.
    width: usize,
    /// For each byte, the set of those that a text fits with it as its first visible byte, or as its last byte.
    first: Vec<u64>,
    last: Vec<u64>,
    /// The sets of those that a text fits which is not indented, or is.
    flush: Vec<u64>,
    indented: Vec<u64>,
}

impl Wordless {
    /// Takes what each shows, by its number, in ascending order.
    pub(super) fn new(all: &[(u32, &Looks)]) -> Self {
        let width = all.len().div_ceil(u64::BITS as usize);
        let (mut first, mut last) = (vec![0; PLACES * width], vec![0; PLACES * width]);
        let (mut flush, mut indented) = (vec![0; width], vec![0; width]);
        for (at, (_, looks)) in all.iter().enumerate() {
            let (word, bit) = (at / u64::BITS as usize, 1_u64 << (at % u64::BITS as usize));
            for byte in placed() {
                first[place(byte) * width + word] |= if looks.begins(byte) { bit } else { 0 };
                last[place(byte) * width + word] |= if looks.ends(byte) { bit } else { 0 };
            }
            flush[word] |= if looks.margin().fits(false) { bit } else { 0 };
            indented[word] |= if looks.margin().fits(true) { bit } else { 0 };
        }
        Self { numbers: all.iter().map(|(number, _)| *number).collect(), width, first, last, flush, indented }
    }

    /// Calls `ask` with the number of each alternative that one of these texts fits, in ascending order.
    pub(super) fn fitting(&self, texts: &[Ends], mut ask: impl FnMut(u32)) {
        for word in 0..self.width {
            let fits = |ends: &Ends| {
                let fit = self.first[place(ends.first) * self.width + word] & self.last[place(ends.last) * self.width + word];
                fit & if ends.indented { self.indented[word] } else { self.flush[word] }
            };
            let mut left = texts.iter().fold(0, |all, ends| all | fits(ends));
            while left != 0 {
                ask(self.numbers[word * u64::BITS as usize + left.trailing_zeros() as usize]);
                left &= left - 1;
            }
        }
    }
}
