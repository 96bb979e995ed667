//! A user's own pattern: its shape in the file, and whether it can do what it is meant to do. Called by
//! `schema` for the four lists of patterns; `rules` compiles those that pass. No log is matched here.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind};
use toml::de::DeValue;

use super::reader::{Node, Table};
use super::value::{self, Fault};
use super::words;
use crate::core::event::{Category, Severity};

words! {
    /// How a pattern is read.
    PatternKind { Substring = "substring", Regex = "regex" }
}

/// A user's pattern and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Never blank; a regex is valid and matches some lines but not all.
    pub pattern: String,
    /// How it is read.
    pub kind: PatternKind,
    /// Overrides the category that the tables give.
    pub category: Option<Category>,
    /// Overrides the category's severity.
    pub severity: Option<Severity>,
    /// Why the pattern exists.
    pub reason: Option<String>,
    /// The file it stands in.
    pub file: String,
    /// 1-based.
    pub line: usize,
}

/// Checks that the prefilter can find what a regex finds; the error says why not. The real check belongs to `rules`.
pub type LiteralCheck = dyn Fn(&str) -> Result<(), String>;

/// The purpose of a list of patterns, which decides what its regexes must satisfy.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// Makes a line a candidate, so the prefilter must be able to find it.
    Finds,
    /// Removes hits, so it must not cover every line.
    Silences,
}

const SHAPE: &str = "write \"text\" or { pattern = \"…\", type = \"substring\" or \"regex\" }";

impl Table<'_, '_> {
    /// Appends the patterns of one list.
    pub fn patterns(&mut self, key: &'static str, out: &mut Vec<Pattern>, role: Role) {
        for node in self.items(key, "write it in brackets: [\"text\"]").unwrap_or_default() {
            let mut pattern = blank(self, node);
            match node.get_ref() {
                DeValue::String(text) => {
                    pattern.pattern = text.to_string();
                    check(self, key, node, (&pattern, role));
                }
                DeValue::Table(_) => self.entry(key, node, format!("in {key}"), |t| {
                    fields(t, node, &mut pattern, role);
                }),
                _ => self.fault(key, node.span(), Fault::must_be("a string or a table", SHAPE)),
            }
            out.push(pattern);
        }
    }
}

fn blank(t: &Table<'_, '_>, node: &Node<'_>) -> Pattern {
    Pattern {
        pattern: String::new(),
        kind: PatternKind::Substring,
        category: None,
        severity: None,
        reason: None,
        file: t.source.name.clone(),
        line: t.source.line_of(node.span().start),
    }
}

fn fields(t: &mut Table<'_, '_>, whole: &Node<'_>, pattern: &mut Pattern, role: Role) {
    t.word("type", &mut pattern.kind);
    t.value("category", &mut pattern.category, |v| value::word(v).map(Some));
    t.value("severity", &mut pattern.severity, |v| value::word(v).map(Some));
    t.value("reason", &mut pattern.reason, |v| value::text(v).map(Some));
    match t.node("pattern") {
        None => t.fault("pattern", whole.span(), Fault::new("is missing", SHAPE)),
        Some(node) => match value::text(node.get_ref()) {
            Ok(text) => {
                pattern.pattern = text;
                check(t, "pattern", node, (pattern, role));
            }
            Err(fault) => t.fault("pattern", node.span(), fault),
        },
    }
}

fn check(t: &mut Table<'_, '_>, key: &str, node: &Node<'_>, (pattern, role): (&Pattern, Role)) {
    let text = pattern.pattern.as_str();
    let result = if text.trim().is_empty() {
        Err(Fault::new("is empty, so it would cover every line", "give some text that only the meant lines have"))
    } else if pattern.kind == PatternKind::Regex {
        check_regex(text, role, t.cx.literals)
    } else {
        Ok(())
    };
    if let Err(fault) = result {
        t.fault(key, node.span(), fault);
    }
}

fn check_regex(pattern: &str, role: Role, literals: &LiteralCheck) -> Result<(), Fault> {
    parse(pattern)?;
    let regex = regex::bytes::Regex::new(pattern).map_err(|e| Fault::new(format!("is too large a regular expression: {e}"), "repeat less, or split it"))?;
    match role {
        Role::Finds => literals(pattern).map_err(|problem| {
            let mend = "add a word that stands in every line it is meant for, or use type = \"substring\"";
            Fault::new(problem, mend)
        }),
        // The empty text and one odd character: a regex that matches both covers every line.
        Role::Silences if regex.is_match(b"") && regex.is_match(b"\x01") => {
            Err(Fault::new("would cover every line", "name what the meant lines have in common"))
        }
        Role::Silences => Ok(()),
    }
}

fn parse(pattern: &str) -> Result<Hir, Fault> {
    let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern);
    parsed.map_err(|error| {
        let (problem, span) = match &error {
            regex_syntax::Error::Parse(e) => (e.kind().to_string(), Some(e.span())),
            regex_syntax::Error::Translate(e) => (e.kind().to_string(), Some(e.span())),
            other => (other.to_string(), None),
        };
        let mend = if problem.contains("not supported") {
            "match the plain text, and cancel the exceptions with custom_false_positives"
        } else {
            "put `\\` before a sign that is meant literally, or use type = \"substring\""
        };
        let within = span.map(|s| s.start.offset..s.end.offset);
        Fault { within, ..Fault::new(format!("is no valid regular expression: {problem}"), mend) }
    })
}

/// The plain form of the check: every match contains some literal of at least 3 bytes.
///
/// # Errors
/// The end of the sentence "`pattern` …", saying what is missing.
pub fn fixed_literal(pattern: &str) -> Result<(), String> {
    let found = parse(pattern).is_ok_and(|hir| has_literal(&hir));
    if found { Ok(()) } else { Err("has no fixed text of at least 3 bytes that every match contains".to_owned()) }
}

fn has_literal(hir: &Hir) -> bool {
    let shortest = |kind: ExtractKind| Extractor::new().kind(kind.clone()).extract(hir).min_literal_len();
    let edge = |kind| shortest(kind).is_some_and(|bytes| bytes >= 3);
    if edge(ExtractKind::Prefix) || edge(ExtractKind::Suffix) {
        return true;
    }
    match hir.kind() {
        HirKind::Capture(group) => has_literal(&group.sub),
        HirKind::Repetition(repeat) => repeat.min > 0 && has_literal(&repeat.sub),
        HirKind::Alternation(branches) => branches.iter().all(has_literal),
        // An inner literal begins at some part; `(?i)` spreads it over several.
        HirKind::Concat(parts) => parts.iter().any(has_literal) || (1..parts.len()).any(|from| begins_with_literal(&parts[from..])),
        _ => false,
    }
}

fn begins_with_literal(parts: &[Hir]) -> bool {
    let shortest = Extractor::new().extract(&Hir::concat(parts.to_vec())).min_literal_len();
    shortest.is_some_and(|bytes| bytes >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_found_wherever_it_stands() {
        for pattern in ["fault", "^fault$", r"\d+ fault \d+", r"(?i)\d+ fault \d", r"fault|error", r"(\s*(lost+)\s*)+", r"\w+(boom|crash)\w+"] {
            assert_eq!(fixed_literal(pattern), Ok(()), "{pattern}");
        }
        for pattern in [r"\d+", "ab", "fault|no", "(fault)?", r"^.*$", r"a\db\dc"] {
            assert!(fixed_literal(pattern).is_err(), "{pattern}");
        }
    }
}
