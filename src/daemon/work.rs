//! The threads that read: each takes a turn, makes records of its events, hands them to the committer, and
//! reports the outcome. If the queue is full the thread waits, and reading waits with it.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use super::pulse::{self, Pulse};
use super::wake::{Heard, Wake};
use crate::core::event::Timestamp;
use crate::delivery::{Batch, Label, Mark, Missed, Notice, Record, Uid};
use crate::sinks::record::{self, Envelope};
use crate::sources::clock::now;
use crate::sources::flow::Flow;
use crate::sources::follow::{Job, lock};
use crate::sources::reader::{Space, Turn};
use crate::state::queue::Queue;
use crate::telemetry::metrics;

/// Most threads that read: more would only wait for the committer.
const MAX_THREADS: usize = 4;

/// A turn to be taken.
pub(super) enum Task {
    /// Of a file.
    File(Job),
    /// Of a stream that is not a file.
    Flow(Arc<Flow>),
}

/// Turns that wait for a thread. The thread that worked last takes the next one, because its caches are warm and its
/// patterns are compiled; so successive turns do not rotate through all threads.
pub(super) struct Pool<T = Task> {
    inside: Mutex<Inside<T>>,
    came: [Condvar; MAX_THREADS],
}

struct Inside<T> {
    tasks: VecDeque<T>,
    /// Threads that wait or are about to; the one that worked last is at the end.
    idle: Vec<usize>,
    is_closed: bool,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        let inside = Inside { tasks: VecDeque::new(), idle: Vec::new(), is_closed: false };
        Self { inside: Mutex::new(inside), came: Default::default() }
    }
}

impl<T> Pool<T> {
    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, job: T) {
        let mut inside = self.lock();
        inside.tasks.push_back(job);
        if let Some(thread) = inside.idle.pop() {
            self.came[thread].notify_one();
        }
    }

    /// Marks a thread as idle when it has finished its turn and is about to take the next one. Call this before the end of the
    /// turn is reported: otherwise the file's next turn would wake another thread while this one is on its way.
    fn comes(&self, thread: usize) {
        self.lock().idle.push(thread);
    }

    /// Drops the turns that wait, and lets the threads end.
    pub fn close(&self) {
        let mut inside = self.lock();
        inside.tasks.clear();
        inside.is_closed = true;
        self.came.iter().for_each(Condvar::notify_all);
    }

    /// Waits for the next turn; `None` once the pool is closed.
    fn take(&self, thread: usize) -> Option<T> {
        let mut inside = self.lock();
        loop {
            inside.idle.retain(|idle| *idle != thread);
            if let Some(job) = inside.tasks.pop_front() {
                return Some(job);
            }
            if inside.is_closed {
                return None;
            }
            inside.idle.push(thread);
            inside = self.came[thread].wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The current writer, shared by all threads; a reload replaces it.
#[derive(Clone)]
pub(super) struct CurrentWriter(Arc<RwLock<Arc<Writer>>>);

impl CurrentWriter {
    pub fn new(writer: Writer) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(writer))))
    }

    pub fn get(&self) -> Arc<Writer> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, writer: Writer) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(writer);
    }
}

pub(super) fn start(pool: &Arc<Pool>, queue: &Arc<Queue>, writer: &CurrentWriter, sender: &Sender<Wake>, pulse: &Pulse) {
    let count = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    for thread in 0..count {
        let worker = Worker { thread, pool: pool.clone(), queue: queue.clone(), sender: sender.clone() };
        let writer = writer.clone();
        let beat = pulse.add(pulse::READER);
        std::thread::spawn(move || {
            let mut space = Space::default();
            beat.waits();
            while let Some(task) = worker.pool.take(thread) {
                beat.moves();
                let writer = writer.get();
                let goes_on = match task {
                    Task::File(job) => worker.of_file(&job, &mut space, &writer),
                    Task::Flow(flow) => worker.of_flow(&flow, &mut space, &writer),
                };
                if !goes_on {
                    break;
                }
                beat.waits();
            }
        });
    }
}

/// One of the threads that read, with the channels for its results.
struct Worker {
    thread: usize,
    pool: Arc<Pool>,
    queue: Arc<Queue>,
    sender: Sender<Wake>,
}

impl Worker {
    /// Takes a file's turn; returns `false` if the receivers are gone.
    fn of_file(&self, job: &Job, space: &mut Space, writer: &Writer) -> bool {
        let mut reader = lock(&job.reader);
        let mut turn = if job.last { reader.finish(space, now()) } else { reader.turn(space, now()) };
        counted(&job.label, &turn);
        let (events, notices) = (std::mem::take(&mut turn.events), std::mem::take(&mut turn.notices));
        let found = Turn { events, notices, mark: turn.mark.clone(), ..Turn::default() };
        // Sent while this thread still holds the reader: this keeps the batches of a stream in order.
        let is_sent = writer.batch(job.uid, &job.label, found).is_none_or(|batch| self.queue.send(batch));
        drop(reader);
        self.pool.comes(self.thread);
        is_sent && self.sender.send(Wake::Done(job.id, Box::new(turn))).is_ok()
    }

