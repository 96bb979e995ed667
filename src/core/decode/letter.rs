//! Prefixes whose level is one letter: glog and klog, Ruby, CUPS, Tornado and Jupyter, Torch, ESP-IDF, Redis' marks.
//! Used by `prefix` and `tag`. Each shape requires more than the letter: a time, a place or a column of its own.

use super::level::letter;
use super::scan::{blanks, byte, digits, group, is_blank, is_gap, is_name, rest, run, word};
use super::time::{Moment, clock_end, glog, moment};
use crate::core::event::{Level, Timestamp};

/// Maximum number of words between a letter and the place in the code that logged it.
const WORDS_BEFORE_PLACE: usize = 2;

/// A level, the time that comes with it, and where the text after both begins.
#[derive(Clone, Copy, Debug)]
pub struct Marked {
    pub level: Level,
    pub moment: Option<Moment>,
    pub end: usize,
}

/// Returns the level of a letter that stands alone after a time; `X` and `A` are marks of other kinds there.
pub fn alone(byte: u8) -> Option<Level> {
    letter(byte).filter(|_| matches!(byte, b'E' | b'F' | b'C' | b'W' | b'N' | b'I' | b'D' | b'V' | b'T'))
}

/// `E0517 15:04:22.619632 1234 file.cc:253] `, `E20261110 …`, `E261110 15:04:22.619632 1234 kv/store.go:12 ` (CockroachDB),
/// `E0000 00:00:1794000000.619632 1234 store.cc:253] ` (Abseil before its time zone is known)
pub fn logged(line: &[u8], at: usize, now: Timestamp) -> Option<Marked> {
    let level = letter(byte(line, at))?;
    let moment = glog(line, at + 1, now).or_else(|| early(line, at + 1, now))?;
    let place = blanks(line, thread(line, blanks(line, moment.end)));
    let end = run(line, place, |b| b != b']' && !is_blank(b));
    let bare = byte(line, end) == b' ' && line[place..end].contains(&b':') && line[end - 1].is_ascii_digit();
    (byte(line, end) == b']' || bare).then_some(Marked { level, moment: Some(moment), end: end + 1 })
}

/// Returns the end of a thread's number, which may be in hex.
fn thread(line: &[u8], at: usize) -> usize {
    let hex = rest(line, at).starts_with(b"0x");
    if hex { run(line, at + 2, |b| b.is_ascii_hexdigit()) } else { digits(line, at) }
}

fn early(line: &[u8], at: usize, now: Timestamp) -> Option<Moment> {
    const HEAD: &[u8] = b"0000 00:00:";
    rest(line, at).starts_with(HEAD).then(|| moment(line, at + HEAD.len(), now))?
}

/// `E api.rows: ` (`%(levelname).1s %(name)s: ` of Python's logging). The name has a dot, which no word of prose has there.
pub fn named(line: &[u8], at: usize) -> Option<Marked> {
    let level = alone(byte(line, at))?;
    let end = run(line, at + 2, is_name);
    let dotted = line.get(at + 2..end)?.windows(3).any(|part| part[1] == b'.' && part[0].is_ascii_lowercase() && part[2].is_ascii_lowercase());
    (dotted && byte(line, end) == b':' && is_gap(byte(line, end + 1))).then_some(Marked { level, moment: None, end: end + 1 })
}

/// `[E 261110 10:00:00 web:12] ` (Tornado), `[C 10:00:00.123 NotebookApp] `, `[ E 2026-11-10 10:00:00.1234 12/T1 age/Cor:12 ]: `
/// (Passenger), `[E1110 10:00:00.123 Group.cpp:12] `, `[E store.cpp:12] ` (Torch)
pub fn bracketed(line: &[u8], open: usize, now: Timestamp) -> Option<Marked> {
    let close = group(line, open)?;
    let mark = blanks(line, open + 1);
    let level = alone(byte(line, mark))?;
    let next = mark + 1;
    let (moment, end) = match byte(line, next) {
        b'0'..=b'9' => {
            let moment = glog(line, next, now)?;
            (Some(moment), moment.end)
        }
        b' ' => match glog(line, next + 1, now).or_else(|| moment(line, next + 1, now)) {
            Some(moment) => (Some(moment), moment.end),
            None => (None, clock_end(line, next + 1).or_else(|| place_end(line, next + 1).filter(|&end| end == close))?),
        },
        _ => return None,
    };
    let colon = usize::from(byte(line, close + 1) == b':');
    (end <= close).then_some(Marked { level, moment, end: close + 1 + colon })
}

/// `E, [2024-06-26T17:00:04.497736 #126554] ERROR -- : ` (Ruby), `E [04/Nov/2010:17:37:40 -0400] ` (CUPS),
/// `E[2026-11-10|10:00:00.123] ` (CometBFT); the bracket is at `open`.
pub fn before_time(line: &[u8], at: usize, open: usize, now: Timestamp) -> Option<Marked> {
    let level = letter(byte(line, at)).filter(|_| byte(line, open) == b'[')?;
    let moment = moment(line, open + 1, now)?;
    Some(Marked { level, moment: Some(moment), end: group(line, open)? + 1 })
}

