//! `siftd rules import`: converts the source systems' own YAML and JSON files into siftd's TOML. Their
//! text becomes the tree that TOML would give, so `schema` judges it and messages point into it. JSON
//! is read as YAML, of which it is a subset. This module reads no file, and drops nothing silently.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use regex::{Captures, Regex};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::pattern::{Pattern, PatternKind, Role, fixed_literal};
use super::reader::{Context, Node};
use super::{ErrorDetection, schema};
use crate::diag::{Diagnostics, Source};

/// Far deeper than the three levels of such files; it bounds the recursion.
const MAX_DEPTH: usize = 32;

/// Converts `text` (YAML or JSON) into an equivalent siftd configuration. `name` appears in messages.
///
/// # Errors
/// Every mistake, unknown keys included, with its place in `text`.
pub fn import(name: &str, text: &str) -> Result<String, Diagnostics> {
    let source = Source::new(name, &join_surrogates(text));
    let tree = Tree::new(&source).root()?;
    let mut found = ErrorDetection::default();
    let mut cx = Context::new(&fixed_literal);
    cx.walk(&source, &tree, |root| {
        root.section("error_detection", |t| schema::error_detection(t, &mut found));
        root.patterns("noise_patterns", &mut found.noise_patterns, Role::Silences);
        root.patterns("error_indicators", &mut found.custom_patterns, Role::Finds);
    });
    if !cx.errors.is_empty() {
        return Err(Diagnostics(cx.errors));
    }
    Ok(render(name, &found, |key| cx.asked.get(key).is_some_and(|asked| asked.place.is_some())))
}

/// Joins surrogate pairs: JSON writes a character beyond the Basic Multilingual Plane as two escapes, YAML as one.
fn join_surrogates(text: &str) -> String {
    let pair = Regex::new(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})").expect("a constant");
    let joined = pair.replace_all(text, |found: &Captures<'_>| {
        let half = |i: usize| u32::from_str_radix(&found[i], 16).unwrap_or_default();
        format!("\\U{:08X}", 0x1_0000 + ((half(1) & 0x3ff) << 10) + (half(2) & 0x3ff))
    });
    if text.trim_start().starts_with('{') { joined.into_owned() } else { text.to_owned() }
}

/// Builds the tree from the parser's events.
struct Tree<'s> {
    source: &'s Source,
    events: Parser<'s, StrInput<'s>>,
    /// Byte offset of each character: the parser counts characters.
    offsets: Vec<usize>,
}

impl<'s> Tree<'s> {
    fn new(source: &'s Source) -> Self {
        let text = &source.text;
        let offsets = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        Self { source, events: Parser::new_from_str(text), offsets }
    }

    fn root(&mut self) -> Result<DeTable<'s>, Diagnostics> {
        let begin = "begin with noise_patterns: or error_indicators:";
        let node = loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                (Event::StreamEnd, span) => return self.refuse(span, "the file is empty", begin),
                (event, span) => break self.node(event, span, 0)?,
            }
        };
        let rest = [self.next()?.0, self.next()?.0];
        match (node.span(), node.into_inner(), rest) {
            (_, DeValue::Table(table), [Event::DocumentEnd, Event::StreamEnd]) => Ok(table),
            (span, DeValue::Table(_), _) => self.refuse(span, "the file holds several documents", "join them"),
            (span, ..) => self.refuse(span, "the file holds no keys", begin),
        }
    }

    fn next(&mut self) -> Result<(Event<'s>, Range<usize>), Diagnostics> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, self.bytes(span))),
            Some(Err(e)) => {
                let at = self.byte(e.marker().index());
                let problem = format!("this is neither YAML nor JSON: {}", e.info());
                self.refuse(at..at, &problem, "an editor that knows the format shows where it goes wrong")
            }
            None => self.refuse(usize::MAX..usize::MAX, "the file ends too early", "add what is missing"),
        }
    }

    fn node(&mut self, event: Event<'s>, span: Range<usize>, depth: usize) -> Result<Node<'s>, Diagnostics> {
        if depth > MAX_DEPTH {
            return self.refuse(span, "this is nested too deeply", "lists of patterns need three levels");
        }
        match event {
            Event::Scalar(text, style, ..) => {
                let written = &self.source.text[span.clone()];
                Ok(Spanned::new(span, scalar(written, &text, style)))
            }
            Event::SequenceStart(..) => self.sequence(span, depth),
            Event::MappingStart(..) => self.mapping(span, depth),
            _ => self.refuse(span, "aliases are not read", "repeat the text in full"),
        }
    }

    fn sequence(&mut self, start: Range<usize>, depth: usize) -> Result<Node<'s>, Diagnostics> {
        let mut array = DeArray::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, end) => {
                    return Ok(Spanned::new(start.start..end.end, DeValue::Array(array)));
                }
                (event, span) => array.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, start: Range<usize>, depth: usize) -> Result<Node<'s>, Diagnostics> {
        let mut table = DeTable::new();
        loop {
            let (key, at) = match self.next()? {
                (Event::MappingEnd, end) => {
                    return Ok(Spanned::new(start.start..end.end, DeValue::Table(table)));
                }
                (Event::Scalar(key, ..), at) => (key.into_owned(), at),
                (_, at) => return self.refuse(at, "a key must be a word", "write `word: value`"),
            };
            let (event, span) = self.next()?;
            if matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if is_null(text)) {
                continue; // A key with nothing below it means the same as an absent key.
            }
            let value = self.node(event, span, depth + 1)?;
            let spanned = Spanned::new(at.clone(), key.clone().into());
            if table.insert(spanned, value).is_some() {
                return self.refuse(at, &format!("`{key}` stands here twice"), "join the two");
            }
        }
    }

    fn refuse<T>(&self, span: Range<usize>, problem: &str, mend: &str) -> Result<T, Diagnostics> {
        Err(self.source.error(span, problem).with_mend(mend).into())
    }

    fn bytes(&self, span: Span) -> Range<usize> {
        self.byte(span.start.index())..self.byte(span.end.index())
    }

    fn byte(&self, char_index: usize) -> usize {
        self.offsets.get(char_index).copied().unwrap_or(self.source.text.len())
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Reads a scalar by YAML's core schema, as far as these files use it: a plain scalar may be a number or a boolean.
fn scalar<'s>(written: &'s str, text: &str, style: ScalarStyle) -> DeValue<'s> {
    let integer = || DeValue::parse(written).ok().map(Spanned::into_inner).filter(DeValue::is_integer);
    let string = |text: &str| DeValue::String(text.to_owned().into());
    match text {
        _ if style != ScalarStyle::Plain => string(text),
        "true" | "True" | "TRUE" => DeValue::Boolean(true),
        "false" | "False" | "FALSE" => DeValue::Boolean(false),
        _ if is_null(text) => string(""),
        _ => integer().unwrap_or_else(|| string(text)),
    }
}

