//! Committed records on their way to sinks. The newest stay in memory, so that a sink that keeps up
//! never asks the file; one that is behind reads the file until it has caught up.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::delivery::{Chunk, SinkMark};

/// Bytes of records that stay in memory.
const MAX_RING_BYTES: usize = 2 << 20;

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
    /// By the name of a sink: what it was given, and what it is not given any more.
    given: HashMap<String, Given>,
    /// By the name of a sink that is to begin: the last record that is not for it.
    held: HashMap<String, u64>,
    version: u64,
}

/// What a sink was given.
#[derive(Clone, Default)]
struct Given {
    /// The last record of it.
    last: u64,
    /// What is left out, in order: behind one record, up to another. A sink may ask again for what it was
    /// given before, so this is more than one number.
    left_out: VecDeque<(u64, u64)>,
}

impl Given {
    fn left_out_to(&self) -> u64 {
        self.left_out.back().map_or(0, |(_, to)| *to)
    }
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
        match inside.chunks.get(at).filter(|chunk| self.keeps_all || chunk.first <= seq + 1) {
            Some(chunk) => Next::Chunk(chunk.clone()),
            None => Next::InFile,
        }
    }

    /// What is in memory, in order; the newest records are.
    #[must_use]
    pub fn kept(&self) -> Vec<Arc<Chunk>> {
        self.lock().chunks.iter().cloned().collect()
    }

    /// Where a sink goes on that has done the records up to `seq`: further, if some were left out.
    #[must_use]
    pub fn goes_on(&self, sink: &str, seq: u64) -> u64 {
        let inside = self.lock();
        let over = inside.given.get(sink).and_then(|given| given.left_out.iter().find(|(from, to)| *from <= seq && seq < *to));
        over.map_or(seq, |(_, to)| *to)
    }

    /// A sink is given a chunk. False: it is left out meanwhile.
    #[must_use]
    pub fn give(&self, sink: &str, chunk: &Chunk) -> bool {
        let mut inside = self.lock();
        let given = inside.given.entry(sink.to_owned()).or_default();
        let is_given = !given.left_out.iter().any(|(from, to)| *from < chunk.first && chunk.last() <= *to);
        if is_given {
            given.last = given.last.max(chunk.last());
        }
        is_given
    }

    /// A sink is not given the records up to `to`, unless it has them: those after the returned number.
    pub fn leave_out(&self, sink: &str, to: u64) -> u64 {
        let mut inside = self.lock();
        let given = inside.given.entry(sink.to_owned()).or_default();
        let from = given.last.max(given.left_out_to());
        match given.left_out.back_mut() {
            Some((_, last)) if *last == from => *last = from.max(to),
            _ if to > from => given.left_out.push_back((from, to)),
            _ => {}
        }
        from
    }

    /// Chunks that nobody needs any more; `waiting_bytes` still wait.
    pub fn forget(&self, firsts: &[u64], waiting_bytes: u64) {
        let mut inside = self.lock();
        inside.chunks.retain(|chunk| !firsts.contains(&chunk.first));
        inside.bytes = inside.chunks.iter().map(|chunk| chunk.body.len()).sum();
        inside.waiting_bytes = waiting_bytes;
    }

    /// Some sinks end behind the last committed record, and others begin there: what comes after it is held for these
    /// until they have begun. `end` is told its number while nothing is given out, so that no record is for both or for
    /// neither. One that is held for already keeps its place.
    pub fn hand_over(&self, begin: &[String], end: impl FnOnce(u64)) -> u64 {
        let mut inside = self.lock();
        let last = inside.last;
        end(last);
        for sink in begin {
            inside.held.entry(sink.clone()).or_insert(last);
        }
        last
    }

    /// The sink has begun: its mark holds what it needs.
    pub fn let_go(&self, sink: &str) {
        self.lock().held.remove(sink);
    }

    /// The last record that is for no sink that is to begin.
    #[must_use]
    pub fn held(&self) -> Option<u64> {
        self.lock().held.values().min().copied()
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
        for mark in marks {
            let given = inside.given.get_mut(&mark.name);
            given.into_iter().for_each(|given| given.left_out.retain(|(_, to)| *to > mark.seq));
        }
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
