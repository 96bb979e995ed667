//! The circuit breaker: stops work that fails again and again in the same way. A state
//! machine that is told of runs and of the time, and returns the transitions that follow. It sits beside
//! the path of a byte: the committer steps it for each new event of a stream, commands step it for each
//! run. Time is an argument; nothing here reads text, so no printed word can reset it or make it fatal.

use super::event::{Hex, Timestamp};
use crate::words::word_set;

/// Maximum number of signatures counted by one breaker; beyond it, the one unseen for longest is forgotten.
pub const MAX_SIGNATURES: usize = 64;

/// When the breaker trips, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Runs with one signature before a warning.
    pub warn_after: u32,
    /// Runs with one signature before it opens.
    pub open_after: u32,
    /// Runs with a transient error before it opens.
    pub transient_open_after: u32,
    /// Time in `open` before a probe, in microseconds.
    pub cooldown_us: i64,
    /// In a stream without runs, a signature counts only once within this many microseconds.
    pub stream_window_us: i64,
    /// In a stream without runs, this many microseconds without a counted error are a success.
    pub stream_quiet_us: i64,
}

impl Default for Limits {
    fn default() -> Self {
        const MINUTE_US: i64 = 60_000_000;
        Self {
            warn_after: 3,
            open_after: 5,
            transient_open_after: 20,
            cooldown_us: 30 * MINUTE_US,
            stream_window_us: MINUTE_US,
            stream_quiet_us: 60 * MINUTE_US,
        }
    }
}

word_set! {
    /// What a breaker advises.
    State {
        /// Continue.
        Closed = "closed",
        /// Continue with care: a warning, or the probe after a cooldown.
        HalfOpen = "half_open",
        /// Stop.
        Open = "open",
    }
}

word_set! {
    /// Why the state changed.
    Reason {
        /// A signature's count reached `warn_after`.
        WarnAfter = "warn_after",
        /// A signature's count reached `open_after`.
        OpenAfter = "open_after",
        /// Transient errors reached `transient_open_after`.
        TransientOpenAfter = "transient_open_after",
        /// An error that no further run can fix.
        Fatal = "fatal",
        /// What had opened it occurred again in the probe.
        ProbeFailed = "probe_failed",
        /// A run succeeded.
        Success = "success",
        /// A stream was quiet for so long that it counts as success.
        Quiet = "quiet",
        /// The cooldown has passed: the next run is a probe.
        Cooldown = "cooldown",
        /// A person reset it.
        Reset = "reset",
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Runs, reported one by one.
    #[default]
    Run,
    /// Events of a stream that has no runs.
    Event,
}

/// What opened the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trip {
    /// The same error, again and again.
    Signature(Hex),
    /// Transient errors of any kind.
    Transient,
    /// An error that stops everything.
    Fatal(Option<Hex>),
}

impl Trip {
    fn signature(self) -> Option<Hex> {
        match self {
            Self::Signature(signature) => Some(signature),
            Self::Transient => None,
            Self::Fatal(signature) => signature,
        }
    }
}

/// How many runs since the last success contained a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The signature of the error.
    pub signature: Hex,
    /// Number of runs.
    pub runs: u32,
    /// When it was counted last.
    pub last: Timestamp,
}

/// How a failed run counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Errors that are not transient; duplicates count once.
    pub signatures: Vec<Hex>,
    /// Whether it had a transient error.
    pub is_transient: bool,
    /// Set if nothing can go on, with the error that says so, if one does.
    pub fatal: Option<Option<Hex>>,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Before.
    pub from: State,
    /// After.
    pub to: State,
    /// Why.
    pub reason: Reason,
    /// The error that caused it, if one did.
    pub signature: Option<Hex>,
    /// Number of runs with that error since the last success; 0 if nothing was counted.
    pub count: u32,
    /// When.
    pub at: Timestamp,
    /// When a probe may run; set only if `to` is `open`.
    pub until: Option<Timestamp>,
}

