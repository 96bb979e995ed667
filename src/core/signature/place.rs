//! Places in a text: URLs, paths and addresses. They lose what depends on one run or one machine.

use super::normalise::{CLASS, Listener, Machine, ODD, Span, WORD};
use super::shape;

impl<L: Listener> Machine<'_, '_, L> {
    /// `scheme://…`, `C:\…` or an address with colons, whose first part ends at `colon`.
    pub(super) fn beyond_colon(&mut self, at: usize, colon: usize) -> Option<usize> {
        if colon <= at + 4
            && self.bytes[at].is_ascii_hexdigit()
            && let Some(stop) = shape::colon_address(self.bytes, at)
        {
            return Some(self.whole((at, stop), "IP", "IPv6 or MAC address"));
        }
        let after = &self.bytes[colon + 1..];
        if after.starts_with(b"//") && self.bytes[at].is_ascii_alphabetic() {
            return Some(self.url(at, colon));
        }
        if colon == at + 1 && self.bytes[at].is_ascii_alphabetic() && matches!(after.first(), Some(b'\\' | b'/')) {
            let end = colon + 1 + after.iter().take_while(|&&b| CLASS[b as usize] & WORD != 0).count();
            return Some(self.path((at, end)));
        }
        None
    }

    /// Writes a URL: scheme, then the last part of its path, normalised.
    pub(super) fn url(&mut self, at: usize, colon: usize) -> usize {
        let stops = |b: &u8| {
            b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>' | b')' | b']' | b'}' | b',' | b'|') || CLASS[*b as usize] & ODD != 0
        };
        let start = colon + 3;
        let mut end = start + self.bytes[start..].iter().take_while(|b| !stops(b)).count();
        while end > start && matches!(self.bytes[end - 1], b'.' | b':' | b';' | b'!' | b'?' | b'\\') {
            end -= 1;
        }
        let address = self.slice((start, end));
        let path = &address[..address.iter().position(|b| matches!(b, b'?' | b'#')).unwrap_or(address.len())];
        if self.slice((at, colon)) == b"file" {
            self.replace((at, start), "", "path");
            return self.path((start, end));
        }
        let last = memchr::memrchr(b'/', path).map_or(path.len(), |slash| slash + 1);
        self.keep(start);
        self.replace((start, start + last), if last < path.len() { "…/" } else { "…" }, "host and path of a URL");
        self.names((start + last, start + path.len()));
        if path.len() < address.len() {
            self.replace((start + path.len(), end), "", "query of a URL");
        }
        self.pass((at, end))
    }

    /// Replaces an e-mail address.
    pub(super) fn address(&mut self, span: Span) -> Option<usize> {
        let token = self.slice(span);
        let sign = memchr::memrchr(b'@', token).filter(|&sign| sign > 0)?;
        shape::is_host(&token[sign + 1..], false).then(|| self.whole(span, "USER@HOST", "address"))
    }

    /// Whether a token with a slash is a path: absolute, relative with a dot, deep, or ending in a file name.
    pub(super) fn is_path(&self, span: Span) -> bool {
        let token = self.slice(span);
        let slashes = memchr::memchr_iter(b'/', token).count();
        let last = token.rsplit(|b| matches!(b, b'/' | b'\\')).next().unwrap_or(token);
        if slashes == 0 {
            return token.starts_with(b"\\\\")
                || token.starts_with(b".\\")
                || token.starts_with(b"..\\")
                || (token[0] != b'\\' && shape::has_extension(last) && !last[0].is_ascii_uppercase());
        }
        if token.starts_with(b"HTTP/") {
            return false;
        }
        token.len() > 1 && (matches!(token[0], b'/' | b'.' | b'~') || slashes >= 2 || shape::has_extension(last)) && !is_fraction(token)
    }

    /// Writes a path: its last part, normalised; `TMP` for what a temporary folder holds under a made-up name.
    pub(super) fn path(&mut self, (at, end): Span) -> usize {
        let token = self.slice((at, end));
        let trimmed = token.len() - token.iter().rev().take_while(|b| matches!(b, b'/' | b'\\')).count();
        let start = token[..trimmed].iter().rposition(|b| matches!(b, b'/' | b'\\')).map_or(0, |slash| slash + 1);
        let name = &token[start..trimmed];
        if is_temporary(&token[..start], name) {
            let extension = memchr::memrchr(b'.', name).filter(|&dot| dot > 0 && shape::has_extension(name));
            let stop = extension.map_or(trimmed, |dot| start + dot);
            self.replace((at, at + stop), "TMP", "temporary name");
            return self.pass((at, end));
        }
        if start > 0 {
            self.replace((at, at + start), "", "path");
        }
        self.names((at + start, at + trimmed));
        if trimmed < token.len() {
            self.replace((at + trimmed, end), "", "path");
        }
        self.pass((at, end))
    }
}

/// Whether the token is a fraction, such as `3/10`.
fn is_fraction(token: &[u8]) -> bool {
    token.iter().all(|b| b.is_ascii_digit() || matches!(b, b'/' | b'.')) && token[0].is_ascii_digit()
}

/// Whether a file of this name in this folder was made for one run.
fn is_temporary(folder: &[u8], name: &[u8]) -> bool {
    let direct = [&b"/tmp/"[..], b"/var/tmp/", b"/private/tmp/", b"/dev/shm/"].contains(&folder)
        || folder.ends_with(b"\\Temp\\")
        || (folder.starts_with(b"/var/folders/") && folder.ends_with(b"/T/"));
    let made_up = !shape::has_extension(name) || name.iter().any(u8::is_ascii_digit);
    let python = name.len() == 11 && name.starts_with(b"tmp") && name.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_');
    (direct && made_up) || python || name.starts_with(b"tmp.") || name.starts_with(b"pytest-of-")
}
