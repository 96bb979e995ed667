//! The rows of the history that are in use. An event changes its row in memory; each transaction writes what it has
//! changed to the history's tail, and now and then all of that goes into the table, in the order of its index. So what
//! a flood of new errors costs the table does not rise with the number of transactions.

use std::collections::{BTreeMap, HashMap};

use rusqlite::Connection;

use super::history::{self, HOUR_US, Row, Rules, Sample, Seen, Sieve, Sign, Status, Sum, tail};
use super::store::StoreError;
use crate::core::event::{Hex, Timestamp};
use crate::delivery::{Label, Record};

/// Rows that stay in memory when all of them are in the table.
const MAX_ROWS: usize = 4096;
/// So many changed rows go into the table at once.
const FOLD_ROWS: usize = 8192;
/// So many bytes of the tail do.
const FOLD_BYTES: usize = 4 << 20;
/// What has changed is in the table after so long, in microseconds.
pub(super) const FOLD_US: i64 = 1_000_000;
/// How often rows are looked through for those that are too old.
const PRUNE_US: i64 = 60_000_000;

/// Where a row of the history is.
enum Place {
    /// In the table, under this number; there it is said to be first seen then.
    Table(i64, Timestamp),
    /// Not there yet: it is inserted with what its first event says of it.
    New(Sample),
}

struct Known {
    row: Row,
    place: Place,
    /// Changed in this transaction.
    is_dirty: bool,
    /// Changed since it was put into the table.
    is_unfolded: bool,
}

/// The rows in use.
#[derive(Default)]
pub(super) struct Rows {
    /// Boxed: in a flood of new errors the map grows to many thousand places, of which half are empty.
    known: HashMap<Hex, Box<Known>>,
    dirty: Vec<Hex>,
    unfolded: Vec<Hex>,
    sums: BTreeMap<i64, Sum>,
    /// Bytes in the tail.
    tail_bytes: usize,
    /// What the table need not be asked for.
    sieve: Sieve,
    /// Rows may go on under another signature.
    has_past: bool,
    /// How long the tail may grow, in microseconds; 0: there is none.
    pace_us: i64,
    folded: Option<Timestamp>,
    pruned: Option<Timestamp>,
}

impl Rows {
    /// None in memory; the table is written every `pace_us` microseconds at most.
    pub fn new(pace_us: i64) -> Self {
        Self { pace_us, ..Self::default() }
    }

    /// Memory is not what the file holds.
    pub fn forget(&mut self) {
        *self = Self { folded: self.folded, pruned: self.pruned, ..Self::new(self.pace_us) };
    }

    /// The file is as someone else has left it: what it has waiting is put into the table.
    pub fn begin(&mut self, db: &Connection) -> Result<(), StoreError> {
        tail::fold(db)?;
        (self.has_past, self.sieve) = (history::has_past(db)?, Sieve::of(db)?);
        Ok(())
    }

    /// When the tail is to be folded.
    pub fn deadline(&self) -> Option<Timestamp> {
        let folded = self.folded.filter(|_| !self.unfolded.is_empty())?;
        Some(Timestamp(folded.0.saturating_add(self.pace_us)))
    }

    /// An event's place in the history; `bytes` is its record.
    pub fn seen(&mut self, db: &Connection, rules: &Rules, (label, record): (&Label, &Record), bytes: &[u8]) -> Result<Seen, StoreError> {
        if !self.known.contains_key(&record.signature) {
            let known = self.ask(db, record, bytes)?;
            self.known.insert(record.signature, Box::new(known));
        }
        // It is there since the line above.
        let Some(known) = self.known.get_mut(&record.signature) else { return Err(StoreError::Fatal("a row is gone".to_owned())) };
        let stream = if label.path.is_empty() { &label.source } else { &label.path };
        let seen = known.row.step(record.at, stream, rules);
        if !std::mem::replace(&mut known.is_dirty, true) {
            self.dirty.push(record.signature);
        }
        if !std::mem::replace(&mut known.is_unfolded, true) {
            self.unfolded.push(record.signature);
        }
        let sum = self.sums.entry(record.at.0.div_euclid(HOUR_US)).or_default();
        sum.events += 1;
        sum.new += u64::from(seen.status == Status::New);
        sum.regressed += u64::from(seen.status == Status::Regressed);
        Ok(seen)
    }

