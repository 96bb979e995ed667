//! Parses the source of a pattern. `pattern` runs the result, `prove` analyses
//! it; the build does both. Nothing here compiles a pattern or looks at a text.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

/// Matches no text.
pub const NOTHING: &str = r"[^\s\S]";

/// Parses a pattern as it will run: over bytes. `None` if it is not a valid regex.
#[must_use]
pub fn parsed(source: &str, ignore_case: bool) -> Option<Hir> {
    parser(needs_unicode(source)).case_insensitive(ignore_case).build().parse(source).ok()
}

/// Whether a pattern runs with Unicode tables: only if one of its classes contains non-ASCII characters.
/// Otherwise a character stands for its UTF-8 bytes, and `\s`, `\d`, `\w`, `\b` and `.` refer to bytes.
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
