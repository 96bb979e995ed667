//! The rows of the history that are in use. An event changes its row in memory. Each transaction writes its changed rows to the history's tail; now and
//! then all of them go into the table, in index order. So the cost of a flood of new errors to the table does not rise with the number of transactions.

use std::collections::{BTreeMap, HashMap};

use rusqlite::Connection;

use super::history::{self, HOUR_US, Row, Rules, Sample, Sieve, Sign, Sum, tail};
use super::store::StoreError;
use crate::core::event::{Hex, Timestamp};
use crate::delivery::{Seen, Sighting, Status};

/// Rows to keep in memory once all of them are in the table.
const MAX_ROWS: usize = 4096;
/// This many changed rows are folded into the table at once.
const FOLD_ROWS: usize = 8192;
/// A tail of this many bytes is folded into the table at once.
const FOLD_BYTES: usize = 4 << 20;
/// Changes are in the table after this many microseconds.
pub(super) const FOLD_US: i64 = 1_000_000;
/// How often rows that are too old are looked for, in microseconds.
const PRUNE_US: i64 = 60_000_000;

/// Where a row of the history is.
enum Place {
    /// In the table: its number, and when it was first seen according to the table.
    Table(i64, Timestamp),
    /// Not in the table yet: it will be inserted with its first event's sample.
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
    /// Boxed: in a flood of new errors the map grows to many thousand slots, half of them empty.
    known: HashMap<Hex, Box<Known>>,
    dirty: Vec<Hex>,
    unfolded: Vec<Hex>,
    sums: BTreeMap<i64, Sum>,
    /// Bytes in the tail.
    tail_bytes: usize,
    /// Knows which signatures have no row in the table.
    sieve: Sieve,
    /// Rows may continue under another signature.
    has_past: bool,
    /// Signatures whose events count for another one.
    joined: HashMap<Hex, Hex>,
    /// How long the tail may grow, in microseconds; 0: there is no tail.
    pace_us: i64,
    folded: Option<Timestamp>,
    pruned: Option<Timestamp>,
}

impl Rows {
    /// Starts empty; the table is written at most every `pace_us` microseconds.
    pub fn new(pace_us: i64) -> Self {
        Self { pace_us, ..Self::default() }
    }

    /// Discards what is in memory: it may differ from what the file holds.
    pub fn forget(&mut self) {
        *self = Self { folded: self.folded, pruned: self.pruned, ..Self::new(self.pace_us) };
    }

    /// Takes the file as another process left it: its tail is folded into the table.
    pub fn begin(&mut self, db: &Connection) -> Result<(), StoreError> {
        tail::fold(db)?;
        (self.has_past, self.sieve) = (history::has_past(db)?, Sieve::of(db)?);
        self.joined = history::joined(db)?;
        Ok(())
    }

    /// Returns when the tail is due to be folded.
    pub fn deadline(&self) -> Option<Timestamp> {
        let folded = self.folded.filter(|_| !self.unfolded.is_empty())?;
        Some(Timestamp(folded.0.saturating_add(self.pace_us)))
    }

    /// Adds an event to the history; returns what the history then says of it.
    pub fn seen(&mut self, db: &Connection, rules: &Rules, sighting: Sighting) -> Result<Seen, StoreError> {
        let Sighting { label, record, .. } = sighting;
        let signature = self.joined.get(&record.signature).copied().unwrap_or(record.signature);
        if !self.known.contains_key(&signature) {
            let known = self.ask(db, signature, sighting)?;
            self.known.insert(signature, Box::new(known));
        }
        // The lines above have inserted it.
        let Some(known) = self.known.get_mut(&signature) else { return Err(StoreError::Fatal("a row is gone".to_owned())) };
        let stream = if label.path.is_empty() { &label.source } else { &label.path };
        let seen = known.row.step(record.at, stream, rules);
        if !std::mem::replace(&mut known.is_dirty, true) {
            self.dirty.push(signature);
        }
        if !std::mem::replace(&mut known.is_unfolded, true) {
            self.unfolded.push(signature);
        }
        let sum = self.sums.entry(record.at.0.div_euclid(HOUR_US)).or_default();
        sum.events += 1;
        sum.new += u64::from(seen.status == Status::New);
        sum.regressed += u64::from(seen.status == Status::Regressed);
        Ok(seen)
    }

    /// Looks up an error that is not in memory.
    fn ask(&mut self, db: &Connection, signature: Hex, sighting: Sighting) -> Result<Known, StoreError> {
        let sign = Sign::now(signature);
        if self.sieve.may_have(signature) {
            if let Some((id, row)) = history::find(db, sign)? {
                return Ok(Known { place: Place::Table(id, row.first), row, is_dirty: false, is_unfolded: false });
            }
            self.sieve.missed(db)?;
        }
        let sample = Sample::of_record(sighting.record, sighting.line);
        let old = if self.has_past { history::take_over(db, sign, &sample)? } else { None };
        Ok(Known { row: old.unwrap_or_else(|| Row::new(sighting.record.at)), place: Place::New(sample), is_dirty: false, is_unfolded: false })
    }

    /// Ends a transaction: writes its changes to the tail or the table.
    pub fn end(&mut self, db: &Connection, rules: Option<&Rules>, now: Timestamp) -> Result<(), StoreError> {
        for (hour, sum) in std::mem::take(&mut self.sums) {
            history::add_hour(db, hour, sum)?;
        }
        let waited = self.folded.map_or(i64::MAX, |at| now.0.saturating_sub(at.0));
        // If the clock goes back, fold at once.
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

    /// Folds all changes into the table; returns how many rows were inserted.
    fn fold(&mut self, db: &Connection) -> Result<u64, StoreError> {
        self.dirty.clear();
        // In this order, neighbours in the index are written one after the other.
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

    /// Drops rows last seen up to `last`: they may be gone from the table.
    fn drop_until(&mut self, last: Option<Timestamp>) {
        if let Some(last) = last {
            self.known.retain(|_, known| known.row.last > last);
        }
    }

    /// Drops rows when too many are in memory, first those seen once: they are the least likely to come again.
    fn drop_many(&mut self) {
        if self.known.len() > MAX_ROWS {
            self.known.retain(|_, known| known.row.count > 1);
        }
        if self.known.len() > MAX_ROWS {
            self.known.clear();
        }
    }
}
