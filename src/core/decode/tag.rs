//! The level tag of a plain-text line and the fields before it. Used by `prefix`, after time, host and key. A field is
//! skipped only on the way to a tag, so a line without a level loses nothing; a sentence is never searched for level words.

use super::letter;
use super::level::{is_common, is_soft, level_word};
use super::scan::{blanks, byte, digits, group, is_blank, is_gap, is_name, rest, run, word};
use crate::core::event::Level;

mod bracket;
use bracket::bracketed;
pub use bracket::{in_group, letter_in_group};

/// Maximum number of fields before a tag.
const MAX_FIELDS: usize = 8;

/// What precedes the place where a tag is looked for; it decides how clear a tag must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// Nothing, or a transport: the text is the program's own.
    #[default]
    Bare,
    /// A logger's time: a level in any case may follow.
    Logger,
    /// Further fields of a logger: a level in upper case may follow.
    Fields,
}

/// A level tag and its range.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    pub level: Level,
    pub start: usize,
    pub end: usize,
}

/// Returns the tag at `at`; after a logger's time, also one after further fields.
pub fn find(line: &[u8], at: usize, ground: Ground) -> Option<Tag> {
    if ground == Ground::Bare {
        return tag_at(line, at, ground).or_else(|| tag_after_name(line, at));
    }
    let mut ground = ground;
    let mut at = separators(line, at);
    for _ in 0..MAX_FIELDS {
        if let Some(tag) = tag_at(line, at, ground) {
            return Some(tag);
        }
        let bracket = byte(line, at) == b'[';
        let end = field(line, at)?;
        if let Some(tag) = if bracket { in_group(line, at + 1, end - 1) } else { suffix(line, at, end) } {
            return Some(tag);
        }
        if !bracket {
            ground = Ground::Fields;
        }
        at = separators(line, end);
    }
    None
}

/// Returns a level in the second of two brackets, the first of which holds a name: `[1234] [ERROR] `, `[shop][error] `;
/// or one in upper case after the name of a program that runs beside others: `[0] ERROR `, `[api] WARN: `.
fn tag_after_name(line: &[u8], at: usize) -> Option<Tag> {
    let close = group(line, at).filter(|_| byte(line, at) == b'[')?;
    let open = close + 1 + usize::from(byte(line, close + 1) == b' ');
    let end = run(line, open, |b| b.is_ascii_uppercase());
    if end > open && open > close + 1 {
        let name = &line[at + 1..close];
        // A ticked box, a count.
        let named = !name.is_empty() && !matches!(name, b"x" | b"X" | b"-" | b"_") && name.iter().all(|&b| is_name(b));
        let parted = is_blank(byte(line, end)) || (byte(line, end) == b':' && is_blank(byte(line, end + 1)));
        return level_word(&line[open..end]).filter(|_| named && parted && is_common(&line[open..end])).map(|level| Tag { level, start: open, end });
    }
    let end = group(line, open).filter(|_| byte(line, open) == b'[')?;
    let named = line[at + 1..close].iter().all(|&b| is_name(b)) && is_blank(byte(line, end + 1));
    let level = level_word(&line[open + 1..end]).filter(|_| named)?;
    Some(Tag { level, start: open, end: end + 1 })
}

fn tag_at(line: &[u8], at: usize, ground: Ground) -> Option<Tag> {
    match byte(line, at) {
        b'[' | b'(' | b'<' => bracketed(line, at, ground),
        b'!' | b'{' if ground != Ground::Bare => wrapped(line, at),
        b'#' if rest(line, at).starts_with(b"##[") => bracketed(line, at + 2, ground).map(|tag| Tag { start: at, ..tag }),
        b'"' => quoted(line, at, ground),
        b'|' => {
            let end = run(line, at + 1, |b| b.is_ascii_uppercase());
            let level = level_word(&line[at + 1..end])?;
            (byte(line, end) == b'|').then_some(Tag { level, start: at, end: end + 1 })
        }
        b if b.is_ascii_alphabetic() => worded(line, at, ground),
        _ => None,
    }
}

/// Reads a level between signs, after a time: `!ERROR!`, `{error}`
fn wrapped(line: &[u8], at: usize) -> Option<Tag> {
    let open = byte(line, at);
    let close = if open == b'{' { b'}' } else { open };
    let start = run(line, at, |b| b == open);
    let end = run(line, start, |b| b.is_ascii_alphabetic());
    let stop = run(line, end, |b| b == close);
    let text = &line[start..end];
    let even = start - at == stop - end && start - at <= 3;
    let fits = even && (open == b'{' || is_common(text)) && is_parted(line, stop);
    level_word(text).filter(|_| fits).map(|level| Tag { level, start: at, end: stop })
}

