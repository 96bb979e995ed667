//! The block of lines of a private key: where it begins, what it holds, where it ends. Collectors and loggers put
//! words before each line, or put it into a string; a text that only names a key, and what follows it, is no block.

use std::borrow::Cow;

use crate::core::leadin;
use crate::core::text::printable;

/// Shortest run of base64, in bytes, that may be part of a key. A key whose last line leaks fewer letters is no less secret.
const MIN_BODY_BYTES: usize = 16;
/// Shortest full line of a key, in bytes: only after one may a shorter line follow. PEM has 64 to a line (RFC 7468).
const FULL_BYTES: usize = 40;
/// That many full lines of the same length are taken for a key, or something as long and random, whose beginning is out of reach.
const MIN_ALIKE: usize = 8;
/// Headers of a key (RFC 1421, RFC 4880, RFC 4716), wherever they stand in a line.
const HEADERS: [&[u8]; 3] = [b"Proc-Type:", b"DEK-Info:", b"Comment:"];

/// The bytes of base64.
const BASE64: [bool; 256] = {
    let mut is = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        is[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        byte += 1;
    }
    is
};

/// A private key's block, followed from line to line as long as its lines look like one.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyBlock {
    open: Option<Open>,
}

/// A block that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// Number of words before the key on its first line: a logger or collector puts as many before the others.
    words: usize,
    /// The name in brackets that the first line begins with, as a checksum: lines of other names are another writer's.
    writer: u32,
    last: Last,
}

/// What the last line of the block was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// The first one, or a header: an empty line may follow.
    Head,
    /// A full line, or the empty one below the headers.
    Full,
    /// One that is not full, so the last one of the key itself.
    Short,
}

/// What a line has that may be a key's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Empty,
    Header,
    /// Base64 of that many bytes, behind a number of words and nothing after it.
    Bare {
        words: usize,
        bytes: usize,
    },
    /// Base64 of that many bytes in a string.
    Quoted {
        bytes: usize,
    },
    /// The checksum of PGP's armour, behind a number of words.
    Checksum {
        words: usize,
    },
    Other,
}

impl KeyBlock {
    /// What replaces a line of the block.
    pub const TOKEN: &'static str = "[redacted:private-key]";

    /// Returns the block that the lines `before`, nearest first, leave open for `line`.
    pub(super) fn left_open<'a>(line: &str, before: impl Iterator<Item = Cow<'a, [u8]>>) -> Self {
        let own = writer_of(line);
        let (mut lines, mut was_alone): (Vec<String>, bool) = (Vec::new(), false);
        for line in before.map(|line| printable(&line).into_owned()).filter(|line| [0, own].contains(&writer_of(line))) {
            let open = opened(&line);
            if open.is_some() {
                let mut block = Self { open };
                lines.iter().rev().for_each(|line| {
                    block.takes(line);
                });
                return block;
            }
            // Below a short line, which may be any text, only a full one or a header counts.
            let shape = Shape::of(&line);
            let is_alone = matches!(shape, Shape::Bare { bytes, .. } if bytes < MIN_BODY_BYTES);
            if end_of(&line).is_some() || shape == Shape::Other || (is_alone && was_alone) {
                return Self::default();
            }
            was_alone = is_alone;
            lines.push(line);
        }
        Self { open: out_of_reach(&lines) }
    }

    /// Returns the block that the lines `before`, nearest first, leave open for `lines`. They are read only if one of
    /// the first two lines may be inside a block: the other may be empty but for words.
    #[must_use]
    pub fn around<'a, 'b>(lines: impl Iterator<Item = &'a [u8]>, before: impl Iterator<Item = Cow<'b, [u8]>>) -> Self {
        let mut first = lines.take(2).map(printable);
        let suspect = first.find(|line| may_hold_part(line) && Shape::of(line).may_be_inside());
        suspect.map(|line| Self::left_open(&line, before)).unwrap_or_default()
    }

    /// Returns the block that `line` is inside of, if it is nothing but a key's, with words before it at most. The lines
    /// `before`, nearest first, are read only then.
    #[must_use]
    pub fn of_body<'a, I: Iterator<Item = Cow<'a, [u8]>>>(line: &str, before: impl FnOnce() -> I) -> Option<Self> {
        let is_body = matches!(Shape::alone(last_word(core_of(line))), Some(Shape::Bare { .. }));
        is_body.then(|| Self::left_open(line, before())).filter(|key| key.holds(line))
    }

    /// Moves on to the next line; returns whether that is inside the block.
    pub fn takes(&mut self, line: &str) -> bool {
        let Some(open) = self.open else {
            self.open = opened(line);
            return false;
        };
        if open.is_of_other(line) {
            return false;
        }
        if end_of(line).is_some() {
            self.open = None;
            return true;
        }
        let last = open.next(line);
        self.open = last.map(|last| Open { last, ..open }).or_else(|| opened(line));
        last.is_some()
    }

    /// Whether a line would be inside the block.
    pub(super) fn holds(&self, line: &str) -> bool {
        self.open.is_some_and(|open| open.holds(line))
    }

    /// Whether the next line may be inside the block.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

