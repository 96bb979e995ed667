//! What the lines of a trace say about those that follow them: a colon announces more, and an opened
//! bracket is closed. Reads only the text of the lines taken.

use super::OpenTrace;
use crate::core::line::Line;

impl OpenTrace {
    /// Whether its last non-blank line ends with a colon.
    #[must_use]
    pub fn announces(&self) -> bool {
        let last = (0..self.lines.len()).rev().map(|at| self.lines.get(at).text.trim_ascii_end()).find(|text| !text.is_empty());
        last.is_some_and(|text| text.ends_with(b":"))
    }

    /// Whether its first line ends with a colon: the error is told below it.
    #[must_use]
    pub fn announces_next(&self) -> bool {
        self.head().text.trim_ascii_end().ends_with(b":")
    }

    /// Whether the line below its first one is indented.
    #[must_use]
    pub fn is_told_below(&self) -> bool {
        self.lines.from(1).next().is_some_and(|taken| matches!(taken.part.first(), Some(b' ' | b'\t')))
    }

    /// Whether `line` is but the bracket that closes what its first line has opened.
    #[must_use]
    pub fn is_closed_by(&self, line: &Line) -> bool {
        let close = match self.head().text.trim_ascii_end().last() {
            Some(b'{') => b'}',
            Some(b'[') => b']',
            Some(b'(') => b')',
            _ => return false,
        };
        let body = line.body().trim_ascii_end();
        body.first() == Some(&close) && body.iter().all(|byte| b"}]),;".contains(byte))
    }
}