/// Whether a gap follows, or a colon and a gap.
fn is_parted(line: &[u8], at: usize) -> bool {
    is_gap(byte(line, at)) || (byte(line, at) == b':' && is_gap(byte(line, at + 1)))
}

/// Reads a column of a quoted table: after a time, or before one.
fn quoted(line: &[u8], at: usize, ground: Ground) -> Option<Tag> {
    let end = run(line, at + 1, |b| b.is_ascii_alphabetic());
    let level = level_word(&line[at + 1..end]).filter(|_| rest(line, end).starts_with(b"\",\""))?;
    let dated = digits(line, end + 3) > end + 3;
    (ground != Ground::Bare || dated).then_some(Tag { level, start: at, end: end + 1 })
}

/// Whether a full date begins at `at`.
fn is_date(line: &[u8], at: usize) -> bool {
    digits(line, at) == at + 4 && matches!(byte(line, at + 4), b'-' | b'/')
}

/// Reads a level word: `ERROR:`, `ERROR `, `ERROR|`, `ERRO[0012]`,
/// `ERROR>`, `level=error`, and after a logger's time `error `, `Error [`
fn worded(line: &[u8], at: usize, ground: Ground) -> Option<Tag> {
    let end = run(line, at, is_name);
    let text = &line[at..end];
    if byte(line, end) == b'=' {
        return assigned(line, at, end);
    }
    if let Some(level) = between(line, at).filter(|_| ground != Ground::Bare) {
        return Some(Tag { level, start: at, end: at + 2 });
    }
    if end == at + 1 && ground == Ground::Logger {
        return letter::column(line, at).map(|level| Tag { level, start: at, end });
    }
    let Some(level) = level_word(text) else {
        if ground == Ground::Bare {
            return dated(line, end);
        }
        return postgres(line, at, end);
    };
    let upper = text.iter().all(u8::is_ascii_uppercase);
    let fits = match byte(line, end) {
        // `ERROR,2026-11-10 10:00:00,…`
        b',' | b'-' | b';' if upper && is_date(line, end + 1) => true,
        b':' => before_colon(line, end, upper, ground),
        b'|' => upper || (ground != Ground::Bare && at > 0 && line[at - 1] == b'|'),
        // `ERROR/MainProcess`, `ERROR(store)`; not `ERROR(S)`.
        b'/' => is_common(text) && ground != Ground::Bare,
        b'(' => is_common(text) && ground != Ground::Bare && !rest(line, end).starts_with(b"(S)") && !rest(line, end).starts_with(b"(s)"),
        // `ERRO[0012]`, `ERROR[11-10|10:00:00]` (go-ethereum), `FATAL[0012]`; an array's element has fewer digits.
        b'[' => upper && (ground != Ground::Bare || digits(line, end + 1) - end > if text.len() == 4 { 1 } else { 2 }),
        b',' | b';' => upper && ground != Ground::Bare,
        b'\t' => bare_before_date(line, end) || before_gap(line, at, end, ground),
        b'>' => upper && ground != Ground::Bare && is_gap(byte(line, end + 1)),
        b if is_gap(b) => before_gap(line, at, end, ground),
        _ => false,
    };
    fits.then_some(Tag { level, start: at, end })
}

/// Returns the level of a letter between two signs, as in `|E|` and `-E- `.
fn between(line: &[u8], at: usize) -> Option<Level> {
    let sign = *line.get(at.checked_sub(1)?)?;
    let parted = byte(line, at + 1) == sign && (sign == b'|' || (sign == b'-' && is_blank(byte(line, at + 2))));
    letter::alone(byte(line, at)).filter(|_| parted)
}

/// `zigbee2mqtt:error 2026-11-10 10:00:00: `: a level after the program's name, which ends at `colon`, and a date.
pub fn dated(line: &[u8], colon: usize) -> Option<Tag> {
    let end = run(line, colon + 1, |b| b.is_ascii_alphabetic());
    let date = blanks(line, end);
    let sign = byte(line, digits(line, date));
    let known = byte(line, colon) == b':' && date > end && date - end < 3 && digits(line, date) > date && matches!(sign, b'-' | b'/');
    level_word(line.get(colon + 1..end)?).filter(|_| known).map(|level| Tag { level, start: colon + 1, end })
}