impl Open {
    /// Whether the line would be inside the block.
    pub(super) fn holds(self, line: &str) -> bool {
        !self.is_of_other(line) && (end_of(line).is_some() || self.next(line).is_some())
    }

    /// Returns what the line would be in the block, if it is the next one. The check of the shape
    /// keeps a block without an end from hiding more.
    fn next(self, line: &str) -> Option<Last> {
        match Shape::of(line) {
            Shape::Header if self.last == Last::Head => Some(Last::Head),
            Shape::Empty if self.last == Last::Head => Some(Last::Full),
            // An empty line behind the words.
            Shape::Bare { words, .. } if self.last == Last::Head && words + 1 == self.words => Some(Last::Full),
            Shape::Bare { words, bytes } if self.last != Last::Short => {
                let is_in_place = words == self.words;
                let may_be_last = is_in_place && self.last == Last::Full;
                match bytes {
                    FULL_BYTES.. => Some(Last::Full),
                    MIN_BODY_BYTES.. if is_in_place => Some(Last::Short),
                    _ if may_be_last => Some(Last::Short),
                    _ => None,
                }
            }
            Shape::Quoted { bytes } if self.last != Last::Short && bytes >= MIN_BODY_BYTES => Some(if bytes >= FULL_BYTES { Last::Full } else { Last::Short }),
            Shape::Checksum { words } if words == self.words && self.last != Last::Head => Some(Last::Short),
            _ => None,
        }
    }

    /// Whether the line may be a part of the block, whatever is before it.
    pub(super) fn spans(self, line: &str) -> bool {
        match Shape::of(line) {
            Shape::Empty | Shape::Header | Shape::Quoted { .. } => true,
            Shape::Bare { words, bytes } => words == self.words || bytes >= FULL_BYTES,
            Shape::Checksum { words } => words == self.words,
            Shape::Other => false,
        }
    }

    /// Whether the line begins with another name in brackets than the block's lines.
    fn is_of_other(self, line: &str) -> bool {
        let writer = writer_of(line);
        writer != 0 && writer != self.writer
    }
}

impl Shape {
    /// Whether a line of this shape, without the lines before it, may be inside a block.
    fn may_be_inside(self) -> bool {
        match self {
            Self::Bare { bytes, .. } | Self::Quoted { bytes } => bytes >= MIN_BODY_BYTES,
            Self::Empty | Self::Header => true,
            Self::Checksum { .. } | Self::Other => false,
        }
    }

