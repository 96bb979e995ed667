//! What the history says of an error, on its way into the error's record.

use super::Record;
use crate::core::event::Timestamp;

/// How an event relates to the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The first event of its error.
    New,
    /// The error is known.
    Recurring,
    /// The error was resolved, or quiet for long, and has come back.
    Regressed,
}

impl Status {
    /// Returns the word used in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Recurring => "recurring",
            Self::Regressed => "regressed",
        }
    }
}

/// What a record says of its error's history, the record itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How the event relates to the history.
    pub status: Status,
    /// How often the error has been seen.
    pub count: u64,
    /// When it was seen first.
    pub first: Timestamp,
    /// When it was seen last.
    pub last: Timestamp,
}

/// Appends the member `seen` with the comma before it, as `sinks::record` writes it.
pub type WriteSeen = fn(&mut Vec<u8>, &Seen);

impl Record {
    /// Appends `line`, which is this record's, with what the history says of it in its place.
    pub fn append_with(&self, out: &mut Vec<u8>, line: &[u8], seen: impl FnOnce(&mut Vec<u8>)) {
        let (head, tail) = line.split_at((self.seen_at as usize).min(line.len()));
        out.extend_from_slice(head);
        seen(out);
        out.extend_from_slice(tail);
    }
}
