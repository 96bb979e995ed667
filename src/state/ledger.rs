//! What each new event changes besides itself: its row in the history and the breaker of its stream, in the transaction that
//! commits it. Rows and breakers in use stay in memory and are written once per transaction, however many events changed them.
//! When another process has written the file, or a transaction has failed, memory is discarded and the file is read again.

use std::collections::HashMap;

use super::breakers::{self, Kept, name_of};
use super::history;
use super::rows::{FOLD_US, Rows};
use super::store::{Store, StoreError, Tx};
use crate::core::breaker::{Limits, State, Transition, Unit};
use crate::core::event::Timestamp;
use crate::delivery::{Label, Notice, Seen, Sighting, Weight, derived_id};

/// Breakers to keep in memory between two transactions.
const MAX_BREAKERS: usize = 4096;

/// What is kept, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Bounds of the history; `None`: there is no history.
    pub history: Option<history::Rules>,
    /// Limits of the breakers.
    pub breaker: Limits,
    /// Whether streams have breakers.
    pub streams: bool,
}

/// A record that is to be written after an event.
pub(super) struct Made {
    pub label: Label,
    pub name: String,
    pub notice: Notice,
    pub opens: bool,
}

struct Cached {
    kept: Kept,
    is_dirty: bool,
}

/// The part of the history and the breakers that is in use.
#[derive(Default)]
pub struct Ledger {
    rules: Rules,
    rows: Rows,
    breakers: HashMap<String, Cached>,
    /// SQLite's counter of changes by other connections.
    version: Option<i64>,
    /// When the next breaker changes by itself.
    breaker_deadline: Option<Timestamp>,
}

impl Ledger {
    /// Replaces the rules, such as after a reload; what is in use stays.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        // Other limits, other times at which an open breaker changes by itself.
        self.set_deadline();
    }

    /// Keeps what the rules ask for.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// For a process with many transactions per second: the history's table is written once a second.
    #[must_use]
    pub fn of_many(rules: Rules) -> Self {
        Self { rows: Rows::new(FOLD_US), ..Self::new(rules) }
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Discards what is in memory: it may differ from what the file holds.
    pub fn forget(&mut self) {
        self.rows.forget();
        self.breakers.clear();
        (self.version, self.breaker_deadline) = (None, None);
    }

    /// Whether another connection has written since the last transaction.
    pub(super) fn is_stale(&self, store: &Store) -> bool {
        self.version.is_some_and(|known| store.data_version().is_ok_and(|version| version != known))
    }

    /// Returns when there is something to do without an event.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.breaker_deadline.into_iter().chain(self.rows.deadline()).min()
    }

    /// Begins a transaction: notices what others have written. Returns `true` if they have, or if nothing is known yet.
    pub(super) fn begin(&mut self, tx: &Tx<'_>) -> Result<bool, StoreError> {
        let version = tx.data_version()?;
        if self.version == Some(version) {
            return Ok(false);
        }
        self.forget();
        self.version = Some(version);
        self.rows.begin(tx.db())?;
        if self.rules.streams {
            let all = breakers::all(tx.db())?.into_iter().filter(|(_, kept)| kept.breaker.unit == Unit::Event);
            self.breakers = all.map(|(name, kept)| (name, Cached { kept, is_dirty: false })).collect();
            self.set_deadline();
        }
        Ok(true)
    }

    /// Adds an event to the history; returns what the history then says of it.
    pub(super) fn seen(&mut self, tx: &Tx<'_>, sighting: Sighting) -> Result<Option<Seen>, StoreError> {
        let Some(rules) = self.rules.history else { return Ok(None) };
        self.rows.seen(tx.db(), &rules, sighting).map(Some)
    }

    /// Updates the breaker of an event's session or, if it has none, of its `stream`.
    pub(super) fn step(&mut self, tx: &Tx<'_>, stream: &str, sighting: Sighting, made: &mut Vec<Made>) -> Result<(), StoreError> {
        let Sighting { label, record, .. } = sighting;
        if !self.rules.streams || record.weight == Weight::None {
            return Ok(());
        }
        let session = record.session.as_deref().map(|session| name_of("session", session));
        let name = session.as_deref().unwrap_or(stream);
        if !self.breakers.contains_key(name) {
            let kept = breakers::find(tx.db(), name)?.unwrap_or_else(|| Kept::new(Unit::Event, label.clone(), record.at));
            self.breakers.insert(name.to_owned(), Cached { kept, is_dirty: false });
        }
        let Some(cached) = self.breakers.get_mut(name) else { return Ok(()) };
        let (breaker, limits) = (&mut cached.kept.breaker, &self.rules.breaker);
        let is_transient = record.weight == Weight::Transient;
        cached.is_dirty |= breaker.counts_event(record.signature, is_transient, limits, record.at);
        let transitions = breaker.event(record.signature, is_transient, limits, record.at);
        cached.is_dirty |= !transitions.is_empty();
        tell(name, &mut cached.kept, &transitions, &record.id, made);
        Ok(())
    }

    /// Makes the transitions that are due by time alone.
    pub(super) fn pass(&mut self, now: Timestamp, made: &mut Vec<Made>) {
        if self.breaker_deadline.is_none_or(|at| now < at) {
            return;
        }
        for (name, cached) in &mut self.breakers {
            let limits = &self.rules.breaker;
            if cached.kept.breaker.deadline(limits).is_some_and(|at| at <= now) {
                cached.is_dirty = true;
                let transitions = cached.kept.breaker.pass(limits, now);
                let trigger = cached.kept.last_id.clone();
                tell(name, &mut cached.kept, &transitions, &trigger, made);
            }
        }
    }

    /// Ends a transaction: writes what it has changed.
    pub(super) fn end(&mut self, tx: &Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
        self.rows.end(tx.db(), self.rules.history.as_ref(), now)?;
        let mut is_changed = false;
        for (name, cached) in self.breakers.iter_mut().filter(|(_, cached)| cached.is_dirty) {
            (cached.is_dirty, is_changed) = (false, true);
            match breakers::is_blank(&cached.kept) {
                true => breakers::remove(tx.db(), name)?,
                false => breakers::put(tx.db(), name, &cached.kept)?,
            }
        }
        if is_changed {
            breakers::prune(tx.db())?;
            self.set_deadline();
        }
        if self.breakers.len() > MAX_BREAKERS {
            self.breakers.retain(|_, cached| cached.kept.breaker.deadline(&self.rules.breaker).is_some());
            if self.breakers.len() > 2 * MAX_BREAKERS {
                // The file holds fewer: read them again.
                self.version = None;
            }
        }
        Ok(())
    }

    fn set_deadline(&mut self) {
        self.breaker_deadline = self.breakers.values().filter_map(|cached| cached.kept.breaker.deadline(&self.rules.breaker)).min();
    }
}

