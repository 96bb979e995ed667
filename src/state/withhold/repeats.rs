//! Equal errors within `repeat_window`: the first of a signature passes, further ones of the same source are held back until
//! its window is over.

use std::collections::BTreeMap;

use super::tally::Tally;
use super::{Held, Key};
use crate::core::event::Timestamp;
use crate::delivery::{Label, Record};

/// Signatures to remember at most; beyond that, the oldest is reported and forgotten.
pub(super) const MAX_REPEATS: usize = 10_000;

/// The errors whose window is open.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// Length of a window in microseconds; 0: off.
    window_us: i64,
    pub held: Tally,
}

impl Repeats {
    pub fn new(window_us: i64, held: BTreeMap<Key, Held>) -> Self {
        Self { window_us, held: Tally::new(held) }
    }

    pub fn set_window(&mut self, window_us: i64) {
        self.window_us = window_us;
    }

    /// Opens a window for a new error. Returns `false` for an error that has one: it is counted and held back.
    pub fn passes(&mut self, label: &Label, record: &Record, now: Timestamp) -> bool {
        if self.window_us == 0 {
            return true;
        }
        let key = Key { source: label.source.clone(), signature: record.signature.to_string() };
        if self.held.count(&key, now) {
            return false;
        }
        let kind = Some((record.severity, record.category));
        self.held.add(key, Held { first_id: record.id.clone(), since: now, to: now, count: 0, kind });
        true
    }

    /// Returns the errors whose window is over, and the oldest ones if there are too many.
    pub fn over(&self, now: Timestamp) -> Vec<Key> {
        let by_age = || self.held.by_age();
        let excess = by_age().len().saturating_sub(MAX_REPEATS);
        let past = by_age().enumerate().take_while(|(at, (since, _))| *at < excess || now.0 - since.0 >= self.window_us).map(|(_, entry)| entry);
        let to_come = by_age().rev().take_while(|(since, _)| since.0 - now.0 >= self.window_us);
        past.chain(to_come).map(|(_, key)| key.clone()).collect()
    }

    /// Returns when the next window is over.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.held.by_age().next().map(|(since, _)| Timestamp(since.0 + self.window_us))
    }
}
