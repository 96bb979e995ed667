//! The history: which errors occurred, since when, how often and where, so that a new error can be told from an old one. There is one row per
//! signature and recipe version; age and row count are bounded. This module defines how an event changes its row. `table` keeps the rows, `tail` what
//! is not yet in the table, `hours` the hourly counts; `sieve` avoids needless table lookups, and `carry` carries a history over to a new recipe.

mod carry;
mod hours;
mod sieve;
mod table;
pub(super) mod tail;

use crate::core::event::{Hex, Timestamp};
use crate::core::signature::SIG_VERSION;
use crate::delivery::{Seen, Status};

pub(super) use carry::{has_past, is_prepared, joined, prepare, take_over};
pub use hours::{HOUR_US, Hours, spans};
pub(super) use sieve::Sieve;
pub(super) use table::{
    COLUMNS, Sample, TABLES, add_hour, alias, begin_with, count, find, former, goes_on_as, grow, insert, is_sound, list, one_less_new, prune_age, prune_rows,
    sums, update,
};
pub use table::{Choice, Entry, Order, Sum};

/// Streams to name in a row.
const MAX_STREAMS: usize = 5;
/// Characters to keep of an error's text.
pub const MAX_SAMPLE_CHARS: usize = 200;

/// Bounds of the history, and when an error counts as regressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Rows to keep; the rows unseen for longest are dropped first.
    pub max_rows: u64,
    /// A row is dropped once it has been unseen for this many microseconds.
    pub max_age_us: i64,
    /// An error unseen for at least this many microseconds is "regressed" when it is seen again, not "recurring".
    pub regressed_after_us: i64,
}

impl Default for Rules {
    fn default() -> Self {
        const DAY_US: i64 = 24 * HOUR_US;
        Self { max_rows: 100_000, max_age_us: 90 * DAY_US, regressed_after_us: 7 * DAY_US }
    }
}

/// The key of a row: a signature, and the version of the recipe that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sign {
    /// The signature.
    pub signature: Hex,
    /// The version of its recipe.
    pub recipe: u32,
}

impl Sign {
    /// Returns the key of a signature made by today's recipe.
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
    /// How often it was seen.
    pub count: u64,
    /// Somebody marked it as resolved, and it has not been seen since.
    pub is_resolved: bool,
    /// Until when lists leave it out.
    pub muted_until: Option<Timestamp>,
    /// When it last came back.
    pub back: Option<Timestamp>,
    /// How often it was seen, by the hour.
    pub hours: Hours,
    /// Where it was seen: at most five streams.
    pub streams: Vec<String>,
}

impl Row {
    /// Returns the row of an error first seen at `at`, without events.
    #[must_use]
    pub fn new(at: Timestamp) -> Self {
        Self { first: at, last: at, ..Self::default() }
    }

    /// Counts one more event.
    pub fn step(&mut self, at: Timestamp, stream: &str, rules: &Rules) -> Seen {
        let was_quiet = at.0.saturating_sub(self.last.0) >= rules.regressed_after_us;
        let status = match self.count {
            0 => Status::New,
            _ if self.is_resolved || was_quiet => Status::Regressed,
            _ => Status::Recurring,
        };
        if status == Status::Regressed {
            // An error that comes back must be seen.
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

    /// Returns the row's status for a person who looks now: `resolved`, `muted`, `regressed`, `new` (seen once, as its record says), else `recurring`.
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