/// Whether a date follows a level and a tab: `error\t10-Nov-2026 10:00:00\t…` (Bamboo)
fn bare_before_date(line: &[u8], tab: usize) -> bool {
    let date = digits(line, tab + 1);
    matches!(date - tab, 3 | 5) && byte(line, date) == b'-' && byte(line, date + 1).is_ascii_alphanumeric()
}

fn before_colon(line: &[u8], end: usize, upper: bool, ground: Ground) -> bool {
    let start = end - line[..end].iter().rev().take_while(|b| b.is_ascii_alphabetic()).count();
    let text = &line[start..end];
    if upper {
        // `INFO://` is a scheme.
        return byte(line, end + 1) != b'/';
    }
    let lower = text.iter().all(u8::is_ascii_lowercase);
    is_gap(byte(line, end + 1)) && (is_soft(text) || (ground == Ground::Fields && is_terse(text)) || (ground == Ground::Logger && lower && text != b"panic"))
}

fn before_gap(line: &[u8], at: usize, end: usize, ground: Ground) -> bool {
    let text = &line[at..end];
    let after = blanks(line, end);
    let next = byte(line, after);
    // `fatal error: ` begins the message itself (Go, C).
    if next == b'=' || text == b"fatal" && rest(line, end).starts_with(b" error: ") {
        return false;
    }
    if text.iter().all(u8::is_ascii_uppercase) {
        let dated = text == b"CRIT" && next == b'[' && digits(line, after + 1) == after + 3;
        return ground != Ground::Bare || is_common(text) || dated;
    }
    // Between the signs that separate the columns, in any case.
    let back = |count: usize| at.checked_sub(count).map_or(0, |place| byte(line, place));
    let sign = if back(1) == b' ' { back(2) } else { back(1) };
    let parted = (matches!(next, b'|' | b'-') && next == sign && is_blank(byte(line, after + 1))) || (byte(line, end) == b'\t' && sign == b'\t');
    if parted && ground != Ground::Bare {
        return true;
    }
    // A column of a table (PowerShell's events).
    if ground == Ground::Fields && after > end + 3 && text[0].is_ascii_uppercase() {
        return true;
    }
    if ground != Ground::Logger {
        return false;
    }
    let lower = text.iter().all(u8::is_ascii_lowercase);
    let wide = after > end + 1 || byte(line, end) == b'\t';
    wide || matches!(next, b'[' | b'|' | b'-') || (lower && !matches!(text, b"note" | b"fine" | b"panic")) || source_follows(line, after)
}

/// Whether the name of a logger follows: `Shop.Store `, `Store: `.
fn source_follows(line: &[u8], at: usize) -> bool {
    let end = run(line, at, is_name);
    let name = &line[at..end];
    let dotted = is_blank(byte(line, end)) && name.contains(&b'.') && !name.ends_with(b".");
    name.first().is_some_and(u8::is_ascii_uppercase) && (dotted || (byte(line, end) == b':' && is_blank(byte(line, end + 1))))
}

/// Reads `level=error`, `severity="error"`
fn assigned(line: &[u8], at: usize, equals: usize) -> Option<Tag> {
    if !matches!(&line[at..equals], b"level" | b"lvl" | b"severity" | b"loglevel") {
        return None;
    }
    let quoted = byte(line, equals + 1) == b'"';
    let start = equals + 1 + usize::from(quoted);
    let end = run(line, start, |b| b.is_ascii_alphabetic());
    let level = level_word(&line[start.min(end)..end])?;
    let end = end + usize::from(quoted && byte(line, end) == b'"');
    is_gap(byte(line, end)).then_some(Tag { level, start: at, end })
}

/// Reads the lines that `PostgreSQL` writes along with an error, which
/// have no level of their own. Two spaces follow each of its tags.
fn postgres(line: &[u8], at: usize, end: usize) -> Option<Tag> {
    let text = &line[at..end];
    let known = matches!(text, b"LOG" | b"DETAIL" | b"HINT" | b"STATEMENT" | b"CONTEXT" | b"QUERY" | b"LOCATION");
    (known && rest(line, end).starts_with(b":  ")).then_some(Tag { level: Level::Info, start: at, end })
}