/// Writes what was found; settings only if the file has them.
fn render(name: &str, found: &ErrorDetection, has: impl Fn(&str) -> bool) -> String {
    let mut out = format!("# From {} by `siftd rules import`.\n[error_detection]\n", name.escape_debug());
    let settings: [(&str, &dyn std::fmt::Display); 6] = [
        ("enabled", &found.enabled),
        ("two_stage", &found.two_stage),
        ("capture_multiline", &found.capture_multiline),
        ("max_context_lines", &found.max_context_lines),
        ("max_stack_depth", &found.max_stack_depth),
        ("warnings", &found.warnings),
    ];
    for (key, value) in settings.iter().filter(|(key, _)| has(&format!("error_detection.{key}"))) {
        line(&mut out, &format!("{key} = {value}"));
    }
    patterns(&mut out, "custom_patterns", &found.custom_patterns);
    patterns(&mut out, "custom_false_positives", &found.custom_false_positives);
    patterns(&mut out, "noise_patterns", &found.noise_patterns);
    overrides(&mut out, &found.severity_overrides);
    out
}

fn patterns(out: &mut String, key: &str, patterns: &[Pattern]) {
    if patterns.is_empty() {
        return;
    }
    line(out, &format!("{key} = ["));
    for p in patterns {
        let mut entry = format!("  {{ pattern = {}", quote(&p.pattern));
        let optional = [
            ("type", (p.kind == PatternKind::Regex).then_some("regex")),
            ("category", p.category.map(|c| c.as_str())),
            ("severity", p.severity.map(|s| s.as_str())),
            ("reason", p.reason.as_deref()),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                entry += &format!(", {key} = {}", quote(value));
            }
        }
        line(out, &(entry + " },"));
    }
    line(out, "]");
}

