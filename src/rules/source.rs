//! The source of a pattern, read into its parts. `pattern` runs what comes of it, `prove` looks into it; the build does
//! both. Nothing here compiles a pattern or meets a text.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

/// Matches no text.
pub const NOTHING: &str = r"[^\s\S]";

/// A pattern, parsed as it will run: over bytes. `None` for one that is no regex.
#[must_use]
pub fn parsed(source: &str, ignore_case: bool) -> Option<Hir> {
    parser(needs_unicode(source)).case_insensitive(ignore_case).build().parse(source).ok()
}

/// Whether a pattern runs with Unicode's tables: only where a class of it names what is not ASCII. Everywhere else a
/// character stands for the bytes that it is written with, and `\s`, `\d`, `\w`, `\b` and `.` are about bytes.
#[must_use]
pub fn needs_unicode(source: &str) -> bool {
    !source.is_ascii() && parser(false).build().parse(source).is_err()
}

fn parser(unicode: bool) -> ParserBuilder {
    let mut parser = ParserBuilder::new();
    parser.utf8(false).unicode(unicode);
    parser
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicode_is_for_classes_beyond_ascii() {
        for (source, needs) in [("✗ .*é", false), ("[✗✘]", true), (r"[^\s│]", true), ("─{3,}", false), ("a", false), (r"\p{L}é", true)] {
            assert_eq!(needs_unicode(source), needs, "{source}");
        }
    }
}
