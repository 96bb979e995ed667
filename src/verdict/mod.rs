//! Judges a finished run: whether it succeeded, which line explains it best, and who can fix it. Used by
//! `siftd judge` for results that others collected and by `siftd exec` for its own runs. Pure: facts and
//! text in, verdict out. Exit codes, flags and errors on stderr are evidence; stdout decides nothing.

mod answer;
pub mod counts;
mod message;
mod said;
mod wire;

use std::borrow::Cow;

use crate::core::classify::{self, Subject};
use crate::core::event::{Category, Cause, Event, Io, Retry, RetryClass, Severity};
use crate::core::retry::{TIMED_OUT, UNMATCHED, remedy};

pub use answer::{asked, headers};
pub use message::MAX_MESSAGE_CHARS;
pub use said::{Said, filtered, read, settle};
pub use wire::{write, write_members, write_retry, write_summary};

/// The message for a line that is no valid result.
const MALFORMED: &str = "Malformed response";

/// Synonyms for a status.
const SYNONYMS: [(Status, &[&str]); 3] = [
    (Status::Success, &["succeeded", "successful", "ok", "passed", "pass"]),
    (
        Status::Failure,
        &["failed", "fail", "error", "errored", "crashed", "crash", "killed", "cancelled", "canceled", "aborted", "terminated", "interrupted", "oom_killed"],
    ),
    (Status::Timeout, &["timed_out", "timedout"]),
];

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Exit code 0, and no real error on stderr.
    Success,
    /// It failed.
    Failure,
    /// It was ended for taking too long.
    Timeout,
    /// Transient errors persisted until no retry was left.
    TransientExhausted,
    /// The line that should describe the run is no valid result.
    Malformed,
}

impl Status {
    /// Every value.
    pub const ALL: [Self; 5] = [Self::Success, Self::Failure, Self::Timeout, Self::TransientExhausted, Self::Malformed];

    /// The word in a verdict.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Timeout => "timeout",
            Self::TransientExhausted => "transient_exhausted",
            Self::Malformed => "malformed",
        }
    }

    /// Returns the value that a word names: its own name, or a synonym that schedulers, CI services or agents use.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        let synonym = || SYNONYMS.iter().find(|(_, words)| words.contains(&&*word)).map(|(status, _)| *status);
        Self::ALL.into_iter().find(|status| status.as_str() == word).or_else(synonym)
    }
}

/// What is known of a finished run, apart from its output.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Its exit code.
    pub exit_code: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The signal was sent by siftd, or passed on by it.
    pub signal_was_ours: bool,
    /// It was ended for taking too long.
    pub timed_out: bool,
    /// The status that the caller states; overrides the exit code.
    pub run_status: Option<Status>,
    /// What the caller states if it is no known status; such a run never counts as a success.
    pub unknown_status: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Number of runs made.
    pub attempts: u32,
    /// The name of the task.
    pub task: Option<String>,
    /// The step of the task.
    pub operation: Option<String>,
}

/// The judgement of a run.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How it ended.
    pub status: Status,
    /// Set if the run did not succeed; at most [`MAX_MESSAGE_CHARS`] characters.
    pub error_message: Option<String>,
    /// What is wrong with the result itself, for its author.
    pub error: Option<String>,
    /// Why the run failed.
    pub cause: Cause,
    /// Whether trying again can help.
    pub retry: Retry,
    /// Number of genuine failures, including exhausted retries; a transient failure counts 0.
    pub failures: u32,
    /// The facts that were given.
    pub facts: Facts,
}

impl Verdict {
    /// Returns the verdict for a line that is no valid result, and the reason.
    #[must_use]
    pub fn malformed(why: impl Into<String>) -> Self {
        let facts = Facts { attempts: 1, ..Facts::default() };
        Self {
            status: Status::Malformed,
            error_message: Some(MALFORMED.to_owned()),
            error: Some(why.into()),
            cause: Cause::Unknown,
            retry: no_advice(Cause::Unknown),
            failures: 1,
            facts,
        }
    }

    /// Whether the run succeeded.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }
}

/// Judges a finished run.
#[must_use]
pub fn judge(facts: Facts, said: &Said) -> Verdict {
    let status = status(&facts, said);
    let error = facts.unknown_status.as_deref().map(unknown);
    if status == Status::Malformed {
        let why = error.unwrap_or_else(|| "`run_status` says so".to_owned());
        return Verdict { facts, ..Verdict::malformed(why) };
    }
    let telling = said.telling(Io::Stderr);
    let timed_out = facts.timed_out || status == Status::Timeout;
    let cause = match status {
        Status::Success => Cause::Unknown,
        _ if timed_out => Cause::Timeout,
        _ => whole(&facts, said, telling).cause,
    };
    let retry = if status == Status::Success { no_advice(cause) } else { retry(&facts, said, cause, timed_out) };
    let error_message = (status != Status::Success).then(|| message::message(&facts, timed_out, said, telling));
    let failures = match status {
        Status::Success => 0,
        Status::TransientExhausted => 1,
        _ => u32::from(retry.class != RetryClass::Transient),
    };
    Verdict { status, error_message, error, cause, retry, failures, facts }
}

