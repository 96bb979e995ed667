//! The tables of `config/classify.toml`, ready for use: one keyword gate over all rows,
//! regexes compiled at first use. `classify` and `retry` know what the rows mean; this file
//! knows only how a row matches. It decides nothing and reads only the file compiled in.

use super::event::{Category, Cause, RetryClass, Severity};
use super::gate::Gate;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The source of the built-in tables.
const BUILTIN: &str = include_str!("../../config/classify.toml");

/// All rows, in the order of the file.
pub(crate) struct Table {
    pub(crate) categories: Vec<CategoryRow>,
    pub(crate) causes: Vec<(Cause, Row)>,
    pub(crate) retries: Vec<RetryRow>,
    pub(crate) structured: Vec<StructuredRow>,
    pub(crate) unknown: Unknown,
    /// Matches if a text without a known language is R's.
    pub(crate) r_looks: Row,
    patterns: Vec<Pattern>,
    gate: Gate,
    words: Vec<String>,
    targets: Vec<Target>,
    /// All that the causes ask for.
    of_causes: Target,
}

/// A row that gives category and severity.
pub(crate) struct CategoryRow {
    pub(crate) category: Category,
    pub(crate) severity: Severity,
    pub(crate) lowered_to: Option<Severity>,
    pub(crate) lowered_by: Vec<String>,
    pub(crate) row: Row,
}

/// A row that gives the retry class.
pub(crate) struct RetryRow {
    pub(crate) reason: String,
    pub(crate) class: RetryClass,
    pub(crate) row: Row,
}

/// The conditions of a row; any of them makes it match.
#[derive(Default)]
pub(crate) struct Row {
    bit: u64,
    patterns: Vec<usize>,
    /// One bit for each pattern.
    asks: u64,
    status: Vec<(u16, u16)>,
    exit_codes: Vec<i64>,
    /// Whether the row applies to R only.
    pub(crate) r_only: bool,
}

/// A regex with its conditions; a bit of [`Hits::asks`] says that its gate opened.
struct Pattern {
    regex: Option<Lazy>,
    unless: Option<Lazy>,
    /// Words of which one must occur beside those of the gate. They are common, so they are searched only when needed.
    beside: Option<Gate>,
}

/// What a keyword leads to: bits of rows, and of patterns that it opens.
#[derive(Clone, Copy, Default)]
struct Target {
    rows: u64,
    asks: u64,
    reset: bool,
    pipeline: bool,
}

/// What one pass of the gate saw in a text.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Hits {
    rows: u64,
    asks: u64,
    /// End of the first phrase before a reset time.
    pub(crate) reset: Option<usize>,
    /// End of the first `PIPELINE_`.
    pub(crate) pipeline: Option<usize>,
}

impl Hits {
    /// Adds the hits of `more`.
    pub(crate) fn merge(&mut self, more: Self) {
        self.rows |= more.rows;
        self.asks |= more.asks;
        self.reset = self.reset.or(more.reset);
        self.pipeline = self.pipeline.or(more.pipeline);
    }
}

/// Everything that a row may look at.
pub(crate) struct Asked<'a> {
    pub(crate) texts: [&'a str; 3],
    pub(crate) hits: Hits,
    pub(crate) status: Option<u16>,
    pub(crate) exit_code: Option<i64>,
    /// Whether a timeout counts without a network word beside it.
    pub(crate) alone: bool,
}

/// A regex that is compiled at its first use.
struct Lazy(String, OnceLock<Option<Regex>>);

impl Lazy {
    fn new(source: String) -> Self {
        Self(source, OnceLock::new())
    }

    fn get(&self) -> Option<&Regex> {
        self.1.get_or_init(|| RegexBuilder::new(&self.0).unicode(false).build().ok()).as_ref()
    }

    fn is_match(&self, text: &str) -> bool {
        self.get().is_some_and(|regex| regex.is_match(text.as_bytes()))
    }
}