    fn of(line: &str) -> Self {
        let bare = core_of(line);
        if bare.is_empty() {
            return Self::Empty;
        }
        let (before, text) = last_word(bare);
        if let Some(alone) = Self::alone((before, text)) {
            return alone;
        }
        // A logger's last field may be as short as a key's last line.
        if let Some(bytes) = quoted_run(bare.as_bytes()) {
            return Self::Quoted { bytes };
        }
        if text.len() < MIN_BODY_BYTES && text.bytes().all(is_base64) {
            let is_checksum = text.len() == 5 && text.starts_with('=');
            return if is_checksum { Self::Checksum { words: words(before) } } else { Self::Bare { words: words(before), bytes: text.len() } };
        }
        if has_header(bare.as_bytes()) { Self::Header } else { Self::Other }
    }

    /// Returns the shape if the line's last word, `text`, is one that only a key has.
    fn alone((before, text): (&str, &str)) -> Option<Self> {
        let is_random = match text.len() {
            FULL_BYTES.. => is_mixed(text.as_bytes()),
            MIN_BODY_BYTES.. => is_cased(text.as_bytes()),
            _ => false,
        };
        (is_random && text.bytes().all(is_base64)).then(|| Self::Bare { words: words(before), bytes: text.len() })
    }
}

/// Whether the line may have a shape that [`may_be_inside`](Shape::may_be_inside) a block: most lines
/// have no header, and no run of base64 that is long enough and has a capital.
fn may_hold_part(line: &str) -> bool {
    core_of(line).is_empty() || has_run(line.as_bytes()) || has_header(line.as_bytes())
}

/// Whether the text has a run of base64 that is long enough and has a capital.
fn has_run(text: &[u8]) -> bool {
    let mut from = 0;
    // A byte that is in no run rules out every run that would begin before it: most words are passed over in a few steps.
    while let Some(shortest) = text.get(from..from + MIN_BODY_BYTES) {
        if let Some(other) = shortest.iter().rposition(|&byte| !is_base64(byte)) {
            from += other + 1;
            continue;
        }
        let length = text[from..].iter().position(|&byte| !is_base64(byte)).unwrap_or(text.len() - from);
        if text[from..from + length].iter().any(u8::is_ascii_uppercase) {
            return true;
        }
        from += length;
    }
    false
}

fn has_header(text: &[u8]) -> bool {
    let [one, two, three] = HEADERS.map(|header| header[0]);
    let is_header = |at: usize| HEADERS.iter().any(|header| text[at..].starts_with(header));
    memchr::memchr3_iter(one, two, three, text).any(is_header)
}

/// Returns the line without the blanks, frames and signs of a string that it begins and ends with.
fn core_of(line: &str) -> &str {
    line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '|' | '>' | '"' | '\'' | ',' | '+'))
}

/// Returns what stands before the last word, and the word without the escapes of line ends, which are no base64.
fn last_word(bare: &str) -> (&str, &str) {
    let (before, mut word) = bare.split_at(memchr::memrchr2(b' ', b'\t', bare.as_bytes()).map_or(0, |blank| blank + 1));
    if !word.ends_with(['n', 'r', '\\']) {
        return (before, word);
    }
    for escape in [r"\n", r"\r", "\\"] {
        while let Some(shorter) = word.strip_suffix(escape) {
            word = shorter;
        }
    }
    (before, word)
}

/// Returns the length of the first run of base64 that begins a string in the text.
fn quoted_run(text: &[u8]) -> Option<usize> {
    // It stands behind a quotation mark or has a sign in it: most lines have none of these, or only at their end.
    let signs = [memchr::memchr3(b'"', b'\'', b'=', text), memchr::memchr2(b'\\', b'`', text)];
    let first = signs.into_iter().flatten().min()?;
    // Behind the last byte that is known to be in no run of that length: most words are passed over in one step.
    let mut from = text[..first].iter().rposition(|&b| !is_base64(b)).map_or(0, |at| at + 1);
    while let Some(shortest) = text.get(from..from + MIN_BODY_BYTES) {
        if let Some(other) = shortest.iter().rposition(|&b| !is_base64(b)) {
            from += other + 1;
            continue;
        }
        let to = text[from..].iter().position(|&b| !is_base64(b)).map_or(text.len(), |len| from + len);
        let is_enclosed = from > 0 && is_quote(text[from - 1]) && text.get(to).is_none_or(|byte| is_quote(*byte));
        // `key=MIIE… ` has no quotes, but its sign counts as base64.
        let is_value = text[from..to].iter().position(|b| *b == b'=').is_some_and(|sign| sign + 1 < to - from && text.get(to).is_none_or(|b| *b == b' '));
        if (is_enclosed || is_value) && is_mixed(&text[from..to]) {
            return Some(to - from);
        }
        from = to;
    }
    None
}

