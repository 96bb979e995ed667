//! Syslog as it arrives over a network: `<PRI>`, then the header of RFC 5424, or of RFC 3164 as programs really write
//! it. Used only for streams whose lines may be syslog; in files, `prefix` knows the same headers by their shape.

use super::level::{level_word, severity};
use super::scan::{byte, digits, rest, run, word};
use super::time::moment;
use super::writer::past_blank;
use crate::core::event::{Level, Timestamp};

/// `user.notice`: the priority if nobody has stated one (RFC 3164, 4.3.3; `logger` without `-p`).
const UNSTATED: i64 = 13;
/// Longest host or program name that is looked for, in bytes (RFC 5424, 6).
const MAX_NAME_BYTES: usize = 255;

/// What precedes the text of a syslog message. Ranges are in
/// bytes of the line; an empty range means that it is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The severity; none if the priority is that of programs that state none.
    pub level: Option<Level>,
    /// When the message was sent.
    pub time: Option<Timestamp>,
    /// The machine that sent it.
    pub host: (usize, usize),
    /// The program, `APP-NAME` or `TAG`.
    pub app: (usize, usize),
    /// The process, `PROCID`.
    pub process: (usize, usize),
    /// Offset of the text.
    pub text: usize,
}

/// Splits a syslog message; returns `None` for a line without a `<PRI>`. `now` supplies the year for a stamp without one.
#[must_use]
pub fn syslog(line: &[u8], now: Timestamp) -> Option<Stated> {
    let (value, end) = priority(line)?;
    let mut out = Stated { level: (value != UNSTATED).then(|| severity(value % 8)), text: end, ..Stated::default() };
    let version = digits(line, end);
    if version > end && version <= end + 2 && byte(line, version) == b' ' && modern(line, version + 1, now, &mut out).is_some() {
        return Some(out);
    }
    out = Stated { level: out.level, text: end, ..Stated::default() };
    traditional(line, end, now, &mut out);
    Some(out)
}

/// Returns the number of a `<PRI>` that begins the line, and its end.
fn priority(line: &[u8]) -> Option<(i64, usize)> {
    let end = digits(line, 1);
    let number = line.get(1..end).filter(|number| (1..=3).contains(&number.len()))?;
    let value = number.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0'));
    (line[0] == b'<' && byte(line, end) == b'>' && value < 192).then_some((value, end + 1))
}

/// Reads RFC 5424 after its version: `TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA [MSG]`.
fn modern(line: &[u8], at: usize, now: Timestamp, out: &mut Stated) -> Option<()> {
    let mut fields = [(at, at); 5];
    let mut next = at;
    for field in &mut fields {
        let end = word(line, next);
        if end == next || byte(line, end) != b' ' {
            return None;
        }
        *field = (next, end);
        next = end + 1;
    }
    let named = |(from, to): (usize, usize)| if line[from..to] == *b"-" { (0, 0) } else { (from, to.min(from + MAX_NAME_BYTES)) };
    if line[fields[0].0..fields[0].1] != *b"-" {
        let stamp = moment(line, fields[0].0, now).filter(|stamp| stamp.end == fields[0].1)?;
        out.time = Some(stamp.time);
    }
    (out.host, out.app, out.process) = (named(fields[1]), named(fields[2]), named(fields[3]));
    let end = if byte(line, next) == b'-' { next + 1 } else { elements(line, next)? };
    let text = past_blank(line, end);
    out.text = if rest(line, text).starts_with(b"\xef\xbb\xbf") { text + 3 } else { text };
    Some(())
}

/// Returns the end of structured data: elements in brackets whose values are quoted.
fn elements(line: &[u8], mut at: usize) -> Option<usize> {
    let first = at;
    while byte(line, at) == b'[' {
        let mut is_quoted = false;
        loop {
            at += 1;
            match line.get(at)? {
                b'\\' if is_quoted => at += 1,
                b'"' => is_quoted = !is_quoted,
                b']' if !is_quoted => break,
                _ => {}
            }
        }
        at += 1;
    }
    (at > first).then_some(at)
}

/// Reads RFC 3164: `Mmm dd hh:mm:ss HOST TAG[PID]: text`. Programs that write to
/// their own machine leave out the host, others the time; a text alone is allowed.
fn traditional(line: &[u8], at: usize, now: Timestamp, out: &mut Stated) {
    let start = past_blank(line, at);
    let Some(stamp) = moment(line, start, now) else {
        // Without a time, only a number in brackets distinguishes a program from the first word of the text.
        if let Some((app, process, text)) = tag(line, start).filter(|(_, process, _)| process.1 > 0) {
            (out.app, out.process, out.text) = (app, process, text);
        }
        return;
    };
    out.time = Some(stamp.time);
    let colon = usize::from(byte(line, stamp.end) == b':');
    let next = past_blank(line, stamp.end + colon);
    out.text = next;
    if let Some((app, process, text)) = tag(line, next) {
        (out.app, out.process, out.text) = (app, process, text);
        return;
    }
    let host = word(line, next);
    if host == next || host - next > MAX_NAME_BYTES || byte(line, host) != b' ' || line[host - 1] == b':' {
        return;
    }
    (out.host, out.text) = ((next, host), host + 1);
    if let Some((app, process, text)) = tag(line, host + 1) {
        (out.app, out.process, out.text) = (app, process, text);
    }
}

