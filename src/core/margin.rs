//! The blanks before every line of a finished text: a report that a person or another program passes on as a whole is indented
//! as a whole, and they are no part of its lines. Many reports indent all of their lines themselves; so there is a margin only
//! if at least as many lines begin something without it as with it, and no more of it is cut than shows. Decided once, from the beginning of the text.

use std::borrow::Cow;

use super::confirm::Confirm;
use super::engine::Engine;
use super::event::Timestamp;
use super::line::{Line, Place};
use super::shown;
use super::visible::visible;

/// A single blank is rather a column of the text.
const MIN_BLANKS: usize = 2;
/// Blanks beyond these belong to the text.
const MAX_BLANKS: usize = 24;
/// Maximum number of blanks that a report puts before all of its lines itself.
const MAX_OWN_BLANKS: usize = 4;
/// Fewer lines may be a part of a report that indents its parts.
const MIN_LINES: usize = 4;
/// Number of lines from which it is decided.
const MAX_LINES: usize = 400;
/// Number of bytes at the beginning of a text from which its margin is decided.
pub const HEAD_BYTES: usize = 16 << 10;

/// The number of blanks that precede every line of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin(usize);

impl Margin {
    /// Returns the margin of the text that begins with `head`, which is all of it or at least [`HEAD_BYTES`] long.
    #[must_use]
    pub fn of(engine: &Engine, head: &[u8], now: Timestamp) -> Self {
        let head = &head[..head.len().min(HEAD_BYTES)];
        let least = least(head);
        if least < MIN_BLANKS {
            return Self::default();
        }
        let count = |margin: Self| lines(head).filter(|line| begins(engine, &margin.cut_off(visible(line, None)), now)).count();
        let (mut best, mut most) = (Self::default(), 0);
        // Of those with which as many lines begin something, the widest.
        for blanks in (least.saturating_sub(MAX_OWN_BLANKS)..=least).filter(|blanks| *blanks >= MIN_BLANKS) {
            let begun = count(Self(blanks));
            if begun >= most.max(1) {
                (best, most) = (Self(blanks), begun);
            }
        }
        if most >= count(Self::default()) { best } else { Self::default() }
    }

    /// Whether there is a margin.
    #[must_use]
    pub fn is_any(self) -> bool {
        self.0 > 0
    }

    /// Returns the line without the margin.
    #[must_use]
    pub fn cut(self, line: &[u8]) -> &[u8] {
        &line[line.iter().take(self.0).take_while(|byte| **byte == b' ').count()..]
    }

    /// The same for a line that may be owned.
    #[must_use]
    pub fn cut_off(self, line: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
        match line {
            Cow::Borrowed(line) => Cow::Borrowed(self.cut(line)),
            Cow::Owned(line) if self.is_any() => Cow::Owned(self.cut(&line).to_vec()),
            owned => owned,
        }
    }
}

/// Returns the lines with text among the first ones.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_blank = |line: &&[u8]| line.iter().all(u8::is_ascii_whitespace);
    head.split(|byte| *byte == b'\n').filter(move |line| !is_blank(line)).take(MAX_LINES)
}

/// Returns the number of blanks before the least indented line; 0 if there are too few lines.
fn least(head: &[u8]) -> usize {
    let blanks = |line: &[u8]| line.iter().take(MAX_BLANKS).take_while(|byte| **byte == b' ').count();
    let (mut least, mut count) = (MAX_BLANKS, 0);
    for line in lines(head) {
        (least, count) = (least.min(blanks(line)), count + 1);
        if least < MIN_BLANKS || (count == 1 && shown::is_numbered(line)) {
            return 0;
        }
    }
    if count < MIN_LINES { 0 } else { least }
}

/// Whether a report or an error of a shape of its own begins with the line. Words that prose uses, too, say nothing.
fn begins(engine: &Engine, text: &[u8], now: Timestamp) -> bool {
    let candidates = engine.candidates_of(text);
    if candidates.is_empty() {
        return false;
    }
    let line = Line::new(Place::default(), text, now);
    let mut confirm = Confirm::new(engine, &line, &candidates);
    let is_own = |entry: &u16| !engine.rules.entries[usize::from(*entry)].generic;
    let found = confirm.border().is_some() || confirm.region().is_some() || confirm.starts().0.iter().any(is_own);
    found || confirm.note().or_else(|| confirm.rule()).is_some_and(|found| is_own(&found.entry))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::engine::Limits;
    use crate::rules::RuleSet;

    const SESSION: &str = "===== test session starts =====\ncollected 1 item\n\na.py F\n\n==== FAILURES ====\n____ test_a ____\n\n    def test_a():\n>       assert f() == 1\nE       assert 2 == 1\n\na.py:3: AssertionError\n==== 1 failed in 0.03s ====\n";
    const JEST: &str =
        "  ● till › opens\n\n    expect(received).toBe(expected)\n\n    Expected: 1\n    Received: 2\n\n      at Object.<anonymous> (till.test.js:3:5)\n";

    fn indented(text: &str, blanks: usize) -> String {
        text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{}{line}\n", " ".repeat(blanks)) }).collect()
    }

    fn margin(text: &str) -> usize {
        let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
        Margin::of(&engine, text.as_bytes(), Timestamp::default()).0
    }

    #[test]
    fn a_report_is_indented_as_a_whole() {
        for blanks in [0, 1] {
            assert_eq!(margin(&indented(SESSION, blanks)), 0);
        }
        for blanks in [2, 4, 8] {
            assert_eq!(margin(&indented(SESSION, blanks)), blanks);
        }
        assert_eq!(margin(&format!("{}done\n", indented(SESSION, 4))), 0);
    }

    #[test]
    fn a_report_may_indent_its_lines_itself() {
        assert_eq!(margin(JEST), 0);
        assert_eq!(margin(&indented(JEST, 4)), 4);
        for text in ["    at a\n    at b\n    at c\n", "    let error = 3;\n    f(error);\n    g(error)\n    h(error)\n    i()\n"] {
            assert_eq!(margin(text), 0, "{text}");
        }
    }

    #[test]
    fn no_more_is_cut_than_a_line_has() {
        assert_eq!(Margin(4).cut(b"  y"), b"y");
        assert_eq!(Margin(4).cut_off(Cow::Owned(b"     y".to_vec())), Cow::Borrowed(b" y"));
    }
}
