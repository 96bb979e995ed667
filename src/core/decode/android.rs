//! The layouts of Android's logcat and of Android Studio's log window. Used by `prefix`, which reads
//! the time before them. The tag is repeated on every line of a trace, so the text begins after it.

use super::level::{letter, level_word};
use super::scan::{blanks, byte, digits, is_blank, is_gap, is_name, rest, run, word};
use crate::core::event::Level;

/// Longest tag, in bytes.
const TAG_BYTES: usize = 64;

/// What precedes the text: level, range of the writer's name, end.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub level: Level,
    pub key: (usize, usize),
    pub end: usize,
}

/// Returns the entry after a time: `123  456 E Tag: `, `10123  123  456 E Tag: `,
/// `E/Tag( 123): `, `123-456/com.acme E/Tag: `, `123-456  Tag  com.acme  E  `.
pub fn stamped(line: &[u8], at: usize) -> Option<Entry> {
    let at = blanks(line, at);
    if !byte(line, at).is_ascii_digit() {
        return brief(line, at).or_else(|| user(line, at));
    }
    let first = digits(line, at);
    if byte(line, first) == b'-' { studio(line, at) } else { threadtime(line, at) }
}

/// Returns the entry after the user whose process it is: `u0_a123  123  456 E Tag: `, `root  123  456 E Tag: `.
fn user(line: &[u8], at: usize) -> Option<Entry> {
    let name = run(line, at, |b| is_name(b) && b != b'.');
    let start = blanks(line, name);
    let known = line.get(at..name)?.first()?.is_ascii_lowercase() && start > name && byte(line, start).is_ascii_digit();
    known.then(|| threadtime(line, start))?
}

/// Returns the head of logcat's long format, after the time in its
/// bracket: `  1234: 1240 E/Store ]`; the text follows on the next lines.
pub fn long(line: &[u8], at: usize) -> Option<Entry> {
    let process = number(line, at)?;
    let thread = number(line, process + 1).filter(|_| byte(line, process) == b':')?;
    let mark = blanks(line, thread);
    let level = letter(byte(line, mark)).filter(|_| byte(line, mark + 1) == b'/')?;
    let close = line.iter().rposition(|b| *b == b']').filter(|&close| close + 1 == line.len() && close > mark)?;
    Some(Entry { level, key: (blanks(line, at), thread), end: close + 1 })
}

/// Returns the entry that begins a line: `E/Tag( 123): `, `E( 123) `, `E( 123: 124) `.
pub fn brief(line: &[u8], at: usize) -> Option<Entry> {
    let level = letter(byte(line, at))?;
    match byte(line, at + 1) {
        b'/' => {
            let tag = at + 2;
            let name = run(line, tag, |b| is_name(b) || b == b':');
            let open = blanks(line, name);
            let close = number(line, open + 1)?;
            let known = name > tag && byte(line, open) == b'(' && rest(line, close).starts_with(b"):");
            known.then_some(Entry { level, key: (tag, close + 1), end: close + 2 })
        }
        b'(' => {
            let process = number(line, at + 2)?;
            let close = if byte(line, process) == b':' { thread(line, process + 1)? } else { process };
            let known = byte(line, close) == b')' && is_blank(byte(line, close + 1));
            known.then_some(Entry { level, key: (at + 2, close), end: close + 1 })
        }
        _ => None,
    }
}

/// Returns the end of the blanks and a thread's number at `at`, which older versions write in hex.
fn thread(line: &[u8], at: usize) -> Option<usize> {
    let start = blanks(line, at);
    if rest(line, start).starts_with(b"0x") { Some(run(line, start + 2, |b| b.is_ascii_hexdigit())) } else { number(line, at) }
}

/// Returns the end of the blanks and digits at `at`, if there is a digit.
fn number(line: &[u8], at: usize) -> Option<usize> {
    let start = blanks(line, at);
    let end = digits(line, start);
    (end > start).then_some(end)
}

fn threadtime(line: &[u8], at: usize) -> Option<Entry> {
    let mut start = at;
    let mut process = digits(line, at);
    let mut thread = number(line, process)?;
    if let Some(third) = number(line, thread) {
        (start, process, thread) = (blanks(line, process), thread, third);
    }
    let mark = blanks(line, thread);
    if byte(line, mark + 1).is_ascii_lowercase() {
        return worded(line, (start, thread), mark);
    }
    let level = letter(byte(line, mark))?;
    if mark == thread || process == thread || byte(line, mark + 1) != b' ' {
        return None;
    }
    let tag = rest(line, mark + 2);
    let colon = tag[..tag.len().min(TAG_BYTES)].iter().position(|b| *b == b':')?;
    Some(Entry { level, key: (start, thread), end: mark + 3 + colon })
}

/// Reads the layout of Unity's window after the numbers: the level as a word, then the tag: `Error AndroidRuntime x`.
fn worded(line: &[u8], key: (usize, usize), mark: usize) -> Option<Entry> {
    let end = word(line, mark);
    let level = level_word(&line[mark..end]).filter(|_| byte(line, mark).is_ascii_uppercase())?;
    let tag = run(line, end + 1, is_name);
    let known = mark > key.1 && digits(line, key.0) < key.1 && byte(line, end) == b' ' && tag > end + 1 && is_blank(byte(line, tag));
    known.then_some(Entry { level, key, end: tag + 1 })
}

fn studio(line: &[u8], at: usize) -> Option<Entry> {
    let thread = digits(line, digits(line, at) + 1);
    if byte(line, thread) == b'/' {
        let mark = blanks(line, word(line, thread));
        let level = letter(byte(line, mark)).filter(|_| byte(line, mark + 1) == b'/')?;
        let tag = word(line, mark);
        return line[..tag].ends_with(b":").then_some(Entry { level, key: (at, thread), end: tag });
    }
    let tag = blanks(line, thread);
    let package = blanks(line, run(line, tag, |b| !is_blank(b)));
    let package_end = word(line, package);
    let mark = blanks(line, package_end);
    let level = letter(byte(line, mark))?;
    let columns = tag > thread && mark > package_end && is_gap(byte(line, mark + 1)) && is_blank(byte(line, mark + 2));
    columns.then_some(Entry { level, key: (at, thread), end: mark + 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let stamped_rows = [
            ("123  456 E Tag: x", "x"),
            ("10123  123  456 E Tag   : x", "x"),
            ("E/Tag( 123): x", "x"),
            ("E/Tag   ( 123): x", "x"),
            ("123  456 Error Tag x", "x"),
            ("123-456/com.acme E/Tag: x", "x"),
            ("123-456  Tag     com.acme      E  x", "x"),
        ];
        for (line, text) in stamped_rows {
            let entry = stamped(line.as_bytes(), 0).expect(line);
            assert_eq!((entry.level, line[entry.end..].trim_start()), (Level::Error, text), "{line}");
        }
        for line in ["E( 123) x", "E( 123: 124) x", "E/Tag( 123): x"] {
            assert_eq!(brief(line.as_bytes(), 0).map(|entry| entry.level), Some(Level::Error), "{line}");
        }
        for line in
            ["123 E Tag", "123  456 Errors in x", "123  456 error in x", "123 Error Tag x", "1-2 x", "123-456  a b", "E/Tag: x", "I/O error: x", "E(x) y"]
        {
            assert!(stamped(line.as_bytes(), 0).is_none(), "{line}");
        }
    }
}
