//! How long to wait for a quiet stream.

use super::engine::Engine;
use super::event::Timestamp;

/// A pause: a multiple of `trace_idle` without a further line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Patience {
    /// For a program that prints the lines of an error one after the other.
    Short = 1,
    /// For one that says `building …` and later `done`, or that it tries again.
    Long = 10,
    /// For a test that printed an error and may be slow.
    Verdict = 120,
}

impl Patience {
    /// Returns when a pause of this length that began at `since` ends.
    #[must_use]
    pub fn ends(self, since: Timestamp, engine: &Engine) -> Timestamp {
        Timestamp(since.0.saturating_add(engine.limits.trace_idle_us.saturating_mul(self as i64)))
    }
}
