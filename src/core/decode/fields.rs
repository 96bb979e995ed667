//! The fields between a level tag and the message: logger, thread, process, brackets, columns. Used by
//! `prefix`. Stops early rather than late: what may be the message, above all an exception's name, stays.

use super::level::level_word;
use super::scan::{blanks, byte, digits, group, is_blank, is_gap, is_name, rest, run, word};
use super::tag::Ground;

/// Maximum number of fields after a tag.
const MAX_FIELDS: usize = 8;
/// Longest column between two `|`, in bytes.
const COLUMN_BYTES: usize = 96;

/// Returns where the message begins after the tag that ends at `at`: after logger, thread, process and bracket fields.
pub fn message(line: &[u8], at: usize, ground: Ground) -> usize {
    if byte(line, at) == b':' {
        let at = at + 1;
        return if is_gap(byte(line, at)) { blanks(line, at) } else { glued_logger(line, at) };
    }
    let tabbed = byte(line, at) == b'\t';
    let mut at = blanks(line, at);
    if byte(line, at) == b'|' {
        at = columns(line, at);
    }
    let mut named = false;
    for _ in 0..MAX_FIELDS {
        at = blanks(line, at);
        let step = match byte(line, at) {
            b'[' => bracket_field(line, at),
            b'-' => dashes(line, at),
            b':' if is_gap(byte(line, at + 1)) => Step::Last(at + 1),
            b'0'..=b'9' | b'*' => number_field(line, at),
            b if b.is_ascii_alphabetic() || b == b'_' || b == b'/' => logger(line, at, Logger { ground, tabbed, named }),
            _ => Step::Message,
        };
        named = matches!(step, Step::Name(_));
        match step {
            Step::Field(end) | Step::Name(end) => at = end,
            Step::Last(end) => return blanks(line, end),
            Step::Message => return at,
        }
    }
    at
}

/// What may be found between tag and message.
enum Step {
    /// A field that ends there.
    Field(usize),
    /// `--`: a program name with a colon may follow.
    Name(usize),
    /// The last field; the message follows.
    Last(usize),
    /// The message itself.
    Message,
}
/// Whether a date follows: one in a column or bracket begins a further head, which `prefix` reads.
fn is_date(line: &[u8], at: usize) -> bool {
    digits(line, at) - at == 4 && matches!(byte(line, at + 4), b'-' | b'/')
}

/// Skips the `| ` columns of one word (or a word and a number), from the `|` at `at`.
fn columns(line: &[u8], at: usize) -> usize {
    let mut at = at;
    for _ in 0..MAX_FIELDS {
        let start = blanks(line, at + 1);
        let column = &rest(line, start)[..rest(line, start).len().min(COLUMN_BYTES)];
        let Some(bar) = memchr::memchr(b'|', column).filter(|_| !is_date(line, start)) else {
            return start;
        };
        let text = column[..bar].trim_ascii();
        let first = word(text, 0);
        let second = &text[blanks(text, first)..];
        if !second.iter().all(u8::is_ascii_digit) {
            return start;
        }
        at = start + bar;
    }
    at
}

fn bracket_field(line: &[u8], at: usize) -> Step {
    let Some(close) = group(line, at) else {
        return Step::Message;
    };
    let inner = &line[at + 1..close];
    let errno = inner.starts_with(b"Errno") || inner.starts_with(b"WinError");
    let next = byte(line, close + 1);
    let last = blanks(line, close + 1) >= line.len();
    if errno || last || is_date(line, at + 1) || !(is_gap(next) || matches!(next, b':' | b'[')) {
        return Step::Message;
    }
    Step::Field(close + 1)
}

fn dashes(line: &[u8], at: usize) -> Step {
    let end = run(line, at, |b| b == b'-');
    match (end - at, is_gap(byte(line, end))) {
        (1, true) => Step::Last(end),
        (2, true) => Step::Name(end),
        (3, true) => Step::Field(end),
        _ => Step::Message,
    }
}

/// Reads a process number before `---` or a bracket, or nginx's `123#0:` and `*5`.
fn number_field(line: &[u8], at: usize) -> Step {
    let starred = byte(line, at) == b'*';
    let end = digits(line, at + usize::from(starred));
    if byte(line, end) == b'#' {
        let end = digits(line, end + 1);
        return if byte(line, end) == b':' { Step::Field(end + 1) } else { Step::Message };
    }
    let next = byte(line, blanks(line, end));
    let field = is_blank(byte(line, end)) && (starred || matches!(next, b'-' | b'['));
    if field { Step::Field(end) } else { Step::Message }
}

/// What is known at a place where a logger's name may be.
#[derive(Clone, Copy)]
struct Logger {
    ground: Ground,
    tabbed: bool,
    named: bool,
}

/// `c.a.Foo - `, `o.s.Foo   : `, `mod::x: `, `neutron.wsgi [`, `vpxd[45715] `, `--prog: `, and tab-separated columns.
fn logger(line: &[u8], at: usize, known: Logger) -> Step {
    let end = word(line, at);
    let text = &line[at..end];
    let name = text.strip_suffix(b":").unwrap_or(text);
    if is_fault(name) || !name.iter().all(|&b| is_name(b) || b":$/@[]".contains(&b)) {
        return Step::Message;
    }
    if name.len() < text.len() {
        let logger = known.named || is_logger(name);
        return if logger { Step::Last(end) } else { Step::Message };
    }
    let next = blanks(line, end);
    let sign = byte(line, next);
    if matches!(sign, b'-' | b':') && is_blank(byte(line, next + 1)) {
        return Step::Last(next + 1);
    }
    let numbered = name.ends_with(b"]") && name.contains(&b'[');
    let dotted = sign == b'[' && name.contains(&b'.');
    // zap's console: the column before the JSON fields is the message.
    let column = known.tabbed && byte(line, end) == b'\t' && sign != b'{';
    let field = column || (known.ground != Ground::Bare && next > end && (numbered || dotted));
    if field { Step::Field(end) } else { Step::Message }
}

/// Returns where the message of Python's `ERROR:root:msg` begins:
/// after the glued name, or at `at` if no logger's name is there.
fn glued_logger(line: &[u8], at: usize) -> usize {
    let end = run(line, at, is_name);
    let name = &line[at..end];
    let glued = byte(line, end) == b':' && !name.is_empty() && !is_fault(name);
    if glued { blanks(line, end + 1) } else { at }
}

/// Whether a name before `: ` is a module or a class rather than a file or a word of the message.
fn is_logger(name: &[u8]) -> bool {
    let last = name.iter().rposition(|b| *b == b'.').map_or(name, |dot| &name[dot + 1..]);
    let dots = name.iter().filter(|b| **b == b'.').count();
    let path = name.contains(&b'/') || name.contains(&b'[');
    let located = name.iter().rposition(|b| *b == b':').is_some_and(|i| name[i + 1..].iter().all(u8::is_ascii_digit));
    let module = name.windows(2).any(|pair| pair == b"::");
    !path && !located && (module || dots >= 2 || (dots == 1 && last.first().is_some_and(u8::is_ascii_uppercase)))
}

/// Whether this is the name of an exception or a word that begins a message: never a logger.
fn is_fault(name: &[u8]) -> bool {
    const ENDS: [&[u8]; 7] = [b"Error", b"Exception", b"Failure", b"Fault", b"Warning", b"Interrupt", b"Exit"];
    ENDS.iter().any(|end| name.ends_with(end)) || level_word(name).is_some()
}
