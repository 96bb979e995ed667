//! The numbers that are the fault itself: exit codes, HTTP status, errno. They are kept as they are.

use super::normalise::{Listener, Machine, Span};

impl<L: Listener> Machine<'_, '_, L> {
    /// Whether a token with digits is the fault itself: a code after a word that says so, or a status before its phrase.
    pub(super) fn is_fault(&self, (at, end): Span) -> bool {
        let token = self.slice((at, end));
        let number = token.strip_prefix(b"-").unwrap_or(token);
        let numeric = (1..=10).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
        let coded = (2..=12).contains(&token.len()) && token.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
        let address = token.starts_with(b"0x") && token.len() <= 10;
        if !numeric && !coded && !address {
            return false;
        }
        let (from, to) = self.words[1];
        let (word, gap) = (self.slice((from, to)), &self.bytes[to..at]);
        let near = to > 0 && gap.len() <= 4 && gap.iter().all(|b| b" :=([#\"'\\".contains(b));
        let status = token.len() == 3 && matches!(token[0], b'1'..=b'5');
        (near && (names_code(word) || (status && word.starts_with(b"HTTP/")) || (numeric && self.follows_error(word, gap, status && token[0] >= b'4'))))
            || (status && token[0] >= b'4' && says_status(&self.bytes[end..]))
    }

    /// Whether the words before a number make it the fault: `Error 2`,
    /// `API Error: 429`, `exited with 1`, `status code was 500`.
    pub(super) fn follows_error(&self, word: &[u8], gap: &[u8], status: bool) -> bool {
        if word.eq_ignore_ascii_case(b"error") {
            return gap == b" " || gap == b" (" || (status && gap == b": ");
        }
        let before = self.slice(self.words[0]);
        let filler = [&b"with"[..], b"of", b"is", b"was", b"to", b"by"].contains(&word) && matches!(gap, b" " | b" '" | b" \"" | b": ");
        filler && (names_code(before) || [&b"exited"[..], b"exit", b"died", b"terminated"].contains(&before))
    }
}

/// Whether a number after this word is the fault itself, also if the word ends a longer name (`exitCode`, `http_status`).
fn names_code(word: &[u8]) -> bool {
    const ENDS: &[&[u8]] = &[b"code", b"status", b"errno", b"signal", b"sqlstate", b"hresult"];
    const WHOLE: &[&[u8]] = &[b"exit", b"http", b"rc", b"sig", b"winerror", b"ntstatus", b"httperror"];
    ENDS.iter().any(|end| word.len() >= end.len() && word[word.len() - end.len()..].eq_ignore_ascii_case(end))
        || WHOLE.iter().any(|whole| word.eq_ignore_ascii_case(whole))
}

/// Whether the text after a number makes it an HTTP status (reason phrases of RFC 9110, and two of `requests`).
fn says_status(after: &[u8]) -> bool {
    const PHRASES: &[&[u8]] = &[
        b"Bad Request",
        b"Unauthorized",
        b"Payment Required",
        b"Forbidden",
        b"Not Found",
        b"Method Not",
        b"Not Acceptable",
        b"Request Timeout",
        b"Conflict",
        b"Gone",
        b"Payload Too",
        b"Unprocessable",
        b"Too Many",
        b"Client Error",
        b"Internal Server",
        b"Not Implemented",
        b"Bad Gateway",
        b"Service Unavailable",
        b"Gateway Time",
        b"Server Error",
        b"overloaded",
    ];
    let skip = after.iter().take_while(|b| matches!(b, b' ' | b':' | b'-' | b'(')).count();
    skip > 0 && PHRASES.iter().any(|phrase| after[skip..].get(..phrase.len()).is_some_and(|head| head.eq_ignore_ascii_case(phrase)))
}