/// `E (1234) wifi: `, `E (00:00:01.234) wifi: ` (ESP-IDF)
pub fn ticks(line: &[u8], at: usize) -> Option<Marked> {
    let level = alone(byte(line, at))?;
    let start = at + 3;
    let end = clock_end(line, start).unwrap_or_else(|| digits(line, start));
    let tag = run(line, end + 2, |b| is_name(b) || b == b' ');
    let known = rest(line, at + 1).starts_with(b" (") && end > start && rest(line, end).starts_with(b") ") && tag > end + 2 && byte(line, tag) == b':';
    known.then_some(Marked { level, moment: None, end: end + 2 })
}

/// Returns the end of a counter of the time since the start: `[  1234][E][store.cpp:12] `
/// (ESP32's Arduino), `[0012] ERROR ` (Logrus with a prefix).
pub fn counter_end(line: &[u8], open: usize) -> Option<usize> {
    let start = blanks(line, open + 1);
    let close = digits(line, start);
    let mark = byte(line, close + 2);
    let follows = match byte(line, close + 1) {
        b'[' => alone(mark).is_some() && byte(line, close + 3) == b']',
        b' ' => close - start == 4 && mark.is_ascii_uppercase(),
        _ => false,
    };
    (byte(line, open) == b'[' && byte(line, close) == b']' && close > start && follows).then_some(close + 1)
}

/// Returns the level of a letter alone after a logger's time, if what follows shows that it is a
/// column: `E | etcdserver: `, `E [MSGID: 101] `, `E  shop[1234:5678] `, `D t0 pollable.cc:47 `, `E: `.
pub fn column(line: &[u8], at: usize) -> Option<Level> {
    if byte(line, at + 1) == b':' && is_blank(byte(line, at + 2)) {
        return alone(byte(line, at));
    }
    let level = alone(byte(line, at)).filter(|_| is_blank(byte(line, at + 1)))?;
    let next = blanks(line, at + 1);
    let name = run(line, next, is_name);
    let process = name > next && byte(line, name) == b'[' && byte(line, name + 1).is_ascii_digit();
    let mut start = next;
    let mut placed = false;
    for _ in 0..WORDS_BEFORE_PLACE {
        placed |= place_end(line, start).is_some();
        start = blanks(line, word(line, start));
    }
    let sign = byte(line, next) == b'|' && is_gap(byte(line, next + 1));
    (sign || process || placed || rest(line, next).starts_with(b"[MSGID: ")).then_some(level)
}

/// Returns the end of `store.cc:12` at `at`.
fn place_end(line: &[u8], at: usize) -> Option<usize> {
    let end = run(line, at, |b| is_name(b) || b == b'/');
    let number = digits(line, end + 1);
    let file = line.get(at..end)?.contains(&b'.');
    (file && byte(line, end) == b':' && number > end + 1).then_some(number)
}

/// `123:M 01 Jan 2024 10:00:00.000 # `: process, role, time, mark.
pub fn redis(line: &[u8], at: usize, now: Timestamp) -> Option<Marked> {
    let role = digits(line, at) + 1;
    if byte(line, role - 1) != b':' || !matches!(rest(line, role), [b'M' | b'S' | b'C' | b'X', b' ', ..]) {
        return None;
    }
    let moment = moment(line, role + 2, now)?;
    let level = match rest(line, moment.end) {
        [b' ', b'#', b' ', ..] => Level::Warn,
        [b' ', b'*', b' ', ..] => Level::Info,
        [b' ', b'-' | b'.', b' ', ..] => Level::Debug,
        _ => return None,
    };
    Some(Marked { level, moment: Some(moment), end: moment.end + 3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000);

    #[test]
    fn brackets() {
        for line in [
            "[E 261110 10:00:00 web:12] x",
            "[E 10:00:00.123 NotebookApp] x",
            "[ E 2026-11-10 10:00:00.1234 12/T1 age/Cor/Cor:12 ]: x",
            "[E1110 10:00:00.123456789 ProcessGroupNCCL.cpp:12] x",
            "[E store.cpp:12] x",
        ] {
            let got = bracketed(line.as_bytes(), 0, NOW).expect(line);
            assert_eq!((got.level, line[got.end..].trim_start()), (Level::Error, "x"), "{line}");
        }
        for line in ["[E]", "[Error 10:00:00]", "[X 10:00:00] x", "[E x] y", "[E main.c:1 and more] y", "[D drive] x"] {
            assert!(bracketed(line.as_bytes(), 0, NOW).is_none(), "{line}");
        }
    }

    #[test]
    fn columns() {
        for line in ["E | etcdserver: x", "E [MSGID: 101] [a.c:1:f] x", "E  shop[1234:5678] [com.acme] x", "E t0 pollable.cc:47 x"] {
            assert_eq!(column(line.as_bytes(), 0), Some(Level::Error), "{line}");
        }
        for line in ["E x", "I have main here", "A | x", "E = 3"] {
            assert_eq!(column(line.as_bytes(), 0), None, "{line}");
        }
    }

    #[test]
    fn counters() {
        assert_eq!(ticks(b"E (1234) wifi: x", 0).map(|got| got.end), Some(9));
        assert!(ticks(b"E (x) y: z", 0).is_none() && ticks(b"D (1) is a note", 0).is_none());
        assert_eq!(counter_end(b"[  1234][E][store.cpp:12] x", 0), Some(8));
        assert_eq!(counter_end(b"[0012] ERROR x", 0), Some(6));
        assert_eq!(counter_end(b"[12] ERROR x", 0), None);
    }
}
