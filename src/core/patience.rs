//! How long a quiet stream is waited for.

use super::engine::Engine;
use super::event::Timestamp;

/// A pause: so many times `trace_idle` without a further line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Patience {
    /// A program prints the lines of an error one after the other.
    Short = 1,
    /// It says `building …` and later `done`, or that it tries again.
    Long = 10,
    /// A test that printed an error may be slow.
    Verdict = 120,
}

impl Patience {
    /// When a pause that began at `since` has lasted so long.
    #[must_use]
    pub fn ends(self, since: Timestamp, engine: &Engine) -> Timestamp {
        Timestamp(since.0.saturating_add(engine.limits.trace_idle_us.saturating_mul(self as i64)))
    }
}
