//! The source of a pattern: read into its parts, and joined with others. `pattern` runs what comes of it, `prove` looks into
//! it; the build does both. Nothing here compiles a pattern or meets a text.

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

/// One that matches what any of `sources` does, each with whether it ignores case; without them nothing.
#[must_use]
pub fn any_of<'a>(sources: impl Iterator<Item = (&'a str, bool)>) -> String {
    let groups: Vec<String> = sources.map(|(source, ignore_case)| inline(source, ignore_case)).collect();
    if groups.is_empty() { NOTHING.to_owned() } else { groups.join("|") }
}

/// A group that keeps its flags inside a larger pattern.
fn inline(source: &str, ignore_case: bool) -> String {
    let unicode = if needs_unicode(source) { "" } else { "-u" };
    let case = if ignore_case { "i" } else { "" };
    format!("(?{case}{unicode}:{source})")
}

#[cfg(test)]
mod tests {
    use regex::bytes::Regex;

    use super::*;

    #[test]
    fn unicode_is_for_classes_beyond_ascii() {
        for (source, needs) in [("✗ .*é", false), ("[✗✘]", true), (r"[^\s│]", true), ("─{3,}", false), ("a", false), (r"\p{L}é", true)] {
            assert_eq!(needs_unicode(source), needs, "{source}");
        }
    }

    #[test]
    fn each_of_the_joined_keeps_its_flags() {
        let joined = any_of([("^Warn", true), ("error \\d", false), ("[✗✘] .$", false)].into_iter());
        let regex = Regex::new(&joined).expect("parses");
        let is_match = |text: &str| regex.is_match(text.as_bytes());
        assert!(is_match("WARN") && is_match("an error 7") && is_match("✗ é"));
        assert!(!is_match("a warn") && !is_match("an ERROR 7") && !is_match("an error ٣"));
        assert!(!Regex::new(&any_of(std::iter::empty())).expect("parses").is_match(b"x"));
    }
}
