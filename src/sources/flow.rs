//! A stream that is not a file. Its reader (a socket's task, a command's pipe, stdin) hands in the bytes; the threads that read files process them in turns
//! as well. The bytes handed in but not yet processed are bounded, per stream and for all streams together: beyond that the reader waits, and so does the
//! writer (back-pressure). Bytes cannot be read twice, so a stream has no position to continue from, unless its reader names one (the journal's cursor).

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::cursor::Cursors;
use super::reader::{Space, Turn};
use crate::core::event::{Event, Timestamp};
use crate::core::patience::Patience;
use crate::core::pipeline::Stream;
use crate::delivery::{Label, Notice, Uid};

mod intake;
#[cfg(test)]
mod tests;
pub use intake::{Hooks, Intake, Nonce, Reading};

/// Maximum unprocessed bytes of all streams.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Maximum unprocessed bytes of one stream; a single piece may be larger.
const MAX_FLOW_BYTES: usize = 128 << 10;
/// The minimum size a piece counts as: single bytes take many times their size in memory.
const MIN_PIECE_BYTES: usize = 256;
/// Bytes of one stream that a thread processes before the next stream has its turn.
const TURN_BYTES: usize = 256 << 10;

/// Returns what a piece counts as.
fn cost(bytes: &Bytes) -> usize {
    bytes.len().max(MIN_PIECE_BYTES)
}

fn lock<T>(inside: &Mutex<T>) -> MutexGuard<'_, T> {
    inside.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a reader hands in.
enum Piece {
    Bytes(Bytes, OwnedSemaphorePermit),
    Notice(Notice),
    /// Everything before this piece was read up to this position of the source.
    Cursor(String),
    End,
}

/// The state of a stream between its turns.
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
    /// Whether the stream's deadline has passed.
    is_due: bool,
    deadline: Option<Timestamp>,
    timer: Option<Timestamp>,
    has_ended: bool,
    /// Everything was processed; what the last turn gave may not be passed on yet.
    is_processed: bool,
    is_finished: bool,
}

struct Work {
    stream: Option<Box<Stream>>,
    cursors: Option<Cursors>,
}

/// One stream.
pub struct Flow {
    id: u64,
    /// What its records say about the source.
    pub label: Arc<Label>,
    /// The identity that its ids are derived from.
    pub uid: Uid,
    intake: Arc<Intake>,
    state: Mutex<State>,
    work: Mutex<Work>,
    /// Signals room. Separate from `over`: one notification wakes one waiter, and it must be the right one.
    room: Notify,
    /// Signals that the stream is finished.
    over: Notify,
}

impl Flow {
    /// Hands in the next bytes; waits while there is no room. Returns `false` if the stream has already ended.
    pub async fn push(self: &Arc<Self>, bytes: Bytes) -> bool {
        while lock(&self.state).bytes >= MAX_FLOW_BYTES {
            self.room.notified().await;
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

    /// Hands in a record that is not an error.
    pub fn notice(self: &Arc<Self>, notice: Notice) {
        self.hand_in(Piece::Notice(notice));
    }

    /// Notes that everything handed in so far lies before this position of the source.
    pub fn cursor(self: &Arc<Self>, cursor: String) {
        self.hand_in(Piece::Cursor(cursor));
    }

    /// Ends the stream: nothing more will come.
    pub fn end(self: &Arc<Self>) {
        self.hand_in(Piece::End);
    }

    /// Ends a stream that cannot be read any further: logs why, and makes the run count as failed.
    pub fn fail(self: &Arc<Self>, why: &str) {
        tracing::warn!("{}: {why}", self.label.source.escape_debug());
        self.intake.has_failed.store(true, Ordering::Release);
        self.end();
    }

    fn hand_in(self: &Arc<Self>, piece: Piece) {
        let mut state = lock(&self.state);
        if !state.has_ended {
            state.has_ended = matches!(piece, Piece::End);
            state.pending.push_back(piece);
            self.schedule(state);
        }
    }

    /// Waits until an ended stream was completely processed and passed on.
    pub async fn finished(&self) {
        while !self.is_finished() {
            self.over.notified().await;
        }
    }

    /// Whether an ended stream was completely processed and passed on.
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

    /// Processes what was handed in and what is due. Call [`done`](Self::done) once the result was passed on.
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
            // It continues with the next start.
            (true, Some(_)) => stream.pause(Patience::Long, &mut events),
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
        (state.deadline, state.is_processed) = (turn.deadline, has_ended);
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
        self.room.notify_one();
        pieces
    }

    /// Ends a turn, once its result was passed on.
    pub fn done(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        state.phase = Phase::Idle;
        let deadline = state.deadline;
        if state.is_processed {
            state.is_finished = true;
            state.pending.clear();
            self.set_timer(state, None);
            self.intake.open.fetch_sub(1, Ordering::AcqRel);
            self.over.notify_one();
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