impl Facts {
    /// Returns how the run ended by all but its output.
    #[must_use]
    pub fn stated(&self) -> Status {
        let by_exit = match (self.timed_out, self.signal, self.exit_code) {
            (true, ..) => Status::Timeout,
            (_, None, None | Some(0)) => Status::Success,
            _ => Status::Failure,
        };
        match self.run_status {
            Some(Status::Success) if by_exit == Status::Timeout => by_exit,
            Some(stated) => stated,
            None => by_exit,
        }
    }
}

fn status(facts: &Facts, said: &Said) -> Status {
    match facts.stated() {
        Status::Success if said.has_real_error() => Status::Failure,
        Status::Success if facts.unknown_status.is_some() => Status::Malformed,
        stated => stated,
    }
}

fn unknown(stated: &str) -> String {
    /// Maximum number of characters shown.
    const MAX_CHARS: usize = 60;
    let shown: String = stated.chars().take(MAX_CHARS).collect();
    format!("unknown `run_status` {shown:?}: one of {}", Status::ALL.map(Status::as_str).join(", "))
}

/// Classifies the run as a whole, from its most telling line and all of its filtered stderr.
fn whole(facts: &Facts, said: &Said, telling: Option<&Event>) -> classify::Verdict {
    let last = said.text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let exception = telling.and_then(|event| event.exception.as_ref());
    classify::classify(&Subject {
        text: telling.map_or(last, |event| &event.text),
        kind: exception.map(|exception| exception.kind.as_str()),
        message: exception.map(|exception| exception.message.as_str()),
        whole: &said.text,
        language: telling.and_then(|event| event.language.as_deref()),
        rule_category: telling.map(|event| event.category).filter(|category| *category != Category::UnknownError),
        exit_code: memory_ran_out(facts).then_some(137),
        has_frames: exception.is_some_and(|exception| !exception.frames.is_empty()),
        ..Subject::default()
    })
}

/// Whether the kernel or a container runtime killed the run for its
/// memory use: exit code 137, or a SIGKILL that siftd did not send.
fn memory_ran_out(facts: &Facts) -> bool {
    const SIGKILL: i32 = 9;
    !facts.timed_out && !facts.signal_was_ours && (facts.exit_code == Some(137) || facts.signal == Some(SIGKILL))
}

/// Returns the advice with the most serious class: fatal before permanent before
/// transient. One error that no retry can fix is enough. Unmatched errors do not count.
fn retry(facts: &Facts, said: &Said, cause: Cause, timed_out: bool) -> Retry {
    if timed_out {
        return Retry { reason: TIMED_OUT.into(), ..no_advice(cause) };
    }
    let on_stderr = counts::stderr_decides(said.errors.iter().map(|event| (event.io, event.is_status)));
    let counts = |event: &&Event| !on_stderr || event.io == Some(Io::Stderr);
    let mut votes: Vec<Retry> = said.errors.iter().filter(counts).map(|event| event.retry.clone()).collect();
    let last = answer::last(said.errors.iter().filter(counts));
    if votes.is_empty() || memory_ran_out(facts) {
        votes.push(whole(facts, said, None).retry);
    }
    let order = |class| [RetryClass::Fatal, RetryClass::Permanent, RetryClass::Transient].iter().position(|known| *known == class).unwrap_or(3);
    // A time stated by an earlier failure of another kind has been waited for, or does not concern this failure.
    let is_stale = |vote: &Retry| last.is_some_and(|last| last.retry.reason != vote.reason);
    let first = votes.iter().min_by_key(|vote| (order(vote.class), vote.reset_at.is_none() || is_stale(vote)));
    let Some(vote) = first else { return no_advice(cause) };
    let stated = vote.reset_at.clone().filter(|_| !is_stale(vote));
    let asked = last.filter(|_| vote.class == RetryClass::Transient && stated.is_none()).and_then(|last| answer::shown(last).or_else(|| said.asked.clone()));
    Retry { remedy: remedy(vote.class, cause), reset_at: stated.or(asked), ..vote.clone() }
}

fn no_advice(cause: Cause) -> Retry {
    Retry { class: RetryClass::Unknown, reason: Cow::Borrowed(UNMATCHED), remedy: remedy(RetryClass::Unknown, cause), reset_at: None }
}

/// Number of errors of each severity, in the order of `Severity::ALL`.
pub type Summary = [u64; Severity::ALL.len()];

#[cfg(test)]
mod tests;
