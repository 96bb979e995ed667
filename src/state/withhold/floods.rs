//! Events beyond `max_events_per_second`: those of a source that are more than its limit are held back as one flood, which
//! is over once the source has kept within the limit for a second.

use std::collections::{BTreeMap, HashMap};

use super::tally::Tally;
use super::{Held, Key};
use crate::core::event::Timestamp;
use crate::delivery::{Label, Record};

/// One second: a flood is over once its source has kept within its limit for this long.
pub(super) const SECOND_US: i64 = 1_000_000;
/// A flood that does not end is reported at this interval.
const MAX_FLOOD_US: i64 = 60 * SECOND_US;

#[derive(Clone, Debug)]
struct Second {
    begun: i64,
    passed: u32,
}

/// The limits of sources, and their floods.
#[derive(Debug, Default)]
pub(super) struct Floods {
    /// Name of a source → events per second.
    per_second: HashMap<String, u32>,
    seconds: HashMap<String, Second>,
    /// The seconds as they were before the transaction.
    seconds_before: HashMap<String, Second>,
    pub held: Tally,
}

impl Floods {
    pub fn new(per_second: HashMap<String, u32>, held: BTreeMap<Key, Held>) -> Self {
        Self { per_second, held: Tally::new(held), ..Self::default() }
    }

    pub fn set_limits(&mut self, per_second: HashMap<String, u32>) {
        self.per_second = per_second;
    }

    pub fn begin(&mut self) {
        self.seconds_before.clone_from(&self.seconds);
        self.held.begin();
    }

    pub fn take_back(&mut self) {
        self.seconds.clone_from(&self.seconds_before);
        self.held.take_back();
    }

    /// Counts an event. Returns `false` if it is one too many, and is held back.
    pub fn passes(&mut self, label: &Label, record: &Record, now: Timestamp) -> bool {
        let Some(&limit) = self.per_second.get(&label.source).filter(|limit| **limit > 0) else { return true };
        let second = self.seconds.entry(label.source.clone()).or_insert(Second { begun: now.0, passed: 0 });
        if Timestamp(second.begun).is_past(SECOND_US, now) {
            (second.begun, second.passed) = (now.0, 0);
        }
        if second.passed < limit {
            second.passed += 1;
            return true;
        }
        let key = Key { source: label.source.clone(), signature: String::new() };
        if !self.held.count(&key, now) {
            self.held.add(key, Held { first_id: record.id.clone(), since: now, to: now, count: 1, kind: None });
        }
        false
    }

    /// Returns the floods that are over, or are to be reported even so.
    pub fn over(&self, now: Timestamp) -> Vec<Key> {
        let is_over = |held: &Held| held.to.is_past(SECOND_US, now) || held.since.is_past(MAX_FLOOD_US, now);
        self.held.all().filter(|(_, held)| is_over(held)).map(|(key, _)| key.clone()).collect()
    }

    /// Returns when the next flood is over at the latest.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.held.all().map(|(_, held)| Timestamp(held.to.0 + SECOND_US)).min()
    }
}
