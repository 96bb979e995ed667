//! logfmt lines: `time=… level=error msg="could not open" err="no such file"`. Accepts a line only if
//! pairs make up most of it and one of them is a level or a message; values stay in place, escaped.

use super::level::level_word;
use super::scan::{blanks, byte, rest};
use super::time::parse_any_time;
use crate::core::event::{Level, Timestamp};

/// Keys of the level, in any case.
const LEVELS: [&[u8]; 18] = [
    b"level",
    b"lvl",
    b"severity",
    b"loglevel",
    b"log_level",
    b"log.level",
    b"levelname",
    b"severity_text",
    b"logginglvl",
    b"logging_level",
    b"logginglevel",
    b"loglvl",
    b"log_lvl",
    b"log_severity",
    b"severity_level",
    b"sev",
    b"priority",
    b"at",
];

/// XML elements of reports: their attributes belong to a finding, and rules read them. (Those of logs say what logfmt says.)
const REPORTED: [&[u8]; 8] = [b"<error ", b"<issue ", b"<problem ", b"<?xml ", b"<checkstyle", b"<file ", b"<Issue ", b"<IssueType "];

/// What a logfmt line says. Ranges are in bytes of the line, without quotes, escapes kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logfmt {
    /// `level`, `lvl`, `severity`.
    pub level: Option<Level>,
    /// `time`, `ts`, `t`.
    pub time: Option<Timestamp>,
    /// `msg`, `message`.
    pub message: Option<(usize, usize)>,
    /// `err`, `error` and the like, if it names one.
    pub error: Option<(usize, usize)>,
}

/// Reads a logfmt line; returns `None` for anything else.
#[must_use]
pub fn logfmt(line: &[u8], now: Timestamp) -> Option<Logfmt> {
    let mut out = Logfmt::default();
    let (mut pairs, mut paired, mut total, mut marked) = (0usize, 0usize, 0usize, false);
    let mut at = skip_blanks(line, 0);
    if REPORTED.iter().any(|element| rest(line, at).starts_with(element)) {
        return None;
    }
    while at < line.len() {
        let end = match pair(line, at) {
            Some(pair) => {
                pairs += 1;
                paired += pair.end - at;
                marked |= out.take(line, &pair, now);
                pair.end
            }
            None => word_end(line, at),
        };
        total += end - at;
        at = skip_blanks(line, end);
    }
    // Most of it: a sentence that names a pair or two is prose.
    (marked && pairs >= 2 && paired * 10 >= total * 7).then_some(out)
}

struct Pair {
    key: (usize, usize),
    value: (usize, usize),
    end: usize,
}

impl Logfmt {
    /// Takes over what the pair says; returns whether its key marks a log line.
    fn take(&mut self, line: &[u8], pair: &Pair, now: Timestamp) -> bool {
        let value = &line[pair.value.0..pair.value.1];
        let said = !matches!(value, b"" | b"null" | b"nil" | b"<nil>" | b"none" | b"None" | b"false" | b"0");
        let key = &line[pair.key.0..pair.key.1];
        if LEVELS.iter().any(|name| name.eq_ignore_ascii_case(key)) {
            // slog writes `ERROR+2`.
            let level = level_word(value.split(|b| matches!(b, b'+' | b'-')).next().unwrap_or(value));
            self.level = self.level.or(level);
            return level.is_some();
        }
        match key {
            b"msg" | b"message" | b"MSG" | b"Message" => {
                self.message = self.message.or(Some(pair.value));
                true
            }
            b"time" | b"ts" | b"t" | b"timestamp" => {
                self.time = self.time.or_else(|| parse_any_time(value, now));
                false
            }
            b"err" | b"error" | b"error.message" | b"exception.message" | b"cause" | b"Error" if said => {
                self.error = self.error.or(Some(pair.value));
                false
            }
            _ => false,
        }
    }
}

/// Reads `key=value`, `key="quoted value"` or `key='quoted value'` (structlog) at `at`.
fn pair(line: &[u8], at: usize) -> Option<Pair> {
    let text = rest(line, at);
    let is_key = |b: &u8| b.is_ascii_alphanumeric() || b"_.-/@".contains(b);
    let key = text.iter().take_while(|b| is_key(b)).count();
    if key == 0 || text[0].is_ascii_digit() || byte(text, key) != b'=' {
        return None;
    }
    let key_end = at + key;
    let start = key_end + 1;
    if let quote @ (b'"' | b'\'') = byte(line, start) {
        let close = closing_quote(line, start + 1, quote)?;
        return Some(Pair { key: (at, key_end), value: (start + 1, close), end: close + 1 });
    }
    let end = word_end(line, start);
    Some(Pair { key: (at, key_end), value: (start, end), end })
}

/// Returns the index of the quote that closes a value; a backslash escapes the next byte.
fn closing_quote(line: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr::memchr2(quote, b'\\', rest(line, at))?;
        if line[at] == quote {
            return Some(at);
        }
        at += 2;
    }
}

fn word_end(line: &[u8], at: usize) -> usize {
    memchr::memchr2(b' ', b'\t', rest(line, at)).map_or(line.len(), |i| at + i)
}

fn skip_blanks(line: &[u8], at: usize) -> usize {
    let mut at = at;
    // `blanks` stops at its bound.
    while blanks(line, at) > at {
        at = blanks(line, at);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(line: &str, range: Option<(usize, usize)>) -> Option<&str> {
        range.map(|(a, b)| &line[a..b])
    }

    #[test]
    fn reads_logfmt() {
        let table = [
            (r#"foo=bar msg="a b" severity=critical"#, Some(Level::Fatal), Some("a b"), None),
            (r#"foo=bar msg="error" level=inFO"#, Some(Level::Info), Some("error"), None),
            (r#"level=error msg="say \"no\"" err="x=1""#, Some(Level::Error), Some(r#"say \"no\""#), Some("x=1")),
            (r"level=error msg=done error=<nil>", Some(Level::Error), Some("done"), None),
            (r#"at=error code=H12 desc="Request timeout""#, Some(Level::Error), None, None),
            (r#"msg="" err=x"#, None, Some(""), Some("x")),
        ];
        for (line, level, message, error) in table {
            let got = logfmt(line.as_bytes(), Timestamp(0)).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((got.level, range(line, got.message), range(line, got.error)), (level, message, error), "{line}");
        }
        let line = "logger=settings t=2025-04-24T19:51:48.520963849Z level=info msg=\"Starting Grafana\" version=11";
        assert_eq!(logfmt(line.as_bytes(), Timestamp(0)).expect("a test").time, Some(Timestamp(1_745_524_308_520_963)));
    }

    #[test]
    fn leaves_prose_alone() {
        for line in [
            "",
            "level=error",
            "a=1 b=2",
            "the message had level=error and msg=foo in it, which is odd",
            "if (level=3) msg=4",
            r#"{"level":"error"}"#,
            r#"level=error msg="never closed and a long text behind it which is prose"#,
            "export A=1 B=2",
            r#"<error line="14" column="9" severity="error" message="Missing a comment." source="x"/>"#,
        ] {
            assert_eq!(logfmt(line.as_bytes(), Timestamp(0)), None, "{line}");
        }
    }
}
