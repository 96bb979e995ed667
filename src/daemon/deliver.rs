//! A thread for each sink: it steps the sink, waits for records, and retries failed writes. A sink that cannot
//! write holds up nothing else until the outbox is full.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::wake::{Stop, Wake};
use crate::delivery::{Chunk, Node, SinkMark};
use crate::sinks::{OutboxReader, Sink, Step};
use crate::sources::clock::now;
use crate::sources::follow::OwnOutputs;
use crate::state::outbox::{Next, Outbox};
use crate::state::queue::{ControlMessage, Queue};
use crate::state::store::Store;
use crate::telemetry::metrics;

/// Pause after a failed write.
const AGAIN: Duration = Duration::from_millis(500);
/// Pause after a failed write while the daemon shuts down or the sink is being removed.
const SOON: Duration = Duration::from_millis(50);
/// Longest sleep.
const LONG: Duration = Duration::from_secs(60);

/// One sink and what it needs.
pub(super) struct Delivery {
    pub name: String,
    /// Number of the last record that the sink has done.
    pub seq: u64,
    pub sink: Box<dyn Sink + Send>,
    pub shared: Shared,
    pub leaving: Arc<Leaving>,
    /// The sink is one that must begin for the daemon to start.
    pub is_first: bool,
}

/// Set when a sink is removed: the number of the last record that it still gets, and the deadline for writing it.
#[derive(Default)]
pub(super) struct Leaving(OnceLock<(u64, Instant)>);

impl Leaving {
    pub fn set(&self, last: u64, until: Instant) {
        // A sink is removed only once.
        let _ = self.0.set((last, until));
    }

    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    fn last(&self) -> Option<u64> {
        self.0.get().map(|(last, _)| *last)
    }

    /// Whether the sink no longer gets this record.
    fn is_before(&self, record: u64) -> bool {
        self.last().is_some_and(|last| record > last)
    }

    fn is_late(&self) -> bool {
        self.0.get().is_some_and(|(_, until)| Instant::now() >= *until)
    }
}

/// The outcome of the sinks' first steps.
#[derive(Default)]
pub(super) struct Begun {
    /// How many sinks have made their first step.
    pub count: AtomicUsize,
    /// Why those that must begin for the daemon to start cannot.
    pub failed: Mutex<Vec<String>>,
}

/// What all sinks have in common.
#[derive(Clone)]
pub(super) struct Shared {
    pub outbox: Arc<Outbox>,
    pub queue: Arc<Queue>,
    pub folder: Option<PathBuf>,
    pub own: OwnOutputs,
    pub stop: Arc<Stop>,
}

/// Why a sink cannot be written.
struct Trouble {
    why: String,
    kind: ErrorKind,
    /// Further attempts that failed for the same reason.
    tries: u32,
}

/// How a sink's thread ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// All is written, or the sink was removed as planned.
    Whole,
    /// The reader has closed the pipe.
    Unread,
    /// The time for writing ran out.
    GivenUp,
}

/// The situation when a step began.
#[derive(Clone, Copy)]
struct At {
    /// Version of the outbox.
    version: u64,
    /// The sink is being removed.
    leaves: bool,
    /// Everything is to be written now.
    hurry: bool,
}

impl Delivery {
    /// Writes until no more records can come, or until the sink is removed; returns how many records were not written.
    pub fn run(mut self, sender: &Sender<Wake>, begun: &Begun) -> u64 {
        let mut outbox = SinkOutbox { name: self.name.clone(), shared: self.shared.clone(), store: None, leaving: self.leaving.clone(), told: self.seq };
        let ending = self.step_on(&mut outbox, sender, begun);
        if ending != Ending::Whole {
            self.sink.give_up(&mut outbox, self.shared.folder.is_none());
        }
        match self.leaving.last() {
            Some(last) => last.saturating_sub(outbox.told),
            None if ending == Ending::Whole || !self.shared.outbox.is_closed() => 0,
            // A reader that closes its pipe, such as `head`, wants no more records, so none are lost.
            None if ending == Ending::Unread && self.shared.folder.is_none() => 0,
            None => self.left_after(&mut outbox),
        }
    }