/// One breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// What it counts: runs or events.
    pub unit: Unit,
    /// Its state.
    pub state: State,
    /// When it entered this state.
    pub since: Timestamp,
    /// What opened it last; during the probe, a single recurrence opens it again.
    pub trip: Option<Trip>,
    /// Whether it is `half_open` after a cooldown, not as a warning.
    pub is_probe: bool,
    /// Runs with a transient error since the last success.
    pub transient: u32,
    /// When the last one counted.
    pub transient_last: Timestamp,
    /// Counts by signature.
    pub counts: Vec<Count>,
    /// When the last failure counted.
    pub last: Timestamp,
}

impl Breaker {
    /// Creates a closed breaker.
    #[must_use]
    pub fn new(unit: Unit, now: Timestamp) -> Self {
        let (transient_last, last) = (Timestamp(0), Timestamp(0));
        Self { unit, state: State::Closed, since: now, trip: None, is_probe: false, transient: 0, transient_last, counts: Vec::new(), last }
    }

    /// Applies what the passage of time has changed; call it before anything else.
    pub fn pass(&mut self, limits: &Limits, now: Timestamp) -> Vec<Transition> {
        let mut made = Vec::new();
        if self.state == State::Open && now.0 >= self.cools_at(limits).0 {
            self.is_probe = true;
            made.push(self.turn(State::HalfOpen, Reason::Cooldown, (None, 0), now));
        }
        let is_quiet = self.quiet_at(limits).is_some_and(|at| now >= at);
        if is_quiet {
            made.extend(self.succeed(Reason::Quiet, now));
        }
        made
    }

    /// Returns when [`pass`](Self::pass) will have something to report, if nothing else happens.
    #[must_use]
    pub fn deadline(&self, limits: &Limits) -> Option<Timestamp> {
        if self.state == State::Open { Some(self.cools_at(limits)) } else { self.quiet_at(limits) }
    }

    fn cools_at(&self, limits: &Limits) -> Timestamp {
        Timestamp(self.since.0.saturating_add(limits.cooldown_us))
    }

    /// Returns when a stream will have been quiet for long enough; `None` if there is nothing to forget.
    fn quiet_at(&self, limits: &Limits) -> Option<Timestamp> {
        let counts = self.unit == Unit::Event && self.state != State::Open;
        let has_any = self.state == State::HalfOpen || !self.counts.is_empty() || self.transient > 0;
        (counts && has_any).then(|| Timestamp(self.last.0.saturating_add(limits.stream_quiet_us)))
    }

    /// Records a successful run. While the breaker is open, a success changes nothing: that run had begun before.
    pub fn success(&mut self, limits: &Limits, now: Timestamp) -> Vec<Transition> {
        let mut made = self.pass(limits, now);
        if self.state != State::Open {
            made.extend(self.succeed(Reason::Success, now));
        }
        made
    }

    fn succeed(&mut self, reason: Reason, now: Timestamp) -> Option<Transition> {
        self.forget();
        (self.state != State::Closed).then(|| self.turn(State::Closed, reason, (None, 0), now))
    }

    /// Records a failed run.
    pub fn failure(&mut self, failure: &Failure, limits: &Limits, now: Timestamp) -> Vec<Transition> {
        let mut made = self.pass(limits, now);
        self.last = now;
        if failure.is_transient {
            self.transient = self.transient.saturating_add(1);
            self.transient_last = now;
        }
        let mut counted: Vec<Count> = Vec::new();
        for signature in &failure.signatures {
            if !counted.iter().any(|count| count.signature == *signature) {
                counted.push(self.count(*signature, now));
            }
        }
        made.extend(self.judge(&counted, failure, limits, now));
        made
    }

    /// Records an event of a stream that has no runs; one that does not [count](Self::counts_event) changes nothing.
    pub fn event(&mut self, signature: Hex, is_transient: bool, limits: &Limits, now: Timestamp) -> Vec<Transition> {
        if !self.counts_event(signature, is_transient, limits, now) {
            return self.pass(limits, now);
        }
        let signatures = if is_transient { Vec::new() } else { vec![signature] };
        self.failure(&Failure { signatures, is_transient, fatal: None }, limits, now)
    }

