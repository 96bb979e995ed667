//! The level tag of a plain-text line and the fields before it.
//! Serves `prefix`, after time, host and key. A field is skipped only on the way to a tag, so a line without a
//! level loses nothing; a sentence is never searched for level words.

use super::letter;
use super::level::{is_common, is_soft, level_word};
use super::scan::{blanks, byte, digits, group, is_blank, is_gap, is_name, rest, run, word};
use crate::core::event::Level;

/// Fields before a tag.
const MAX_FIELDS: usize = 8;
/// Longest bracket that is a tag.
const BRACKET_BYTES: usize = 96;

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
        return tag_at(line, at, ground).or_else(|| behind_name(line, at));
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

/// A level in the second of two brackets, the first of which holds a name: `[1234] [ERROR] `, `[shop][error] `; or in upper
/// case behind the name of a program that runs beside others: `[0] ERROR `, `[api] WARN: `.
fn behind_name(line: &[u8], at: usize) -> Option<Tag> {
    let close = group(line, at).filter(|_| byte(line, at) == b'[')?;
    let open = close + 1 + usize::from(byte(line, close + 1) == b' ');
    let end = run(line, open, |b| b.is_ascii_uppercase());
    if end > open && open > close + 1 {
        let name = &line[at + 1..close];
        // A box that is ticked, a count.
        let named = !name.is_empty() && !matches!(name, b"x" | b"X" | b"-" | b"_") && name.iter().all(|&b| is_name(b));
        let parted = is_blank(byte(line, end)) || (byte(line, end) == b':' && is_blank(byte(line, end + 1)));
        return level_word(&line[open..end]).filter(|_| named && parted && is_common(&line[open..end])).map(|level| Tag { level, start: open, end });
    }
    let end = group(line, open).filter(|_| byte(line, open) == b'[')?;
    let named = line[at + 1..close].iter().all(|&b| is_name(b)) && is_blank(byte(line, end + 1));
    let level = level_word(&line[open + 1..end]).filter(|_| named)?;
    Some(Tag { level, start: open, end: end + 1 })
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
        if text.is_empty() || !(is_field(text) || text.ends_with(b"'") || matches!(text, b"-" | b"|")) {
            return None;
        }
        start = blanks(line, end);
    }
    None
}

