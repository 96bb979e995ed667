//! A stream that is no file: whoever reads it (a socket's task, a command's pipe, stdin) hands in its bytes, threads
//! that read files look at them in turns, too. What was handed in and not looked at is bounded for each stream and for all
//! of them together: beyond that the one who reads waits, and so does the writer. What was read once cannot be read
//! again, so a stream has no place to go on from, unless its reader names one (the journal's cursor).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::cursor::Cursors;
use super::reader::{Space, Turn};
use crate::core::engine::Engine;
use crate::core::event::{Event, Timestamp};
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::delivery::{Label, Notice, Uid};

/// Bytes of all streams that were handed in and not looked at.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Bytes of one stream among them; what is handed in at once may be more.
const MAX_FLOW_BYTES: usize = 128 << 10;
/// A piece counts as so many bytes at least: one byte at a time would take many times its room.
const MIN_PIECE_BYTES: usize = 256;
/// A stream is with one thread for so many bytes, then the next one has its turn.
const TURN_BYTES: usize = 256 << 10;

/// Gives a stream an identity that no other one has.
pub type Nonce = fn() -> Uid;

/// How the bytes of a stream are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Lines may be syslog messages.
    pub syslog: bool,
    /// A longer line is cut; none: the limit of all streams.
    pub max_line_bytes: Option<usize>,
}

/// What streams need of the one who runs them.
pub struct Hooks {
    /// Sees to it that a thread takes the stream's turn.
    pub enqueue: Box<dyn Fn(Arc<Flow>) + Send + Sync>,
    /// Something has ended, or is due earlier than was known.
    pub changed: Box<dyn Fn() + Send + Sync>,
}

/// All streams that are no files.
pub struct Intake {
    engine: Mutex<Arc<Engine>>,
    nonce: Nonce,
    hooks: Hooks,
    budget: Arc<Semaphore>,
    timers: Mutex<BTreeMap<(Timestamp, u64), Arc<Flow>>>,
    count: AtomicUsize,
    open: AtomicUsize,
}

impl Intake {
    /// None yet.
    #[must_use]
    pub fn new(engine: Arc<Engine>, nonce: Nonce, hooks: Hooks) -> Arc<Self> {
        let (timers, count, open) = Default::default();
        Arc::new(Self { engine: Mutex::new(engine), nonce, hooks, budget: Arc::new(Semaphore::new(MAX_WAITING_BYTES)), timers, count, open })
    }

    /// Streams that are opened from now on have these rules and limits.
    pub fn set_engine(&self, engine: Arc<Engine>) {
        *lock(&self.engine) = engine;
    }

    /// A new stream.
    #[must_use]
    pub fn open(self: &Arc<Self>, label: Label, reading: Reading) -> Arc<Flow> {
        let uid = (self.nonce)();
        let mut stream = Stream::new(lock(&self.engine).clone(), Origin { uid, generation: 0 });
        if let Some(most) = reading.max_line_bytes {
            stream = stream.with_max_line_bytes(most);
        }
        if reading.syslog {
            stream = stream.with_syslog();
        }
        self.add(label, uid, stream, None)
    }

    /// A stream that goes on where `cursors` says.
    #[must_use]
    pub fn resume(self: &Arc<Self>, label: Label, cursors: Cursors) -> Arc<Flow> {
        let stream = cursors.stream(lock(&self.engine).clone()).with_syslog();
        self.add(label, cursors.uid(), stream, Some(cursors))
    }

    fn add(self: &Arc<Self>, label: Label, uid: Uid, stream: Stream, cursors: Option<Cursors>) -> Arc<Flow> {
        self.open.fetch_add(1, Ordering::AcqRel);
        Arc::new(Flow {
            id: self.count.fetch_add(1, Ordering::Relaxed) as u64,
            label: Arc::new(label),
            uid,
            intake: self.clone(),
            state: Mutex::default(),
            work: Mutex::new(Work { stream: Some(Box::new(stream)), cursors }),
            went: Notify::new(),
        })
    }

