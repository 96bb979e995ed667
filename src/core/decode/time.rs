//! Time stamps as logs write them, read at a given place of a line. Used by `prefix`, `container`,
//! `json` and `logfmt`. A stamp without a zone counts as UTC; one without a year belongs to the latest
//! year that puts it at most a day past `now`. Never reads the clock; a bare time of day is no stamp.

mod clock;
mod number;

use super::calendar::{Clock, Date, civil, decimal, epoch, latest_year, month};
use super::scan::{byte, digits, is_blank, rest};
use crate::core::event::Timestamp;

/// A bare number that begins a line is a time only within these seconds (2015 to 2035): whether it is
/// one must not depend on when it is read.
const BARE_EPOCH_SECONDS: std::ops::Range<i64> = 1_420_070_400..2_051_222_400;
/// With this many digits of a second or more, a stamp is a transport's (GitHub's runner writes 7, container runtimes 9).
const TRANSPORT_DIGITS: usize = 7;
const TAI64N_HEX: usize = 24;

/// Reads the time stamp that begins at `at`; returns it with the offset after it.
#[must_use]
pub fn parse_time_at(bytes: &[u8], at: usize, now: Timestamp) -> Option<(Timestamp, usize)> {
    moment(bytes, at, now).map(|m| (m.time, m.end))
}

/// Reads the whole of a structured field as a time: a stamp, or epoch seconds, ms, µs or ns by magnitude.
#[must_use]
pub fn parse_any_time(text: &[u8], now: Timestamp) -> Option<Timestamp> {
    let text = text.trim_ascii();
    if let Some((time, end)) = epoch(text, 0)
        && end == text.len()
    {
        return Some(time);
    }
    parse_time_at(text, 0, now).filter(|&(_, end)| end == text.len()).map(|(time, _)| time)
}

/// Who writes a stamp of this form, which determines what may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A logger: level and fields follow.
    Logger,
    /// A transport in front of any program's output.
    Transport,
    /// RFC 3164: host and program follow.
    Syslog,
}

/// A stamp, the offset after it and its style.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub time: Timestamp,
    pub end: usize,
    pub style: Style,
}

/// [`parse_time_at`] with the style.
pub fn moment(bytes: &[u8], at: usize, now: Timestamp) -> Option<Moment> {
    let reader = Reader { bytes, at, now };
    match byte(bytes, at) {
        b'0'..=b'9' => reader.numeric(),
        b'A'..=b'Z' => reader.named(),
        b'@' => reader.tai64n(),
        _ => None,
    }
}

/// Reads the stamp of glog and klog at `at`: `0517 15:04:22.619632`, or with a year of two or four digits in front.
pub fn glog(bytes: &[u8], at: usize, now: Timestamp) -> Option<Moment> {
    let mut reader = Reader { bytes, at, now };
    let run = digits(bytes, at) - at;
    let yearless = run == 4;
    let century = if run == 6 { 20_000_000 } else { 0 };
    let date = century + reader.number(4, 8).filter(|_| matches!(run, 4 | 6 | 8))?;
    if !reader.eat(b' ') {
        return None;
    }
    let year = (!yearless).then_some(date / 10_000);
    reader.finish(Date { year, month: date / 100 % 100, day: date % 100 })
}

