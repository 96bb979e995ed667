//! The time of day within a stamp, and its zone. Part of `time`'s reader; knows no date.

use super::Reader;
use crate::core::decode::calendar::{Clock, abbreviation, decimal, offset};
use crate::core::decode::scan::{byte, digits};

impl Reader<'_> {
    /// Reads `10:00`, `10:00:00`, `10:00:00.123456`, `10:00:00,123`, `10:00:00:123`, `1:00:00 PM`
    pub(super) fn clock(&mut self) -> Option<Clock> {
        let mut clock = Clock { hour: self.number(1, 2)?, minute: 0, second: 0, nanos: 0, digits: 0 };
        if !self.eat(b':') {
            return None;
        }
        clock.minute = self.number(2, 2)?;
        if self.peek() == b':' && byte(self.bytes, self.at + 1).is_ascii_digit() {
            self.at += 1;
            clock.second = self.number(2, 2)?;
            self.fraction(&mut clock);
        }
        self.meridiem(&mut clock);
        Some(clock)
    }

    /// Whether `10.00.00` or `10-00-00` comes next.
    pub(super) fn is_signed_clock(&self) -> bool {
        let sign = byte(self.bytes, self.at + 2);
        let pair = |at: usize| digits(self.bytes, at) == at + 2;
        matches!(sign, b'.' | b'-') && byte(self.bytes, self.at + 5) == sign && pair(self.at) && pair(self.at + 3) && pair(self.at + 6)
    }

    /// Reads `10.00.00.123` (Db2), `10-00-00`
    pub(super) fn signed_clock(&mut self) -> Option<Clock> {
        let hour = self.number(2, 2)?;
        self.at += 1;
        let minute = self.number(2, 2)?;
        self.at += 1;
        let mut clock = Clock { hour, minute, second: self.number(2, 2)?, nanos: 0, digits: 0 };
        self.fraction(&mut clock);
        Some(clock)
    }

    /// Reads `100000`, `100000.123`, as the next six digits.
    pub(super) fn undivided_clock(&mut self) -> Option<Clock> {
        let number = decimal(self.bytes.get(self.at..self.at + 6)?);
        self.at += 6;
        let mut clock = Clock { hour: number / 10_000, minute: number / 100 % 100, second: number % 100, nanos: 0, digits: 0 };
        self.fraction(&mut clock);
        Some(clock)
    }

    fn fraction(&mut self, clock: &mut Clock) {
        let from = self.at + 1;
        let end = digits(self.bytes, from);
        clock.digits = match self.peek() {
            b'.' | b',' => end - from,
            // A colon also separates fields, so only milliseconds are read after it.
            b':' if end - from == 3 => 3,
            _ => 0,
        };
        if clock.digits > 0 {
            let kept = &self.bytes[from..end.min(from + 9)];
            clock.nanos = kept.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0'));
            clock.nanos *= (kept.len()..9).fold(1, |n, _| n * 10);
            self.at = end;
        }
    }

    fn meridiem(&mut self, clock: &mut Clock) {
        let from = self.at + usize::from(self.peek() == b' ');
        let pm = match self.bytes.get(from..from + 2) {
            Some(b"AM" | b"am") => 0,
            Some(b"PM" | b"pm") => 12,
            _ => return,
        };
        if (1..=12).contains(&clock.hour) && !byte(self.bytes, from + 2).is_ascii_alphanumeric() {
            clock.hour = clock.hour % 12 + pm;
            self.at = from + 2;
        }
    }

    /// Reads the zone that comes next and returns it in seconds east of UTC; 0 if there is none.
    pub(super) fn zone(&mut self) -> i64 {
        if matches!(self.peek(), b'Z' | b'z') {
            self.at += 1;
            return 0;
        }
        let from = self.at + usize::from(self.peek() == b' ');
        let (seconds, end) = match byte(self.bytes, from) {
            b'+' | b'-' => offset(self.bytes, from),
            b'A'..=b'Z' if from > self.at => abbreviation(self.bytes, from),
            _ => return 0,
        }
        .unwrap_or((0, self.at));
        self.at = end;
        seconds
    }
}
