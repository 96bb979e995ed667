//! Which signatures may have a row in the table, in so few bits that all of them fit into memory: a flood of errors that
//! were never seen before asks the table for hardly any of them. It may say yes where there is no row, never no where there
//! is one. (A Bloom filter; a signature is an MD5 sum, whose parts serve as its hashes.)

use rusqlite::Connection;

use super::table;
use crate::core::event::Hex;
use crate::state::store::StoreError;

/// Of a hundred signatures without a row, one passes when 100,000 others have one; it takes 128 KiB.
const BITS: usize = 1 << 20;
/// To read the signatures of so many rows takes as long as to ask for one that has none.
const ROWS_A_MISS: u64 = 16;
/// It is not worth its memory before.
const MIN_MISSES: u64 = 64;

/// What is known of a table that nobody else writes.
#[derive(Default)]
pub(in crate::state) struct Sieve {
    /// None: nothing is known.
    bits: Option<Box<[u64]>>,
    /// Rows of the table.
    rows: u64,
    /// How often the table was asked in vain since all was read.
    misses: u64,
}

impl Sieve {
    /// Of a table of which nothing is known but how many rows it has.
    pub fn of(db: &Connection) -> Result<Self, StoreError> {
        Ok(Self { rows: table::size(db)?, ..Self::default() })
    }

    /// Whether the table may have a row for a signature.
    pub fn may_have(&self, signature: Hex) -> bool {
        self.bits.as_ref().is_none_or(|bits| places(signature).all(|(word, bit)| bits[word] & bit != 0))
    }

    /// The table has a row for a signature.
    pub fn add(&mut self, signature: Hex) {
        self.rows += 1;
        if let Some(bits) = &mut self.bits {
            places(signature).for_each(|(word, bit)| bits[word] |= bit);
        }
    }

    /// The table was asked in vain. As soon as that has taken as long as to read all signatures, they are read; and again
    /// when rows that have gone since let too many pass.
    pub fn missed(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.misses += 1;
        if self.misses < MIN_MISSES || self.misses * ROWS_A_MISS < self.rows {
            return Ok(());
        }
        (self.bits, self.rows, self.misses) = (Some(vec![0; BITS / 64].into()), 0, 0);
        table::signatures(db, |signature| self.add(signature))
    }
}

/// Words and bits of a signature.
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