/// Returns the name of a stream's breaker: that of its path, or of its source if it has no path.
#[must_use]
pub fn stream_name(label: &Label) -> String {
    name_of("stream", if label.path.is_empty() { &label.source } else { &label.path })
}

/// Stores transitions in `kept` and makes their records, whose ids are derived from the trigger's id.
pub(super) fn tell(name: &str, kept: &mut Kept, transitions: &[Transition], trigger: &str, made: &mut Vec<Made>) {
    for transition in transitions {
        let id = derived_id("breaker", &[trigger.as_bytes(), name.as_bytes(), transition.reason.as_str().as_bytes()]);
        kept.last_id.clone_from(&id);
        transition.reason.as_str().clone_into(&mut kept.why);
        let notice = Notice::Breaker { id, name: name.to_owned(), made: *transition };
        made.push(Made { label: kept.label.clone(), name: name.to_owned(), notice, opens: transition.to == State::Open });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::breaker::Breaker;

    const MINUTE: i64 = 60_000_000;

    fn rules(cooldown_us: i64) -> Rules {
        Rules { breaker: Limits { cooldown_us, ..Limits::default() }, streams: true, ..Rules::default() }
    }

    #[test]
    fn another_cooldown_holds_for_a_breaker_that_is_open_already() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap().0;
        let mut kept = Kept::new(Unit::Event, Label::default(), Timestamp(0));
        kept.breaker = Breaker { state: State::Open, since: Timestamp(0), ..kept.breaker };
        let mut ledger = Ledger::new(rules(30 * MINUTE));
        let tx = store.begin().unwrap();
        breakers::put(tx.db(), "stream:a", &kept).unwrap();
        ledger.begin(&tx).unwrap();
        assert_eq!(ledger.deadline(), Some(Timestamp(30 * MINUTE)));
        ledger.set_rules(rules(60 * MINUTE));
        assert_eq!(ledger.deadline(), Some(Timestamp(60 * MINUTE)), "nothing is due before");
        ledger.set_rules(rules(10 * MINUTE));
        let mut made = Vec::new();
        ledger.pass(Timestamp(10 * MINUTE - 1), &mut made);
        assert!(made.is_empty());
        ledger.pass(Timestamp(10 * MINUTE), &mut made);
        assert_eq!(made.len(), 1);
    }
}
