//! For processors with wide registers: which windows may begin at a position, decided by each of their four bytes alone.
//! Literals share [`BUCKETS`] buckets. A bucket has a set of values for each byte of a window, and lets a position
//! through when each byte is in its set. A few instructions test 64 positions. Because every position is tested, one
//! window per literal is enough. `fill` chooses the bucket of each literal and which of its windows represents it.

use serde::{Deserialize, Serialize};

use super::WINDOW;
use super::fill::Fill;
use super::guarded::{Byte, Guarded};

/// Groups of buckets: a byte has one bit for each bucket of a group.
pub const GROUPS: usize = 3;
const GROUP_BUCKETS: usize = u8::BITS as usize;
const BUCKETS: usize = GROUPS * GROUP_BUCKETS;
/// Values of a byte without its highest bit, which is ignored: it would not be worth a second table.
pub const VALUES: usize = 128;

/// By group, byte of a window and value: one bit for each bucket whose set has the value.
pub type Tables = [[[u8; VALUES]; WINDOW]; GROUPS];

/// For each byte of a window, a set of values, one bit each.
pub(super) type Sets = [u128; WINDOW];

/// The sets of all buckets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Sieve {
    buckets: Vec<Sets>,
}

impl Sieve {
    /// Returns a sieve that lets nothing through.
    pub(super) fn new() -> Self {
        Self { buckets: vec![Sets::default(); BUCKETS] }
    }

    /// Chooses a window for each of `literals` that [is long enough](super::windows::is_long_enough), and lets it through;
    /// returns their offsets. `thorough`: once all have a place, each is given a better one, which takes twice the time.
    pub(super) fn extend(&mut self, literals: &[Guarded], thorough: bool) -> Vec<isize> {
        let mut fill = Fill::new(&self.buckets, literals);
        (0..=usize::from(thorough)).for_each(|_| fill.place_each());
        let offsets;
        (self.buckets, offsets) = fill.finish();
        offsets
    }

    /// Returns the tables for the search loop.
    pub(super) fn tables(&self) -> Tables {
        let mut tables = [[[0; VALUES]; WINDOW]; GROUPS];
        for (number, bucket) in self.buckets.iter().enumerate() {
            for (place, set) in bucket.iter().enumerate() {
                for (value, of_value) in tables[number / GROUP_BUCKETS][place].iter_mut().enumerate() {
                    *of_value |= ((set >> value & 1) as u8) << (number % GROUP_BUCKETS);
                }
            }
        }
        tables
    }
}

/// Returns the possible values of each byte of a window.
pub(super) fn sets(literal: &Guarded, at: isize) -> Sets {
    std::array::from_fn(|place| match literal.byte(at + place as isize) {
        Byte::Only(byte) => bit(byte),
        Byte::Any => u128::MAX,
        set @ Byte::Of(_) => set.values().into_iter().map(bit).fold(0, |all, one| all | one),
    })
}

fn bit(byte: u8) -> u128 {
    1 << (usize::from(byte) % VALUES)
}
