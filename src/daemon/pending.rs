//! What has arrived for the commits and waits for a later one: messages, and marks without events.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::delivery::{Batch, Uid};
use crate::state::queue::ControlMessage;

/// What waits for a commit.
pub(super) struct Pending {
    /// The messages of the next commit.
    pub due: Vec<ControlMessage>,
    /// Sources that are new, or known again. One may count as known only once all its files are: otherwise they would be read from their beginning.
    sources: Vec<ControlMessage>,
    /// For each stream, the newest batch that only says how far it was read.
    marks: HashMap<Uid, Batch>,
    /// When marks were last let go.
    since: Instant,
}

impl Pending {
    pub fn new() -> Self {
        Self { due: Vec::new(), sources: Vec::new(), marks: HashMap::new(), since: Instant::now() }
    }

    /// Takes messages from the queue, whose order relative to the batches in it does not matter except for sources.
    pub fn take_in(&mut self, arrived: Vec<ControlMessage>) {
        let waits = |message: &ControlMessage| matches!(message, ControlMessage::Sources(_) | ControlMessage::IsSaidAgain(_));
        let (names, others): (Vec<_>, Vec<_>) = arrived.into_iter().partition(waits);
        self.due.extend(others);
        self.sources.extend(names);
    }

    /// Returns the batches to commit at once, and keeps those that only say how far their stream was read.
    pub fn put_off(&mut self, arrived: Vec<Batch>) -> Vec<Batch> {
        let mut batches = Vec::new();
        for batch in arrived {
            if batch.records.is_empty() && batch.notices.is_empty() {
                self.marks.insert(batch.uid, batch);
            } else {
                if batch.mark.is_some() {
                    self.marks.remove(&batch.uid);
                }
                batches.push(batch);
            }
        }
        batches
    }

    /// Returns the marks for the next commit. `drained`: nothing is left in the queue, so that new
    /// sources go with them: all marks that came before them are among these, or committed.
    pub fn let_go(&mut self, drained: bool) -> impl Iterator<Item = Batch> {
        if drained {
            self.due.append(&mut self.sources);
        }
        self.since = Instant::now();
        std::mem::take(&mut self.marks).into_values()
    }

    /// Returns how long ago marks were last let go.
    pub fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether something waits until marks are let go.
    pub fn holds_back(&self) -> bool {
        !self.marks.is_empty() || !self.sources.is_empty()
    }

    pub fn has_no_message(&self) -> bool {
        self.due.is_empty() && self.sources.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_source_waits_for_its_files_whenever_it_is_taken_from_the_queue() {
        let mut pending = Pending::new();
        pending.take_in(vec![ControlMessage::Sources(vec!["new".to_owned()]), ControlMessage::LossIsSaid]);
        assert!(matches!(&pending.due[..], [ControlMessage::LossIsSaid]) && pending.holds_back());
        assert_eq!(pending.let_go(false).count(), 0);
        assert!(pending.holds_back() && !pending.has_no_message());
        assert_eq!(pending.let_go(true).count(), 0);
        assert!(matches!(&pending.due[..], [ControlMessage::LossIsSaid, ControlMessage::Sources(_)]) && !pending.holds_back());
    }
}