/// Returns the end of the field at `at`; `None` if prose begins there.
fn field(line: &[u8], at: usize) -> Option<usize> {
    match byte(line, at) {
        b'[' | b'(' | b'<' => group(line, at).map(|close| close + 1),
        _ => {
            let end = word(line, at);
            let next = blanks(line, end);
            let parted = matches!(byte(line, next), b'-' | b'|') && is_gap(byte(line, next + 1));
            let text = &line[at..end];
            let braced = text.starts_with(b"{") && text.ends_with(b"}");
            (end > at && !is_ruled(text) && (parted || braced || byte(line, end) == b'\t' || is_field(text) || level_follows(line, next))).then_some(end)
        }
    }
}

/// Whether the text has only signs that draw a line or begin a comment:
/// `____ ERROR collecting x ____` (pytest), `# ERROR: 0` (Automake).
fn is_ruled(text: &[u8]) -> bool {
    text.iter().all(|b| matches!(b, b'_' | b'#' | b'=' | b'~' | b'+'))
}

/// Returns the place after `shop[1234] ` (coloredlogs, between host and level), if that is at `at`.
fn past_process(line: &[u8], at: usize) -> usize {
    let open = run(line, at, is_name);
    let close = digits(line, open + 1);
    let known = open > at && byte(line, open) == b'[' && close > open + 1 && byte(line, close) == b']';
    if known { blanks(line, close + 1) } else { at }
}

/// Whether a level that nobody writes in a sentence follows a thread's or host's name: `main ERROR `, `main [ERROR] `.
fn level_follows(line: &[u8], at: usize) -> bool {
    let at = past_process(line, at);
    let start = at + usize::from(byte(line, at) == b'[');
    let end = run(line, start, |b| b.is_ascii_uppercase());
    let closed = if start > at { byte(line, end) == b']' } else { is_blank(byte(line, end)) };
    let end = if end > start { end } else { run(line, start, |b| b.is_ascii_lowercase()) };
    (closed && is_common(&line[start..end])) || (is_terse(&line[start..end]) && rest(line, end).starts_with(b": "))
}

/// Whether this is a short lower-case word that is a level before a colon and hardly ever begins a message.
fn is_terse(text: &[u8]) -> bool {
    text == b"err"
}

/// Whether this is no word of prose: it holds a digit or a sign of names, and ends no sentence.
fn is_field(text: &[u8]) -> bool {
    let named = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'=' | b':' | b'/' | b'@' | b'#' | b'$');
    text.iter().any(named) && !matches!(text.last(), Some(b'.' | b',' | b'!' | b'?'))
}

/// Returns the tag that ends the field: `cpu22:44012977)ALERT:`,
/// `@:[12760]:LOG:`, `production.ERROR:` (Monolog), `util.py[ERROR]:`
fn suffix(line: &[u8], at: usize, end: usize) -> Option<Tag> {
    if let Some(tag) = bracket_suffix(line, at, end) {
        return Some(tag);
    }
    let colon = end - 1;
    if line[colon] != b':' || colon == at {
        return None;
    }
    let letters = line[at..colon].iter().rev().take_while(|b| b.is_ascii_uppercase()).count();
    let start = colon - letters;
    // VMware's PostgreSQL glues a number to the tag: `5ERROR:  `.
    let counted = start > at && line[start - 1].is_ascii_digit() && rest(line, colon).starts_with(b":  ");
    if start == at || !(counted || matches!(line[start - 1], b':' | b')' | b']' | b'.')) {
        return None;
    }
    let tag = level_word(&line[start..colon]).map(|level| Tag { level, start, end: colon });
    tag.or_else(|| postgres(line, start, colon))
}

/// Reads a level in a bracket that ends the field: `util.py[ERROR]:`, `09[ERR]`
fn bracket_suffix(line: &[u8], at: usize, end: usize) -> Option<Tag> {
    let text = &line[at..end];
    let inner = text.strip_suffix(b":").unwrap_or(text).strip_suffix(b"]")?;
    let open = memchr::memrchr(b'[', inner).filter(|open| *open > 0)?;
    let word = &inner[open + 1..];
    let level = level_word(word).filter(|_| word.iter().all(u8::is_ascii_uppercase))?;
    Some(Tag { level, start: at, end })
}

fn separators(line: &[u8], at: usize) -> usize {
    run(line, at, |b| is_blank(b) || matches!(b, b'-' | b'|' | b':' | b',' | b';'))
}
