//! Records that are not errors, before they are written: what was missed, what was withheld, what has changed.

use crate::core::breaker::Transition;
use crate::core::event::{Category, Severity, Timestamp};

/// Why something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A file was truncated before it was read to its end, and no copy of it was found.
    TruncatedFile,
    /// A file vanished before it was read to its end.
    RotatedAway,
    /// More events than `max_events_per_second`.
    RateLimit,
    /// A sink was behind by more than `outbox_max`, and is configured to drop records then.
    OutboxFull,
    /// More transitions of breakers than are kept came while no `run` wrote their records.
    TransitionsFull,
    /// The state was damaged: records that waited in it could not be read, or the position of a source was lost.
    StateLost,
    /// Datagrams that the kernel dropped because nobody read them in time.
    UdpLoss,
    /// The rest of a datagram that was longer than what is read of one.
    DatagramCut,
    /// Connections that were closed at once because there were too many.
    TurnedAway,
    /// What processes that a command left behind could still have printed.
    LeftBehind,
}

impl Why {
    /// Returns the word used in a record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TruncatedFile => "truncated_file",
            Self::RotatedAway => "rotated_away",
            Self::RateLimit => "rate_limit",
            Self::OutboxFull => "outbox_full",
            Self::TransitionsFull => "transitions_full",
            Self::StateLost => "state_lost",
            Self::UdpLoss => "udp_loss",
            Self::DatagramCut => "datagram_cut",
            Self::TurnedAway => "turned_away",
            Self::LeftBehind => "left_behind",
        }
    }
}

/// What was missed, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Nobody knows how much.
    Unknown,
    /// This many bytes.
    Bytes(u64),
    /// This many events.
    Events(u64),
    /// This many datagrams.
    Datagrams(u64),
    /// This many connections.
    Connections(u64),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, if it had one.
    pub code: Option<i64>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// How long it ran, in milliseconds, if that is known.
    pub duration_ms: Option<u64>,
    /// How it ended, in a word: that of its verdict; for a source's command `success`, `failure`, or `stopped` if siftd ended it.
    pub outcome: &'static str,
    /// How often it had been started by then.
    pub attempts: u64,
    /// What `exec` made of it; a source's command is not judged.
    pub judged: Option<Judged>,
}

/// What `exec` makes of a command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Number of genuine failures.
    pub failures: u32,
    /// The name of the task.
    pub task: Option<String>,
    /// The verdict as JSON.
    pub verdict: Vec<u8>,
}

/// A retry that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerun {
    /// Number of the retry, from 1.
    pub attempt: u32,
    /// Maximum number of retries.
    pub max_attempts: u32,
    /// The name of the task.
    pub task: Option<String>,
    /// The reason for the retry.
    pub reason: String,
    /// The pause before it, in milliseconds.
    pub delay_ms: u64,
}

/// A record that is not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something was missed.
    Gap {
        /// Its id.
        id: String,
        /// Why.
        why: Why,
        /// How much.
        missed: Missed,
        /// Since when.
        from: Timestamp,
        /// Until when.
        to: Timestamp,
    },
    /// A command has ended; the label says which.
    Exit {
        /// Its id.
        id: String,
        /// How.
        exit: Exit,
    },
    /// `exec` is about to run its command once more; the label says which.
    Retry {
        /// Its id.
        id: String,
        /// Which retry, and why.
        rerun: Rerun,
    },
    /// Equal errors that were withheld.
    Repeat {
        /// Its id.
        id: String,
        /// What they have in common.
        signature: String,
        /// Their severity and category; a sink that filters such errors out also filters this record out.
        kind: Option<(Severity, Category)>,
        /// How many.
        count: u64,
        /// The first one that was written.
        since: Timestamp,
        /// The last one.
        to: Timestamp,
    },
    /// A stream that is watched for silence has gone silent, or is heard again.
    Silence {
        /// Its id.
        id: String,
        /// When it was last heard.
        since: Timestamp,
        /// How long nothing came, in seconds.
        seconds: u64,
        /// When it was heard again; `None` while it is silent.
        ended: Option<Timestamp>,
    },
    /// A breaker has changed.
    Breaker {
        /// Its id.
        id: String,
        /// Name of the breaker.
        name: String,
        /// What changed.
        made: Transition,
    },
}

impl Notice {
    /// Returns the severity and category that a sink's filter sees.
    #[must_use]
    pub fn kind(&self) -> Option<(Severity, Category)> {
        match self {
            Self::Repeat { kind, .. } => *kind,
            _ => None,
        }
    }
}
