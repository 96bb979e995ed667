//! The way to the committer: batches, bounded in bytes, whose senders wait while the queue
//! is full; and the marks of sinks, which never wait, because they are what empties it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ledger;
use super::withhold::Rules;
use crate::delivery::{Batch, SinkMark, Uid};

/// Messages that take no room in the queue.
#[derive(Debug)]
pub enum ControlMessage {
    /// A sink has written up to this mark.
    Sink(SinkMark),
    /// These files still exist.
    Seen(Vec<Uid>),
    /// This stream is gone for good.
    Forget(Uid),
    /// A sink begins: at its old mark, or after record `after`. The outbox holds later records for it until this is committed.
    SinkBegins {
        /// Its name.
        name: String,
        /// The last record that is not for the sink.
        after: u64,
    },
    /// The sink of this name no longer exists.
    SinkEnds(String),
    /// These sources are followed from now on; sent after the marks of their files.
    Sources(Vec<String>),
    /// The loss of an earlier state has been reported.
    LossIsSaid,
    /// A state that was lost while in use has all marks again: sent after them, with the sources that are known.
    IsSaidAgain(Vec<String>),
    /// The rules for what is held back from now on.
    Withhold(Rules),
    /// The rules for history and breakers from now on.
    Ledger(ledger::Rules),
}

/// What one call has taken from the queue.
#[derive(Debug, Default)]
pub struct Arrived {
    /// In order.
    pub batches: Vec<Batch>,
    /// In order.
    pub messages: Vec<ControlMessage>,
    /// The queue is closed and empty.
    pub closed: bool,
    /// No batch is left in the queue.
    pub drained: bool,
}

impl Arrived {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.messages.is_empty()
    }
}

#[derive(Default)]
struct Inside {
    batches: VecDeque<Batch>,
    messages: Vec<ControlMessage>,
    bytes: usize,
    closed: bool,
    /// The receiver knows that nothing more will come.
    is_told: bool,
    nudged: bool,
}

/// A bounded queue.
pub struct Queue {
    inside: Mutex<Inside>,
    came: Condvar,
    went: Condvar,
    max_bytes: usize,
}

impl Queue {
    /// Returns a queue with room for `max_bytes`; one batch always fits.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { inside: Mutex::default(), came: Condvar::new(), went: Condvar::new(), max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a batch; waits while there is no room. Returns `false` if the queue is closed.
    pub fn send(&self, batch: Batch) -> bool {
        let mut inside = self.lock();
        while inside.bytes >= self.max_bytes && !inside.closed {
            inside = self.went.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        self.take_in(inside, batch)
    }

    /// As [`send`](Self::send), but waits at most until `until`. Returns `false` if the queue is closed or there was no room in time.
    pub fn send_until(&self, batch: Batch, until: Instant) -> bool {
        let mut inside = self.lock();
        while inside.bytes >= self.max_bytes && !inside.closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inside = self.went.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.take_in(inside, batch)
    }

    /// Sends a batch without events at once: for the thread that must keep handling signals
    /// while others wait for room. Such batches are small, and there is one per file.
    pub fn put(&self, batch: Batch) -> bool {
        self.take_in(self.lock(), batch)
    }

    fn take_in(&self, mut inside: MutexGuard<'_, Inside>, batch: Batch) -> bool {
        if inside.closed {
            return false;
        }
        inside.bytes += batch.cost();
        inside.batches.push_back(batch);
        self.came.notify_all();
        true
    }

    /// Sends a message at once.
    pub fn tell(&self, message: ControlMessage) {
        self.lock().messages.push(message);
        self.came.notify_all();
    }

    /// Whether senders wait.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let inside = self.lock();
        inside.bytes >= self.max_bytes && !inside.closed
    }

    /// Wakes the receiver.
    pub fn nudge(&self) {
        self.lock().nudged = true;
        self.came.notify_all();
    }

    /// Closes the queue: senders are turned away, what came in is still taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.came.notify_all();
        self.went.notify_all();
    }

    /// Waits up to `timeout` for a message, then until `gather` for more batches, up to `max_bytes`. Without
    /// `batches`, only messages are taken. The end is reported at once; after that, messages are waited for as before.
    pub fn take(&self, batches: bool, timeout: Duration, gather: Option<Instant>, max_bytes: usize) -> Arrived {
        let until = Instant::now() + timeout;
        let mut inside = self.lock();
        let has = |inside: &Inside| !inside.messages.is_empty() || (batches && !inside.batches.is_empty());
        while !has(&inside) && (inside.is_told || !inside.closed) && !std::mem::take(&mut inside.nudged) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Arrived { drained: inside.batches.is_empty(), ..Arrived::default() };
            }
            inside = self.came.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        while batches && !inside.batches.is_empty() && inside.bytes < max_bytes && !inside.closed {
            let left = gather.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            inside = self.came.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut arrived = Arrived { messages: std::mem::take(&mut inside.messages), ..Arrived::default() };
        let mut taken = 0;
        while batches && taken < max_bytes {
            let Some(batch) = inside.batches.pop_front() else { break };
            inside.bytes -= batch.cost();
            taken += batch.cost();
            arrived.batches.push(batch);
        }
        arrived.drained = inside.batches.is_empty();
        arrived.closed = inside.closed && arrived.drained;
        inside.is_told = arrived.closed;
        self.went.notify_all();
        arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::Timestamp;

    /// A source is known once the marks of all its files are, usually after a pause.
    #[test]
    fn whether_all_was_taken_is_said_after_a_pause_as_well() {
        let queue = Queue::new(1);
        let pause = Duration::from_millis(1);
        assert!(queue.take(true, pause, None, 1).drained);
        let (mark, label) = Default::default();
        assert!(queue.put(Batch { uid: [1; 16], label, records: Vec::new(), body: Vec::new(), notices: Vec::new(), mark, at: Timestamp(0) }));
        assert!(!queue.take(false, pause, None, 1).drained, "it was not asked for, and waits");
        assert!(queue.take(true, pause, None, 1).drained);
    }

    #[test]
    fn who_knows_that_it_is_closed_waits_for_messages() {
        let queue = Queue::new(1);
        queue.close();
        assert!(queue.take(true, Duration::from_secs(60), None, 1).closed);
        let (pause, begun) = (Duration::from_millis(20), Instant::now());
        assert!(queue.take(true, pause, None, 1).is_empty() && begun.elapsed() >= pause);
        queue.tell(ControlMessage::LossIsSaid);
        assert_eq!(queue.take(true, Duration::from_secs(60), None, 1).messages.len(), 1);
        queue.nudge();
        assert!(queue.take(true, Duration::from_secs(60), None, 1).closed);
    }
}