impl Table {
    /// Returns the built-in tables, built at the first call.
    pub(crate) fn builtin() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Self::parse(BUILTIN).expect("the tables compiled in are parsed by a test"))
    }

    fn parse(source: &str) -> Result<Self, toml::de::Error> {
        let file: File = toml::from_str(source)?;
        let mut builder = Builder::default();
        let categories = file.category.into_iter().map(|row| builder.category(row)).collect();
        let causes = file.cause.into_iter().map(|row| (row.name, builder.row(row.when))).collect();
        let retries = file.retry.into_iter().map(|row| RetryRow { reason: row.reason, class: row.class, row: builder.row(row.when) }).collect();
        let r_looks = builder.row(When { words: file.r.looks, ..When::default() });
        file.reset.leads.iter().for_each(|word| builder.target(word).reset = true);
        builder.target("=PIPELINE_*").pipeline = true;
        let gate = Gate::new(builder.words.iter().map(|word| exactness(word)));
        let causes: Vec<(Cause, Row)> = causes;
        let of_causes = causes.iter().map(|(_, row)| row).chain([&r_looks]).fold(Target::default(), |all, row| all.with(row));
        Ok(Self {
            of_causes,
            categories,
            causes,
            retries,
            structured: file.structured,
            unknown: file.unknown,
            r_looks,
            patterns: builder.patterns,
            gate,
            words: builder.words,
            targets: builder.targets,
        })
    }

    /// Scans a text in one pass.
    pub(crate) fn hits(&self, text: &str, into: &mut Hits) {
        self.gate.scan(text.as_bytes(), |id, word| {
            self.add(id, word.end, into);
            true
        });
    }

    /// Returns the words that a cause asks for: id, word, whether it is case-sensitive.
    pub(crate) fn words_of_causes(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        let asked = |id: &usize| self.targets[*id].rows & self.of_causes.rows != 0 || self.targets[*id].asks & self.of_causes.asks != 0;
        (0..self.words.len()).filter(asked).map(|id| {
            let (word, exact) = exactness(&self.words[id]);
            (id, word, exact)
        })
    }

    /// Adds the hits of word `id`, which ends at `end`.
    pub(crate) fn add(&self, id: usize, end: usize, into: &mut Hits) {
        let target = &self.targets[id];
        into.rows |= target.rows;
        into.asks |= target.asks;
        if target.reset {
            into.reset.get_or_insert(end);
        }
        if target.pipeline {
            into.pipeline.get_or_insert(end);
        }
    }

    /// Whether a row matches; for most rows, nothing was seen at all.
    #[inline(always)]
    pub(crate) fn matches(&self, row: &Row, asked: &Asked) -> bool {
        let seen = asked.hits.rows & row.bit | asked.hits.asks & row.asks;
        (seen != 0 || asked.status.is_some() || asked.exit_code.is_some()) && self.decides(row, asked)
    }

    #[inline(never)]
    fn decides(&self, row: &Row, asked: &Asked) -> bool {
        asked.hits.rows & row.bit != 0
            || asked.status.is_some_and(|status| row.status.iter().any(|&(from, to)| (from..=to).contains(&status)))
            || asked.exit_code.is_some_and(|code| row.exit_codes.contains(&code))
            || (asked.hits.asks & row.asks != 0 && row.patterns.iter().any(|&index| self.pattern(index, asked)))
    }

    fn pattern(&self, index: usize, asked: &Asked) -> bool {
        let (bit, pattern) = (1u64 << index, &self.patterns[index]);
        let mut texts = asked.texts.iter().filter(|text| !text.is_empty());
        asked.hits.asks & bit != 0
            && pattern.beside.as_ref().is_none_or(|words| asked.alone || texts.clone().any(|text| words.any(text.as_bytes())))
            && texts.any(|text| pattern.matches(text))
    }
}

impl Target {
    fn with(mut self, row: &Row) -> Self {
        self.rows |= row.bit;
        self.asks |= row.asks;
        self
    }
}

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(text)) && !self.unless.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

/// Assigns bits while the rows are read.
#[derive(Default)]
struct Builder {
    words: Vec<String>,
    ids: HashMap<String, usize>,
    targets: Vec<Target>,
    patterns: Vec<Pattern>,
    rows: u32,
}

impl Builder {
    fn target(&mut self, word: &str) -> &mut Target {
        let id = *self.ids.entry(word.to_owned()).or_insert_with(|| {
            self.words.push(word.to_owned());
            self.targets.push(Target::default());
            self.targets.len() - 1
        });
        &mut self.targets[id]
    }

