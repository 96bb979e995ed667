//! A level in a bracket, by itself or with something beside it.

use super::super::letter;
use super::super::level::{is_common, level_word};
use super::super::scan::{blanks, byte, group, is_blank, is_gap, is_name, rest, word};
use super::{Ground, MAX_FIELDS, Tag, is_date, is_field, is_parted};
use crate::core::event::Level;

/// Longest bracket that is a tag, in bytes.
const BRACKET_BYTES: usize = 96;

/// Returns the level among the first words of a bracket's content, as in `[7F03ECE76700 verbose 'Default' …]`.
pub fn in_group(line: &[u8], at: usize, close: usize) -> Option<Tag> {
    let mut start = blanks(line, at);
    for _ in 0..MAX_FIELDS {
        let end = word(line, start).min(close);
        let text = line.get(start..end)?;
        let bare = text.strip_suffix(b":").unwrap_or(text);
        // Node prints an error without a stack as `[Error: no such till] {`.
        if start == at && bare.len() < text.len() && matches!(bare, [first, second, ..] if first.is_ascii_uppercase() && second.is_ascii_lowercase()) {
            return None;
        }
        // Celery: `ERROR/ForkPoolWorker-2`.
        let bare = memchr::memchr(b'/', bare).filter(|at| is_common(&bare[..*at])).map_or(bare, |at| &bare[..at]);
        if let Some(level) = level_word(bare) {
            return Some(Tag { level, start: blanks(line, close + 1), end: close + 1 });
        }
        let next = blanks(line, end);
        // Anything but fields is prose: `[the error handler]`. A thread's name is no prose before the thread's empty context.
        let is_thread = start == at && has_no_context(rest(line, next));
        if text.is_empty() || !(is_field(text) || is_thread || text.ends_with(b"'") || matches!(text, b"-" | b"|") || has_no_context(text)) {
            return None;
        }
        start = next;
    }
    None
}

/// Whether the text begins with an empty diagnostic context, as in `[main [] ERROR com.acme.Shop opId=]` (vSphere).
fn has_no_context(text: &[u8]) -> bool {
    [&b"[]"[..], b"null"].iter().any(|empty| text.strip_prefix(*empty).is_some_and(|rest| rest.first().is_none_or(|byte| is_blank(*byte))))
}

/// Returns the letter that comes first in a bracket after its time, as in `[2026-11-10 10:00:00,123 E 12 34]` (Ray).
pub fn letter_in_group(line: &[u8], at: usize, close: usize) -> Option<Tag> {
    let start = blanks(line, at);
    let level = letter::alone(byte(line, start)).filter(|_| start > at && start < close && is_blank(byte(line, start + 1)))?;
    Some(Tag { level, start: blanks(line, close + 1), end: close + 1 })
}

/// Reads `[ERROR]`, `[core:error]`, `[INFO:choose_repo]`, `[Server thread/ERROR]`, `[shop.store#error]`, `(ERROR)`, `<error> `
pub(super) fn bracketed(line: &[u8], open: usize, ground: Ground) -> Option<Tag> {
    let close = group(line, open).filter(|close| close - open < BRACKET_BYTES)?;
    let next = byte(line, close + 1);
    let square = byte(line, open) == b'[';
    let inner = line[open + 1..close].trim_ascii();
    // XML and Markdown links are no tags.
    let apart = is_gap(next) || (is_parted(line, close + 1) && (ground != Ground::Bare || is_common(inner)));
    if (!square && !apart) || next == b'(' {
        return None;
    }
    // ESPHome's configuration: `[C][store:012]`. A frame of Lua's: `[C]: in function 'error'`.
    if inner == b"C" && (next == b'[' || line[close + 1..].starts_with(b": in ")) {
        return None;
    }
    // `(C)` is a copyright, `(error)` may begin a sentence.
    let letter = || letter::alone(*inner.first()?).filter(|_| inner.len() == 1 && inner != b"C" && ground != Ground::Bare);
    let level = level_word(inner).or_else(|| if square { parts(inner, ground) } else { letter() })?;
    let sure = byte(line, open) != b'(' || ground != Ground::Bare || is_common(inner) || level < Level::Error;
    sure.then_some(Tag { level, start: open, end: close + 1 })
}

/// Returns a level with something beside it in its bracket.
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

/// Reads, after a logger's time, `[E]`, `[E:onnxruntime:, store.cc:12 load]`, `[E|app|1a2b]` (Foreman)
fn lettered(inner: &[u8], ground: Ground) -> Option<Level> {
    let place = inner.get(1) == Some(&b':') && memchr::memmem::find(inner, b", ").is_some();
    let fits = place || (ground != Ground::Bare && inner.get(1).is_none_or(|next| matches!(next, b':' | b'|')));
    letter::alone(*inner.first()?).filter(|_| fits)
}

/// Reads Solaris' `[ID 702911 daemon.error]`
fn solaris(inner: &[u8]) -> Option<Level> {
    let dot = memchr::memrchr(b'.', inner).filter(|_| inner.starts_with(b"ID "))?;
    level_word(&inner[dot + 1..])
}
