//! Civil arithmetic and the values of time fields: dates, clocks, zones,
//! epoch numbers. Used by `time`, which knows the forms. Never reads a clock.

use super::scan::{byte, digits, run};
use crate::core::event::Timestamp;

/// One day.
pub const DAY_MICROS: i64 = 86_400_000_000;
/// A mean Gregorian year.
const YEAR_MICROS: i64 = 31_556_952_000_000;
/// Epoch seconds of 2000-01-01 and 2100-01-01: anything outside is a number, not a time.
pub const EPOCH_SECONDS: std::ops::Range<i64> = 946_684_800..4_102_444_800;

/// A civil date; many stamps have no year.
#[derive(Clone, Copy)]
pub struct Date {
    pub year: Option<i64>,
    pub month: i64,
    pub day: i64,
}

/// A time of day, with the number of digits in its written fraction.
#[derive(Clone, Copy)]
pub struct Clock {
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub nanos: i64,
    pub digits: usize,
}

impl Clock {
    /// Whether the clock lies within a day; a leap second is allowed.
    pub fn valid(&self) -> bool {
        self.hour < 24 && self.minute < 60 && self.second <= 60
    }
}

/// Returns the value of a run of at most 18 digits.
pub fn decimal(run: &[u8]) -> i64 {
    run.iter().take(18).fold(0, |n, d| n * 10 + i64::from(d - b'0'))
}

/// Returns the number of the month whose English abbreviation begins the text.
pub fn month(text: &[u8]) -> Option<i64> {
    const NAMES: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let name = text.get(..3)?;
    NAMES.chunks_exact(3).zip(1..).find(|(month, _)| *month == name).map(|(_, number)| number)
}

/// Returns the time of a civil date; plain arithmetic, because every candidate line with a stamp passes through here.
pub fn civil(year: i64, date: Date, clock: Clock, zone: i64) -> Option<Timestamp> {
    let Date { month, day, .. } = date;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1970..=2200).contains(&year) || !(1..=last).contains(&day) || !clock.valid() {
        return None;
    }
    // A leap second has no place of its own in UTC counts.
    let seconds = clock.hour * 3600 + clock.minute * 60 + clock.second.min(59) - zone;
    Some(Timestamp((days(year, month, day) * 86_400 + seconds) * 1_000_000 + clock.nanos / 1000))
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar, counted in years that begin in March
/// (<https://howardhinnant.github.io/date_algorithms.html#days_from_civil>).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

/// Returns the time in the latest year that puts it at most a day past `now`; nine years back reach a 29 February.
pub fn latest_year(now: Timestamp, in_year: impl Fn(i64) -> Option<Timestamp>) -> Option<Timestamp> {
    // Mean years may be one short on New Year's Day, which the following year makes up for. A
    // clock that is far off must not decide whether this is a time: it counts as 1990 or 2190.
    let now = now.0.clamp(20 * YEAR_MICROS, 220 * YEAR_MICROS);
    let next = 1971 + now.div_euclid(YEAR_MICROS);
    let limit = now.saturating_add(DAY_MICROS);
    (0..=9).filter_map(|back| in_year(next - back)).find(|time| time.0 <= limit)
}

/// Returns the offset at `at` (`+02:00`, `-0500`), and where it ends.
pub fn offset(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let hours = bytes.get(at + 1..at + 3)?;
    let minutes_at = at + 3 + usize::from(byte(bytes, at + 3) == b':');
    let minutes = bytes.get(minutes_at..minutes_at + 2)?;
    let end = minutes_at + 2;
    if !hours.iter().chain(minutes).all(u8::is_ascii_digit) || byte(bytes, end).is_ascii_digit() {
        return None;
    }
    let seconds = decimal(hours) * 3600 + decimal(minutes) * 60;
    let sign = if bytes[at] == b'-' { -1 } else { 1 };
    (seconds <= 18 * 3600).then_some((sign * seconds, end))
}

/// Returns the offset of a zone's usual abbreviation at `at`, and where it
/// ends. An ambiguous one means what it means in `PostgreSQL`'s default table.
pub fn abbreviation(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let end = run(bytes, at, |b| b.is_ascii_uppercase());
    let half_hours = match &bytes[at..end] {
        b"UTC" | b"GMT" | b"WET" => 0,
        b"CET" | b"BST" | b"WEST" => 2,
        b"CEST" | b"EET" => 4,
        b"EEST" | b"MSK" => 6,
        b"IST" => 11,
        b"JST" | b"KST" => 18,
        b"AEST" => 20,
        b"AEDT" => 22,
        b"EST" | b"CDT" => -10,
        b"EDT" => -8,
        b"CST" | b"MDT" => -12,
        b"MST" | b"PDT" => -14,
        b"PST" => -16,
        _ => return None,
    };
    Some((half_hours * 1800, end))
}

/// Returns the time of an epoch number at `at`, and where it ends. Its unit is the one that puts it between 2000 and 2100.
pub fn epoch(bytes: &[u8], at: usize) -> Option<(Timestamp, usize)> {
    let end = digits(bytes, at);
    let unit_micros = match end - at {
        9..=10 => (1_000_000, 1),
        11..=13 => (1000, 1),
        14..=16 => (1, 1),
        17..=19 => (1, 1000),
        _ => return None,
    };
    let whole = bytes[at..end].iter().try_fold(0i64, |n, d| n.checked_mul(10)?.checked_add(i64::from(d - b'0')))?;
    let mut micros = whole.checked_mul(unit_micros.0)? / unit_micros.1;
    let mut stop = end;
    if byte(bytes, end) == b'.' && byte(bytes, end + 1).is_ascii_digit() {
        stop = digits(bytes, end + 1);
        let fraction = &bytes[end + 1..stop.min(end + 7)];
        let scaled = decimal(fraction) * (fraction.len()..6).fold(1, |n, _| n * 10);
        micros += scaled * unit_micros.0 / 1_000_000;
    }
    EPOCH_SECONDS.contains(&(micros / 1_000_000)).then_some((Timestamp(micros), stop))
}