    fn category(&mut self, row: CategoryEntry) -> CategoryRow {
        CategoryRow { category: row.name, severity: row.severity, lowered_to: row.lowered_to, lowered_by: row.lowered_by, row: self.row(row.when) }
    }

    fn row(&mut self, when: When) -> Row {
        let bit = 1u64 << self.rows;
        self.rows += 1;
        when.words.iter().for_each(|word| self.target(word).rows |= bit);
        let patterns: Vec<usize> = when.patterns.into_iter().map(|entry| self.pattern(entry)).collect();
        let asks = patterns.iter().fold(0, |asks, index| asks | 1 << index);
        let status = when.status.iter().filter_map(|range| span(range)).collect();
        Row { bit, patterns, asks, status, exit_codes: when.exit_code, r_only: when.languages.iter().any(|l| l == "r") }
    }

    fn pattern(&mut self, entry: PatternEntry) -> usize {
        let index = self.patterns.len();
        entry.gate.iter().for_each(|word| self.target(word).asks |= 1 << index);
        let beside = (!entry.beside.is_empty()).then(|| Gate::new(entry.beside.iter().map(|word| exactness(word))));
        self.patterns.push(Pattern { regex: entry.regex.map(Lazy::new), unless: entry.unless.map(Lazy::new), beside });
        index
    }
}

/// `=word` stands for a case-sensitive word.
fn exactness(word: &str) -> (&str, bool) {
    word.strip_prefix('=').map_or((word, false), |exact| (exact, true))
}

/// Parses `"429"` or `"500-599"`.
fn span(range: &str) -> Option<(u16, u16)> {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    Some((from.parse().ok()?, to.parse().ok()?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    category: Vec<CategoryEntry>,
    cause: Vec<CauseEntry>,
    retry: Vec<RetryEntry>,
    structured: Vec<StructuredRow>,
    unknown: Unknown,
    r: R,
    reset: Reset,
}

#[derive(Deserialize, Default)]
struct When {
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    patterns: Vec<PatternEntry>,
    #[serde(default)]
    status: Vec<String>,
    #[serde(default)]
    exit_code: Vec<i64>,
    #[serde(default)]
    languages: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternEntry {
    gate: Vec<String>,
    regex: Option<String>,
    unless: Option<String>,
    #[serde(default)]
    beside: Vec<String>,
}

#[derive(Deserialize)]
struct CategoryEntry {
    name: Category,
    severity: Severity,
    lowered_to: Option<Severity>,
    #[serde(default)]
    lowered_by: Vec<String>,
    #[serde(flatten)]
    when: When,
}

#[derive(Deserialize)]
struct CauseEntry {
    name: Cause,
    #[serde(flatten)]
    when: When,
}

#[derive(Deserialize)]
struct RetryEntry {
    reason: String,
    class: RetryClass,
    #[serde(flatten)]
    when: When,
}

/// A row of the table of structured errors. An absent field matches anything; a code may end in `*`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StructuredRow {
    pub(crate) name: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) operation: Option<String>,
    pub(crate) reason: String,
    pub(crate) class: RetryClass,
    pub(crate) retryable: bool,
    #[serde(default)]
    pub(crate) fatal: bool,
}

/// What applies to an error that no row matches.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unknown {
    pub(crate) severity: Severity,
    pub(crate) bare: Vec<String>,
    pub(crate) type_ends: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct R {
    looks: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    leads: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_parse_and_fit_their_bits() {
        let table = Table::parse(BUILTIN).expect("tables");
        assert!(table.categories.len() + table.causes.len() + table.retries.len() < 63);
        assert!(table.patterns.len() < 64);
    }

    #[test]
    fn every_regex_compiles() {
        for pattern in &Table::builtin().patterns {
            for lazy in pattern.regex.iter().chain(&pattern.unless) {
                assert!(lazy.get().is_some(), "{}", lazy.0);
            }
        }
    }

    #[test]
    fn categories_stand_in_the_order_of_the_closed_set() {
        let order: Vec<_> = Table::builtin().categories.iter().map(|row| row.category).collect();
        assert_eq!(order, Category::ALL[..Category::ALL.len() - 1]);
    }
}
