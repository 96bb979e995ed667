//! Records that are no errors, before they are written: what nobody saw, what was held back, what has changed.

use crate::core::breaker::Transition;
use crate::core::event::{Category, Severity, Timestamp};

/// Why something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A file was cut before it was read to its end, and no copy of it was found.
    TruncatedFile,
    /// A file vanished before it was read to its end.
    RotatedAway,
    /// More events than `max_events_per_second`.
    RateLimit,
    /// A sink was behind by more than `outbox_max`, and is to leave records out then.
    OutboxFull,
    /// The state was damaged: records that waited in it could not be read, or it is not known how far a source was.
    StateLost,
    /// Datagrams that the kernel dropped because nobody read them in time.
    UdpLoss,
    /// Connections that were closed at once because there were too many.
    TurnedAway,
}

impl Why {
    /// The word in a record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TruncatedFile => "truncated_file",
            Self::RotatedAway => "rotated_away",
            Self::RateLimit => "rate_limit",
            Self::OutboxFull => "outbox_full",
            Self::StateLost => "state_lost",
            Self::UdpLoss => "udp_loss",
            Self::TurnedAway => "turned_away",
        }
    }
}

/// What was missed, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Nobody knows how much.
    Unknown,
    /// So many bytes.
    Bytes(u64),
    /// So many events.
    Events(u64),
    /// So many datagrams.
    Datagrams(u64),
    /// So many connections.
    Connections(u64),
}

/// A record that is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something that nobody saw.
    Gap {
        /// Its id.
        id: String,
        /// Why.
        why: Why,
        /// What.
        missed: Missed,
        /// Since when.
        from: Timestamp,
        /// Until when.
        to: Timestamp,
    },
    /// The command of a source has ended; the label of the stream says which.
    Exit {
        /// Its id.
        id: String,
        /// Its exit code, if it had one.
        code: Option<i32>,
        /// The signal that ended it, if one did.
        signal: Option<i32>,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
        /// How it ended, in a word: `success`, `failure`, or `stopped` where siftd ended it.
        outcome: &'static str,
        /// How often it was started by then.
        attempts: u64,
    },
    /// Equal errors that were withheld.
    Repeat {
        /// Its id.
        id: String,
        /// What they have in common.
        signature: String,
        /// What they are; sinks that do not want such errors do not want this, either.
        kind: Option<(Severity, Category)>,
        /// How many.
        count: u64,
        /// The first one that was written.
        since: Timestamp,
        /// The last one.
        to: Timestamp,
    },
    /// A stream that should talk does not, or does again.
    Silence {
        /// Its id.
        id: String,
        /// When it was heard last.
        since: Timestamp,
        /// How long nothing came, in seconds.
        seconds: u64,
        /// When something came again; none: it is silent.
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
    /// What a sink's filter is to see of it.
    #[must_use]
    pub fn kind(&self) -> Option<(Severity, Category)> {
        match self {
            Self::Repeat { kind, .. } => *kind,
            _ => None,
        }
    }
}
