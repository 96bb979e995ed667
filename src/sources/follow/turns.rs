//! Whose turn it is: each file waits, is to be read, or is being read, and may have a time at which it wants its next turn. No file has two turns at once.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::FileId;
use crate::core::event::Timestamp;

#[derive(Default)]
pub(super) struct Turns {
    ready: VecDeque<FileId>,
    timers: BTreeSet<(Timestamp, FileId)>,
    files: HashMap<FileId, (State, Option<Timestamp>)>,
    busy: usize,
}

/// The state of a file between its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Queued,
    Running,
    /// Running, and the file has changed since.
    Again,
}

impl Turns {
    /// Asks for a turn; the first call registers the file.
    pub fn queue(&mut self, id: FileId) {
        let (state, _) = self.files.entry(id).or_default();
        match state {
            State::Idle => {
                *state = State::Queued;
                self.busy += 1;
                self.ready.push_back(id);
            }
            State::Running => *state = State::Again,
            State::Queued | State::Again => {}
        }
    }

    /// Begins the next turn.
    pub fn begin(&mut self) -> Option<FileId> {
        loop {
            let id = self.ready.pop_front()?;
            if let Some((state, _)) = self.files.get_mut(&id) {
                *state = State::Running;
                return Some(id);
            }
        }
    }

    /// Ends a turn; returns `true` if the file has changed meanwhile.
    pub fn end(&mut self, id: FileId) -> bool {
        let Some((state, _)) = self.files.get_mut(&id) else { return false };
        self.busy -= usize::from(*state != State::Idle);
        std::mem::take(state) == State::Again
    }

    /// Sets the time at which the file wants a turn, replacing any other.
    pub fn set_timer(&mut self, id: FileId, at: Option<Timestamp>) {
        let Some((_, timer)) = self.files.get_mut(&id) else { return };
        if let Some(old) = std::mem::replace(timer, at) {
            self.timers.remove(&(old, id));
        }
        self.timers.extend(at.map(|at| (at, id)));
    }

    /// Gives a turn to each file whose time has come.
    pub fn due(&mut self, now: Timestamp) {
        while let Some(&(_, id)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.set_timer(id, None);
            self.queue(id);
        }
    }

    /// Returns the next such time.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Whether the file has no turn and wants none.
    pub fn is_idle(&self, id: FileId) -> bool {
        self.files.get(&id).is_none_or(|(state, timer)| *state == State::Idle && timer.is_none())
    }

    /// Whether a turn is in progress: then somebody else has the reader.
    pub fn is_running(&self, id: FileId) -> bool {
        self.files.get(&id).is_some_and(|(state, _)| matches!(state, State::Running | State::Again))
    }

    /// Whether some file has a turn or waits for one.
    pub fn is_busy(&self) -> bool {
        self.busy > 0
    }

    /// Removes a file that is gone.
    pub fn remove(&mut self, id: FileId) {
        self.set_timer(id, None);
        self.end(id);
        self.files.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_during_a_turn_is_another_turn() {
        let mut turns = Turns::default();
        turns.queue(1);
        turns.queue(1);
        turns.queue(2);
        assert_eq!((turns.begin(), turns.is_busy()), (Some(1), true));
        turns.queue(1);
        assert!(turns.end(1), "it has changed");
        turns.remove(2);
        assert_eq!((turns.begin(), turns.is_busy()), (None, false), "who is gone has no turn");
    }

    #[test]
    fn a_timer_is_the_last_one_that_was_set() {
        let mut turns = Turns::default();
        turns.queue(7);
        turns.begin();
        turns.end(7);
        turns.set_timer(7, Some(Timestamp(50)));
        turns.set_timer(7, Some(Timestamp(90)));
        assert_eq!(turns.deadline(), Some(Timestamp(90)));
        turns.due(Timestamp(60));
        assert!(!turns.is_idle(7) && !turns.is_busy());
        turns.due(Timestamp(90));
        assert_eq!((turns.deadline(), turns.begin()), (None, Some(7)));
    }
}
