//! What some transports put before each line, in shapes that a single line does not give away: `[web] `, `web-6f7 app `,
//! `#12 3.456 `, `build\tRun tests\t2026-11-20T10:00:00.1Z `. The head of a trace shows where its text begins; what stands
//! before it is a prefix when the next line has it too. It knows no writer by name and keeps nothing between traces.

/// Longest prefix, in bytes.
const MAX_BYTES: usize = 256;

/// What the head of a trace stands behind.
#[derive(Clone, Debug, Default)]
pub struct LeadIn {
    text: Vec<u8>,
    /// A further line had it.
    shared: bool,
}

impl LeadIn {
    /// Of the text before a head; `None` when that is indented, words only (`Unhandled `, `error: `), or too long.
    pub fn new(text: &[u8]) -> Option<Self> {
        let is_marked = text.iter().any(|byte| byte.is_ascii_digit() || matches!(byte, b'[' | b'#' | b'|' | b'\t'));
        let is_prefix = !is_blank(*text.first()?) && is_marked && text.len() <= MAX_BYTES;
        is_prefix.then(|| Self { text: text.to_vec(), shared: false })
    }

    /// The line behind the prefix; `None` without it.
    pub fn behind<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        behind(&self.text, line)
    }

    /// A line that had it belongs to the trace.
    pub fn confirm(&mut self) {
        self.shared = true;
    }

    /// Lines of the trace have it: one without it is another writer's.
    pub fn is_shared(&self) -> bool {
        self.shared
    }
}

/// `line` without `prefix`, whose times may be others.
fn behind<'a>(prefix: &[u8], line: &'a [u8]) -> Option<&'a [u8]> {
    let (mut prefix, mut rest) = (prefix, line);
    loop {
        let blank = is_blank(prefix.first().copied()?);
        let (word, next) = prefix.split_at(run(prefix, blank));
        let (other, tail) = rest.split_at(if blank { word.len().min(rest.len()) } else { run(rest, false) });
        if word != other && !(is_time(word) && has_shape_of(word, other)) {
            // The blank at the end of a line that says nothing may have been cut off.
            return (blank && next.is_empty() && rest.is_empty()).then_some(rest);
        }
        (prefix, rest) = (next, tail);
        if prefix.is_empty() {
            return Some(rest);
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Length of the blanks, or of the word, that `text` begins with.
fn run(text: &[u8], blank: bool) -> usize {
    text.iter().take_while(|byte| is_blank(**byte) == blank).count()
}

/// A word that counts or tells time: `3.456`, `10:00:00`.
fn is_time(word: &[u8]) -> bool {
    word.windows(3).any(|at| at[0].is_ascii_digit() && matches!(at[1], b'.' | b':') && at[2].is_ascii_digit())
}

/// The same but for the digits.
fn has_shape_of(word: &[u8], other: &[u8]) -> bool {
    let signs = |text: &[u8]| text.iter().copied().filter(|byte| !byte.is_ascii_digit()).collect::<Vec<u8>>();
    other.iter().any(u8::is_ascii_digit) && signs(word) == signs(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_lines_share() {
        for (prefix, line, part) in [
            ("[web] ", "[web]   File", "  File"),
            ("web-6f7 app ", "web-6f7 app x", "x"),
            ("#12 3.456 ", "#12 10.1     x", "    x"),
            ("build\tRun tests\t2026-11-20T10:00:00.1Z ", "build\tRun tests\t2026-11-20T10:00:01.23Z x", "x"),
            ("[web] ", "[web]", ""),
        ] {
            let lead_in = LeadIn::new(prefix.as_bytes()).unwrap();
            assert_eq!(lead_in.behind(line.as_bytes()), Some(part.as_bytes()), "{line}");
            assert_eq!(lead_in.behind(b"[db] x"), None);
        }
    }

    #[test]
    fn lines_without_it() {
        for (prefix, line) in [("[web] ", "[db] x"), ("#12 3.4 ", "#13 3.5 x"), ("app[1]: ", "  File"), ("[web] ", "")] {
            assert_eq!(LeadIn::new(prefix.as_bytes()).unwrap().behind(line.as_bytes()), None, "{line}");
        }
        for text in ["    ", "", "  [cause]: ", "Unhandled ", "error: "] {
            assert!(LeadIn::new(text.as_bytes()).is_none(), "{text}");
        }
    }
}