fn overrides(out: &mut String, overrides: &BTreeMap<String, crate::core::event::Severity>) {
    if !overrides.is_empty() {
        line(out, "\n[error_detection.severity_overrides]");
    }
    for (key, severity) in overrides {
        line(out, &format!("{} = \"{severity}\"", quote(key)));
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a String cannot fail");
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const BLOCK: &str = "# of the source system\r\nnoise_patterns:\r\n  - pattern: \"punycode\"\r\n    type: \"substring\"\r\n    reason: |\r\n      Node's own\r\n  - pattern: '^\\s*warn(ing)?\\b'\r\n    type: regex\r\n  - ünïcode\r\nerror_indicators:\r\n";
    const FLOW: &str =
        "noise_patterns: [{pattern: \"punycode\", type: \"substring\", reason: \"Node's own\\n\"}, {pattern: '^\\s*warn(ing)?\\b', type: regex}, ünïcode]\n";
    const JSON: &str = "{\n\t\"error_detection\": {\"enabled\": true, \"two_stage\": false, \"capture_multiline\": true, \"max_context_lines\": 7, \"max_stack_depth\": 20,\n\t\t\"custom_patterns\": [\"\\ud83d\\udca5 boom\", {\"pattern\": \"lost\\\\d+\", \"type\": \"regex\", \"severity\": \"high\"}], \"custom_false_positives\": [],\n\t\t\"severity_overrides\": {\"network_error\": \"high\", \"r.one\": \"low\"}}\n}";

    /// The imported text, and the configuration that it parses into.
    fn imported(text: &str) -> (String, Config) {
        let toml = import("patterns.yaml", text).unwrap_or_else(|e| panic!("{e}"));
        let config = Config::parse("out.toml", &toml).unwrap_or_else(|e| panic!("{toml}\n{e}"));
        (toml, config)
    }

    #[test]
    fn both_styles_of_yaml_say_the_same() {
        let (block, config) = imported(BLOCK);
        assert_eq!(block, imported(FLOW).0);
        let [noise, regex, plain] = &config.error_detection.noise_patterns[..] else { panic!("{block}") };
        assert_eq!((noise.pattern.as_str(), noise.kind, noise.reason.as_deref()), ("punycode", PatternKind::Substring, Some("Node's own\n")));
        assert_eq!((regex.pattern.as_str(), regex.kind), ("^\\s*warn(ing)?\\b", PatternKind::Regex));
        assert_eq!(plain.pattern, "ünïcode");
    }

    #[test]
    fn json_keeps_settings_patterns_and_overrides() {
        let (toml, config) = imported(JSON);
        let expected = "# From patterns.yaml by `siftd rules import`.\n[error_detection]\nenabled = true\ntwo_stage = false\ncapture_multiline = true\nmax_context_lines = 7\nmax_stack_depth = 20\ncustom_patterns = [\n  { pattern = \"💥 boom\" },\n  { pattern = 'lost\\d+', type = \"regex\", severity = \"high\" },\n]\n\n[error_detection.severity_overrides]\n\"network_error\" = \"high\"\n\"r.one\" = \"low\"\n";
        assert_eq!(toml, expected);
        assert!(!config.error_detection.two_stage);
    }

    #[test]
    fn mistakes_point_into_the_imported_file() {
        for (text, message) in [
            (
                "noise_patterns:\n  - pattern: é\n    typ: regex\n",
                "error: f:3:5: unknown key `typ` in noise_patterns\n  |\n3 |     typ: regex\n  |     ^^^\n  = help: did you mean `type`?",
            ),
            (
                "noise_paterns: []",
                "error: f:1:1: unknown key `noise_paterns` at the top level\n  |\n1 | noise_paterns: []\n  | ^^^^^^^^^^^^^\n  = help: did you mean `noise_patterns`?",
            ),
            (
                "error_indicators:\r\n- {pattern: '(?<!x)y', type: regex}",
                "error: f:2:14: `pattern` in error_indicators is no valid regular expression: look-around, including look-ahead and look-behind, is not supported\n  |\n2 | - {pattern: '(?<!x)y', type: regex}\n  |              ^^^^\n  = help: match the plain text, and cancel the exceptions with custom_false_positives",
            ),
            (
                "noise_patterns: [404]",
                "error: f:1:18: `noise_patterns` at the top level must be a string or a table, not 404\n  |\n1 | noise_patterns: [404]\n  |                  ^^^\n  = help: write \"text\" or { pattern = \"…\", type = \"substring\" or \"regex\" }",
            ),
            (
                "{\"error_detection\": {\"two_stage\": 1}}",
                "error: f:1:35: `two_stage` in [error_detection] must be true or false, not 1\n  |\n1 | {\"error_detection\": {\"two_stage\": 1}}\n  |                                   ^\n  = help: write true or false without quotes",
            ),
            (
                "a: [1\nb: }",
                "error: f:2:2: this is neither YAML nor JSON: illegal placement of ':' indicator\n  |\n2 | b: }\n  |  ^\n  = help: an editor that knows the format shows where it goes wrong",
            ),
            ("a: 1\na: 2", "error: f:2:1: `a` stands here twice\n  |\n2 | a: 2\n  | ^\n  = help: join the two"),
            ("- a", "error: f:1:1: the file holds no keys\n  |\n1 | - a\n  | ^^^\n  = help: begin with noise_patterns: or error_indicators:"),
            ("a: &x 1\nb: *x", "error: f:2:4: aliases are not read\n  |\n2 | b: *x\n  |    ^^\n  = help: repeat the text in full"),
            ("a: []\n---\nb: []", "error: f:1:1: the file holds several documents\n  |\n1 | a: []\n  | ^^^^^\n  = help: join them"),
            (" # nothing", "error: f:1:11: the file is empty\n  |\n1 |  # nothing\n  |           ^\n  = help: begin with noise_patterns: or error_indicators:"),
        ] {
            assert_eq!(import("f", text).unwrap_err().to_string(), message, "{text}");
        }
        assert!(import("f", &"[".repeat(5000)).is_err());
        assert!(import("f", &"{a: ".repeat(5000)).is_err());
    }
}