    /// Streams that have not ended, or whose end was not looked at.
    #[must_use]
    pub fn open_flows(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// When something open wants to be published.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        lock(&self.timers).first_key_value().map(|((at, _), _)| *at)
    }

    /// Streams whose deadline has come get a turn.
    pub fn due(&self, now: Timestamp) {
        loop {
            let mut timers = lock(&self.timers);
            let Some(first) = timers.first_entry().filter(|first| first.key().0 <= now) else { return };
            let flow = first.remove();
            drop(timers);
            flow.tick();
        }
    }
}

/// What a piece counts as.
fn cost(bytes: &Bytes) -> usize {
    bytes.len().max(MIN_PIECE_BYTES)
}

fn lock<T>(inside: &Mutex<T>) -> MutexGuard<'_, T> {
    inside.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is handed in.
enum Piece {
    Bytes(Bytes, OwnedSemaphorePermit),
    Notice(Notice),
    /// Everything before it was read up to this place of its source.
    Cursor(String),
    End,
}

/// Where a stream stands between its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Queued,
    Running,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Piece>,
    bytes: usize,
    phase: Phase,
    /// Its deadline has come.
    is_due: bool,
    deadline: Option<Timestamp>,
    timer: Option<Timestamp>,
    has_ended: bool,
    is_finished: bool,
}

struct Work {
    stream: Option<Box<Stream>>,
    cursors: Option<Cursors>,
}

/// One stream.
pub struct Flow {
    id: u64,
    /// What its records say.
    pub label: Arc<Label>,
    /// Identity of its ids.
    pub uid: Uid,
    intake: Arc<Intake>,
    state: Mutex<State>,
    work: Mutex<Work>,
    /// There is room, or it is finished.
    went: Notify,
}

impl Flow {
    /// Hands in the next bytes; waits while there is no room. False: the stream has ended already.
    pub async fn push(self: &Arc<Self>, bytes: Bytes) -> bool {
        while lock(&self.state).bytes >= MAX_FLOW_BYTES {
            self.went.notified().await;
        }
        let count = cost(&bytes).min(MAX_WAITING_BYTES) as u32;
        let Ok(permit) = self.intake.budget.clone().acquire_many_owned(count).await else { return false };
        let mut state = lock(&self.state);
        if state.has_ended {
            return false;
        }
        state.bytes += cost(&bytes);
        state.pending.push_back(Piece::Bytes(bytes, permit));
        self.schedule(state);
        true
    }

    /// Hands in a record that is no error.
    pub fn notice(self: &Arc<Self>, notice: Notice) {
        self.hand_in(Piece::Notice(notice));
    }

    /// Everything that was handed in is all that stands before this place of the source.
    pub fn cursor(self: &Arc<Self>, cursor: String) {
        self.hand_in(Piece::Cursor(cursor));
    }

    /// Nothing more will come.
    pub fn end(self: &Arc<Self>) {
        self.hand_in(Piece::End);
    }

    fn hand_in(self: &Arc<Self>, piece: Piece) {
        let mut state = lock(&self.state);
        if !state.has_ended {
            state.has_ended = matches!(piece, Piece::End);
            state.pending.push_back(piece);
            self.schedule(state);
        }
    }

    /// Waits until all of an ended stream was looked at, and handed on.
    pub async fn finished(&self) {
        while !self.is_finished() {
            self.went.notified().await;
        }
    }