    /// How many records the sink has not done at the end. With a state folder all of them count, even those that the sink
    /// would filter out.
    fn left_after(&self, outbox: &mut SinkOutbox) -> u64 {
        let (mut count, mut seq) = (0, outbox.told);
        if self.shared.folder.is_some() {
            return self.shared.outbox.last().saturating_sub(seq);
        }
        while let Ok(Some(chunk)) = outbox.after(seq) {
            count += self.sink.choose().count(&chunk, seq);
            seq = chunk.last();
        }
        count
    }

    fn step_on(&mut self, outbox: &mut SinkOutbox, sender: &Sender<Wake>, begun: &Begun) -> Ending {
        let (mut trouble, mut has_begun): (Option<Trouble>, bool) = (None, false);
        let mut reopened = self.shared.stop.reopen.load(Ordering::Relaxed);
        loop {
            let version = self.shared.outbox.version();
            let asked = self.shared.stop.reopen.load(Ordering::Relaxed);
            if std::mem::replace(&mut reopened, asked) != asked {
                self.sink.reopen();
            }
            let leaves = self.leaving.is_set();
            let hurry = leaves || self.shared.stop.hurry.load(Ordering::Relaxed);
            let done = self.sink.step(outbox, now(), hurry);
            if !std::mem::replace(&mut has_begun, true) {
                trouble = self.begins(&done, sender, begun);
                begun.count.fetch_add(1, Ordering::Release);
                self.shared.queue.nudge();
            }
            let at = At { version, leaves, hurry };
            let goes_on = match done {
                Ok(step) => {
                    self.recovers(step, &mut trouble);
                    if step == Step::Settled && (at.leaves || self.shared.outbox.is_closed()) {
                        return Ending::Whole;
                    }
                    self.goes_on(step, at)
                }
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    drop(sender.send(Wake::Unread(self.name.clone())));
                    return Ending::Unread;
                }
                Err(error) => self.tries_again(&error, at, &mut trouble),
            };
            if !goes_on {
                return Ending::GivenUp;
            }
        }
    }

    /// Handles the outcome of the first step: a sink that must begin for the daemon to start, and fails, stops the start
    /// with its error. That error is then not logged again.
    fn begins(&self, done: &io::Result<Step>, sender: &Sender<Wake>, begun: &Begun) -> Option<Trouble> {
        let may_pass = |error: &&io::Error| !matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::BrokenPipe);
        let error = done.as_ref().err().filter(may_pass).filter(|_| self.is_first)?;
        // When another process has the file, the error already says what to do.
        let mend = if error.kind() == ErrorKind::ResourceBusy { "" } else { ": check its path and who may write there" };
        let why = format!("sink {}: {error}{mend}", self.sink.place());
        begun.failed.lock().unwrap_or_else(PoisonError::into_inner).push(why.clone());
        drop(sender.send(Wake::Failed(why)));
        Some(Trouble { why: error.to_string(), kind: error.kind(), tries: 0 })
    }

    /// Clears the trouble after a step that shows that the sink can be written again.
    fn recovers(&self, step: Step, trouble: &mut Option<Trouble>) {
        if !matches!(step, Step::Trying | Step::Paused) && trouble.take().is_some() {
            metrics().sinks.of(&self.name).trouble.clear();
            tracing::warn!("sink {}: can be written again", self.name);
        }
    }

    /// After a step that worked, waits until there is something to do. Returns `false` if time has run out.
    fn goes_on(&self, step: Step, at: At) -> bool {
        match step {
            Step::Done | Step::Trying => return true,
            Step::Paused if self.may_give_up() || self.leaving.is_late() => return false,
            Step::Idle if self.leaving.is_late() => return false,
            Step::Paused | Step::Settled | Step::Idle => {}
        }
        self.wait(at);
        true
    }

    /// After a step that failed, logs the error once and waits a little. Returns `false` if the sink is given up.
    fn tries_again(&self, error: &io::Error, at: At, trouble: &mut Option<Trouble>) -> bool {
        let counted = metrics().sinks.of(&self.name);
        counted.retries.add(1);
        let why = placed(&self.sink.place(), &error.to_string());
        // The text may vary: the process that holds the file is not always known.
        let is_same = |before: &Trouble| before.why == why || error.kind() == ErrorKind::ResourceBusy && before.kind == error.kind();
        let tries = trouble.as_ref().filter(|before| is_same(before)).map_or(0, |before| before.tries + 1);
        if tries == 0 {
            let hope = if self.shared.folder.is_some() { "nothing is lost, it is tried again" } else { "it is tried again" };
            tracing::warn!("sink {}: {why}; {hope}", self.name);
            counted.trouble.set(why.as_str());
        }
        self.shared.outbox.stuck(&self.name, self.sink.written());
        *trouble = Some(Trouble { why, kind: error.kind(), tries });
        if self.may_give_up() || self.leaving.is_late() {
            return false;
        }
        if !self.sink.paces_itself() {
            self.shared.outbox.wait(at.version, if at.hurry { SOON } else { AGAIN });
            std::thread::sleep(if at.hurry { Duration::from_millis(10 << tries.min(3)) } else { Duration::from_millis(100) });
        }
        true
    }

    /// Whether to stop retrying: at shutdown, when the grace is over. What is left then stays in the state, if there is one.
    fn may_give_up(&self) -> bool {
        self.shared.outbox.is_closed() && self.shared.stop.is_late()
    }

    fn wait(&self, at: At) {
        let due = self.sink.deadline().map(|at| Duration::from_micros(at.0.saturating_sub(now().0).max(1000) as u64));
        let longest = if at.hurry { Duration::from_millis(5) } else { LONG };
        self.shared.outbox.wait(at.version, due.unwrap_or(longest).min(longest));
    }
}

