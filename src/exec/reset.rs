//! When a limit is lifted: turns the words of a failure (`12s`, `3pm (Europe/Berlin)`, an HTTP date) into the
//! pause until then. `core::retry` finds the words; this module interprets them. Time and zone are arguments.

use std::time::Duration;

use jiff::civil::Time;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// Larger numbers are seconds since 1970, and numbers 1000 times larger are milliseconds.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MILLIS: f64 = 1e12;
/// A time that passed this recently means that time, and no later day or year: siftd has waited for it, or the server's clock is slow.
const JUST_NOW: Duration = Duration::from_secs(300);

/// Nothing is waited for longer: a number too large for any clock means "not for a very long time", never "at once".
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// Returns the pause from `now` until the time that `text` names: zero if that time has passed, `None` if `text` names none, at most a year.
#[must_use]
pub fn pause(text: &str, now: Timestamp, local: &TimeZone) -> Option<Duration> {
    let text = text.trim();
    let stated = match text.parse::<f64>() {
        Ok(number) => of_number(number, now),
        Err(_) => span(text).or_else(|| until(moment(text, now, local)?, now)),
    };
    stated.map(|pause| pause.min(LONGEST))
}

fn of_number(number: f64, now: Timestamp) -> Option<Duration> {
    let until_number = |at: Result<Timestamp, jiff::Error>| until(at.unwrap_or(Timestamp::MAX), now);
    match number {
        f64::INFINITY => None,
        EPOCH_MILLIS.. => until_number(Timestamp::from_millisecond(number as i64)),
        EPOCH_SECONDS.. => until_number(Timestamp::from_second(number as i64)),
        _ => Duration::try_from_secs_f64(number).ok(),
    }
}

fn until(then: Timestamp, now: Timestamp) -> Option<Duration> {
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

/// Numbers with units: `12s`, `1h30m`, `20 seconds`, `2 minutes and 5 seconds`.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start();
    let mut seconds = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        *seconds.get_or_insert(0.0) += number * unit(&rest[..letters])?;
        rest = rest[letters..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
    }
    let seconds = seconds?;
    Duration::try_from_secs_f64(seconds).ok().or((seconds > 0.0).then_some(LONGEST))
}

