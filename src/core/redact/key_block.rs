//! The block of lines of a private key: where it begins, what it holds, where it ends.

use super::PRIVATE_KEY;

/// A private key's block, followed from line to line as long as its lines look like one.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyBlock {
    is_open: bool,
}

impl KeyBlock {
    /// Moves on to the next line; returns whether that is inside the block.
    pub fn takes(&mut self, line: &str) -> bool {
        if self.is_open && is_key_body(line) {
            self.is_open = !line.contains("-----END ");
            return true;
        }
        self.is_open = opens_key(line);
        false
    }

    /// Whether the next line may be inside the block.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns what replaces a line of the block.
    #[must_use]
    pub fn token() -> String {
        format!("[redacted:{PRIVATE_KEY}]")
    }
}

/// Whether a key's block begins in this line and does not end in it.
fn opens_key(line: &str) -> bool {
    line.rfind("PRIVATE KEY").is_some_and(|at| line[..at].contains("-----BEGIN ") && !line[line.find("-----BEGIN ").unwrap_or(0)..].contains("-----END "))
}

/// Whether a key's block ends in this line and does not begin in it.
pub(super) fn ends_key(line: &str) -> bool {
    line.contains("PRIVATE KEY-----") && line.contains("-----END ") && !line.contains("-----BEGIN ")
}

/// Whether the line may be inside a key's block: base64, a header (RFC 1421) or
/// the end. The check of the shape keeps a block without an end from hiding more.
pub(super) fn is_key_body(line: &str) -> bool {
    let bare = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '|' | '>' | '"' | '\'' | ',' | '+'));
    let base64 = bare.len() <= 100 && bare.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'\\'));
    base64 || bare.starts_with("-----END ") || ["Proc-Type:", "DEK-Info:", "Comment:", "Version:"].iter().any(|head| bare.starts_with(head))
}
