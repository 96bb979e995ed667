//! A Bloom filter of the signatures that have a row in the table, small enough to stay in memory: a flood of never-seen errors then causes hardly any
//! table lookups. It may say yes where there is no row, but never no where there is one. A signature is an MD5 sum; its parts serve as the hashes.

use rusqlite::Connection;

use super::table;
use crate::core::event::Hex;
use crate::state::store::StoreError;

/// With 100,000 rows, about 1 in 100 signatures without a row passes; this takes 128 KiB.
const BITS: usize = 1 << 20;
/// Reading the signatures of this many rows takes as long as one lookup in vain.
const ROWS_A_MISS: u64 = 16;
/// With fewer lookups in vain, the filter is not worth its memory.
const MIN_MISSES: u64 = 64;

/// What is known of a table that no other process writes.
#[derive(Default)]
pub(in crate::state) struct Sieve {
    /// `None`: nothing is known yet.
    bits: Option<Box<[u64]>>,
    /// Rows in the table.
    rows: u64,
    /// Lookups in vain since all signatures were read.
    misses: u64,
}

impl Sieve {
    /// Starts with nothing known of the table but its number of rows.
    pub fn of(db: &Connection) -> Result<Self, StoreError> {
        Ok(Self { rows: table::size(db)?, ..Self::default() })
    }

    /// Whether the table may have a row for a signature.
    pub fn may_have(&self, signature: Hex) -> bool {
        self.bits.as_ref().is_none_or(|bits| places(signature).all(|(word, bit)| bits[word] & bit != 0))
    }

    /// Notes that the table has a row for a signature.
    pub fn add(&mut self, signature: Hex) {
        self.rows += 1;
        if let Some(bits) = &mut self.bits {
            places(signature).for_each(|(word, bit)| bits[word] |= bit);
        }
    }

    /// Notes a lookup in vain. Once such lookups have taken as long as reading all signatures would, the
    /// signatures are read. They are read again when rows deleted since then let too many lookups pass.
    pub fn missed(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.misses += 1;
        if self.misses < MIN_MISSES || self.misses * ROWS_A_MISS < self.rows {
            return Ok(());
        }
        (self.bits, self.rows, self.misses) = (Some(vec![0; BITS / 64].into()), 0, 0);
        table::signatures(db, |signature| self.add(signature))
    }
}

/// Returns the word and bit positions of a signature.
fn places(signature: Hex) -> impl Iterator<Item = (usize, u64)> {
    let digest = u128::from_le_bytes(signature.digest());
    (0..4).map(move |part| {
        let hash = (digest >> (32 * part)) as usize % BITS;
        (hash / 64, 1 << (hash % 64))
    })
}

#[cfg(test)]
mod tests {
    use md5::{Digest, Md5};

    use super::super::{Row, Sign, insert};
    use super::*;

    fn signature(n: u32) -> Hex {
        Hex::new(Md5::digest(n.to_le_bytes()).into())
    }

    fn db(rows: u32) -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(super::super::TABLES).unwrap();
        for n in 0..rows {
            insert(&db, Sign::now(signature(n)), &Row::default(), &table::Sample::default()).unwrap();
        }
        table::grow(&db, u64::from(rows)).unwrap();
        db
    }

    #[test]
    fn it_never_denies_a_row_and_seldom_passes_what_has_none() {
        let db = db(2000);
        let mut sieve = Sieve::of(&db).unwrap();
        assert!(sieve.may_have(signature(9999)), "nothing is known yet");
        (0..2000 / ROWS_A_MISS).for_each(|_| sieve.missed(&db).unwrap());
        (5000..100_000).for_each(|n| sieve.add(signature(n)));
        assert!((0..2000).chain(5000..100_000).all(|n| sieve.may_have(signature(n))));
        let passed = (100_000..110_000).filter(|n| sieve.may_have(signature(*n))).count();
        assert!(passed < 200, "{passed} of 10000");
    }

    #[test]
    fn rows_that_have_gone_are_forgotten_when_they_cost_too_much() {
        let db = db(100);
        let mut sieve = Sieve::of(&db).unwrap();
        (0..MIN_MISSES).for_each(|_| sieve.missed(&db).unwrap());
        db.execute("DELETE FROM history", []).unwrap();
        assert!(sieve.may_have(signature(1)));
        (0..MIN_MISSES).for_each(|_| sieve.missed(&db).unwrap());
        assert!(!sieve.may_have(signature(1)));
    }
}
