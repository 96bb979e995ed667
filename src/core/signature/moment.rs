//! Shapes of dates and times, in the forms that programs print.

use super::shape::{digits, ends_token, is};

/// Whether the word is a three-letter English month, in any case.
pub(super) fn is_month(word: &[u8]) -> bool {
    let months = |lower| matches!(&lower, b"jan" | b"feb" | b"mar" | b"apr" | b"may" | b"jun" | b"jul" | b"aug" | b"sep" | b"oct" | b"nov" | b"dec");
    three(word).is_some_and(months)
}

/// Whether the word is a three-letter English month or weekday, in any case.
pub(super) fn names_day_or_month(word: &[u8]) -> bool {
    word.len() == 3 && (is_month(word) || is_weekday(word))
}

/// Returns a word of three bytes in lower case.
fn three(word: &[u8]) -> Option<[u8; 3]> {
    let &[first, second, third] = word else { return None };
    Some([first.to_ascii_lowercase(), second.to_ascii_lowercase(), third.to_ascii_lowercase()])
}

/// Whether the word is a three-letter English weekday, in any case.
pub(super) fn is_weekday(word: &[u8]) -> bool {
    three(word).is_some_and(|lower| matches!(&lower, b"mon" | b"tue" | b"wed" | b"thu" | b"fri" | b"sat" | b"sun"))
}

/// Returns the end of a date, a time, or both, that starts with a digit.
pub(super) fn date(bytes: &[u8], at: usize) -> Option<usize> {
    let end = match digits(bytes, at) {
        4 => iso_date(bytes, at)?,
        8 if is(bytes, at, b"12") && is(bytes, at + 8, b"Tt") && digits(bytes, at + 9) == 6 => return Some(zone(bytes, at + 15)),
        1 | 2 => match short_date(bytes, at) {
            Some(end) => end,
            None => return time(bytes, at),
        },
        _ => return None,
    };
    let next = if is(bytes, end, b"Tt_ :") { time(bytes, end + 1) } else { None };
    next.or_else(|| ends_token(bytes, end).then_some(end))
}

/// Returns the end of `2026-01-02`, `2026/1/2`.
fn iso_date(bytes: &[u8], at: usize) -> Option<usize> {
    let separator = *bytes.get(at + 4).filter(|b| matches!(b, b'-' | b'/' | b'.'))?;
    let month = digits(bytes, at + 5);
    let day_at = at + 5 + month + 1;
    let day = digits(bytes, day_at);
    let whole = (1..=2).contains(&month) && bytes.get(day_at - 1) == Some(&separator) && (1..=2).contains(&day);
    (whole && is(bytes, at, b"12")).then_some(day_at + day)
}

/// Returns the end of `01/02/2026`, `2-1-26`, `02/Jan/2026`, `2 Jan 2026`.
fn short_date(bytes: &[u8], at: usize) -> Option<usize> {
    let second = at + digits(bytes, at) + 1;
    let separator = *bytes.get(second - 1).filter(|b| matches!(b, b'-' | b'/' | b' '))?;
    if bytes.get(second..second + 3).is_some_and(is_month) {
        let year = second + 4;
        return (bytes.get(year - 1) == Some(&separator) && matches!(digits(bytes, year), 2 | 4)).then(|| year + digits(bytes, year));
    }
    let year = second + digits(bytes, second) + 1;
    let whole = separator == b'/' && matches!(digits(bytes, second), 1 | 2) && bytes.get(year - 1) == Some(&separator) && matches!(digits(bytes, year), 2 | 4);
    whole.then(|| year + digits(bytes, year))
}

/// Returns the end of `12:34:56`, with a fraction, AM or PM, and a zone.
pub(super) fn time(bytes: &[u8], at: usize) -> Option<usize> {
    let hour = digits(bytes, at);
    let minute = at + hour;
    if !(1..=2).contains(&hour) || !is(bytes, minute, b":") || digits(bytes, minute + 1) != 2 || !is(bytes, minute + 3, b":") || digits(bytes, minute + 4) != 2
    {
        return None;
    }
    let mut end = minute + 6;
    if is(bytes, end, b".,") && digits(bytes, end + 1) > 0 {
        end += 1 + digits(bytes, end + 1);
    }
    let marks: [&[u8]; 4] = [b" AM", b" PM", b" am", b" pm"];
    if marks.iter().any(|mark| bytes.get(end..end + 3) == Some(mark)) {
        end += 3;
    }
    Some(zone(bytes, end))
}

/// Returns the end of `Z`, `+01:00`, ` +0000`, ` UTC` at `at`, or `at`.
fn zone(bytes: &[u8], at: usize) -> usize {
    if is(bytes, at, b"Zz") && ends_token(bytes, at + 1) {
        return at + 1;
    }
    if bytes.get(at..at + 4) == Some(b" UTC") || bytes.get(at..at + 4) == Some(b" GMT") {
        return at + 4;
    }
    let sign = at + usize::from(is(bytes, at, b" "));
    match (is(bytes, sign, b"+-"), digits(bytes, sign + 1)) {
        (true, 4) => sign + 5,
        (true, 2) if is(bytes, sign + 3, b":") && digits(bytes, sign + 4) == 2 => sign + 6,
        _ => at,
    }
}

/// Returns the end of `00:39`: minutes and seconds, two digits each, and nothing after.
pub(super) fn clock(bytes: &[u8], at: usize) -> Option<usize> {
    let whole = digits(bytes, at) == 2 && is(bytes, at + 2, b":") && digits(bytes, at + 3) == 2 && ends_token(bytes, at + 5) && !is(bytes, at + 5, b":");
    whole.then_some(at + 5)
}
