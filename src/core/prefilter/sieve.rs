//! For processors with wide registers: which four bytes may begin at a place, told by what each of them is. Literals share
//! [`BUCKETS`] buckets; a bucket has, for each byte of a window, the set of its values, and lets a place through when each
//! byte is in its set. A few instructions ask that of 64 places. Because every place is looked at, one window a literal is enough.
//! Which bucket a literal joins, and with which of its windows, `fill` chooses.

use serde::{Deserialize, Serialize};

use super::WINDOW;
use super::fill::Fill;
use super::guarded::{Byte, Guarded};

/// Groups of buckets: a byte has a bit for each bucket of a group.
pub const GROUPS: usize = 3;
const GROUP_BUCKETS: usize = u8::BITS as usize;
const BUCKETS: usize = GROUPS * GROUP_BUCKETS;
/// Values of a byte without its highest bit, which is left out: what it tells is not worth a second table.
pub const VALUES: usize = 128;

/// By group, byte of a window and value, a bit for each bucket whose set has it.
pub type Tables = [[[u8; VALUES]; WINDOW]; GROUPS];

/// For each byte of a window a set of values, a bit for each.
pub(super) type Sets = [u128; WINDOW];

/// Its buckets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Sieve {
    buckets: Vec<Sets>,
}

impl Sieve {
    /// One that lets nothing through.
    pub(super) fn new() -> Self {
        Self { buckets: vec![Sets::default(); BUCKETS] }
    }

    /// Chooses a window for each of `literals` that [is long enough](super::windows::is_long_enough) and makes room for it; returns
    /// their offsets. `thorough`: once all have a place, each is given a better one, which takes twice the time.
    pub(super) fn extend(&mut self, literals: &[Guarded], thorough: bool) -> Vec<isize> {
        let mut fill = Fill::new(&self.buckets, literals);
        (0..=usize::from(thorough)).for_each(|_| fill.place_each());
        let offsets;
        (self.buckets, offsets) = fill.finish();
        offsets
    }

    /// For the loop that asks it.
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

/// What the bytes of a window may be.
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