    /// Takes the turn of a stream that is not a file; returns `false` if the receivers are gone.
    fn of_flow(&self, flow: &Arc<Flow>, space: &mut Space, writer: &Writer) -> bool {
        let turn = flow.turn(space, now());
        counted(&flow.label, &turn);
        let heard = Heard { uid: flow.uid, label: flow.label.clone(), has_talked: turn.bytes > 0, has_ended: turn.finished };
        let is_sent = writer.batch(flow.uid, &flow.label, turn).is_none_or(|batch| self.queue.send(batch));
        self.pool.comes(self.thread);
        flow.done();
        let is_news = (heard.has_talked || heard.has_ended) && writer.listened_to.contains(&flow.label.source);
        is_sent && (!is_news || self.sender.send(Wake::Heard(heard)).is_ok())
    }
}

/// Adds what a turn has read to the counters of its source. Lines before the start of reading are not included.
pub(super) fn counted(label: &Label, turn: &Turn) {
    let source = metrics().sources.of(&label.source);
    source.bytes.add(turn.bytes);
    source.lines.add(turn.counts.lines);
    source.candidates.add(turn.counts.candidates);
    source.truncated.add(turn.counts.truncated);
    source.unasked.add(turn.counts.unasked);
    source.cut_sections.add(turn.counts.cut_sections);
    source.unread.add(turn.counts.unread);
}

/// Makes batches of turns.
#[derive(Clone)]
pub struct Writer {
    /// Name of this machine.
    pub host: String,
    /// Most bytes of one record.
    pub max_event_bytes: usize,
    /// Whether losses of unknown size are reported, too: they are if marks are kept.
    pub says_all: bool,
    /// Labels of each source, by its name.
    pub labels: BTreeMap<String, Vec<(String, String)>>,
    /// Sources that are watched for silence.
    pub listened_to: HashSet<String>,
}

impl Writer {
    /// Makes the batch of a turn; `None` if it would be empty.
    #[must_use]
    pub fn batch(&self, uid: Uid, label: &Arc<Label>, mut turn: Turn) -> Option<Batch> {
        turn.notices.retain(|notice| self.says_all || !matches!(notice, Notice::Gap { missed: Missed::Unknown, .. }));
        if turn.events.is_empty() && turn.notices.is_empty() && turn.mark.is_none() {
            return None;
        }
        let mut batch = Batch { uid, label: label.clone(), records: Vec::new(), body: Vec::new(), notices: turn.notices, mark: turn.mark, at: now() };
        if turn.events.is_empty() {
            return Some(batch);
        }
        let path = (!label.path.is_empty()).then(|| label.path.clone());
        let envelope = Envelope {
            host: self.host.clone(),
            name: label.source.clone(),
            kind: label.kind,
            path,
            // A record holds text; only a form that holds URIs has a use for the bytes.
            raw_path: None,
            peer: Some(label.peer.clone()).filter(|peer| !peer.is_empty()),
            labels: self.labels.get(&label.source).cloned().unwrap_or_default(),
            argv: label.argv.clone(),
        };
        for (generation, mut event) in turn.events {
            event.io = event.io.or(label.io);
            let from = batch.body.len();
            let seen_at = record::write_open(&mut batch.body, &envelope, &event, self.max_event_bytes);
            let len = (batch.body.len() - from) as u32;
            batch.records.push(Record::new(&event, generation, len, seen_at as u32));
        }
        // The batch may wait for a long time.
        batch.body.shrink_to_fit();
        Some(batch)
    }
}

pub(super) fn mark_only(uid: Uid, label: Arc<Label>, mark: Mark, at: Timestamp) -> Batch {
    Batch { uid, label, records: Vec::new(), body: Vec::new(), notices: Vec::new(), mark: Some(mark), at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_turn_wakes_the_thread_that_is_on_its_way_and_no_other() {
        let pool = Pool::default();
        pool.lock().idle.push(0);
        pool.comes(1);
        pool.push("next");
        assert_eq!(pool.lock().idle, [0]);
        assert_eq!(pool.take(1), Some("next"));
        // One turn more than there are threads on their way wakes another thread.
        pool.comes(1);
        pool.push("a");
        pool.push("b");
        assert!(pool.lock().idle.is_empty());
        assert_eq!((pool.take(1), pool.take(0)), (Some("a"), Some("b")));
    }

    #[test]
    fn who_takes_a_turn_does_not_wait() {
        let pool = Pool::default();
        pool.comes(0);
        pool.comes(1);
        pool.push("next");
        assert_eq!(pool.take(0), Some("next"));
        assert!(pool.lock().idle.is_empty());
        pool.close();
        assert_eq!(pool.take(0), None);
    }
}
