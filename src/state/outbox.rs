//! Committed records on their way to sinks. The newest stay in memory, so that a sink that keeps up
//! never asks the file; one that is behind reads the file until it has caught up.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::delivery::{Chunk, SinkMark};

/// Bytes of records that stay in memory.
const MAX_RING_BYTES: usize = 4 << 20;

#[derive(Default)]
struct Inside {
    chunks: VecDeque<Arc<Chunk>>,
    bytes: usize,
    /// Number of the last record that was committed.
    last: u64,
    /// Records up to here are done by every sink.
    done: u64,
    /// Bytes of records that are not.
    waiting_bytes: u64,
    closed: bool,
    /// What is known of the sinks, committed.
    marks: Vec<SinkMark>,
    version: u64,
}

/// Shared by the committer and the sinks.
#[derive(Default)]
pub struct Outbox {
    inside: Mutex<Inside>,
    changed: Condvar,
    /// There is no file behind it: what waits stays in memory.
    keeps_all: bool,
}

/// What a sink gets when it asks for the next records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// They are here.
    Chunk(Arc<Chunk>),
    /// They are in the file.
    InFile,
    /// There are none yet.
    Nothing,
    /// There will be none.
    End,
}

impl Outbox {
    /// An outbox after record `last`, of which those up to `done` are done; `keeps_all` where there is no file.
    #[must_use]
    pub fn new(last: u64, done: u64, waiting_bytes: u64, keeps_all: bool) -> Self {
        let inside = Inside { last, done, waiting_bytes, ..Inside::default() };
        Self { inside: Mutex::new(inside), changed: Condvar::new(), keeps_all }
    }

    fn tell(&self, mut inside: MutexGuard<'_, Inside>) {
        inside.version += 1;
        drop(inside);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A chunk was committed.
    pub fn push(&self, chunk: Arc<Chunk>) {
        let mut inside = self.lock();
        inside.last = chunk.last();
        inside.bytes += chunk.body.len();
        inside.waiting_bytes += chunk.body.len() as u64;
        inside.chunks.push_back(chunk);
        if !self.keeps_all {
            while inside.bytes > MAX_RING_BYTES && inside.chunks.len() > 1 {
                let Some(old) = inside.chunks.pop_front() else { break };
                inside.bytes -= old.body.len();
            }
        }
        self.tell(inside);
    }

    /// Every sink has done the records up to `seq`; `waiting_bytes` still wait in the file.
    pub fn done(&self, seq: u64, waiting_bytes: Option<u64>) {
        let mut inside = self.lock();
        inside.done = seq;
        while inside.chunks.front().is_some_and(|chunk| chunk.last() <= seq) {
            let Some(old) = inside.chunks.pop_front() else { break };
            inside.bytes -= old.body.len();
        }
        inside.waiting_bytes = waiting_bytes.unwrap_or(inside.bytes as u64);
    }

    /// Bytes of records that some sink has not done.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.lock().waiting_bytes
    }

    /// Records that some sink has not done.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let inside = self.lock();
        inside.last - inside.done
    }

    /// Whether nothing more will come.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Number of the last committed record.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// The records after `seq`.
    #[must_use]
    pub fn next(&self, seq: u64) -> Next {
        let inside = self.lock();
        if inside.last <= seq {
            return if inside.closed { Next::End } else { Next::Nothing };
        }
        let at = inside.chunks.partition_point(|chunk| chunk.last() <= seq);
        match inside.chunks.get(at).filter(|chunk| chunk.first <= seq + 1) {
            Some(chunk) => Next::Chunk(chunk.clone()),
            None => Next::InFile,
        }
    }

    /// Counts what has happened here: to be asked before looking, and given to [`wait`](Self::wait).
    #[must_use]
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Waits until something has happened since `version`, up to `timeout`.
    pub fn wait(&self, version: u64, timeout: Duration) {
        let until = Instant::now() + timeout;
        let mut inside = self.lock();
        while inside.version == version {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            inside = self.changed.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The marks of the sinks are committed.
    pub fn committed(&self, marks: &[SinkMark]) {
        let mut inside = self.lock();
        inside.marks = marks.to_vec();
        self.tell(inside);
    }

    /// Whether a mark of a sink is committed.
    #[must_use]
    pub fn is_committed(&self, mark: &SinkMark) -> bool {
        self.lock().marks.contains(mark)
    }

    /// Wakes the sinks: there is something else to do.
    pub fn nudge(&self) {
        self.tell(self.lock());
    }

    /// Nothing more will come.
    pub fn close(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        self.tell(inside);
    }
}