/// Returns the block that lines, nearest first, seem to be in, if none of them begins it: full lines of one length.
fn out_of_reach(lines: &[String]) -> Option<Open> {
    let first = lines.first()?;
    let shape = Shape::of(first);
    let is_full = matches!(shape, Shape::Bare { bytes, .. } | Shape::Quoted { bytes } if bytes >= FULL_BYTES);
    // The same path again and again is none.
    let is_key = is_full && lines.len() >= MIN_ALIKE && lines.iter().all(|line| Shape::of(line) == shape) && lines[1..].iter().any(|line| line != first);
    let words = if let Shape::Bare { words, .. } = shape { words } else { 0 };
    is_key.then(|| Open { words, writer: writer_of(first), last: Last::Full })
}

/// Returns the block that begins in this line and does not end in it: nothing but a key follows, or the end of a string.
fn opened(line: &str) -> Option<Open> {
    let begin = line.rfind("BEGIN ")?;
    let before = line[..begin].trim_end().strip_suffix("----")?.trim_end_matches('-');
    let (name, after) = line[begin..].split_once("----")?;
    if !name.contains("PRIVATE KEY") || after.contains("-----END ") {
        return None;
    }
    let after = after.trim_start_matches('-');
    let is_end = |byte: u8| byte.is_ascii_whitespace() || is_quote(byte) || matches!(byte, b',' | b';');
    let is_key = after.bytes().next().is_some_and(|byte| is_base64(byte) || is_quote(byte));
    let is_open = is_key || after.bytes().all(is_end);
    is_open.then(|| Open { words: words(before), writer: writer_of(line), last: Last::Head })
}

/// Returns where the end of a block of any kind stands in this line.
fn end_of(line: &str) -> Option<usize> {
    line.find("-----END ").or_else(|| line.find("---- END "))
}

/// Returns the block that ends in this line and does not begin in it.
pub(super) fn ended(line: &str) -> Option<Open> {
    let end = end_of(line)?;
    let is_end = line[end..].contains("PRIVATE KEY") && !line[..end].contains("BEGIN ");
    is_end.then(|| Open { words: words(&line[..end]), writer: writer_of(line), last: Last::Full })
}

/// Returns a checksum of the name in brackets that the line begins with (FNV-1a); 0 if there is none.
fn writer_of(line: &str) -> u32 {
    let Some(length) = leadin::writer(line.as_bytes()) else { return 0 };
    line.as_bytes()[..length].iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Whether the run has letters of both cases and digits, as every long run of base64 does.
fn is_mixed(run: &[u8]) -> bool {
    is_cased(run) && run.iter().any(u8::is_ascii_digit)
}

fn is_cased(run: &[u8]) -> bool {
    run.iter().any(u8::is_ascii_uppercase) && run.iter().any(u8::is_ascii_lowercase)
}

/// Whether a string, or an escape in it, begins or ends with the byte.
fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'\\' | b'`')
}

fn is_base64(byte: u8) -> bool {
    BASE64[usize::from(byte)]
}

fn words(text: &str) -> usize {
    text.split_ascii_whitespace().count()
}

#[cfg(test)]
#[path = "key_block_tests.rs"]
mod tests;