/// Returns the end of a bare time of day (`10:00:00`, `10:00:00.123`,
/// `00:00:01.234,567` of Zephyr, `9:05AM`) at `at`: a shape, but no time.
pub fn clock_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut reader = Reader { bytes, at, now: Timestamp(0) };
    let clock = reader.clock()?;
    if clock.digits == 3 && reader.peek() == b',' && digits(bytes, reader.at + 1) == reader.at + 4 {
        reader.at += 4;
    }
    (clock.valid() && !byte(bytes, reader.at).is_ascii_alphanumeric()).then_some(reader.at)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    now: Timestamp,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        byte(self.bytes, self.at)
    }

    fn eat(&mut self, want: u8) -> bool {
        let hit = self.peek() == want;
        self.at += usize::from(hit);
        hit
    }

    fn eat_blanks(&mut self) -> bool {
        let from = self.at;
        while is_blank(self.peek()) && self.at < from + 2 {
            self.at += 1;
        }
        self.at > from
    }

    /// Reads the whole run of digits as a number, if it has `least..=most` of them.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let end = digits(self.bytes, self.at);
        if !(least..=most).contains(&(end - self.at)) {
            return None;
        }
        let value = decimal(&self.bytes[self.at..end]);
        self.at = end;
        Some(value)
    }

    fn numeric(self) -> Option<Moment> {
        let run = digits(self.bytes, self.at) - self.at;
        match (run, byte(self.bytes, self.at + run)) {
            (4, sep @ (b'-' | b'/' | b'.')) => self.year_first(sep),
            (8, b' ' | b'T' | b'-' | b'.' | b'_') => self.compact(),
            (14, _) => self.joined(),
            (2, b'-') if byte(self.bytes, self.at + 3).is_ascii_alphabetic() => self.day_month_year(),
            (2, b'A'..=b'Z') => self.day_month_year(),
            (2, b'-') => self.month_day(),
            (1 | 2, b'/') => self.slashed(),
            (2, b'.') => self.dotted(),
            (1 | 2, b' ') => self.day_first(),
            (10.., _) => self.bare_epoch(),
            (1, b'.') => self.scientific_epoch(),
            _ => None,
        }
    }

    /// `2026-11-20T10:00:00.123Z`, `2026/11/20 10:00:00`, `2026.11.20 10:00:00`, `2026/11/20-10:00:00` (RocksDB),
    /// `2026-11-20, 10:00:00` (Airflow), `2026-11-20|10:00:00`, `2026-11-20;10:00:00`, `2026-11-20-10.00.00` (Db2), `2026-Nov-20 10:00:00`,
    /// `2026-11-20 at 10:00:00 UTC`
    fn year_first(mut self, sep: u8) -> Option<Moment> {
        let year = self.number(4, 4)?;
        self.at += 1;
        let month = self.month_or_name()?;
        if !self.eat(sep) {
            return None;
        }
        let day = self.number(1, 2)?;
        self.eat(b',');
        if rest(self.bytes, self.at).starts_with(b" at ") {
            self.at += 4;
        } else if !(self.eat(b'-') || self.eat(b'T') || self.eat_blanks() || self.eat(b'_') || self.eat(b'|') || self.eat(b';')) {
            return None;
        }
        // Unreal's `2026.11.20-10.11.12:123` heads a log whose reports have no stamps of their own.
        if sep == b'.' && self.is_signed_clock() {
            return None;
        }
        self.finish(Date { year: Some(year), month, day })
    }

    fn month_or_name(&mut self) -> Option<i64> {
        if !self.peek().is_ascii_alphabetic() {
            return self.number(1, 2);
        }
        let month = month(rest(self.bytes, self.at))?;
        self.at += 3;
        Some(month)
    }

    /// Reads `20260327 11:34:21.908`, `20260327-113421`, `20260327T113421Z`, `20260327.113421.908`
    fn compact(mut self) -> Option<Moment> {
        let date = undivided(self.number(8, 8)?);
        self.at += 1;
        if digits(self.bytes, self.at) != self.at + 6 {
            return self.finish(date);
        }
        let clock = self.undivided_clock()?;
        let zone = self.zone();
        self.moment(date, clock, zone)
    }

    /// Reads `20260327113421`
    fn joined(mut self) -> Option<Moment> {
        let date = undivided(decimal(self.bytes.get(self.at..self.at + 8)?));
        self.at += 8;
        let clock = self.undivided_clock()?;
        self.moment(date, clock, 0)
    }

    /// `10-Nov-2026 10:00:00.123` (BIND, Tomcat, PHP), `10Nov2026 10:00:00.123` (Forge)
    fn day_month_year(mut self) -> Option<Moment> {
        let day = self.number(2, 2)?;
        let dash = self.eat(b'-');
        let month = month(rest(self.bytes, self.at))?;
        self.at += 3;
        if self.eat(b'-') != dash {
            return None;
        }
        let year = self.number(4, 4)?;
        if !self.eat(b' ') {
            return None;
        }
        self.finish(Date { year: Some(year), month, day })
    }

    /// `04-23 09:17:27.871` (Android), `04-23-2026 09:17:27`, `23-04-2026 09:17:27`
    fn month_day(mut self) -> Option<Moment> {
        let first = self.number(2, 2)?;
        self.at += 1;
        let second = self.number(2, 2)?;
        let year = if self.eat(b'-') { Some(self.number(4, 4)?) } else { None };
        if !self.eat(b' ') {
            return None;
        }
        let (month, day) = if year.is_some() && first > 12 { (second, first) } else { (first, second) };
        self.finish(Date { year, month, day })
    }

    /// `10/Feb/2012:16:41:07 -0500` (Apache), `17/06/09 20:10:52` (year first), `01/15/2024 10:00:00`, `15/01/2024, 10:00:00`
    fn slashed(mut self) -> Option<Moment> {
        let first = self.number(1, 2)?;
        self.at += 1;
        if let Some(month) = month(rest(self.bytes, self.at)) {
            self.at += 3;
            let year = if self.eat(b'/') {
                self.number(4, 4)?
            } else {
                return None;
            };
            if !(self.eat(b':') || self.eat(b' ')) {
                return None;
            }
            return self.finish(Date { year: Some(year), month, day: first });
        }
        let second = self.number(1, 2)?;
        let third = if self.eat(b'/') {
            self.number(2, 4)?
        } else {
            return self.slashed_day(first, second);
        };
        self.eat(b',');
        if !(self.eat(b' ') || self.eat(b'-')) {
            return None;
        }
        self.finish(match (third, first) {
            (..100, _) => Date { year: Some(2000 + first), month: second, day: third },
            (_, 13..) => Date { year: Some(third), month: second, day: first },
            _ => Date { year: Some(third), month: first, day: second },
        })
    }

    /// `11/10 10:00:00`: month and day, and a clock with seconds, without which it could be a fraction of something.
    fn slashed_day(mut self, month: i64, day: i64) -> Option<Moment> {
        let clock = self.at + 1;
        let seconds = digits(self.bytes, clock) == clock + 2 && byte(self.bytes, clock + 5) == b':';
        if !seconds || !self.eat(b' ') {
            return None;
        }
        self.finish(Date { year: None, month, day })
    }

    /// Reads `15.01.2024 10:00:00`
    fn dotted(mut self) -> Option<Moment> {
        let day = self.number(2, 2)?;
        self.at += 1;
        let month = self.number(2, 2)?;
        let year = if self.eat(b'.') {
            self.number(4, 4)?
        } else {
            return None;
        };
        self.eat(b',');
        if !self.eat(b' ') {
            return None;
        }
        self.finish(Date { year: Some(year), month, day })
    }

    /// Reads `01 Jan 2024 10:00:00.000`, `01 Jan 10:00:00`
    fn day_first(mut self) -> Option<Moment> {
        let day = self.number(1, 2)?;
        self.at += 1;
        let month = month(rest(self.bytes, self.at))?;
        self.at += 3;
        if !self.eat(b' ') {
            return None;
        }
        let clock = self.at + 2;
        let yearless = byte(self.bytes, clock) == b':' && byte(self.bytes, clock + 3) == b':';
        let year = if yearless { None } else { Some(self.number(4, 4)?) };
        if !yearless {
            self.eat(b',');
            if !self.eat(b' ') {
                return None;
            }
        }
        self.finish(Date { year, month, day })
    }

    /// Reads `Apr 28 04:02:03` (syslog), `Jan 01, 2024 10:00:00 AM` (`java.util.logging`), `Thu Jun 27 11:55:44.569531 2013`
    fn named(mut self) -> Option<Moment> {
        let weekday = matches!(self.bytes.get(self.at..self.at + 3)?, b"Mon" | b"Tue" | b"Wed" | b"Thu" | b"Fri" | b"Sat" | b"Sun");
        if weekday {
            self.at += 3;
            self.eat(b',');
            if !self.eat_blanks() {
                return None;
            }
            if self.peek().is_ascii_digit() {
                return if digits(self.bytes, self.at) - self.at == 4 { self.year_first(b'-') } else { self.day_first() };
            }
        }
        let month = month(rest(self.bytes, self.at))?;
        self.at += 3;
        if !self.eat_blanks() {
            return None;
        }
        let day = self.number(1, 2)?;
        self.eat(b',');
        if !self.eat_blanks() {
            return None;
        }
        let year = self.year_before_clock();
        let syslog = year.is_none() && !weekday;
        let date = Date { year, month, day };
        let moment = if weekday && year.is_none() { self.year_last(date)? } else { self.finish(date)? };
        Some(Moment { style: if syslog { Style::Syslog } else { moment.style }, ..moment })
    }

    fn year_before_clock(&mut self) -> Option<i64> {
        let end = digits(self.bytes, self.at);
        if end - self.at != 4 || byte(self.bytes, end) != b' ' {
            return None;
        }
        let year = self.number(4, 4);
        self.at += 1;
        year
    }

    /// Reads clock, zone, then perhaps the year: `00:01:01 UTC 2022`.
    fn year_last(mut self, date: Date) -> Option<Moment> {
        let clock = self.clock()?;
        let zone = self.zone();
        let mut date = date;
        let year = self.at + 1;
        let end = digits(self.bytes, year);
        if self.peek() == b' ' && end - year == 4 {
            date.year = Some(decimal(&self.bytes[year..end]));
            self.at = end;
        }
        self.moment(date, clock, zone)
    }

    fn finish(mut self, date: Date) -> Option<Moment> {
        let clock = if date.year.is_some() && self.is_signed_clock() { self.signed_clock()? } else { self.clock()? };
        let zone = self.zone();
        self.moment(date, clock, zone)
    }

    fn moment(self, date: Date, clock: Clock, zone: i64) -> Option<Moment> {
        // A stamp must end here; `2026-01-01 10:00:00foo` is none.
        if self.peek().is_ascii_alphanumeric() {
            return None;
        }
        let time = match date.year {
            Some(year) => civil(year, date, clock, zone)?,
            None => latest_year(self.now, |year| civil(year, date, clock, zone))?,
        };
        let style = if clock.digits >= TRANSPORT_DIGITS { Style::Transport } else { Style::Logger };
        Some(Moment { time, end: self.at, style })
    }
}