/// The outbox as a sink of a running daemon reads it.
struct SinkOutbox {
    name: String,
    shared: Shared,
    store: Option<Store>,
    leaving: Arc<Leaving>,
    told: u64,
}

impl OutboxReader for SinkOutbox {
    fn after(&mut self, mut seq: u64) -> io::Result<Option<Arc<Chunk>>> {
        loop {
            seq = self.shared.outbox.goes_on(&self.name, seq);
            if self.leaving.is_before(seq + 1) {
                return Ok(None);
            }
            let chunk = match self.shared.outbox.next(seq) {
                Next::Chunk(chunk) => {
                    self.store = None;
                    Some(chunk)
                }
                Next::InFile => self.read_file(seq)?,
                Next::Nothing | Next::End => None,
            };
            // The sink may have been removed meanwhile: what was committed after that is for others.
            if chunk.as_ref().is_some_and(|chunk| self.leaving.is_before(chunk.first)) {
                return Ok(None);
            }
            if chunk.as_ref().is_none_or(|chunk| self.shared.outbox.give(&self.name, chunk)) {
                return Ok(chunk);
            }
        }
    }

    fn tell(&mut self, mark: &SinkMark) {
        self.told = mark.seq;
        self.shared.queue.tell(ControlMessage::Sink(mark.clone()));
    }

    fn is_committed(&self, mark: &SinkMark) -> bool {
        self.shared.outbox.is_committed(mark)
    }

    fn owns(&mut self, node: Node) {
        self.shared.own.add(node);
    }

    fn is_over(&self) -> bool {
        self.shared.outbox.is_closed() || self.leaving.is_set()
    }
}

impl SinkOutbox {
    fn read_file(&mut self, seq: u64) -> io::Result<Option<Arc<Chunk>>> {
        let Some(folder) = &self.shared.folder else { return Ok(None) };
        let store = match self.store.take() {
            Some(store) => Some(store),
            None => Store::look(folder).map_err(io::Error::other)?,
        };
        let chunk = store.as_ref().map_or(Ok(None), |store| store.chunk_after(seq)).map_err(io::Error::other)?;
        // No chunk: this may be an old file that was set aside, so reopen it the next time.
        self.store = store.filter(|_| chunk.is_some());
        Ok(chunk.map(Arc::new))
    }
}

/// Names the place that a message of the system is about, which names none.
pub(super) fn placed(place: &str, said: &str) -> String {
    // The number in an I/O error's text helps nobody.
    let words = said.split(" (os error").next().unwrap_or_default();
    if words.contains(place) { words.to_owned() } else { format!("{place}: {words}") }
}

#[cfg(test)]
mod tests {
    use super::placed;

    #[test]
    fn a_message_names_the_place_once() {
        assert_eq!(placed("out/a.ndjson", "No such file or directory (os error 2)"), "out/a.ndjson: No such file or directory");
        assert_eq!(placed("out/a.ndjson", "out/a.ndjson: another siftd writes to it"), "out/a.ndjson: another siftd writes to it");
    }
}
