//! The level tag of a plain-text line and the fields before it.
//! Serves `prefix`, after time, host and key. A field is skipped only on the way to a tag, so a line without a
//! level loses nothing; a sentence is never searched for level words.

use super::level::{is_common, is_soft, level_word};
use super::scan::{blanks, byte, group, is_blank, is_gap, is_name, rest, run, word};
use crate::core::event::Level;

/// Fields before a tag.
const MAX_FIELDS: usize = 8;
/// Longest bracket that is a tag.
const BRACKET_BYTES: usize = 48;

/// What stands before the place where a tag is looked for; it decides how plain a tag must be.
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

/// The tag at `at`; behind a logger's time, also the one behind further fields.
pub fn find(line: &[u8], at: usize, ground: Ground) -> Option<Tag> {
    if ground == Ground::Bare {
        return tag_at(line, at, ground);
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

/// The level among the first words of a bracket's content, as in `[7F03ECE76700 verbose 'Default' …]`.
pub fn in_group(line: &[u8], at: usize, close: usize) -> Option<Tag> {
    let mut start = blanks(line, at);
    for _ in 0..MAX_FIELDS {
        let end = word(line, start).min(close);
        let text = line.get(start..end)?;
        let bare = text.strip_suffix(b":").unwrap_or(text);
        // Celery: `ERROR/ForkPoolWorker-2`.
        let bare = memchr::memchr(b'/', bare).filter(|at| is_common(&bare[..*at])).map_or(bare, |at| &bare[..at]);
        if let Some(level) = level_word(bare) {
            return Some(Tag { level, start: blanks(line, close + 1), end: close + 1 });
        }
        // What is no field is prose: `[the error handler]`.
        if text.is_empty() || !(is_field(text) || text.ends_with(b"'")) {
            return None;
        }
        start = blanks(line, end);
    }
    None
}

fn tag_at(line: &[u8], at: usize, ground: Ground) -> Option<Tag> {
    match byte(line, at) {
        b'[' | b'(' | b'<' => bracketed(line, at),
        b'#' if rest(line, at).starts_with(b"##[") => bracketed(line, at + 2).map(|tag| Tag { start: at, ..tag }),
        b'|' => {
            let end = run(line, at + 1, |b| b.is_ascii_uppercase());
            let level = level_word(&line[at + 1..end])?;
            (byte(line, end) == b'|').then_some(Tag { level, start: at, end: end + 1 })
        }
        b if b.is_ascii_alphabetic() => worded(line, at, ground),
        _ => None,
    }
}

/// `[ERROR]`, `[core:error]`, `[INFO:choose_repo]`, `[Server thread/ERROR]`, `[shop.store#error]`, `(ERROR)`, `<error> `
fn bracketed(line: &[u8], open: usize) -> Option<Tag> {
    let close = group(line, open).filter(|close| close - open < BRACKET_BYTES)?;
    let next = byte(line, close + 1);
    let square = byte(line, open) == b'[';
    // XML and Markdown links are no tags.
    if (!square && !is_gap(next)) || next == b'(' {
        return None;
    }
    let inner = line[open + 1..close].trim_ascii();
    let level = level_word(inner).or_else(|| if square { halves(inner).or_else(|| last_part(inner)) } else { None })?;
    Some(Tag { level, start: open, end: close + 1 })
}

fn halves(inner: &[u8]) -> Option<Level> {
    let colon = memchr::memchr(b':', inner)?;
    let (first, second) = (&inner[..colon], &inner[colon + 1..]);
    if !first.iter().chain(second).all(|&b| is_name(b)) || second.is_empty() {
        return None;
    }
    let upper = first.iter().all(u8::is_ascii_uppercase);
    level_word(second).or_else(|| level_word(first).filter(|_| upper))
}

/// `Server thread/ERROR` (Minecraft), `shop.store#error` (Twisted)
fn last_part(inner: &[u8]) -> Option<Level> {
    let at = memchr::memrchr2(b'/', b'#', inner).filter(|at| *at > 0)?;
    let part = &inner[at + 1..];
    let fits = if inner[at] == b'/' { is_common(part) } else { !inner.contains(&b' ') };
    level_word(part).filter(|_| fits)
}

/// `ERROR:`, `ERROR `, `ERROR|`, `ERRO[0012]`, `ERROR>`, `level=error`, and behind a logger's time `error `, `Error [`
fn worded(line: &[u8], at: usize, ground: Ground) -> Option<Tag> {
    let end = run(line, at, is_name);
    let text = &line[at..end];
    if byte(line, end) == b'=' {
        return assigned(line, at, end);
    }
    let Some(level) = level_word(text) else {
        return postgres(line, at, end).filter(|_| ground != Ground::Bare);
    };
    let upper = text.iter().all(u8::is_ascii_uppercase);
    let fits = match byte(line, end) {
        b':' => before_colon(line, end, upper, ground),
        b'|' => upper,
        b'[' => upper && (ground != Ground::Bare || (text.len() == 4 && byte(line, end + 1).is_ascii_digit())),
        b'>' => upper && ground != Ground::Bare && is_gap(byte(line, end + 1)),
        b if is_gap(b) => before_gap(line, at, end, ground),
        _ => false,
    };
    fits.then_some(Tag { level, start: at, end })
}

fn before_colon(line: &[u8], end: usize, upper: bool, ground: Ground) -> bool {
    let start = end - line[..end].iter().rev().take_while(|b| b.is_ascii_alphabetic()).count();
    let text = &line[start..end];
    if upper {
        // `INFO://` is a scheme.
        return byte(line, end + 1) != b'/';
    }
    let lower = text.iter().all(u8::is_ascii_lowercase);
    is_gap(byte(line, end + 1)) && (is_soft(text) || (ground == Ground::Logger && lower && text != b"panic"))
}

fn before_gap(line: &[u8], at: usize, end: usize, ground: Ground) -> bool {
    let text = &line[at..end];
    let after = blanks(line, end);
    let next = byte(line, after);
    if next == b'=' {
        return false;
    }
    if text.iter().all(u8::is_ascii_uppercase) {
        return ground != Ground::Bare || is_common(text);
    }
    if ground != Ground::Logger {
        return false;
    }
    let lower = text.iter().all(u8::is_ascii_lowercase);
    let wide = after > end + 1 || byte(line, end) == b'\t';
    wide || matches!(next, b'[' | b'|' | b'-') || (lower && !matches!(text, b"note" | b"fine" | b"panic"))
}

/// `level=error`, `severity="error"`
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

/// The lines that `PostgreSQL` writes along with an error carry no level of their own. Two spaces follow each of its tags.
fn postgres(line: &[u8], at: usize, end: usize) -> Option<Tag> {
    let text = &line[at..end];
    let known = matches!(text, b"LOG" | b"DETAIL" | b"HINT" | b"STATEMENT" | b"CONTEXT" | b"QUERY" | b"LOCATION");
    (known && rest(line, end).starts_with(b":  ")).then_some(Tag { level: Level::Info, start: at, end })
}

/// End of the field at `at`, `None` where prose begins.
fn field(line: &[u8], at: usize) -> Option<usize> {
    match byte(line, at) {
        b'[' | b'(' | b'<' => group(line, at).map(|close| close + 1),
        _ => {
            let end = word(line, at);
            let next = blanks(line, end);
            let parted = matches!(byte(line, next), b'-' | b'|') && is_gap(byte(line, next + 1));
            (end > at && (parted || is_field(&line[at..end]))).then_some(end)
        }
    }
}

/// Not a word of prose: it holds a digit or a sign of names, and ends no sentence.
fn is_field(text: &[u8]) -> bool {
    let named = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'=' | b':' | b'/' | b'@' | b'#' | b'$');
    text.iter().any(named) && !matches!(text.last(), Some(b'.' | b',' | b'!' | b'?'))
}

/// The tag that ends the field: `cpu22:44012977)ALERT:`, `@:[12760]:LOG:`, `production.ERROR:` (Monolog), `util.py[ERROR]:`
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
    if start == at || !matches!(line[start - 1], b':' | b')' | b']' | b'.') {
        return None;
    }
    let tag = level_word(&line[start..colon]).map(|level| Tag { level, start, end: colon });
    tag.or_else(|| postgres(line, start, colon))
}

/// `util.py[ERROR]:`, `09[ERR]`
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
