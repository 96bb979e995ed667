//! A breaker in words: what it advises, why, until when, and what closes it.

use super::sanitise;
use crate::core::breaker::{Breaker, Limits, State, Trip, Unit};
use crate::core::event::{Hex, Timestamp};
use crate::sinks::record::rfc3339;
use crate::words::counted;

/// Returns the most telling error: the one that opened the breaker, else the most frequent one.
#[must_use]
pub fn telling(breaker: &Breaker) -> Option<Hex> {
    let tripped = match breaker.trip {
        Some(Trip::Signature(signature)) => Some(signature),
        Some(Trip::Fatal(signature)) => signature,
        Some(Trip::Transient) => return None,
        None => None,
    };
    tripped.or_else(|| breaker.worst().filter(|_| breaker.state != State::Closed).map(|worst| worst.signature))
}

/// Formats a moment in UTC, to the second.
#[must_use]
pub fn moment(at: Timestamp) -> String {
    rfc3339(at).split('.').next().unwrap_or_default().to_owned() + "Z"
}

/// Returns a number in the unit a breaker counts in: runs, or for a stream the windows within which an error counts once.
#[must_use]
pub fn counted_in(count: u32, breaker: &Breaker, limits: &Limits) -> String {
    const UNITS: [(i64, &str); 4] = [(3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1000, "ms")];
    match (breaker.unit, limits.stream_window_us) {
        (Unit::Run, _) => counted(count.into(), "run"),
        (Unit::Event, 0) => counted(count.into(), "event"),
        (Unit::Event, 60_000_000) => counted(count.into(), "minute"),
        (Unit::Event, window) => {
            let (size, name) = UNITS.into_iter().find(|(size, _)| window % size == 0).unwrap_or((1, "µs"));
            format!("{} of {} {name}", counted(count.into(), "window"), window / size)
        }
    }
}

/// Says in a few words why the breaker is in its state.
#[must_use]
pub fn brief(breaker: &Breaker, limits: &Limits) -> String {
    let counted = |count: u32| counted_in(count, breaker, limits);
    let count = |signature: Hex| breaker.counts.iter().find(|count| count.signature == signature).map_or(limits.open_after, |count| count.runs);
    match (breaker.state, breaker.trip) {
        (State::Closed, _) => String::new(),
        (_, Some(Trip::Signature(signature))) => format!("the same error in {}", counted(count(signature))),
        (_, Some(Trip::Transient)) => format!("transient errors in {}", counted(breaker.transient.max(1))),
        (_, Some(Trip::Fatal(_))) => "an error that no further run can mend".to_owned(),
        (_, None) => breaker.worst().map_or(String::new(), |worst| format!("the same error in {}", counted(worst.runs))),
    }
}

/// Returns the command that closes the breaker. `flags`: those that select its state, each with a space before it; empty for the default place.
#[must_use]
pub fn reset_command(name: &str, flags: &str) -> String {
    shlex::try_quote(name).map_or_else(|_| "NAME".into(), |name| format!("siftd breaker reset {name}{flags}"))
}

/// A breaker that is to be told of.
#[derive(Clone, Copy)]
pub struct Telling<'a> {
    /// Its name.
    pub name: &'a str,
    /// As in [`reset_command`].
    pub flags: &'a str,
    /// The breaker.
    pub breaker: &'a Breaker,
    /// Why it is as it is; empty if it never was otherwise.
    pub why: &'a str,
    /// The text of the error that counts.
    pub sample: Option<&'a str>,
}

/// Returns one sentence: name, state, reason, the error itself, and what comes next.
#[must_use]
pub fn sentence(telling: &Telling, limits: &Limits) -> String {
    let Telling { name, flags, breaker, why, sample } = *telling;
    let reset = reset_command(name, flags);
    let (name, reset) = (sanitise(name), sanitise(&reset));
    let error = sample.map_or(String::new(), |sample| format!(" ({})", sanitise(sample)));
    let why_now = brief(breaker, limits);
    match breaker.state {
        State::Closed if why.is_empty() => format!("{name}: closed"),
        State::Closed => format!("{name}: closed since {} ({why})", moment(breaker.since)),
        State::HalfOpen if breaker.is_probe => format!("{name}: half open since {}, the next run is a probe; it was {why_now}{error}", moment(breaker.since)),
        State::HalfOpen => format!("{name}: half open since {}, a warning: {why_now}{error}", moment(breaker.since)),
        State::Open => {
            let until = breaker.deadline(limits).map(moment).unwrap_or_default();
            format!("{name}: open since {}: {why_now}{error}; a probe may run from {until} on, `{reset}` closes it", moment(breaker.since))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_counts_by_its_window() {
        let breaker = |unit| Breaker::new(unit, Timestamp(0));
        let unit_of = |window| counted_in(2, &breaker(Unit::Event), &Limits { stream_window_us: window, ..Limits::default() });
        let units = [60_000_000, 100_000, 90_000_000, 7_200_000_000, 0].map(unit_of);
        assert_eq!(units, ["2 minutes", "2 windows of 100 ms", "2 windows of 90 s", "2 windows of 2 h", "2 events"]);
        assert_eq!([1, 2].map(|count| counted_in(count, &breaker(Unit::Run), &Limits::default())), ["1 run", "2 runs"]);
    }
}
