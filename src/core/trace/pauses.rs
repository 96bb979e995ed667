//! What the pauses of a quiet stream have had from a trace; `assemble::pause` asks for it.

use crate::core::event::Timestamp;
use crate::core::patience::Patience;

/// What pauses have had from a trace.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// When the last line was read.
    pub since: Timestamp,
    /// The pause that asks for the trace next; `None` if it has nothing more to tell.
    pub next: Option<Patience>,
    /// Whether the trace had an outcome when a pause asked for it.
    pub answered: bool,
    /// Whether a pause has published it.
    pub published: bool,
    /// Number of the last line of what a pause has published; 0: nothing, or only the first line.
    pub told_to: u64,
}

impl Pauses {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { since: now, next: Some(Patience::Short), answered: false, published: false, told_to: 0 }
    }

    /// Begins to wait again: a line was read at `now`.
    pub(super) fn touch(&mut self, now: Timestamp) {
        (self.since, self.next) = (now, Some(Patience::Short));
    }

    /// Records that a pause has published the trace, or its first line.
    pub fn publish(&mut self) {
        (self.answered, self.published) = (true, true);
    }

    /// Takes over what another trace, which this one replaces, had told.
    pub fn inherit(&mut self, other: Self) {
        (self.answered, self.published, self.told_to) = (other.answered, other.published, other.told_to);
    }
}