fn unit(word: &str) -> Option<f64> {
    Some(match word.to_ascii_lowercase().as_str() {
        "ms" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

fn moment(text: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let absolute = text.parse::<Timestamp>().ok().or_else(|| rfc2822::parse(text).ok().map(|zoned| zoned.timestamp()));
    absolute.or_else(|| Some(text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(local.clone()).ok()?.timestamp())).or_else(|| clock(text, now, local))
}

/// A time of the day, perhaps with a day and a zone: `3pm (Europe/Berlin)`, `10:30am`, `Oct 6, 1pm`, `tomorrow at 9:00 UTC`.
fn clock(text: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let words: Vec<&str> = text.split([' ', ',', '(', ')']).filter(|word| !word.is_empty()).collect();
    let zone = words.iter().find_map(|word| zone(word)).unwrap_or_else(|| local.clone());
    let here = now.to_zoned(zone);
    let (index, time) = words.iter().enumerate().find_map(|(index, word)| Some((index, time_of_day(word, words.get(index + 1).copied())?)))?;
    let month = words.iter().position(|word| month(word).is_some());
    let has_passed = |at: &Zoned| Duration::try_from(here.timestamp().duration_since(at.timestamp())).is_ok_and(|since| since > JUST_NOW);
    let at: Zoned = match month {
        Some(at) => {
            let day = words.iter().enumerate().filter(|(other, _)| *other != index).find_map(|(_, word)| word.parse::<i8>().ok())?;
            let month = month_number(words[at])?;
            // The year is not named: it is the first in which that time is yet to come, or has only just passed.
            let date = |year: i16| jiff::civil::Date::new(here.year() + year, month, day).ok()?.to_datetime(time).to_zoned(here.time_zone().clone()).ok();
            (-1..=1).filter_map(date).find(|at| !has_passed(at))?
        }
        None => {
            let today = here.date().to_datetime(time).to_zoned(here.time_zone().clone()).ok()?;
            let later = has_passed(&today) || words.iter().any(|word| word.eq_ignore_ascii_case("tomorrow"));
            if later { today.checked_add(1.day()).ok()? } else { today }
        }
    };
    Some(at.timestamp())
}

/// `3pm`, `10:30am`, `15:00`, `3:04` followed by `PM`.
fn time_of_day(word: &str, next: Option<&str>) -> Option<Time> {
    let lower = word.to_ascii_lowercase();
    let (digits, half) = match (lower.strip_suffix("am"), lower.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(0)),
        (_, Some(digits)) => (digits, Some(12)),
        _ => (lower.as_str(), next.and_then(|next| if next.eq_ignore_ascii_case("am") { Some(0) } else { next.eq_ignore_ascii_case("pm").then_some(12) })),
    };
    let mut parts = digits.split(':');
    let hour: i8 = parts.next()?.parse().ok()?;
    let minute = parts.next().map(str::parse::<i8>);
    // A bare number is no time of day.
    if minute.is_none() && half.is_none() {
        return None;
    }
    let hour = half.map_or(hour, |half| hour % 12 + half);
    Time::new(hour, minute.transpose().ok()?.unwrap_or(0), 0, 0).ok()
}

fn zone(word: &str) -> Option<TimeZone> {
    match word.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" | "Z" => Some(TimeZone::UTC),
        _ if word.contains('/') => TimeZone::get(word).ok(),
        _ => None,
    }
}

fn month(word: &str) -> Option<&str> {
    month_number(word).map(|_| word)
}

fn month_number(word: &str) -> Option<i8> {
    const NAMES: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let head = word.get(..3)?.to_ascii_lowercase();
    let is_name = word.bytes().all(|byte| byte.is_ascii_alphabetic());
    NAMES.iter().position(|name| is_name && *name == head).map(|at| at as i8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::retry::reset_at;

    /// Both readers of the same words: what the first one finds, the second one understands.
    #[test]
    fn what_is_found_in_a_text_is_understood() {
        let now: Timestamp = "2026-11-29T16:06:00Z".parse().unwrap();
        for (words, seconds) in [
            ("Nov 29, 7:06pm (UTC)", 3.0 * 3600.0),
            ("Nov 29 at 7:06pm (UTC)", 3.0 * 3600.0),
            ("Nov 29 at 4:04pm (UTC)", 0.0),
            ("Nov 30, 4pm (UTC)", 24.0 * 3600.0 - 360.0),
            ("at 7:06pm (UTC).", 3.0 * 3600.0),
        ] {
            let lead = "limit reached, resets ";
            let found = reset_at(&format!("{lead}{words}"), lead.len()).unwrap();
            assert_eq!(pause(&found, now, &TimeZone::UTC).map(|pause| pause.as_secs_f64()), Some(seconds), "{words}: {found}");
        }
        let midnight: Timestamp = "2027-01-01T00:02:00Z".parse().unwrap();
        assert_eq!(pause("Dec 31, 11:59pm (UTC)", midnight, &TimeZone::UTC), Some(Duration::ZERO));
    }

    #[test]
    fn reads_the_words_of_failures() {
        let now: Timestamp = "2026-01-02T12:00:00Z".parse().unwrap();
        for (text, seconds) in [
            ("30", Some(30.0)),
            ("1.5", Some(1.5)),
            ("12s", Some(12.0)),
            ("20 seconds", Some(20.0)),
            ("1h30m", Some(5400.0)),
            ("2 minutes and 5 seconds", Some(125.0)),
            ("2 minutes, 5 seconds", Some(125.0)),
            ("500ms", Some(0.5)),
            ("1767355260", Some(60.0)),
            ("1767355260000", Some(60.0)),
            ("2026-01-02T12:01:00Z", Some(60.0)),
            ("2026-01-02T14:01:00+02:00", Some(60.0)),
            ("2026-01-02 12:01:00", Some(60.0)),
            ("Fri, 02 Jan 2026 12:01:00 GMT", Some(60.0)),
            ("3pm (Europe/Berlin)", Some(2.0 * 3600.0)),
            ("3pm", Some(3.0 * 3600.0)),
            ("12:30pm", Some(1800.0)),
            ("12am", Some(12.0 * 3600.0)),
            ("15:00 UTC", Some(3.0 * 3600.0)),
            ("3:00 PM", Some(3.0 * 3600.0)),
            ("11am", Some(23.0 * 3600.0)),
            ("11:56am", Some(0.0)),
            ("11:54am", Some(23.9 * 3600.0)),
            ("tomorrow at 1pm", Some(25.0 * 3600.0)),
            ("Jan 3, 1pm (UTC)", Some(25.0 * 3600.0)),
            ("Jan 2 at 11:58am (UTC)", Some(0.0)),
            ("Jan 2, 2026, 1:00 PM (UTC)", Some(3600.0)),
            ("Jan 1, 11:58am (UTC)", Some(363.0 * 86_400.0 + 86_280.0)),
            ("2026-01-01T00:00:00Z", Some(0.0)),
            ("soon", None),
            ("", None),
            ("-3", None),
            ("99:99pm", None),
        ] {
            assert_eq!(pause(text, now, &TimeZone::UTC).map(|pause| pause.as_secs_f64()), seconds, "{text}");
        }
    }
}