    /// Whether an event of a stream counts: the same signature within the window does not count again.
    #[must_use]
    pub fn counts_event(&self, signature: Hex, is_transient: bool, limits: &Limits, now: Timestamp) -> bool {
        let last = match is_transient {
            true => (self.transient > 0).then_some(self.transient_last),
            false => self.counts.iter().find(|count| count.signature == signature).map(|count| count.last),
        };
        last.is_none_or(|last| now.0.saturating_sub(last.0) >= limits.stream_window_us)
    }

    /// Closes the breaker, whatever its state.
    pub fn reset(&mut self, now: Timestamp) -> Option<Transition> {
        self.forget();
        (self.state != State::Closed).then(|| self.turn(State::Closed, Reason::Reset, (None, 0), now))
    }

    /// Returns the error that is nearest to opening the breaker.
    #[must_use]
    pub fn worst(&self) -> Option<&Count> {
        self.counts.iter().max_by_key(|count| (count.runs, count.last))
    }

    fn forget(&mut self) {
        self.counts.clear();
        self.transient = 0;
    }

    fn count(&mut self, signature: Hex, now: Timestamp) -> Count {
        if let Some(known) = self.counts.iter_mut().find(|count| count.signature == signature) {
            known.runs = known.runs.saturating_add(1);
            known.last = now;
            return *known;
        }
        if self.counts.len() >= MAX_SIGNATURES
            && let Some(oldest) = self.counts.iter().enumerate().min_by_key(|(_, count)| count.last).map(|(at, _)| at)
        {
            self.counts.remove(oldest);
        }
        let new = Count { signature, runs: 1, last: now };
        self.counts.push(new);
        new
    }

    /// Returns the gravest transition that a failed run causes.
    fn judge(&mut self, counted: &[Count], failure: &Failure, limits: &Limits, now: Timestamp) -> Option<Transition> {
        if self.state == State::Open {
            return None;
        }
        let known = |signature: Hex| counted.iter().find(|count| count.signature == signature).map_or(0, |count| count.runs);
        if let Some(signature) = failure.fatal {
            return Some(self.open(Trip::Fatal(signature), Reason::Fatal, signature.map_or(0, known), (limits, now)));
        }
        let worst = counted.iter().max_by_key(|count| count.runs);
        if let Some(trip) = self.trip.filter(|trip| self.is_probe && is_same(*trip, counted, failure)) {
            let count = trip.signature().map_or(self.transient, known);
            return Some(self.open(trip, Reason::ProbeFailed, count, (limits, now)));
        }
        if let Some(count) = worst.filter(|count| count.runs >= limits.open_after) {
            return Some(self.open(Trip::Signature(count.signature), Reason::OpenAfter, count.runs, (limits, now)));
        }
        if failure.is_transient && self.transient >= limits.transient_open_after {
            return Some(self.open(Trip::Transient, Reason::TransientOpenAfter, self.transient, (limits, now)));
        }
        let warned = worst.filter(|count| self.state == State::Closed && count.runs >= limits.warn_after)?;
        Some(self.turn(State::HalfOpen, Reason::WarnAfter, (Some(warned.signature), warned.runs), now))
    }

    fn open(&mut self, trip: Trip, reason: Reason, count: u32, (limits, now): (&Limits, Timestamp)) -> Transition {
        self.trip = Some(trip);
        let turned = self.turn(State::Open, reason, (trip.signature(), count), now);
        Transition { until: Some(self.cools_at(limits)), ..turned }
    }

    fn turn(&mut self, to: State, reason: Reason, (signature, count): (Option<Hex>, u32), now: Timestamp) -> Transition {
        let from = std::mem::replace(&mut self.state, to);
        self.is_probe &= to == State::HalfOpen;
        if to == State::Closed {
            self.trip = None;
        }
        self.since = now;
        Transition { from, to, reason, signature, count, at: now, until: None }
    }
}

/// Whether a run failed for the reason that had opened the breaker.
fn is_same(trip: Trip, counted: &[Count], failure: &Failure) -> bool {
    match trip {
        Trip::Transient => failure.is_transient,
        trip => trip.signature().is_some_and(|signature| counted.iter().any(|count| count.signature == signature)),
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