    /// What is known of an error that is not in memory.
    fn ask(&mut self, db: &Connection, record: &Record, bytes: &[u8]) -> Result<Known, StoreError> {
        let sign = Sign::now(record.signature);
        if self.sieve.may_have(record.signature) {
            if let Some((id, row)) = history::find(db, sign)? {
                return Ok(Known { place: Place::Table(id, row.first), row, is_dirty: false, is_unfolded: false });
            }
            self.sieve.missed(db)?;
        }
        let sample = Sample::of_record(record, bytes);
        let old = if self.has_past { history::take_over(db, sign, &sample)? } else { None };
        Ok(Known { row: old.unwrap_or_else(|| Row::new(record.at)), place: Place::New(sample), is_dirty: false, is_unfolded: false })
    }

    /// At the end of each transaction.
    pub fn end(&mut self, db: &Connection, rules: Option<&Rules>, now: Timestamp) -> Result<(), StoreError> {
        for (hour, sum) in std::mem::take(&mut self.sums) {
            history::add_hour(db, hour, sum)?;
        }
        let waited = self.folded.map_or(i64::MAX, |at| now.0.saturating_sub(at.0));
        // A clock that goes back makes it wait no longer.
        let is_time = !(0..self.pace_us).contains(&waited) || self.unfolded.len() >= FOLD_ROWS || self.tail_bytes >= FOLD_BYTES;
        if is_time && !self.unfolded.is_empty() {
            self.folded = Some(now);
            let inserted = self.fold(db)?;
            if let (true, Some(rules)) = (inserted > 0, rules) {
                let gone = history::prune_rows(db, rules)?;
                self.drop_until(gone);
            }
            self.drop_many();
        } else if !self.dirty.is_empty() {
            self.append(db)?;
        }
        match rules {
            Some(rules) if self.unfolded.is_empty() => self.prune_age(db, rules, now),
            _ => Ok(()),
        }
    }

    fn append(&mut self, db: &Connection) -> Result<(), StoreError> {
        let mut out = Vec::with_capacity(256 * self.dirty.len());
        for signature in self.dirty.drain(..) {
            let Some(known) = self.known.get_mut(&signature) else { continue };
            known.is_dirty = false;
            let sample = match &known.place {
                Place::New(sample) => Some(sample),
                Place::Table(..) => None,
            };
            tail::put(&mut out, Sign::now(signature), &known.row, sample);
        }
        self.tail_bytes += out.len();
        tail::append(db, &out)
    }

    /// All that has changed goes into the table; returns how many rows are new there.
    fn fold(&mut self, db: &Connection) -> Result<u64, StoreError> {
        self.dirty.clear();
        // In this order neighbours in the index are written one after the other.
        self.unfolded.sort_unstable();
        let mut inserted = 0;
        for signature in self.unfolded.drain(..) {
            let Some(known) = self.known.get_mut(&signature) else { continue };
            let id = match &known.place {
                Place::New(sample) => {
                    inserted += 1;
                    self.sieve.add(signature);
                    history::insert(db, Sign::now(signature), &known.row, sample)?
                }
                Place::Table(id, first) => {
                    history::update(db, *id, &known.row, known.row.first != *first)?;
                    *id
                }
            };
            (known.place, known.is_dirty, known.is_unfolded) = (Place::Table(id, known.row.first), false, false);
        }
        if inserted > 0 {
            history::grow(db, inserted)?;
        }
        if std::mem::take(&mut self.tail_bytes) > 0 {
            tail::clear(db)?;
        }
        Ok(inserted)
    }

    fn prune_age(&mut self, db: &Connection, rules: &Rules, now: Timestamp) -> Result<(), StoreError> {
        if self.pruned.is_none_or(|at| now.0.saturating_sub(at.0) >= PRUNE_US) {
            self.pruned = Some(now);
            let gone = history::prune_age(db, rules, now)?;
            self.drop_until(gone);
        }
        Ok(())
    }

    /// Rows that were last seen until then may be gone from the table.
    fn drop_until(&mut self, last: Option<Timestamp>) {
        if let Some(last) = last {
            self.known.retain(|_, known| known.row.last > last);
        }
    }

    /// Too many are in memory: an error that was seen once is the least likely to come again.
    fn drop_many(&mut self) {
        if self.known.len() > MAX_ROWS {
            self.known.retain(|_, known| known.row.count > 1);
        }
        if self.known.len() > MAX_ROWS {
            self.known.clear();
        }
    }
}
