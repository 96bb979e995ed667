//! The block of lines of a private key: where it begins, what it holds, where it ends.

use super::PRIVATE_KEY;

/// Shortest line, in bytes, that counts as part of a key if only its place says so. Its base64 may also be a
/// word of a log, and a key whose last line leaks fewer than this many letters is no less secret.
const MIN_BODY_BYTES: usize = 16;

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
    /// Returns the block that `line`, already redacted, may have opened.
    #[must_use]
    pub fn behind(line: &str) -> Self {
        let token = Self::token();
        let open = line.trim_end().strip_suffix(token.as_str()).map(|before| Open { words: words(before), is_sure: false });
        Self { open }
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

    /// Returns what replaces a line of the block.
    #[must_use]
    pub fn token() -> String {
        format!("[redacted:{PRIVATE_KEY}]")
    }
}

/// The block of a private key of which a logger makes a record for each line. It sees records, not all lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyRecords {
    block: KeyBlock,
    /// Number of the last record's line.
    num: u64,
}

impl KeyRecords {
    /// Moves on to the record at line `num`; returns the block if the record is inside it. Another line between two records ends it.
    pub fn take(&mut self, num: u64, line: &str) -> Option<KeyBlock> {
        if std::mem::replace(&mut self.num, num) + 1 != num {
            self.block = KeyBlock::default();
        }
        let before = self.block;
        self.block.takes(line).then_some(before)
    }
}

impl Open {
    /// Whether the line may be inside the block: base64, a header (RFC 1421) or the end.
    /// The check of the shape keeps a block without an end from hiding more.
    pub(super) fn holds(self, line: &str) -> bool {
        let bare = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '|' | '>' | '"' | '\'' | ',' | '+'));
        let mut words = bare.split_ascii_whitespace();
        let text = words.next_back().unwrap_or_default();
        let before = words.count();
        let is_body = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'\\'));
        let is_long = text.len() >= MIN_BODY_BYTES;
        let is_head = || ["Proc-Type:", "DEK-Info:", "Comment:", "Version:"].iter().any(|head| bare.starts_with(head));
        let is_in_place = if before == 0 { self.is_sure || is_long } else { before == self.words && is_long };
        (is_body && is_in_place) || bare.contains("-----END ") || is_head()
    }
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
