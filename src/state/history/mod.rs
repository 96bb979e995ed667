//! The history: which errors there were, since when, how often and where, so that a new one can be told from an old
//! one. One row for each signature and version of its recipe; bounded by age and by rows. Here is what an event
//! changes in its row; `table` keeps rows, `tail` what is not yet in the table, `hours` counts by the hour, `sieve` knows
//! what the table need not be asked for, `carry` takes a history over to a new recipe.

mod carry;
mod hours;
mod sieve;
mod table;
pub(super) mod tail;

use crate::core::event::{Hex, Timestamp};
use crate::core::signature::SIG_VERSION;

pub(super) use carry::{has_past, is_prepared, prepare, take_over};
pub use hours::{HOUR_US, Hours, spans};
pub(super) use sieve::Sieve;
pub(super) use table::{COLUMNS, Sample, TABLES, add_hour, alias, begin_with, find, former, grow, insert, is_sound, list, prune_age, prune_rows, sums, update};
pub use table::{Choice, Entry, Order, Sum};

/// Streams that are named in a row.
const MAX_STREAMS: usize = 5;
/// Characters of an error's text that are kept.
pub const MAX_SAMPLE_CHARS: usize = 200;

/// Bounds, and what coming back means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Rows that are kept; those that were longest unseen go.
    pub max_rows: u64,
    /// A row goes when it was unseen for so many microseconds.
    pub max_age_us: i64,
    /// An error that was unseen for so many microseconds has come back, and is not merely there again.
    pub regressed_after_us: i64,
}

impl Default for Rules {
    fn default() -> Self {
        const DAY_US: i64 = 24 * HOUR_US;
        Self { max_rows: 100_000, max_age_us: 90 * DAY_US, regressed_after_us: 7 * DAY_US }
    }
}

/// What an event is to the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The first of its kind.
    New,
    /// It is known.
    Recurring,
    /// It was resolved, or quiet for long, and has come back.
    Regressed,
}

impl Status {
    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Recurring => "recurring",
            Self::Regressed => "regressed",
        }
    }
}

/// What a record says of its history; the record itself is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What the event is.
    pub status: Status,
    /// How often the error was seen.
    pub count: u64,
    /// When it was seen first.
    pub first: Timestamp,
    /// When it was seen last.
    pub last: Timestamp,
}

/// Which row: a signature, and the version of the recipe that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sign {
    /// The signature.
    pub signature: Hex,
    /// The version of its recipe.
    pub recipe: u32,
}

impl Sign {
    /// A signature of today's recipe.
    #[must_use]
    pub fn now(signature: Hex) -> Self {
        Self { signature, recipe: SIG_VERSION }
    }
}

/// What is known of one error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// First seen.
    pub first: Timestamp,
    /// Last seen.
    pub last: Timestamp,
    /// How often.
    pub count: u64,
    /// Someone said that it is mended, and it was not seen since.
    pub is_resolved: bool,
    /// It is left out of lists until then.
    pub muted_until: Option<Timestamp>,
    /// When it came back last.
    pub back: Option<Timestamp>,
    /// By the hour.
    pub hours: Hours,
    /// Where it was seen, at most five streams.
    pub streams: Vec<String>,
}

impl Row {
    /// The first event of its kind.
    #[must_use]
    pub fn new(at: Timestamp) -> Self {
        Self { first: at, last: at, ..Self::default() }
    }

    /// One more event.
    pub fn step(&mut self, at: Timestamp, stream: &str, rules: &Rules) -> Seen {
        let was_quiet = at.0.saturating_sub(self.last.0) >= rules.regressed_after_us;
        let status = match self.count {
            0 => Status::New,
            _ if self.is_resolved || was_quiet => Status::Regressed,
            _ => Status::Recurring,
        };
        if status == Status::Regressed {
            // What comes back is to be seen.
            (self.is_resolved, self.back, self.muted_until) = (false, Some(at), None);
        }
        self.count += 1;
        self.first = self.first.min(at);
        self.last = self.last.max(at);
        self.hours.add(at);
        if self.streams.len() < MAX_STREAMS && !self.streams.iter().any(|known| known == stream) {
            self.streams.push(stream.to_owned());
        }
        Seen { status, count: self.count, first: self.first, last: self.last }
    }

    /// Whether lists leave it out.
    #[must_use]
    pub fn is_muted(&self, now: Timestamp) -> bool {
        self.muted_until.is_some_and(|until| now < until)
    }

    /// What it is to a person who looks now: `resolved`, `muted`, `regressed`, `new` (seen once, as its record says), else
    /// `recurring`.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> &'static str {
        match () {
            () if self.is_resolved => "resolved",
            () if self.is_muted(now) => "muted",
            () if self.back.is_some() => Status::Regressed.as_str(),
            () if self.count <= 1 => Status::New.as_str(),
            () => Status::Recurring.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * HOUR_US;

    #[test]
    fn new_then_recurring_then_regressed_after_a_quiet_week_or_when_it_was_resolved() {
        let rules = Rules::default();
        let mut row = Row::new(Timestamp(DAY));
        let step = |row: &mut Row, day: i64| row.step(Timestamp(day * DAY), "a.log", &rules).status;
        assert_eq!([step(&mut row, 1), step(&mut row, 2), step(&mut row, 9)], [Status::New, Status::Recurring, Status::Regressed]);
        assert_eq!([step(&mut row, 10), step(&mut row, 16)], [Status::Recurring; 2]);
        row.is_resolved = true;
        assert_eq!([step(&mut row, 16), step(&mut row, 16)], [Status::Regressed, Status::Recurring]);
        assert_eq!((row.first, row.last, row.count, row.back), (Timestamp(DAY), Timestamp(16 * DAY), 7, Some(Timestamp(16 * DAY))));
    }

    #[test]
    fn lists_call_an_error_what_its_last_record_calls_it() {
        let mut row = Row::new(Timestamp(0));
        for (day, want) in [(0, "new"), (0, "recurring"), (1, "recurring"), (9, "regressed")] {
            let seen = row.step(Timestamp(day * DAY), "a.log", &Rules::default());
            assert_eq!((seen.status.as_str(), row.standing(Timestamp(day * DAY))), (want, want));
        }
    }

    #[test]
    fn what_was_muted_and_comes_back_after_a_quiet_week_is_heard() {
        let rules = Rules::default();
        let mut row = Row::new(Timestamp(0));
        row.step(Timestamp(0), "a", &rules);
        row.muted_until = Some(Timestamp(i64::MAX));
        row.step(Timestamp(DAY), "a", &rules);
        assert_eq!(row.standing(Timestamp(DAY)), "muted");
        row.step(Timestamp(9 * DAY), "a", &rules);
        assert_eq!(row.standing(Timestamp(9 * DAY)), "regressed");
    }

    #[test]
    fn streams_are_named_once_and_bounded() {
        let mut row = Row::new(Timestamp(0));
        for stream in ["a", "b", "a", "c", "d", "e", "f", "g"] {
            row.step(Timestamp(0), stream, &Rules::default());
        }
        assert_eq!(row.streams, ["a", "b", "c", "d", "e"]);
    }
}
