//! Formats a time in RFC 3339 digit by digit: each record has two, and a general formatter costs as much as the
//! rest of the record. Only the years found in logs are covered; `record::rfc3339` leaves others to a calendar.

use crate::core::event::Timestamp;

/// `2026-01-02T03:04:05.000006Z`.
pub(super) type Stamp = [u8; 27];

const DAY_S: u64 = 24 * 3600;
/// 9999-01-01T00:00:00Z, in seconds.
const END_S: u64 = 253_370_764_800;

/// Returns the stamp of a time between 1970 and 9998.
pub(super) fn stamp(time: Timestamp) -> Option<Stamp> {
    let micros = u64::try_from(time.0).ok()?;
    let (seconds, fraction) = (micros / 1_000_000, (micros % 1_000_000) as u32);
    if seconds >= END_S {
        return None;
    }
    let (year, month, day) = date((seconds / DAY_S) as u32);
    let second = (seconds % DAY_S) as u32;
    let mut out = *b"0000-00-00T00:00:00.000000Z";
    let pairs = [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, second / 3600),
        (14, second / 60 % 60),
        (17, second % 60),
        (20, fraction / 10_000),
        (22, fraction / 100 % 100),
        (24, fraction % 100),
    ];
    for (at, pair) in pairs {
        (out[at], out[at + 1]) = (b'0' + (pair / 10) as u8, b'0' + (pair % 10) as u8);
    }
    Some(out)
}

/// Returns year, month and day of a day since 1970-01-01. Days are counted from 0000-03-01, so that a leap day is the last of its year,
/// and every five months from March have 153 days. (Source: H. Hinnant, *chrono-Compatible Low-Level Date Algorithms*, `civil_from_days`.)
fn date(day: u32) -> (u32, u32, u32) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u32::from(month <= 2), month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_calendar(time: Timestamp) -> String {
        format!("{:.6}", jiff::Timestamp::from_microsecond(time.0).expect("a moment"))
    }

    fn by_digits(time: Timestamp) -> String {
        String::from_utf8(stamp(time).expect("a stamp").to_vec()).expect("ASCII")
    }

    #[test]
    fn every_day_is_the_calendars() {
        for day in 0..(END_S / DAY_S) as i64 {
            let time = Timestamp(day * 86_400_000_000 + day * 7919 % 86_400_000_000);
            if day % 5 == 0 || (10_000..40_000).contains(&day) {
                assert_eq!(by_digits(time), by_calendar(time));
            }
        }
        assert_eq!(stamp(Timestamp(-1)), None);
        assert_eq!(stamp(Timestamp(END_S as i64 * 1_000_000)), None);
    }

    proptest::proptest! {
        #[test]
        fn so_is_every_moment(time in 0..END_S as i64 * 1_000_000) {
            proptest::prop_assert_eq!(by_digits(Timestamp(time)), by_calendar(Timestamp(time)));
        }
    }
}