/// Splits an undivided date: `20260327`
fn undivided(date: i64) -> Date {
    Date { year: Some(date / 10_000), month: date / 100 % 100, day: date % 100 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(text: &str) -> i64 {
        text.parse::<jiff::Timestamp>().expect("a test").as_microsecond()
    }

    #[test]
    fn reads_stamps() {
        let now = Timestamp(iso("2026-03-01T00:00:00Z"));
        let table = [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456Z"),
            ("2026-01-02 03:04:05,678", "2026-01-02T03:04:05.678Z"),
            ("2026-01-02T03:04:05+05:30", "2026-01-01T21:34:05Z"),
            ("2025-01-23T03:42:36.681-0800", "2025-01-23T11:42:36.681Z"),
            ("2015/05/24 07:48:21 -05:00", "2015-05-24T12:48:21Z"),
            ("2020-05-26 19:46:43:259", "2020-05-26T19:46:43.259Z"),
            ("2022-06-14  0:31:43", "2022-06-14T00:31:43Z"),
            ("2025-08-16 13:02:58.095 CEST", "2025-08-16T11:02:58.095Z"),
            ("10/Feb/2012:16:41:07 -0500", "2012-02-10T21:41:07Z"),
            ("Thu Jun 27 11:55:44.569531 2013", "2013-06-27T11:55:44.569531Z"),
            ("Thu Jun 2 00:01:01 UTC 2022", "2022-06-02T00:01:01Z"),
            ("Mon, 02 Jan 2006 15:04:05 GMT", "2006-01-02T15:04:05Z"),
            ("Jan 01, 2024 1:00:00 PM", "2024-01-01T13:00:00Z"),
            ("01 Jan 2024 10:00:00.000", "2024-01-01T10:00:00Z"),
            ("17/06/09 20:10:52", "2017-06-09T20:10:52Z"),
            ("01/15/2024 10:00:00", "2024-01-15T10:00:00Z"),
            ("15/01/2024, 10:00:00", "2024-01-15T10:00:00Z"),
            ("15.01.2024 10:00:00", "2024-01-15T10:00:00Z"),
            ("20260327 11:34:21.908", "2026-03-27T11:34:21.908Z"),
            ("20260327-113421", "2026-03-27T11:34:21Z"),
            ("20260327-11:34:21:908", "2026-03-27T11:34:21.908Z"),
            ("20260327T113421Z", "2026-03-27T11:34:21Z"),
            ("20260327.113421.908", "2026-03-27T11:34:21.908Z"),
            ("20260327113421", "2026-03-27T11:34:21Z"),
            ("2026-03-27-11.34.21.908", "2026-03-27T11:34:21.908Z"),
            ("2026-03-27 11-34-21", "2026-03-27T11:34:21Z"),
            ("2026-03-27-11:34:21", "2026-03-27T11:34:21Z"),
            ("2026-03-27 at 11:34:21 CEST", "2026-03-27T09:34:21Z"),
            ("2026-Mar-27 11:34:21", "2026-03-27T11:34:21Z"),
            ("27-03-2026 11:34:21", "2026-03-27T11:34:21Z"),
            ("03-27-2026 11:34:21.908", "2026-03-27T11:34:21.908Z"),
            ("27 Mar 11:34:21", "2025-03-27T11:34:21Z"),
            ("04-23 09:17:27.871", "2025-04-23T09:17:27.871Z"),
            ("Apr 28 04:02:03", "2025-04-28T04:02:03Z"),
            ("Mar  1 20:02:03", "2026-03-01T20:02:03Z"),
            ("Feb 29 01:00:00", "2024-02-29T01:00:00Z"),
            ("2000-02-29 23:59:59.999", "2000-02-29T23:59:59.999Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("2100-12-31T00:00:00Z", "2100-12-31T00:00:00Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("1695668091.895450", "2023-09-25T18:54:51.895450Z"),
            ("1761019822315", "2025-10-21T04:10:22.315Z"),
            ("1761019822", "2025-10-21T04:10:22Z"),
            ("@400000004a3e2ad42a3b1c2d", "2009-06-21T12:42:50.708516Z"),
        ];
        for (text, want) in table {
            let got = parse_time_at(text.as_bytes(), 0, now);
            assert_eq!(got, Some((Timestamp(iso(want)), text.len())), "{text}");
        }
    }

    #[test]
    fn chooses_the_year() {
        for (now, text, want) in [
            ("2025-12-31T23:30:00Z", "Jan  1 00:10:00", "2026-01-01T00:10:00Z"),
            ("2026-01-01T00:10:00Z", "Dec 31 23:30:00", "2025-12-31T23:30:00Z"),
            ("2026-01-01T00:10:00Z", "Jan  1 00:05:00", "2026-01-01T00:05:00Z"),
            ("2024-12-31T23:59:00Z", "Dec 31 23:00:00", "2024-12-31T23:00:00Z"),
            ("2026-06-01T00:00:00Z", "Jul  1 00:00:00", "2025-07-01T00:00:00Z"),
        ] {
            let got = parse_time_at(text.as_bytes(), 0, Timestamp(iso(now)));
            assert_eq!(got, Some((Timestamp(iso(want)), text.len())), "{text} at {now}");
        }
    }

    #[test]
    fn takes_nothing_else() {
        let now = Timestamp(iso("2026-03-01T00:00:00Z"));
        for text in [
            "",
            "2026-13-01 10:00:00",
            "2026-01-01",
            "2026-01-01 foo",
            "10:00:00",
            "1234567890 bytes",
            "3 | mod b;",
            "2026-01-01 25:00:00",
            "2026-02-29 10:00:00",
            "2026-04-31 10:00:00",
            "2026-01-01 10:00:00foo",
            "May be",
            "Sun shines",
            "12/13",
            "1.2.3",
            "@foo",
            "99999999999999999999",
            "20261310100000",
            "20260101-999999",
            "2026-01-01 10.00",
            "01-02-03 10:00:00",
            "27 Mar 10",
        ] {
            assert_eq!(parse_time_at(text.as_bytes(), 0, now), None, "{text}");
        }
    }

    #[test]
    fn no_hex_is_no_stamp() {
        let half = ["@aaaaaaaaaaaaaaaé0123456", "@ferm\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}"];
        for text in
            half.iter().copied().chain(["@+00000005f5e100000000000", "@-00000005f5e100000000000", "@ffffffffffffffffffffffff", "@7fffffffffffffffffffffff"])
        {
            assert_eq!(parse_time_at(text.as_bytes(), 0, Timestamp(0)), None, "{text}");
        }
    }

    #[test]
    fn reads_structured_times() {
        let now = Timestamp(iso("2026-03-01T00:00:00Z"));
        let want = iso("2024-05-26T11:42:52.601480Z");
        for text in ["1716723772.60148", "1716723772601480", "1716723772601480000", "2024-05-26T11:42:52.60148Z"] {
            assert_eq!(parse_any_time(text.as_bytes(), now), Some(Timestamp(want)), "{text}");
        }
        for text in ["", "12", "1.5", "soon", "2024-05-26T11:42:52Z and more"] {
            assert_eq!(parse_any_time(text.as_bytes(), now), None, "{text}");
        }
    }

    #[test]
    fn reads_a_bare_clock() {
        for (text, want) in [("10:00:00 web", Some(8)), ("9:05PM x", Some(6)), ("10:00:00.123]", Some(12)), ("25:00:00", None), ("3:1", None)] {
            assert_eq!(clock_end(text.as_bytes(), 0), want, "{text}");
        }
    }
}
