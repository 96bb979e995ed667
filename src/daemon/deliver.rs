//! A thread for each sink: steps it, waits for records, and tries again where it could not write. One that
//! cannot write stops nobody else until the outbox is full.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::wake::{Stop, Wake};
use crate::delivery::{Chunk, Node, SinkMark};
use crate::sinks::{Desk, Sink, Step};
use crate::sources::clock::now;
use crate::sources::follow::OwnOutputs;
use crate::state::outbox::{Next, Outbox};
use crate::state::queue::{Queue, Word};
use crate::state::store::Store;
use crate::telemetry::metrics;

/// After a failed write.
const AGAIN: Duration = Duration::from_millis(500);
/// The same where everything is to be written now.
const SOON: Duration = Duration::from_millis(50);
/// Longest sleep.
const LONG: Duration = Duration::from_secs(60);

/// One sink and what it needs.
pub(super) struct Delivery {
    pub name: String,
    /// The last record that it has done.
    pub seq: u64,
    pub sink: Box<dyn Sink + Send>,
    pub shared: Shared,
    pub leaving: Arc<Leaving>,
    /// It is one of those without which there is no start.
    pub is_first: bool,
}

/// When a sink is taken out: the last record that it is to have, and until when.
#[derive(Default)]
pub(super) struct Leaving(OnceLock<(u64, Instant)>);

impl Leaving {
    pub fn set(&self, last: u64, until: Instant) {
        // It leaves once.
        let _ = self.0.set((last, until));
    }

    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    fn last(&self) -> Option<u64> {
        self.0.get().map(|(last, _)| *last)
    }

    /// Whether it is to have no record from this one on.
    fn is_before(&self, record: u64) -> bool {
        self.last().is_some_and(|last| record > last)
    }

    fn is_late(&self) -> bool {
        self.0.get().is_some_and(|(_, until)| Instant::now() >= *until)
    }
}

/// What is known of the first steps.
#[derive(Default)]
pub(super) struct Begun {
    /// So many sinks have made theirs.
    pub count: AtomicUsize,
    /// Why one without which there is no start cannot.
    pub failed: OnceLock<String>,
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
    /// So often it was the same since.
    tries: u32,
}

/// How the writing ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// All is written, or it left as it was told to.
    Whole,
    /// Whoever read it has closed it.
    Unread,
    /// There was no more time.
    GivenUp,
}

/// How things stood when a step began.
#[derive(Clone, Copy)]
struct At {
    /// Of the outbox.
    version: u64,
    /// The sink is to be taken out.
    leaves: bool,
    /// Everything is written now.
    hurry: bool,
}

impl Delivery {
    /// Writes until nothing more can come, or it is to leave; returns how many records it has left undone.
    pub fn run(mut self, sender: &Sender<Wake>, begun: &Begun) -> u64 {
        let mut desk = Counter { name: self.name.clone(), shared: self.shared.clone(), store: None, leaving: self.leaving.clone(), told: self.seq };
        let ending = self.step_on(&mut desk, sender, begun);
        if ending != Ending::Whole {
            self.sink.give_up(&mut desk, self.shared.folder.is_none());
        }
        match self.leaving.last() {
            Some(last) => last.saturating_sub(desk.told),
            None if ending == Ending::Whole || !self.shared.outbox.is_closed() => 0,
            // Whoever has closed a pipe wants no more of it: that is no loss, as with `head`.
            None if ending == Ending::Unread && self.shared.folder.is_none() => 0,
            None => self.left_after(&mut desk),
        }
    }

    /// Records at the end that it has not done. Where they stay, the last ones may be such as it does not want.
    fn left_after(&self, desk: &mut Counter) -> u64 {
        let (mut count, mut seq) = (0, desk.told);
        if self.shared.folder.is_some() {
            return self.shared.outbox.last().saturating_sub(seq);
        }
        while let Ok(Some(chunk)) = desk.after(seq) {
            count += self.sink.choose().count(&chunk, seq);
            seq = chunk.last();
        }
        count
    }

