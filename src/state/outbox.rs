//! Committed records on their way to sinks. The newest stay in memory, so that a sink that
//! keeps up never reads the file; a sink that is behind reads the file until it has caught up.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::delivery::{Chunk, SinkMark};

/// Bytes of records to keep in memory.
const MAX_RING_BYTES: usize = 2 << 20;

#[derive(Default)]
struct Inside {
    chunks: VecDeque<Arc<Chunk>>,
    bytes: usize,
    /// Number of the last committed record.
    last: u64,
    /// Every sink is done with the records up to here.
    done: u64,
    /// Bytes of records that some sink is not done with.
    waiting_bytes: u64,
    closed: bool,
    /// The committed marks of the sinks.
    marks: Vec<SinkMark>,
    /// By name of a sink that cannot write: the last record that it has written whole all the same.
    written: HashMap<String, u64>,
    /// By sink name: what the sink was given, and what is left out for it.
    given: HashMap<String, Given>,
    /// By name of a sink that is about to begin: the last record that is not for it.
    held: HashMap<String, u64>,
    version: u64,
}

/// What a sink was given.
#[derive(Clone, Default)]
struct Given {
    /// The last record it was given.
    last: u64,
    /// The ranges left out, in order: after one record, up to another. A sink may ask again for what it was given before, so a single number is not enough.
    left_out: VecDeque<(u64, u64)>,
}

impl Given {
    fn left_out_to(&self) -> u64 {
        self.left_out.back().map_or(0, |(_, to)| *to)
    }
}

/// Committed records, shared by the committer and the sinks.
#[derive(Default)]
pub struct Outbox {
    inside: Mutex<Inside>,
    changed: Condvar,
    /// Without a file, everything that waits stays in memory.
    keeps_all: bool,
}

/// What a sink gets when it asks for the next records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// These records.
    Chunk(Arc<Chunk>),
    /// The records are in the file.
    InFile,
    /// No records yet.
    Nothing,
    /// No more records will come.
    End,
}

impl Outbox {
    /// Returns an outbox whose last record is `last` and whose sinks are done up to `done`; with `keeps_all` there is no file.
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

    /// Adds a committed chunk.
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

    /// Notes that every sink is done up to `seq`; `waiting_bytes` still wait in the file.
    pub fn done(&self, seq: u64, waiting_bytes: Option<u64>) {
        let mut inside = self.lock();
        inside.done = seq;
        while inside.chunks.front().is_some_and(|chunk| chunk.last() <= seq) {
            let Some(old) = inside.chunks.pop_front() else { break };
            inside.bytes -= old.body.len();
        }
        inside.waiting_bytes = waiting_bytes.unwrap_or(inside.bytes as u64);
    }

    /// Returns the bytes of records that some sink is not done with.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.lock().waiting_bytes
    }

    /// Notes how far a sink has come that cannot write the rest.
    pub fn stuck(&self, sink: &str, written: u64) {
        self.lock().written.insert(sink.to_owned(), written);
    }

    /// Returns the number of records that some sink has not written.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let inside = self.lock();
        let written = |mark: &SinkMark| inside.written.get(&mark.name).map_or(mark.seq, |written| mark.seq.max(*written));
        let least = inside.marks.iter().map(written).min().unwrap_or(inside.done);
        inside.last.saturating_sub(least.max(inside.done))
    }

    /// Whether no more records will come.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Returns the number of the last committed record.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// Returns the records after `seq`.
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

    /// Returns the chunks in memory, in order; they hold the newest records.
    #[must_use]
    pub fn kept(&self) -> Vec<Arc<Chunk>> {
        self.lock().chunks.iter().cloned().collect()
    }

    /// Returns where a sink that is done up to `seq` continues: further on, if records after `seq` were left out.
    #[must_use]
    pub fn goes_on(&self, sink: &str, seq: u64) -> u64 {
        let inside = self.lock();
        let over = inside.given.get(sink).and_then(|given| given.left_out.iter().find(|(from, to)| *from <= seq && seq < *to));
        over.map_or(seq, |(_, to)| *to)
    }

    /// Gives a sink a chunk. Returns `false` if the chunk has been left out meanwhile.
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

    /// Leaves out the records up to `to` for a sink, except those it already has. Those after the returned number are left out.
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

    /// Leaves out the records after `from`, up to `to`, for a sink of an earlier run; in order.
    pub fn left_out_before(&self, sink: &str, from: u64, to: u64) {
        let mut inside = self.lock();
        let given = inside.given.entry(sink.to_owned()).or_default();
        match given.left_out.back_mut() {
            Some((_, last)) if *last >= from => *last = to.max(*last),
            _ => given.left_out.push_back((from, to)),
        }
    }

    /// Drops chunks that no sink needs any more; `waiting_bytes` still wait.
    pub fn forget(&self, firsts: &[u64], waiting_bytes: u64) {
        let mut inside = self.lock();
        inside.chunks.retain(|chunk| !firsts.contains(&chunk.first));
        inside.bytes = inside.chunks.iter().map(|chunk| chunk.body.len()).sum();
        inside.waiting_bytes = waiting_bytes;
    }

    /// Ends some sinks after the last committed record and begins others there: later records are held for these until they have begun. `end` is called
    /// with that record's number while nothing is given out, so that no record goes to both or to neither. A sink already being held for keeps its place.
    pub fn hand_over(&self, begin: &[String], end: impl FnOnce(u64)) -> u64 {
        let mut inside = self.lock();
        let last = inside.last;
        end(last);
        for sink in begin {
            inside.held.entry(sink.clone()).or_insert(last);
        }
        last
    }

    /// Releases what was held for a sink that has begun: its mark now holds what it needs.
    pub fn let_go(&self, sink: &str) {
        self.lock().held.remove(sink);
    }

    /// Returns the last record that no sink about to begin needs.
    #[must_use]
    pub fn held(&self) -> Option<u64> {
        self.lock().held.values().min().copied()
    }

    /// Returns a counter of changes, to be read before looking and passed to [`wait`](Self::wait).
    #[must_use]
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Waits until something has changed since `version`, for at most `timeout`.
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

    /// Notes that these marks of the sinks are committed.
    pub fn committed(&self, marks: &[SinkMark]) {
        let mut inside = self.lock();
        inside.marks = marks.to_vec();
        for mark in marks {
            let given = inside.given.get_mut(&mark.name);
            given.into_iter().for_each(|given| given.left_out.retain(|(_, to)| *to > mark.seq));
        }
        self.tell(inside);
    }

    /// Whether this mark of a sink is committed.
    #[must_use]
    pub fn is_committed(&self, mark: &SinkMark) -> bool {
        self.lock().marks.contains(mark)
    }

    /// Wakes the sinks, which have something else to do.
    pub fn nudge(&self) {
        self.tell(self.lock());
    }

    /// Closes the outbox: no more records will come.
    pub fn close(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        self.tell(inside);
    }
}
