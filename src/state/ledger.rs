//! What each new event changes beside itself: its row in the history and the breaker of its stream, in the transaction
//! that commits it. Rows that are in use stay in memory and are written once a transaction, however many events had
//! them; when another process has written the file, or a transaction has failed, memory is forgotten and the file asked.

use std::collections::{BTreeMap, HashMap};

use super::breakers::{self, Kept, name_of};
use super::history::{self, HOUR_US, Row, Sample, Seen, Sign, Status, Sum};
use super::store::{Store, StoreError, Tx};
use crate::core::breaker::{Limits, State, Transition, Unit};
use crate::core::event::{Hex, Timestamp};
use crate::delivery::{Label, Notice, Record, Weight, derived_id};

/// Rows of the history that stay in memory between two transactions.
const MAX_ROWS: usize = 4096;
/// Breakers that do.
const MAX_BREAKERS: usize = 4096;
/// How often rows are looked through for those that are too old.
const PRUNE_US: i64 = 60_000_000;

/// What is kept, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Bounds of the history; none: there is none.
    pub history: Option<history::Rules>,
    /// Limits of the breakers.
    pub breaker: Limits,
    /// Streams have breakers.
    pub streams: bool,
}

/// Something that is to be written behind an event.
pub(super) struct Made {
    pub label: Label,
    pub name: String,
    pub notice: Notice,
    pub opens: bool,
}

struct Cached<T> {
    value: T,
    is_dirty: bool,
}

/// Where a row of the history is.
enum Place {
    /// In the table, under this number; there it is said to be first seen then.
    Table(i64, Timestamp),
    /// Nowhere yet: it is written whole at the end of the transaction, with what its first event says of it.
    New(Sample),
}

/// The rows in use.
#[derive(Default)]
pub struct Ledger {
    rules: Rules,
    rows: HashMap<Hex, (Place, Cached<Row>)>,
    dirty: Vec<Hex>,
    sums: BTreeMap<i64, Sum>,
    breakers: HashMap<String, Cached<Kept>>,
    /// SQLite's count of what other connections have written.
    version: Option<i64>,
    deadline: Option<Timestamp>,
    pruned: Option<Timestamp>,
    has_new: bool,
    /// Rows may go on under another signature.
    has_past: bool,
}

impl Ledger {
    /// Goes on under other rules.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Keeps what the rules say.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Memory is not what the file holds.
    pub fn forget(&mut self) {
        *self = Self { rules: self.rules, pruned: self.pruned, ..Self::default() };
    }

    /// Whether another connection has written since the last transaction.
    pub(super) fn is_behind(&self, store: &Store) -> bool {
        self.version.is_some_and(|known| store.data_version().is_ok_and(|version| version != known))
    }

    /// When a breaker changes by itself.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// At the beginning of each transaction: notices what others have written. True: they have, or nothing is known yet.
    pub(super) fn begin(&mut self, tx: &Tx<'_>) -> Result<bool, StoreError> {
        let version = tx.data_version()?;
        if self.version == Some(version) {
            return Ok(false);
        }
        self.forget();
        self.version = Some(version);
        self.has_past = history::has_past(tx.db())?;
        if self.rules.streams {
            let all = breakers::all(tx.db())?.into_iter().filter(|(_, kept)| kept.breaker.unit == Unit::Event);
            self.breakers = all.map(|(name, kept)| (name, Cached { value: kept, is_dirty: false })).collect();
            self.set_deadline();
        }
        Ok(true)
    }

    /// An event's place in the history; `bytes` is its record.
    pub(super) fn seen(&mut self, tx: &Tx<'_>, (label, record): (&Label, &Record), bytes: &[u8]) -> Result<Option<Seen>, StoreError> {
        let Some(rules) = self.rules.history else { return Ok(None) };
        if !self.rows.contains_key(&record.signature) {
            let sign = Sign::now(record.signature);
            let (place, value) = match history::find(tx.db(), sign)? {
                Some((id, row)) => (Place::Table(id, row.first), row),
                None => self.first(tx, sign, record, bytes)?,
            };
            self.rows.insert(record.signature, (place, Cached { value, is_dirty: false }));
        }
        let Some((_, row)) = self.rows.get_mut(&record.signature) else { return Ok(None) };
        let stream = if label.path.is_empty() { &label.source } else { &label.path };
        let seen = row.value.step(record.at, stream, &rules);
        if !std::mem::replace(&mut row.is_dirty, true) {
            self.dirty.push(record.signature);
        }
        let sum = self.sums.entry(record.at.0.div_euclid(HOUR_US)).or_default();
        sum.events += 1;
        sum.new += u64::from(seen.status == Status::New);
        sum.regressed += u64::from(seen.status == Status::Regressed);
        Ok(Some(seen))
    }

    fn first(&mut self, tx: &Tx<'_>, sign: Sign, record: &Record, bytes: &[u8]) -> Result<(Place, Row), StoreError> {
        let sample = Sample::of_record(record, bytes);
        let old = if self.has_past { history::take_over(tx.db(), sign, &sample)? } else { None };
        let row = old.unwrap_or_else(|| Row::new(record.at));
        self.has_new = true;
        Ok((Place::New(sample), row))
    }