    fn step_on(&mut self, desk: &mut Counter, sender: &Sender<Wake>, begun: &Begun) -> Ending {
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
            let done = self.sink.step(desk, now(), hurry);
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

    /// The first step is done: one that must work at the start, and does not, keeps the daemon from starting, and that is
    /// what is said of it.
    fn begins(&self, done: &io::Result<Step>, sender: &Sender<Wake>, begun: &Begun) -> Option<Trouble> {
        let may_pass = |error: &&io::Error| !matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::BrokenPipe);
        let error = done.as_ref().err().filter(may_pass).filter(|_| self.is_first)?;
        // Who else writes to it says what to do.
        let mend = if error.kind() == ErrorKind::ResourceBusy { "" } else { ": check its path and who may write there" };
        let why = format!("sink {}: {error}{mend}", self.sink.place());
        // The first one is told.
        let _ = begun.failed.set(why.clone());
        drop(sender.send(Wake::Failed(why)));
        Some(Trouble { why: error.to_string(), kind: error.kind(), tries: 0 })
    }

    /// After a step that shows that what failed works again.
    fn recovers(&self, step: Step, trouble: &mut Option<Trouble>) {
        if !matches!(step, Step::Trying | Step::Paused) && trouble.take().is_some() {
            metrics().sinks.of(&self.name).trouble.clear();
            tracing::warn!("sink {}: can be written again", self.name);
        }
    }

    /// After a step: waits until there is something to do. False: there is no more time.
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

    /// After a step that failed: says so once, and waits a little. False: it is given up.
    fn tries_again(&self, error: &io::Error, at: At, trouble: &mut Option<Trouble>) -> bool {
        let counted = metrics().sinks.of(&self.name);
        counted.retries.add(1);
        let why = error.to_string();
        // Who else writes to it is not always known.
        let is_same = |before: &Trouble| before.why == why || error.kind() == ErrorKind::ResourceBusy && before.kind == error.kind();
        let tries = trouble.as_ref().filter(|before| is_same(before)).map_or(0, |before| before.tries + 1);
        if tries == 0 {
            let hope = if self.shared.folder.is_some() { "nothing is lost, it is tried again" } else { "it is tried again" };
            tracing::warn!("sink {}: {why}; {hope}", self.name);
            counted.trouble.set(why.as_str());
        }
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

    /// At the end it is tried as long as there is time; then what is left stays in the state, where there is one.
    fn may_give_up(&self) -> bool {
        self.shared.outbox.is_closed() && self.shared.stop.is_late()
    }

    fn wait(&self, at: At) {
        let due = self.sink.deadline().map(|at| Duration::from_micros(at.0.saturating_sub(now().0).max(1000) as u64));
        let longest = if at.hurry { Duration::from_millis(5) } else { LONG };
        self.shared.outbox.wait(at.version, due.unwrap_or(longest).min(longest));
    }
}

/// The desk of a running daemon.
struct Counter {
    name: String,
    shared: Shared,
    store: Option<Store>,
    leaving: Arc<Leaving>,
    told: u64,
}

impl Desk for Counter {
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
            // It may have been told to leave meanwhile: what was committed after that is for others.
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
        self.shared.queue.tell(Word::Sink(mark.clone()));
    }

    fn is_committed(&mut self, mark: &SinkMark) -> bool {
        self.shared.outbox.is_committed(mark)
    }

    fn owns(&mut self, node: Node) {
        self.shared.own.add(node);
    }

    fn is_over(&mut self) -> bool {
        self.shared.outbox.is_closed() || self.leaving.is_set()
    }
}

impl Counter {
    fn read_file(&mut self, seq: u64) -> io::Result<Option<Arc<Chunk>>> {
        let Some(folder) = &self.shared.folder else { return Ok(None) };
        let store = match self.store.take() {
            Some(store) => Some(store),
            None => Store::look(folder).map_err(io::Error::other)?,
        };
        let chunk = store.as_ref().map_or(Ok(None), |store| store.chunk_after(seq)).map_err(io::Error::other)?;
        // Nothing there: it may be a file that was set aside.
        self.store = store.filter(|_| chunk.is_some());
        Ok(chunk.map(Arc::new))
    }
}
