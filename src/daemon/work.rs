//! The threads that read: each takes a turn, makes records of its events, hands them to the committer,
//! and says how it went. A full queue makes it wait, and so the files.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use super::pulse::Pulse;
use super::wake::{Heard, Wake};
use crate::core::event::Timestamp;
use crate::delivery::{Batch, Label, Mark, Notice, Record, Uid};
use crate::sinks::notice::SEEN_BYTES;
use crate::sinks::record::{self, Envelope};
use crate::sources::clock::now;
use crate::sources::flow::Flow;
use crate::sources::follow::{Job, lock};
use crate::sources::reader::{Space, Turn};
use crate::state::queue::Queue;
use crate::telemetry::metrics;

/// More threads than this only wait for the committer.
const MAX_THREADS: usize = 4;

/// A turn that is to be taken.
pub(super) enum Task {
    /// Of a file.
    File(Job),
    /// Of a stream that is none.
    Flow(Arc<Flow>),
}

/// Turns that wait for a thread. The thread that worked last takes the next one: its caches are warm, and one file after
/// the other does not go round through all of them.
#[derive(Default)]
pub(super) struct Pool {
    inside: Mutex<Inside>,
    came: [Condvar; MAX_THREADS],
}

#[derive(Default)]
struct Inside {
    tasks: VecDeque<Task>,
    /// Threads that wait, the one that worked last at the end.
    idle: Vec<usize>,
    is_closed: bool,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, job: Task) {
        let mut inside = self.lock();
        inside.tasks.push_back(job);
        if let Some(thread) = inside.idle.pop() {
            self.came[thread].notify_one();
        }
    }

    /// What waits is not done any more.
    pub fn close(&self) {
        let mut inside = self.lock();
        inside.tasks.clear();
        inside.is_closed = true;
        self.came.iter().for_each(Condvar::notify_all);
    }

    /// The next turn for a thread; it waits for one.
    fn take(&self, thread: usize) -> Option<Task> {
        let mut inside = self.lock();
        loop {
            if let Some(job) = inside.tasks.pop_front() {
                return Some(job);
            }
            if inside.is_closed {
                return None;
            }
            inside.idle.push(thread);
            inside = self.came[thread].wait(inside).unwrap_or_else(PoisonError::into_inner);
            inside.idle.retain(|idle| *idle != thread);
        }
    }
}

/// The writer as it is now, for all threads: a reload replaces it.
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
        let (pool, queue, writer, sender) = (pool.clone(), queue.clone(), writer.clone(), sender.clone());
        let beat = pulse.add("a thread that reads");
        std::thread::spawn(move || {
            let mut space = Space::default();
            beat.waits();
            while let Some(task) = pool.take(thread) {
                beat.moves();
                let writer = writer.get();
                let goes_on = match task {
                    Task::File(job) => of_file(&job, &mut space, &writer, &queue, &sender),
                    Task::Flow(flow) => of_flow(&flow, &mut space, &writer, (&queue, &sender)),
                };
                if !goes_on {
                    break;
                }
                beat.waits();
            }
        });
    }
}

/// A file's turn; false: nobody wants any more.
fn of_file(job: &Job, space: &mut Space, writer: &Writer, queue: &Queue, sender: &Sender<Wake>) -> bool {
    let mut reader = lock(&job.reader);
    let mut turn = if job.last { reader.finish(space, now()) } else { reader.turn(space, now()) };
    counted(&job.label, &turn);
    let mut said = Turn { mark: turn.mark.clone(), ..Turn::default() };
    (said.more, said.deadline, said.is_open, said.bytes, said.lost) = (turn.more, turn.deadline, turn.is_open, turn.bytes, turn.lost);
    (said.rewritten, said.trouble, said.unlinked, said.finished) = (turn.rewritten, turn.trouble.take(), turn.unlinked, turn.finished);
    // Before another thread can have the reader: batches of a stream are in order.
    let is_sent = writer.batch(job.uid, &job.label, turn).is_none_or(|batch| queue.send(batch));
    drop(reader);
    is_sent && sender.send(Wake::Done(job.id, Box::new(said))).is_ok()
}

/// The turn of a stream that is no file; false: nobody wants any more.
fn of_flow(flow: &Arc<Flow>, space: &mut Space, writer: &Writer, (queue, sender): (&Queue, &Sender<Wake>)) -> bool {
    let turn = flow.turn(space, now());
    counted(&flow.label, &turn);
    let heard = Heard { uid: flow.uid, label: flow.label.clone(), has_talked: turn.bytes > 0, has_ended: turn.finished };
    let is_sent = writer.batch(flow.uid, &flow.label, turn).is_none_or(|batch| queue.send(batch));
    flow.done();
    let is_news = (heard.has_talked || heard.has_ended) && writer.listened_to.contains(&flow.label.source);
    is_sent && (!is_news || sender.send(Wake::Heard(heard)).is_ok())
}

/// What a turn has read. Lines that were only counted are none that were looked at.
pub(super) fn counted(label: &Label, turn: &Turn) {
    let source = metrics().sources.of(&label.source);
    source.bytes.add(turn.bytes);
    source.lines.add(turn.counts.lines);
    source.candidates.add(turn.counts.candidates);
    source.truncated.add(turn.counts.truncated);
    source.unasked.add(turn.counts.unasked);
}

/// Makes batches of turns.
#[derive(Clone)]
pub struct Writer {
    /// Name of this machine.
    pub host: String,
    /// Longest record.
    pub max_event_bytes: usize,
    /// Whether a loss that nobody can measure is said, too: where positions are kept it is.
    pub says_all: bool,
    /// Labels of each source, by its name.
    pub labels: BTreeMap<String, Vec<(String, String)>>,
    /// Sources whose silence is told.
    pub listened_to: HashSet<String>,
}

impl Writer {
    /// The batch of a turn; none if there is nothing to say.
    #[must_use]
    pub fn batch(&self, uid: Uid, label: &Arc<Label>, mut turn: Turn) -> Option<Batch> {
        turn.notices.retain(|notice| self.says_all || !matches!(notice, Notice::Gap { bytes: None, events: None, datagrams: None, connections: None, .. }));
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
            peer: Some(label.peer.clone()).filter(|peer| !peer.is_empty()),
            labels: self.labels.get(&label.source).cloned().unwrap_or_default(),
            argv: label.argv.clone(),
        };
        for (generation, mut event) in turn.events {
            event.io = event.io.or(label.io);
            let from = batch.body.len();
            let seen_at = record::write_open(&mut batch.body, &envelope, &event, self.max_event_bytes.saturating_sub(SEEN_BYTES));
            let len = (batch.body.len() - from) as u32;
            batch.records.push(Record::new(&event, generation, len, seen_at as u32));
        }
        // It may wait for long.
        batch.body.shrink_to_fit();
        Some(batch)
    }
}

pub(super) fn mark_only(uid: Uid, label: Arc<Label>, mark: Mark, at: Timestamp) -> Batch {
    Batch { uid, label, records: Vec::new(), body: Vec::new(), notices: Vec::new(), mark: Some(mark), at }
}
