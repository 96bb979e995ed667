//! What stands between a time and the text behind it, and whether a logger or a transport put the time there.

use super::Scan;
use super::boxed;
use crate::core::decode::level::{is_common, is_soft};
use crate::core::decode::scan::{blanks, byte, is_gap, rest, run};
use crate::core::decode::tag::{self, Ground, Tag};
use crate::core::decode::writer::past_blank;

/// What some put between a time and what a program printed.
pub(super) const PADDING: &[u8] = b"  ";

impl Scan<'_> {
    /// Takes the two blanks between a stamp, which lies from `start` to `end`, and what a program printed
    /// (`s6-tai64nlocal`). A logger has its level there; a transport's stamp in one word is parted by one blank.
    /// More blanks are more often one blank and the text's own indentation; an open trace tells.
    pub(super) fn padding(&mut self, start: usize, end: usize) -> bool {
        let text = end + PADDING.len();
        if !rest(self.line, end).starts_with(PADDING) || is_gap(byte(self.line, text)) {
            return false;
        }
        let word = run(self.line, text, |b| b.is_ascii_lowercase());
        // `error: ` and `error[E0308]: ` are a compiler's.
        let said = word > text && matches!(byte(self.line, word), b':' | b'[');
        let spaced = memchr::memchr(b' ', &self.line[start..end]).is_some();
        let known = spaced && (said || boxed::is_untagged(self.line, text));
        if known {
            self.ground = Ground::Bare;
            self.at = text;
            self.out.padded = true;
        }
        known
    }

    /// Steps over the end of a time: a colon, one blank and, after a logger's time, a dash or a bar, which it returns.
    pub(super) fn step_over(&mut self, end: usize) -> Option<u8> {
        let colon = byte(self.line, end) == b':' && is_gap(byte(self.line, end + 1));
        self.at = past_blank(self.line, end + usize::from(colon));
        let sign = blanks(self.line, self.at);
        // Further away, it is an item of a list.
        let is_near = sign <= self.at + 1;
        let found = byte(self.line, sign);
        let known = self.ground == Ground::Logger && is_near && matches!(found, b'-' | b'|') && is_gap(byte(self.line, sign + 1));
        if known {
            self.at = past_blank(self.line, sign + 1);
        }
        known.then_some(found)
    }

    /// Returns the tag at the current position or, behind a logger's time, after fields. A logger's is looked for once.
    pub(super) fn tag_on(&mut self, ground: Ground) -> Option<Tag> {
        if ground != Ground::Logger {
            return tag::find(self.line, self.at, ground);
        }
        if let Some((_, tag)) = self.known.filter(|(at, _)| *at == self.at) {
            return tag;
        }
        let tag = tag::find(self.line, self.at, ground);
        self.known = Some((self.at, tag));
        tag
    }

    /// Returns what precedes the text behind a stamp that loggers and transports alike put there: it is
    /// a logger's if a level follows that no compiler or report prints so: in capitals, brackets or a column, or one below error.
    pub(super) fn either(&mut self) -> Ground {
        let text = blanks(self.line, self.at);
        // Indentation is the text's own, but a column for levels may be padded at its left.
        if text > self.at && !is_common(&self.line[text..run(self.line, text, |b| b.is_ascii_uppercase())]) {
            return Ground::Bare;
        }
        let is_loggers = self.tag_on(Ground::Logger).is_some_and(|tag| {
            let tagged = self.line.get(tag.start..tag.end).unwrap_or_default();
            let next = blanks(self.line, tag.end);
            let is_wide = tag.start == self.at && next > tag.end + 1;
            let before = self.line[..tag.start].trim_ascii_end().last().copied().unwrap_or_default();
            let is_parted = matches!(byte(self.line, next), b'|' | b'-') && (tag.start == self.at || before == byte(self.line, next));
            let word = tagged.split(|b| !b.is_ascii_alphabetic()).rfind(|word| !word.is_empty());
            let is_levels = |word: &[u8]| word.iter().all(u8::is_ascii_uppercase) || (tag.start == self.at && is_soft(word));
            is_wide || is_parted || tagged.starts_with(b"[") || word.is_some_and(is_levels)
        });
        if is_loggers { Ground::Logger } else { Ground::Bare }
    }

    /// Returns what precedes the text behind a full date: most often a logger put it there, and only
    /// a compiler's word (`till.c:4:2: note: `, `    error: `) or a tab shows that a transport did.
    pub(super) fn unless_said(&mut self) -> Ground {
        let tag = self.tag_on(Ground::Logger);
        let is_said = |tag: Tag| {
            let word = self.line.get(tag.start..tag.end).unwrap_or_default();
            tag.start > self.at && byte(self.line, tag.end) == b':' && word != b"err" && word.iter().all(u8::is_ascii_lowercase)
        };
        let is_relayed = byte(self.line, self.at) == b'\t' || tag.is_some_and(is_said);
        if is_relayed { Ground::Bare } else { Ground::Logger }
    }
}

/// Whether two blanks part a stamp that ends at `end` from its text, rather than one: programs
/// indent by an even number of blanks. (An open trace knows better: see `OpenTrace::shown`.)
pub(super) fn is_padded(line: &[u8], end: usize) -> bool {
    let gap = run(line, end, |b| b == b' ') - end;
    gap >= PADDING.len() && gap.is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{E, W, check};

    /// Stamps that loggers and transports alike put before a line: what a compiler or a report prints behind one is no level.
    #[test]
    fn stamps_of_loggers_and_of_transports() {
        check(&[
            ("~12:01:02 ERROR gone", E, "", "ERROR gone", "gone"),
            ("~12:01:02 main ERROR gone", E, "", "ERROR gone", "gone"),
            ("~12:01:02 [main] [error] gone", E, "", "[error] gone", "gone"),
            ("~12:01:02 error    gone", E, "", "error    gone", "gone"),
            ("~12:01:02 warn gone", W, "", "warn gone", "gone"),
            ("~12:01:02     error: |-", None, "", "    error: |-", "    error: |-"),
            ("~12:01:02 till.c:4:2: note: drawer", None, "", "till.c:4:2: note: drawer", "till.c:4:2: note: drawer"),
            ("~12:01:02   |     ^", None, "", "  |     ^", "  |     ^"),
            ("2026-11-10 10:00:00.123 | error | gone", E, "", "error | gone", "gone"),
            ("2026-11-10 10:00:00.123 | error: gone", None, "", "error: gone", "error: gone"),
            ("2026-11-10 10:00:00.123 |  1 | ERROR | [x] gone", None, "", " 1 | ERROR | [x] gone", " 1 | ERROR | [x] gone"),
            ("2026-11-10 10:00:00.123 |", None, "", "", ""),
            ("2026-11-10 10:00:00.123 -", None, "", "", ""),
            ("~10:00:00     INFO -", None, "", "", ""),
        ]);
    }
}
