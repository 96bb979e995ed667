//! The analysed output of a run: its errors, and its stderr for people, without noise, escapes and secrets.

use std::sync::Arc;

use super::Summary;
use crate::core::engine::Engine;
use crate::core::event::{Event, Io, Severity, Timestamp};
use crate::core::extract::Origin;
use crate::core::noise::Noise;
use crate::core::pipeline::Stream;
use crate::core::visible::visible;

/// Maximum number of errors kept per run; further errors are only counted.
pub const MAX_ERRORS: usize = 1000;

/// By how many microseconds what one output shows may be seen later than what the other showed after it:
/// each is read by a thread of its own.
const SKEW: i64 = 1_000_000;

/// The output of a run.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The errors, those of stderr first, each with its `io`; at most 1000.
    pub errors: Vec<Event>,
    /// Number of all errors, by severity.
    pub summary: Summary,
    /// Those of them that came out before the verdict on what may be tests.
    pub(super) on_trial: Summary,
    /// stderr without noise, escapes and secrets.
    pub text: String,
    /// How long the server asks clients to wait, in its own words, if the run failed with its answer.
    pub asked: Option<String>,
    /// stdout, filtered like stderr, if the run failed and nothing else tells why.
    pub printed: String,
    /// stderr held something, and all of it was noise.
    pub only_noise: bool,
}

impl Said {
    /// Adds the errors of one output.
    pub fn add(&mut self, io: Io, events: Vec<Event>) {
        for mut event in events {
            event.io.get_or_insert(io);
            self.summary[event.severity as usize] += 1;
            self.on_trial[event.severity as usize] += u64::from(event.on_trial);
            if self.has_room_for(&event) {
                self.errors.push(event);
            }
        }
    }

    /// Whether the error is kept. If there are too many, one that a verdict may still take back makes room for one that is certain.
    fn has_room_for(&mut self, event: &Event) -> bool {
        if self.errors.len() >= MAX_ERRORS
            && !event.on_trial
            && let Some(at) = self.errors.iter().rposition(|kept| kept.on_trial)
        {
            self.errors.remove(at);
        }
        self.errors.len() < MAX_ERRORS
    }

    /// Removes the errors that came out before the tests that printed them passed, at `until` at the latest. Those that
    /// are only counted are taken to be among them.
    pub fn acquit(&mut self, until: Timestamp) {
        self.errors.retain(|event| !is_acquitted(event, Some(until)));
        let mut dropped = std::mem::take(&mut self.on_trial);
        for left in self.errors.iter().filter(|event| event.on_trial) {
            dropped[left.severity as usize] -= 1;
            self.on_trial[left.severity as usize] += 1;
        }
        self.summary.iter_mut().zip(dropped).for_each(|(all, dropped)| *all -= dropped);
    }

    /// Adds the errors of another output, whose errors are already counted.
    pub fn join(&mut self, other: &Self) {
        for event in &other.errors {
            if self.has_room_for(event) {
                self.errors.push(event.clone());
            }
        }
        self.summary.iter_mut().zip(other.summary).for_each(|(mine, theirs)| *mine += theirs);
        self.on_trial.iter_mut().zip(other.on_trial).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Returns how many of all errors are at least as severe as `least`.
    #[must_use]
    pub fn count(&self, least: Severity) -> u64 {
        Severity::ALL.iter().filter(|severity| **severity >= least).map(|severity| self.summary[*severity as usize]).sum()
    }

    /// Whether stderr holds an error, and not merely a warning.
    #[must_use]
    pub fn has_real_error(&self) -> bool {
        self.errors.iter().any(|event| event.io == Some(Io::Stderr) && event.severity > Severity::Low)
    }

    /// Returns the first of the most severe errors of one output, and one that says what failed rather than a status line.
    #[must_use]
    pub fn telling(&self, io: Io) -> Option<&Event> {
        let rank = |event: &Event| (event.severity, !event.is_status);
        let of_output = || self.errors.iter().filter(|event| event.io == Some(io));
        let best = of_output().map(rank).max()?;
        of_output().find(|event| rank(event) == best)
    }
}

/// Ends the streams of a command's outputs together: what tests print on one is no error if the other says that they
/// passed, unless the command failed; what is seen within a second after that counts as printed before it. If the command
/// failed, and nothing says why (`has_said`: something has been said before), what passes took back may be the reason.
/// Adds the errors of each, and returns until when errors on trial are none, for each.
pub fn settle(outputs: &mut [(&mut Stream, &mut Vec<Event>)], has_said: bool, succeeded: bool, now: Timestamp) -> Vec<Option<Timestamp>> {
    let passed: Vec<_> = outputs.iter().map(|(stream, _)| stream.passed_at().filter(|_| succeeded)).collect();
    let mut passed_until = passed.clone();
    for (at, (stream, events)) in outputs.iter_mut().enumerate() {
        let others = passed.iter().enumerate().filter(|(other, _)| *other != at).filter_map(|(_, passed)| *passed);
        match others.max().map(|passed| Timestamp(passed.0.saturating_add(SKEW))) {
            Some(until) => {
                passed_until[at] = passed_until[at].max(Some(until));
                stream.finish_passed(until, now, events);
            }
            None => stream.finish(now, events),
        }
    }
    let says_why = |event: &Event| !event.is_status;
    if !succeeded && !has_said && !outputs.iter().any(|(_, events)| events.iter().any(says_why)) {
        outputs.iter_mut().for_each(|(stream, events)| events.append(&mut stream.give_back()));
    }
    passed_until
}

/// Returns the errors in the complete outputs of a command.
pub fn read<const N: usize>(engine: &Arc<Engine>, outputs: [(Origin, &[u8]); N], succeeded: bool, now: Timestamp) -> [Vec<Event>; N] {
    let mut read = outputs.map(|(origin, text)| {
        let (mut stream, mut events) = (Stream::new(engine.clone(), origin).of_command(""), Vec::new());
        stream.push(text, now, &mut events);
        (stream, events)
    });
    let mut ends: Vec<_> = read.iter_mut().map(|(stream, events)| (stream, events)).collect();
    let passed_until = settle(&mut ends, false, succeeded, now);
    for ((_, events), until) in read.iter_mut().zip(passed_until) {
        events.retain(|event| !is_acquitted(event, until));
    }
    read.map(|(_, events)| events)
}

/// Whether the error came out before the verdict on the tests that printed it, which then passed, at `until` at the latest.
fn is_acquitted(event: &Event, until: Option<Timestamp>) -> bool {
    event.on_trial && until.is_some_and(|until| event.observed_at <= until)
}

/// Returns a text without noise, escapes, secrets and typed keys, and whether nothing is left of a text that was not blank.
#[must_use]
pub fn filtered(engine: &Engine, text: &[u8], now: Timestamp) -> (String, bool) {
    let mut noise = Noise::new(engine);
    let lines = text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<&[u8]> = lines.filter(|line| !is_key(line)).collect();
    let kept = lines.iter().filter(|line| !noise.is(line, now)).map(|line| String::from_utf8_lossy(&visible(line, None)).into_owned());
    let mut kept: Vec<String> = kept.collect();
    engine.redactor.redact_lines(&mut kept, &mut 0);
    let clean = kept.join("\n").trim().to_owned();
    let only_noise = clean.is_empty() && lines.iter().any(|line| !line.trim_ascii().is_empty());
    (clean, only_noise)
}

/// Whether a line consists only of keys that make signals, as a
/// terminal echoes them: a person typed them, no program printed them.
fn is_key(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    !line.is_empty() && line.chunks(2).all(|key| matches!(key, b"^C" | b"^\\" | b"^Z"))
}