/// The letter that stands first in a bracket behind its time, as in `[2026-11-10 10:00:00,123 E 12 34]` (Ray).
pub fn letter_in_group(line: &[u8], at: usize, close: usize) -> Option<Tag> {
    let start = blanks(line, at);
    let level = letter::alone(byte(line, start)).filter(|_| start > at && start < close && is_blank(byte(line, start + 1)))?;
    Some(Tag { level, start: blanks(line, close + 1), end: close + 1 })
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

/// Behind a time: `!ERROR!`, `{error}`
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

/// A gap follows, or a colon and a gap.
fn is_parted(line: &[u8], at: usize) -> bool {
    is_gap(byte(line, at)) || (byte(line, at) == b':' && is_gap(byte(line, at + 1)))
}

/// `[ERROR]`, `[core:error]`, `[INFO:choose_repo]`, `[Server thread/ERROR]`, `[shop.store#error]`, `(ERROR)`, `<error> `
fn bracketed(line: &[u8], open: usize, ground: Ground) -> Option<Tag> {
    let close = group(line, open).filter(|close| close - open < BRACKET_BYTES)?;
    let next = byte(line, close + 1);
    let square = byte(line, open) == b'[';
    let inner = line[open + 1..close].trim_ascii();
    // XML and Markdown links are no tags.
    let apart = is_gap(next) || (is_parted(line, close + 1) && (ground != Ground::Bare || is_common(inner)));
    if (!square && !apart) || next == b'(' {
        return None;
    }
    // ESPHome's configuration: `[C][store:012]`.
    if inner == b"C" && next == b'[' {
        return None;
    }
    // `(C)` is a copyright, `(error)` may begin a sentence.
    let letter = || letter::alone(*inner.first()?).filter(|_| inner.len() == 1 && inner != b"C" && ground != Ground::Bare);
    let level = level_word(inner).or_else(|| if square { parts(inner, ground) } else { letter() })?;
    let sure = byte(line, open) != b'(' || ground != Ground::Bare || is_common(inner) || level < Level::Error;
    sure.then_some(Tag { level, start: open, end: close + 1 })
}

/// A column of a quoted table: behind a time, or before one.
fn quoted(line: &[u8], at: usize, ground: Ground) -> Option<Tag> {
    let end = run(line, at + 1, |b| b.is_ascii_alphabetic());
    let level = level_word(&line[at + 1..end]).filter(|_| rest(line, end).starts_with(b"\",\""))?;
    let dated = digits(line, end + 3) > end + 3;
    (ground != Ground::Bare || dated).then_some(Tag { level, start: at, end: end + 1 })
}

/// A full date begins at `at`.
fn is_date(line: &[u8], at: usize) -> bool {
    digits(line, at) == at + 4 && matches!(byte(line, at + 4), b'-' | b'/')
}

/// A level with something beside it in its bracket.
fn parts(inner: &[u8], ground: Ground) -> Option<Level> {
    // `[ns_server:error,2026-…]` (Couchbase)
    let first = memchr::memchr(b',', inner).map_or(inner, |comma| &inner[..comma]);
    halves(first).or_else(|| last_part(inner)).or_else(|| first_part(inner)).or_else(|| lettered(inner, ground)).or_else(|| solaris(inner))
}

/// `[ERROR shop::store]` (env_logger), `[ERROR|store.py:12]` (Transformers), `[ERROR:0@1.234]` (OpenCV), `[ERROR 2026-11-10 10:00:00 main]`
fn first_part(inner: &[u8]) -> Option<Level> {
    let end = inner.iter().position(|b| matches!(b, b' ' | b'|' | b':' | b',' | b'/' | b'#'))?;
    let (level, rest) = (&inner[..end], &inner[end + 1..]);
    let fits = match inner[end] {
        _ if is_date(rest, blanks(rest, 0)) => true,
        b',' => false,
        // `[ERROR/MainProcess]` (multiprocessing), `[Error#SQL]` (fast-logger)
        b'/' | b'#' => !rest.is_empty() && rest.iter().all(|&b| is_name(b)),
        b':' => rest.first().is_some_and(u8::is_ascii_digit),
        _ => rest.iter().all(|&b| is_name(b) || matches!(b, b':' | b'/')) && rest.iter().any(|b| matches!(b, b':' | b'_' | b'.')),
    };
    let named = is_common(level) || (inner[end] == b'#' && level.first().is_some_and(u8::is_ascii_uppercase));
    level_word(level).filter(|_| fits && named)
}

/// `[ID 702911 daemon.error]`
fn solaris(inner: &[u8]) -> Option<Level> {
    let dot = memchr::memrchr(b'.', inner).filter(|_| inner.starts_with(b"ID "))?;
    level_word(&inner[dot + 1..])
}

/// Behind a logger's time: `[E]`, `[E:onnxruntime:, store.cc:12 load]`, `[E|app|1a2b]` (Foreman)
fn lettered(inner: &[u8], ground: Ground) -> Option<Level> {
    let place = inner.get(1) == Some(&b':') && memchr::memmem::find(inner, b", ").is_some();
    let fits = place || (ground != Ground::Bare && inner.get(1).is_none_or(|next| matches!(next, b':' | b'|')));
    letter::alone(*inner.first()?).filter(|_| fits)
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

/// A letter between two signs, as in `|E|` and `-E- `.
fn between(line: &[u8], at: usize) -> Option<Level> {
    let sign = *line.get(at.checked_sub(1)?)?;
    let parted = byte(line, at + 1) == sign && (sign == b'|' || (sign == b'-' && is_blank(byte(line, at + 2))));
    letter::alone(byte(line, at)).filter(|_| parted)
}

/// `zigbee2mqtt:error 2026-11-10 10:00:00: `: a level behind the program's name that ends at `colon`, and a date.
pub fn dated(line: &[u8], colon: usize) -> Option<Tag> {
    let end = run(line, colon + 1, |b| b.is_ascii_alphabetic());
    let date = blanks(line, end);
    let sign = byte(line, digits(line, date));
    let known = byte(line, colon) == b':' && date > end && date - end < 3 && digits(line, date) > date && matches!(sign, b'-' | b'/');
    level_word(line.get(colon + 1..end)?).filter(|_| known).map(|level| Tag { level, start: colon + 1, end })
}

/// `error\t10-Nov-2026 10:00:00\t…` (Bamboo)
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
    if next == b'=' {
        return false;
    }
    if text.iter().all(u8::is_ascii_uppercase) {
        let dated = text == b"CRIT" && next == b'[' && digits(line, after + 1) == after + 3;
        return ground != Ground::Bare || is_common(text) || dated;
    }
    // Between the signs that part the columns, whatever its case.
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

/// `Shop.Store `, `Store: `: the name of a logger.
fn source_follows(line: &[u8], at: usize) -> bool {
    let end = run(line, at, is_name);
    let name = &line[at..end];
    let dotted = is_blank(byte(line, end)) && name.contains(&b'.') && !name.ends_with(b".");
    name.first().is_some_and(u8::is_ascii_uppercase) && (dotted || (byte(line, end) == b':' && is_blank(byte(line, end + 1))))
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
            let text = &line[at..end];
            let braced = text.starts_with(b"{") && text.ends_with(b"}");
            (end > at && !is_ruled(text) && (parted || braced || byte(line, end) == b'\t' || is_field(text) || level_follows(line, next))).then_some(end)
        }
    }
}

/// Only signs that draw a line or begin a comment: `____ ERROR collecting x ____` (pytest), `# ERROR: 0` (Automake).
fn is_ruled(text: &[u8]) -> bool {
    text.iter().all(|b| matches!(b, b'_' | b'#' | b'=' | b'~' | b'+'))
}

/// Behind `shop[1234] ` (coloredlogs, between host and level), if it stands at `at`.
fn past_process(line: &[u8], at: usize) -> usize {
    let open = run(line, at, is_name);
    let close = digits(line, open + 1);
    let known = open > at && byte(line, open) == b'[' && close > open + 1 && byte(line, close) == b']';
    if known { blanks(line, close + 1) } else { at }
}

/// A level that nobody writes in a sentence stands behind a thread's or host's name: `main ERROR `, `main [ERROR] `.
fn level_follows(line: &[u8], at: usize) -> bool {
    let at = past_process(line, at);
    let start = at + usize::from(byte(line, at) == b'[');
    let end = run(line, start, |b| b.is_ascii_uppercase());
    let closed = if start > at { byte(line, end) == b']' } else { is_blank(byte(line, end)) };
    let end = if end > start { end } else { run(line, start, |b| b.is_ascii_lowercase()) };
    (closed && is_common(&line[start..end])) || (is_terse(&line[start..end]) && rest(line, end).starts_with(b": "))
}

/// A short word in lower case that stands before a colon as a level, and hardly ever begins a message.
fn is_terse(text: &[u8]) -> bool {
    text == b"err"
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
    // VMware's PostgreSQL glues a number to the tag: `5ERROR:  `.
    let counted = start > at && line[start - 1].is_ascii_digit() && rest(line, colon).starts_with(b":  ");
    if start == at || !(counted || matches!(line[start - 1], b':' | b')' | b']' | b'.')) {
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