    /// What an event does to the breaker of its session or stream.
    pub(super) fn step(&mut self, tx: &Tx<'_>, (stream, label, record): (&str, &Label, &Record), made: &mut Vec<Made>) -> Result<(), StoreError> {
        if !self.rules.streams || record.weight == Weight::None {
            return Ok(());
        }
        let session = record.session.as_deref().map(|session| name_of("session", session));
        let name = session.as_deref().unwrap_or(stream);
        if !self.breakers.contains_key(name) {
            let kept = breakers::find(tx.db(), name)?.unwrap_or_else(|| Kept::new(Unit::Event, label.clone(), record.at));
            self.breakers.insert(name.to_owned(), Cached { value: kept, is_dirty: false });
        }
        let Some(cached) = self.breakers.get_mut(name) else { return Ok(()) };
        let (breaker, limits) = (&mut cached.value.breaker, &self.rules.breaker);
        let is_transient = record.weight == Weight::Transient;
        cached.is_dirty |= breaker.counts_event(record.signature, is_transient, limits, record.at);
        let transitions = breaker.event(record.signature, is_transient, limits, record.at);
        cached.is_dirty |= !transitions.is_empty();
        tell(name, &mut cached.value, &transitions, &record.id, made);
        Ok(())
    }

    /// What the time has changed.
    pub(super) fn pass(&mut self, now: Timestamp, made: &mut Vec<Made>) {
        if self.deadline.is_none_or(|at| now < at) {
            return;
        }
        for (name, cached) in &mut self.breakers {
            let limits = &self.rules.breaker;
            if cached.value.breaker.deadline(limits).is_some_and(|at| at <= now) {
                cached.is_dirty = true;
                let transitions = cached.value.breaker.pass(limits, now);
                let trigger = cached.value.last_id.clone();
                tell(name, &mut cached.value, &transitions, &trigger, made);
            }
        }
    }

    /// At the end of each transaction.
    pub(super) fn end(&mut self, tx: &Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
        let mut inserted = 0;
        for signature in self.dirty.drain(..) {
            let Some((place, row)) = self.rows.get_mut(&signature) else { continue };
            let (db, value) = (tx.db(), &row.value);
            let id = match place {
                Place::New(sample) => {
                    inserted += 1;
                    history::insert(db, Sign::now(signature), value, sample)?
                }
                Place::Table(id, first) => {
                    history::update(db, *id, value, value.first != *first)?;
                    *id
                }
            };
            (*place, row.is_dirty) = (Place::Table(id, value.first), false);
        }
        if inserted > 0 {
            history::grow(tx.db(), inserted)?;
        }
        for (hour, sum) in std::mem::take(&mut self.sums) {
            history::add_hour(tx.db(), hour, sum)?;
        }
        self.prune(tx, now)?;
        let mut is_changed = false;
        for (name, cached) in self.breakers.iter_mut().filter(|(_, cached)| cached.is_dirty) {
            (cached.is_dirty, is_changed) = (false, true);
            match breakers::is_blank(&cached.value) {
                true => breakers::remove(tx.db(), name)?,
                false => breakers::put(tx.db(), name, &cached.value)?,
            }
        }
        if is_changed {
            breakers::prune(tx.db())?;
            self.set_deadline();
        }
        if self.breakers.len() > MAX_BREAKERS {
            self.breakers.retain(|_, cached| cached.value.breaker.deadline(&self.rules.breaker).is_some());
            if self.breakers.len() > 2 * MAX_BREAKERS {
                // The file holds fewer: they are read again.
                self.version = None;
            }
        }
        Ok(())
    }

    fn prune(&mut self, tx: &Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
        let Some(rules) = &self.rules.history else { return Ok(()) };
        let mut gone = std::mem::take(&mut self.has_new) && history::prune_rows(tx.db(), rules)?;
        if self.pruned.is_none_or(|at| now.0.saturating_sub(at.0) >= PRUNE_US) {
            self.pruned = Some(now);
            gone |= history::prune_age(tx.db(), rules, now)?;
        }
        if gone || self.rows.len() > MAX_ROWS {
            self.rows.clear();
        }
        Ok(())
    }

    fn set_deadline(&mut self) {
        self.deadline = self.breakers.values().filter_map(|cached| cached.value.breaker.deadline(&self.rules.breaker)).min();
    }
}

/// The breaker of a stream is named after its path, or after its source where it has none.
#[must_use]
pub fn stream_name(label: &Label) -> String {
    name_of("stream", if label.path.is_empty() { &label.source } else { &label.path })
}

/// Notes transitions in what is kept, and says them. Their ids follow from the trigger's.
pub(super) fn tell(name: &str, kept: &mut Kept, transitions: &[Transition], trigger: &str, made: &mut Vec<Made>) {
    for transition in transitions {
        let id = derived_id("breaker", &[trigger.as_bytes(), name.as_bytes(), transition.reason.as_str().as_bytes()]);
        kept.last_id.clone_from(&id);
        transition.reason.as_str().clone_into(&mut kept.why);
        let notice = Notice::Breaker { id, name: name.to_owned(), made: *transition };
        made.push(Made { label: kept.label.clone(), name: name.to_owned(), notice, opens: transition.to == State::Open });
    }
}
