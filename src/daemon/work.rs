//! The threads that read: each takes a turn, makes records of its events, hands them to the committer,
//! and says how it went. A full queue makes it wait, and so the files.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use super::pulse::Pulse;
use super::wake::Wake;
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

/// Turns that wait for a thread.
#[derive(Default)]
pub(super) struct Pool {
    inside: Mutex<(VecDeque<Task>, bool)>,
    came: Condvar,
}

impl Pool {
    pub fn push(&self, job: Task) {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).0.push_back(job);
        self.came.notify_one();
    }

    /// What waits is not done any more.
    pub fn close(&self) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.0.clear();
        inside.1 = true;
        self.came.notify_all();
    }

    fn take(&self) -> Option<Task> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = inside.0.pop_front() {
                return Some(job);
            }
            if inside.1 {
                return None;
            }
            inside = self.came.wait(inside).unwrap_or_else(PoisonError::into_inner);
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
    for _ in 0..count {
        let (pool, queue, writer, sender) = (pool.clone(), queue.clone(), writer.clone(), sender.clone());
        let beat = pulse.add("a thread that reads");
        std::thread::spawn(move || {
            let mut space = Space::default();
            beat.waits();
            while let Some(task) = pool.take() {
                beat.moves();
                let writer = writer.get();
                let goes_on = match task {
                    Task::File(job) => of_file(&job, &mut space, &writer, &queue, &sender),
                    Task::Flow(flow) => of_flow(&flow, &mut space, &writer, &queue),
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
fn of_flow(flow: &Arc<Flow>, space: &mut Space, writer: &Writer, queue: &Queue) -> bool {
    let turn = flow.turn(space, now());
    counted(&flow.label, &turn);
    let is_sent = writer.batch(flow.uid, &flow.label, turn).is_none_or(|batch| queue.send(batch));
    flow.done();
    is_sent
}

/// What a turn has read. Lines that were only counted are none that were looked at.
pub(super) fn counted(label: &Label, turn: &Turn) {
    let source = metrics().sources.of(&label.source);
    source.bytes.add(turn.bytes);
    source.lines.add(turn.counts.lines);
    source.candidates.add(turn.counts.candidates);
    source.truncated.add(turn.counts.truncated);
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
}

impl Writer {
    /// The batch of a turn; none if there is nothing to say.
    #[must_use]
    pub fn batch(&self, uid: Uid, label: &Arc<Label>, mut turn: Turn) -> Option<Batch> {
        turn.notices.retain(|notice| self.says_all || !matches!(notice, Notice::Gap { bytes: None, events: None, .. }));
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