/// A range of bytes.
type Range = (usize, usize);

/// Returns name, process, and where the text begins, of `prog[123]: `
/// or `prog: `. An error's name before a colon is no program.
fn tag(line: &[u8], at: usize) -> Option<(Range, Range, usize)> {
    let end = run(line, at, |b| b.is_ascii_graphic() && !matches!(b, b':' | b'[' | b'{' | b'"' | b'=' | b','));
    let name = line.get(at..end).filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES)?;
    if level_word(name).is_some() || [&b"Error"[..], b"Exception", b"Warning"].iter().any(|end| name.ends_with(end)) {
        return None;
    }
    if byte(line, end) == b'[' {
        let close = run(line, end + 1, |b| b.is_ascii_graphic() && b != b']');
        let is_closed = byte(line, close) == b']' && close > end + 1 && matches!(byte(line, close + 1), b':' | b' ');
        let text = past_blank(line, close + 1 + usize::from(byte(line, close + 1) == b':'));
        return is_closed.then_some(((at, end), (end + 1, close), text));
    }
    let is_tag = byte(line, end) == b':' && matches!(line.get(end + 1), None | Some(b' ' | b'\t'));
    is_tag.then_some(((at, end), (0, 0), past_blank(line, end + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000); // 2026-11-18

    /// Level, host, app, process, text; `~` before the line stands for "no time".
    type Row = (&'static str, Option<Level>, &'static str, &'static str, &'static str, &'static str);

    const E: Option<Level> = Some(Level::Error);
    const I: Option<Level> = Some(Level::Info);

    #[test]
    fn headers_of_both_standards() {
        let rows: [Row; 19] = [
            ("<11>1 2026-11-10T10:00:00.5Z web01 shop 12 ID7 [a@1 b=\"]c\\\"\" d=\"\"][e@2] \u{feff}down", E, "web01", "shop", "12", "down"),
            ("~<14>1 - - - - - - down", I, "", "", "", "down"),
            ("<27>1 2026-11-10T10:00:00+01:00 h app - - -", E, "h", "app", "", ""),
            ("<11>1 2026-11-10T10:00:00Z h app 1 - [broken x=\"", E, "h", "", "", "1 2026-11-10T10:00:00Z h app 1 - [broken x=\""),
            ("<131>Nov 10 10:00:00 web01 nginx[7]: a: b", E, "web01", "nginx", "7", "a: b"),
            ("<131>Nov  9 10:00:00 web01 nginx: a", E, "web01", "nginx", "", "a"),
            ("<13>Nov 10 10:00:00 root: a", None, "", "root", "", "a"),
            ("<30>Nov 10 10:00:00 dockerd[1]:   a", I, "", "dockerd", "1", "  a"),
            ("<27>2026-11-10T10:00:00.123456+00:00 web01 shop[1]: a", E, "web01", "shop", "1", "a"),
            ("<11>Nov 10 10:00:00 web01 TypeError: x is undefined", E, "web01", "", "", "TypeError: x is undefined"),
            ("<11>Nov 10 10:00:00 web01 it stopped", E, "web01", "", "", "it stopped"),
            ("~<27>shop[12]: a", E, "", "shop", "12", "a"),
            ("~<27>shop: a", E, "", "", "", "shop: a"),
            ("~<11>error: a", E, "", "", "", "error: a"),
            ("~<11>{\"msg\":\"a\"}", E, "", "", "", "{\"msg\":\"a\"}"),
            ("~<11>", E, "", "", "", ""),
            ("~<0>a", Some(Level::Fatal), "", "", "", "a"),
            ("~<15>a", Some(Level::Debug), "", "", "", "a"),
            ("~<12> a", Some(Level::Warn), "", "", "", " a"),
        ];
        for (line, level, host, app, process, text) in rows {
            // Whatever is broken in the header is text.
            let is_timeless = line.starts_with('~') || line.contains("[broken");
            let line = line.strip_prefix('~').unwrap_or(line);
            let host = if line.contains("[broken") { "" } else { host };
            let got = syslog(line.as_bytes(), NOW).unwrap();
            let part = |(from, to): Range| &line[from..to];
            assert_eq!((got.level, part(got.host), part(got.app), part(got.process), &line[got.text..]), (level, host, app, process, text), "{line}");
            assert_eq!(got.time.is_none(), is_timeless, "{line}");
        }
    }

    #[test]
    fn other_lines_are_none() {
        for line in ["", "<", "<>", "<192>a", "<1234>a", "<a>b", "a <11>b", "11>a", "<11"] {
            assert_eq!(syslog(line.as_bytes(), NOW), None, "{line}");
        }
    }

    #[test]
    fn any_bytes_have_ranges_within() {
        let parts = ["<11>", "1 ", "- ", "[", "]", "\"", "\\", "Nov 10 10:00:00 ", "h ", "a[1]: ", ":", "2026-11-10T10:00:00Z ", "\u{feff}", "\u{e9}"];
        let mut seed = 7u64;
        for _ in 0..50_000 {
            let mut line = "<11>".to_owned();
            for _ in 0..8 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                line += parts[(seed >> 40) as usize % parts.len()];
            }
            let got = syslog(line.as_bytes(), NOW).unwrap();
            assert!(got.text <= line.len());
            for (from, to) in [got.host, got.app, got.process] {
                assert!(from <= to && to <= line.len(), "{line}");
            }
        }
    }
}
