//! A mistake in a text that a person wrote: file, line, column, key, the line itself, and the fix. Configuration,
//! rules and imported files report mistakes through this module; it reads no file and decides nothing.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use crate::words::is_invisible;

/// Maximum number of characters shown of a line.
const SHOWN_CHARS: usize = 160;

/// A named text that spans refer to.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file as the user named it.
    pub name: String,
    /// Its text, without a byte order mark; spans are byte offsets into it.
    pub text: String,
    /// Byte offset of each line's first byte.
    line_starts: Vec<usize>,
}

impl Source {
    /// Creates a source from the text as read, without its byte order mark.
    #[must_use]
    pub fn new(name: impl Into<String>, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let line_starts = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text: text.to_owned(), line_starts }
    }

    /// Returns a diagnostic for a byte span. A span past the end points
    /// at the end; one across several lines is marked in its first line.
    #[must_use]
    pub fn error(&self, span: Range<usize>, problem: impl Into<String>) -> Diagnostic {
        let bytes = self.text.as_bytes();
        let start = span.start.min(bytes.len());
        let line = self.line_of(start);
        let line_start = self.line_starts[line - 1];
        let line_end = self.line_starts.get(line).map_or(bytes.len(), |next| next - 1);
        let end = span.end.clamp(start, line_end);
        Diagnostic {
            file: self.name.clone(),
            line,
            column: chars(&bytes[line_start..start]) + 1,
            width: chars(&bytes[start..end]).max(1),
            key: String::new(),
            source_line: String::from_utf8_lossy(&bytes[line_start..line_end]).trim_end().to_owned(),
            problem: problem.into(),
            mend: String::new(),
        }
    }

    /// Returns the 1-based line of a byte offset.
    #[must_use]
    pub fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset)
    }
}

fn chars(bytes: &[u8]) -> usize {
    String::from_utf8_lossy(bytes).chars().count()
}

/// One mistake. `Display` prints it over several lines, without a newline at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the user named it.
    pub file: String,
    /// 1-based; 0 if the mistake concerns the whole file.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    /// Number of marked characters, at least 1.
    pub width: usize,
    /// Dotted path of the key, such as `limits.trace_idle`; empty for a syntax error.
    pub key: String,
    /// The line itself, as written.
    pub source_line: String,
    /// What is wrong.
    pub problem: String,
    /// How to fix it; may be empty.
    pub mend: String,
}

impl Diagnostic {
    /// Creates a diagnostic without a line, such as for a file that cannot be read.
    #[must_use]
    pub fn whole_file(name: impl Into<String>, problem: impl Into<String>) -> Self {
        let mut diagnostic = Source::new(name, "").error(0..0, problem);
        diagnostic.line = 0;
        diagnostic
    }

    /// Adds the dotted path of the key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Adds the fix.
    #[must_use]
    pub fn with_mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = mend.into();
        self
    }

    /// Returns the line before, at and after the mark, cut to a length that fits; an ellipsis marks a cut.
    fn shown(&self) -> (String, String, String) {
        let from = if self.column > SHOWN_CHARS / 2 { self.column - SHOWN_CHARS / 4 } else { 1 };
        let mut rest = self.source_line.chars().skip(from - 1);
        let mut take = |count: usize| escape(&rest.by_ref().take(count).collect::<String>());
        let head = take(self.column - from);
        let marked = take(self.width.min(SHOWN_CHARS));
        let tail = take(SHOWN_CHARS.saturating_sub(self.column - from + self.width));
        let cut = |is: bool| if is { "…" } else { "" };
        let (left, right) = (cut(from > 1), cut(rest.next().is_some()));
        (format!("{left}{head}"), marked, format!("{tail}{right}"))
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}:", escape(&self.file))?;
        let gutter = if self.line == 0 {
            write!(f, " {}", escape(&self.problem))?;
            String::new()
        } else {
            let gutter = " ".repeat(self.line.to_string().len());
            let (head, marked, tail) = self.shown();
            let indent = " ".repeat(head.chars().count());
            let carets = "^".repeat(marked.chars().count().max(1));
            write!(f, "{}:{}: {}", self.line, self.column, escape(&self.problem))?;
            write!(f, "\n{gutter} |\n{} | {head}{marked}{tail}\n{gutter} | {indent}{carets}", self.line)?;
            gutter
        };
        if self.mend.is_empty() { Ok(()) } else { write!(f, "\n{gutter} = help: {}", escape(&self.mend)) }
    }
}

/// Replaces tabs by spaces, and escapes control characters and those
/// that change the text direction, since a terminal obeys them.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            c if is_invisible(c) => out.extend(c.escape_unicode()),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// All mistakes found in one pass, in the order of the text. Never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.0.iter().enumerate() {
            let gap = if i == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{diagnostic}")?;
        }
        Ok(())
    }
}

impl Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_the_span_like_a_compiler() {
        let source = Source::new("rules/a.toml", &format!("{}é = [1]\r\n", "\n".repeat(9)));
        let at = source.text.find('[').unwrap();
        let diagnostic = source.error(at..at + 3, "`é` must be text").with_mend("write \"1\"");
        let expected = "error: rules/a.toml:10:5: `é` must be text\n   |\n10 | é = [1]\n   |     ^^^\n   = help: write \"1\"";
        assert_eq!(diagnostic.to_string(), expected);
    }

    #[test]
    fn never_hands_a_control_character_to_the_terminal() {
        let source = Source::new("a\u{1b}[2J", "k\t= \"\u{1b}]0;x\u{7}\u{202e}\u{61c}\"");
        let shown = source.error(4..5, "bad\n\u{9b}").with_mend("\u{8}").to_string();
        assert!(shown.lines().count() == 5 && !shown.replace('\n', "").chars().any(char::is_control), "{shown}");
        assert!(shown.contains("k    = \"\\u{1b}]0;x\\u{7}\\u{202e}\\u{61c}\"\n  |        ^"), "{shown}");
    }

    #[test]
    fn any_span_of_any_text_can_be_shown() {
        for text in ["", "é", "a\nb", "\r\n", &"x".repeat(999)] {
            for start in 0..text.len() + 2 {
                let shown = Source::new("f", text).error(start..start + 2, "p").to_string();
                assert!(shown.lines().all(|l| l.chars().count() < SHOWN_CHARS + 40), "{shown}");
            }
        }
    }

    #[test]
    fn a_whole_file_has_no_line() {
        let missing = Diagnostic::whole_file("x.toml", "cannot be read: gone").with_mend("create it");
        assert_eq!(Diagnostics::from(missing).to_string(), "error: x.toml: cannot be read: gone\n = help: create it");
    }
}
