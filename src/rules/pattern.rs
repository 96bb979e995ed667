//! Regexes of rules: compiled at their first use, linear in time, limited in size, over bytes.
//! Patterns that are pure ASCII run without Unicode tables, which halves their cost.

use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};

/// Largest compiled size of one pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 2 << 20;

/// A regex that is compiled when it is first asked.
#[derive(Debug)]
pub struct Pattern {
    source: String,
    ignore_case: bool,
    compiled: OnceLock<Regex>,
    keyed: bool,
}

impl Pattern {
    /// Keeps the source; compiles nothing.
    #[must_use]
    pub fn new(source: impl Into<String>, ignore_case: bool) -> Self {
        let source = source.into();
        let keyed = source.contains("(?P<key>") || source.contains("(?P<name>");
        Self { source, ignore_case, compiled: OnceLock::new(), keyed }
    }

    /// What the text is about, for status lines that claim each other: group `key`, or `name`.
    #[must_use]
    pub fn key(&self, text: &[u8]) -> Option<Vec<u8>> {
        if !self.keyed {
            return None;
        }
        let captures = self.captures(text)?;
        let group = captures.name("key").or_else(|| captures.name("name"))?;
        Some(group.as_bytes().to_vec())
    }

    /// The source, as written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// As a group that keeps its flags inside a larger pattern.
    #[must_use]
    pub fn inline(&self) -> String {
        let unicode = if self.source.is_ascii() { "-u" } else { "" };
        let case = if self.ignore_case { "i" } else { "" };
        format!("(?{case}{unicode}:{})", self.source)
    }

    /// Compiles now.
    ///
    /// # Errors
    /// A syntax error, or a compiled size above [`MAX_PATTERN_BYTES`].
    pub fn check(&self) -> Result<(), regex::Error> {
        self.build().map(drop)
    }

    fn build(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.source)
            .unicode(!self.source.is_ascii())
            .case_insensitive(self.ignore_case)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES)
            .build()
    }

    /// The regex. A pattern that `check` would reject matches nothing; the loader never lets one in.
    pub fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| self.build().unwrap_or_else(|_| nothing()))
    }

    /// Whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex().is_match(text)
    }

    /// The groups of its first match.
    pub fn captures<'t>(&self, text: &'t [u8]) -> Option<Captures<'t>> {
        self.regex().captures(text)
    }
}

fn nothing() -> Regex {
    Regex::new(r"[^\s\S]").expect("an empty class is a valid regex")
}