    /// Whether all of an ended stream was looked at.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        lock(&self.state).is_finished
    }

    fn tick(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        (state.is_due, state.timer) = (true, None);
        self.schedule(state);
    }

    fn schedule(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.phase == Phase::Idle && !state.is_finished {
            state.phase = Phase::Queued;
            drop(state);
            (self.intake.hooks.enqueue)(self.clone());
        }
    }

    /// Looks at what was handed in, and at what is due. [`done`](Self::done) follows when it was handed on.
    pub fn turn(&self, space: &mut Space, now: Timestamp) -> Turn {
        let pieces = self.take();
        let mut turn = Turn::default();
        let mut work = lock(&self.work);
        let Work { stream: slot, cursors } = &mut *work;
        let Some(mut stream) = slot.take() else { return turn };
        let (mut events, mut has_ended) = (Vec::new(), false);
        stream.attach(space.room());
        for piece in pieces {
            match piece {
                Piece::Bytes(bytes, _room) => {
                    turn.bytes += bytes.len() as u64;
                    stream.push(&bytes, now, &mut events);
                }
                Piece::Notice(notice) => turn.notices.push(notice),
                Piece::Cursor(cursor) => cursors.iter_mut().for_each(|cursors| cursors.reached(&stream, &cursor)),
                Piece::End => has_ended = true,
            }
        }
        if stream.deadline().is_some_and(|at| at <= now) {
            stream.tick(now, &mut events);
        }
        match (has_ended, &cursors) {
            (true, None) => stream.finish(now, &mut events),
            // It goes on with the next start.
            (true, Some(_)) => stream.pause(&mut events),
            (false, _) => {}
        }
        turn.counts = stream.news();
        stream.detach(space.room());
        turn.mark = cursors.as_mut().and_then(|cursors| cursors.mark(&mut stream, !events.is_empty()));
        turn.events = events.into_iter().map(|event: Event| (0, event)).collect();
        turn.deadline = stream.deadline().filter(|_| !has_ended);
        turn.finished = has_ended;
        if !has_ended {
            *slot = Some(stream);
        }
        let mut state = lock(&self.state);
        (state.deadline, state.is_finished) = (turn.deadline, has_ended);
        turn
    }

    fn take(&self) -> Vec<Piece> {
        let mut state = lock(&self.state);
        (state.phase, state.is_due) = (Phase::Running, false);
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while bytes < TURN_BYTES {
            let Some(piece) = state.pending.pop_front() else { break };
            if let Piece::Bytes(piece, _) = &piece {
                bytes += cost(piece);
            }
            pieces.push(piece);
        }
        state.bytes -= bytes;
        drop(state);
        self.went.notify_one();
        pieces
    }

    /// The turn was handed on.
    pub fn done(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        state.phase = Phase::Idle;
        let deadline = state.deadline;
        if state.is_finished {
            state.pending.clear();
            self.set_timer(state, None);
            self.intake.open.fetch_sub(1, Ordering::AcqRel);
            self.went.notify_one();
            (self.intake.hooks.changed)();
        } else if state.is_due || !state.pending.is_empty() {
            self.schedule(state);
        } else {
            self.set_timer(state, deadline);
        }
    }

    fn set_timer(self: &Arc<Self>, mut state: MutexGuard<'_, State>, at: Option<Timestamp>) {
        let old = std::mem::replace(&mut state.timer, at);
        drop(state);
        if old == at {
            return;
        }
        let mut timers = lock(&self.intake.timers);
        if let Some(old) = old {
            timers.remove(&(old, self.id));
        }
        let Some(at) = at else { return };
        timers.insert((at, self.id), self.clone());
        let is_first = timers.first_key_value().is_some_and(|((first, _), _)| *first == at);
        drop(timers);
        if is_first {
            (self.intake.hooks.changed)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::core::engine::Limits;
    use crate::rules::RuleSet;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000);

    fn intake() -> (Arc<Intake>, Receiver<Arc<Flow>>) {
        let engine = Arc::new(Engine::new(RuleSet::builtin(), Limits::default()));
        let (sender, turns) = channel();
        let hooks = Hooks { enqueue: Box::new(move |flow| drop(sender.send(flow))), changed: Box::new(|| ()) };
        (Intake::new(engine, || [7; 16], hooks), turns)
    }

    fn run(future: impl Future<Output = bool>) -> bool {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn texts(turn: &Turn) -> Vec<&str> {
        turn.events.iter().map(|(_, event)| event.text.as_str()).collect()
    }

    #[test]
    fn a_stream_has_one_turn_at_a_time_and_ends_once() {
        let (intake, turns) = intake();
        let flow = intake.open(Label::default(), Reading::default());
        let mut space = Space::default();
        assert!(run(flow.push(Bytes::from_static(b"2026-09-21T10:00:00Z ERROR one\n2026-09-21T10:00:01Z INFO x\n"))));
        assert!(run(flow.push(Bytes::from_static(b"2026-09-21T10:00:00Z ERROR two"))));
        assert!(turns.try_recv().is_ok() && turns.try_recv().is_err());
        assert_eq!(texts(&flow.turn(&mut space, NOW)), ["ERROR one"]);
        flow.end();
        assert!(turns.try_recv().is_err(), "its turn is not handed on yet");
        flow.done();
        assert!(turns.try_recv().is_ok());
        assert_eq!(texts(&flow.turn(&mut space, NOW)), ["ERROR two"]);
        assert_eq!(intake.open_flows(), 1);
        flow.done();
        assert_eq!(intake.open_flows(), 0);
        assert!(!run(flow.push(Bytes::from_static(b"late"))));
        assert!(turns.try_recv().is_err());
    }

    #[test]
    fn what_is_open_is_published_when_its_time_has_come() {
        let (intake, turns) = intake();
        let flow = intake.open(Label::default(), Reading { syslog: true, max_line_bytes: None });
        run(flow.push(Bytes::from_static(b"<11>1 2026-11-18T10:00:00Z web01 shop 7 - - the store is gone\n")));
        turns.try_recv().unwrap();
        let mut space = Space::default();
        let turn = flow.turn(&mut space, NOW);
        flow.done();
        let deadline = intake.deadline().expect("a stamped line waits for what may follow it");
        assert_eq!((texts(&turn).len(), turn.deadline), (0, Some(deadline)));
        intake.due(Timestamp(deadline.0 - 1));
        assert!(turns.try_recv().is_err());
        intake.due(deadline);
        turns.try_recv().unwrap();
        let turn = flow.turn(&mut space, deadline);
        let (_, event) = &turn.events[0];
        let sender = event.sender.as_ref().unwrap();
        assert_eq!(
            (event.text.as_str(), event.key.as_deref(), sender.host.as_str(), sender.app.as_str()),
            ("the store is gone", Some("web01 shop[7]"), "web01", "shop")
        );
        assert!(event.closed_idle);
    }

    #[test]
    fn small_pieces_take_the_room_that_they_need() {
        let (intake, _turns) = intake();
        let flow = intake.open(Label::default(), Reading::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let push = || runtime.block_on(async { tokio::time::timeout(std::time::Duration::from_millis(1), flow.push(Bytes::from_static(b"x"))).await });
        assert_eq!((0..MAX_FLOW_BYTES).take_while(|_| push().is_ok()).count(), MAX_FLOW_BYTES / MIN_PIECE_BYTES);
        assert_eq!(flow.turn(&mut Space::default(), NOW).bytes, (MAX_FLOW_BYTES / MIN_PIECE_BYTES) as u64);
        flow.done();
        assert!(push().is_ok());
    }

    #[test]
    fn the_one_who_reads_waits_while_there_is_no_room() {
        let (intake, turns) = intake();
        let flow = intake.open(Label::default(), Reading::default());
        let (mut pushed, piece) = (0, Bytes::from(vec![b'x'; 16 << 10]));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let push = |flow: &Arc<Flow>| runtime.block_on(async { tokio::time::timeout(std::time::Duration::from_millis(1), flow.push(piece.clone())).await });
        while push(&flow).is_ok() {
            pushed += 1;
        }
        assert_eq!(pushed * piece.len(), MAX_FLOW_BYTES);
        // Another one has room all the same, until all of it is taken.
        let others: Vec<_> = (0..100).map(|_| intake.open(Label::default(), Reading::default())).collect();
        assert!(push(&others[0]).is_ok());
        let more = others.iter().map(|flow| (0..20).take_while(|_| push(flow).is_ok()).count()).sum::<usize>();
        assert_eq!((pushed + more + 1) * piece.len(), MAX_WAITING_BYTES);
        turns.try_recv().unwrap();
        flow.turn(&mut Space::default(), NOW);
        flow.done();
        assert!(push(&flow).is_ok());
    }
}
