//! Counts of what is held back, by key and by age. What a transaction has changed is known, and can be taken back.

use std::collections::{BTreeMap, BTreeSet};

use super::{Held, Key};
use crate::core::event::Timestamp;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    held: BTreeMap<Key, Held>,
    /// The keys, by the time of their first event.
    by_age: BTreeSet<(Timestamp, Key)>,
    /// The entries that a transaction has changed, as they were before.
    before: BTreeMap<Key, Option<Held>>,
}

impl Tally {
    pub fn new(held: BTreeMap<Key, Held>) -> Self {
        let mut all = Self::default();
        held.into_iter().for_each(|(key, held)| drop(all.replace(key, Some(held))));
        all
    }

    /// Begins a transaction.
    pub fn begin(&mut self) {
        self.before.clear();
    }

    /// Restores everything to its state at [`begin`](Self::begin).
    pub fn take_back(&mut self) {
        for (key, held) in std::mem::take(&mut self.before) {
            self.replace(key, held);
        }
    }

    /// Returns what has changed since [`begin`](Self::begin); `None` for an entry that was removed.
    pub fn changed(&self) -> impl Iterator<Item = (&Key, Option<&Held>)> {
        self.before.keys().map(|key| (key, self.held.get(key)))
    }

    /// Returns all entries.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Held)> {
        self.held.iter()
    }

    /// Returns when the first event of each entry occurred, the oldest first.
    pub fn by_age(&self) -> impl DoubleEndedIterator<Item = (Timestamp, &Key)> + ExactSizeIterator {
        self.by_age.iter().map(|(since, key)| (*since, key))
    }

    /// Counts one more event under a key. Returns `false` if there is no such entry.
    pub fn count(&mut self, key: &Key, now: Timestamp) -> bool {
        let Some(held) = self.held.get_mut(key) else { return false };
        if !self.before.contains_key(key) {
            self.before.insert(key.clone(), Some(held.clone()));
        }
        (held.count, held.to) = (held.count + 1, held.to.max(now));
        true
    }

    /// Adds an entry.
    pub fn add(&mut self, key: Key, held: Held) {
        let old = self.replace(key.clone(), Some(held));
        self.before.entry(key).or_insert(old);
    }

    /// Removes an entry, and returns it.
    pub fn remove(&mut self, key: &Key) -> Option<Held> {
        let old = self.replace(key.clone(), None);
        self.before.entry(key.clone()).or_insert_with(|| old.clone());
        old
    }

    fn replace(&mut self, key: Key, held: Option<Held>) -> Option<Held> {
        let old = self.held.remove(&key);
        if let Some(old) = &old {
            self.by_age.remove(&(old.since, key.clone()));
        }
        if let Some(held) = held {
            self.by_age.insert((held.since, key.clone()));
            self.held.insert(key, held);
        }
        old
    }
}
