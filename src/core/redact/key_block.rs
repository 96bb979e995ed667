//! The block of lines of a private key: where it begins, what it holds, where it ends.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Shortest line, in bytes, that counts as part of a key if only its place says so. Its base64 may also be a
/// word of a log, and a key whose last line leaks fewer than this many letters is no less secret.
const MIN_BODY_BYTES: usize = 16;
/// Shortest run of base64, in bytes, that may hold slashes: shorter ones are paths. PEM has 64 to a line (RFC 7468).
const LONG_BODY_BYTES: usize = 40;

/// Finds [`KeyBlock::TOKEN`]: making a searcher costs more than reading a line.
static TOKEN: LazyLock<Finder> = LazyLock::new(|| Finder::new(KeyBlock::TOKEN));

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
    /// Whether the first line was seen, rather than what has replaced it.
    is_sure: bool,
}

impl KeyBlock {
    /// What replaces a line of the block.
    pub const TOKEN: &'static str = "[redacted:private-key]";

    /// Returns the block that `line`, already redacted, may have opened.
    #[must_use]
    pub fn behind(line: &str) -> Self {
        // In a structured line, more may follow.
        let at = TOKEN.find(line.as_bytes());
        let open = at.map(|at| Open { words: words(&line[..at]), is_sure: false });
        Self { open }
    }

    /// Returns the block that the lines `before`, nearest first, leave open.
    #[must_use]
    pub fn left_open<'a>(before: impl Iterator<Item = Cow<'a, str>>) -> Self {
        let (mut oldest, mut is_key) = (None, true);
        for line in before {
            if let Some(open) = opened(&line) {
                return Self { open: Some(open) };
            }
            if line.contains("-----END ") || !Self::may_hold(&line) {
                return Self::default();
            }
            is_key &= has_run(&line, LONG_BODY_BYTES);
            oldest = Some(Open { words: words(&line).saturating_sub(1), is_sure: false });
        }
        // The block may have begun before the lines at hand.
        Self { open: oldest.filter(|_| is_key) }
    }

    /// Whether some block might have the line between its first and its last one.
    #[must_use]
    pub fn may_hold(line: &str) -> bool {
        is_like_body(line, |_, is_long| is_long)
    }

    /// Moves on to the next line; returns whether that is inside the block.
    pub fn takes(&mut self, line: &str) -> bool {
        if self.holds(line) {
            self.open = self.open.filter(|_| !line.contains("-----END "));
            return true;
        }
        self.open = opened(line);
        false
    }

    /// Whether a line would be inside the block.
    #[must_use]
    pub fn holds(&self, line: &str) -> bool {
        self.open.is_some_and(|open| open.holds(line))
    }

    /// Whether the next line may be inside the block.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

impl Open {
    /// Whether the line may be inside the block.
    pub(super) fn holds(self, line: &str) -> bool {
        line.contains("-----END ")
            || is_like_body(line, |before, is_long| if before.is_empty() { self.is_sure || is_long } else { is_long && words(before) == self.words })
    }
}

/// Whether the line is like those in a block: base64 or a header (RFC 1421). `is_in_place` judges base64 by what
/// is before it and whether it is long. The check of the shape keeps a block without an end from hiding more.
fn is_like_body(line: &str, is_in_place: impl Fn(&str, bool) -> bool) -> bool {
    let bare = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '|' | '>' | '"' | '\'' | ',' | '+'));
    let text = bare.rsplit([' ', '\t']).next().unwrap_or_default();
    let is_body = text.bytes().all(|b| is_base64(b) || b == b'\\');
    let is_head = || ["Proc-Type:", "DEK-Info:", "Comment:", "Version:"].iter().any(|head| bare.starts_with(head));
    let is_in_place = || is_in_place(&bare[..bare.len() - text.len()], text.len() >= MIN_BODY_BYTES);
    (is_body && is_in_place()) || has_run(bare, MIN_BODY_BYTES) || is_head()
}

/// Whether the text, such as a structured line, has a run of base64 of at least `min` bytes that is no word, number or path.
fn has_run(text: &str, min: usize) -> bool {
    let bytes = text.as_bytes();
    let is_mixed = |run: &[u8]| [u8::is_ascii_uppercase, u8::is_ascii_lowercase, u8::is_ascii_digit].iter().all(|is| run.iter().any(is));
    // A run of that length holds two neighbours of these places: asking for both passes over most words.
    let stride = min / 2;
    let is_at = |at: usize| bytes.get(at).is_some_and(|byte| is_base64(*byte));
    let mut at = stride - 1;
    while at + stride < bytes.len() {
        if is_at(at) && is_at(at + stride) {
            let from = bytes[..at].iter().rposition(|&b| !is_base64(b)).map_or(0, |before| before + 1);
            let to = bytes[at..].iter().position(|&b| !is_base64(b)).map_or(bytes.len(), |len| at + len);
            let run = &bytes[from..to];
            if run.len() >= min && is_mixed(run) && (run.len() >= LONG_BODY_BYTES || !run.contains(&b'/')) {
                return true;
            }
            at = to;
        }
        at += stride;
    }
    false
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Returns the block that begins in this line and does not end in it.
fn opened(line: &str) -> Option<Open> {
    let begin = line.find("-----BEGIN ")?;
    let is_open = line[begin..].contains("PRIVATE KEY") && !line[begin..].contains("-----END ");
    is_open.then(|| Open { words: words(&line[..begin]), is_sure: true })
}

/// Returns the block that ends in this line and does not begin in it.
pub(super) fn ended(line: &str) -> Option<Open> {
    let end = line.find("-----END ")?;
    let is_end = line[end..].contains("PRIVATE KEY-----") && !line.contains("-----BEGIN ");
    is_end.then(|| Open { words: words(&line[..end]), is_sure: true })
}

fn words(text: &str) -> usize {
    text.split_ascii_whitespace().count()
}
