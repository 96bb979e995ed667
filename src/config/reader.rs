//! Walks a parsed TOML tree key by key and collects mistakes with their places. `schema`
//! decides which keys exist; this module knows none of them. A mistake never stops the walk.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::pattern::LiteralCheck;
use super::value::{self, Fault, Word};
use crate::diag::{Diagnostic, Source};
use crate::words::did_you_mean;

pub(super) type Node<'t> = Spanned<DeValue<'t>>;

/// A key that was asked for, and where it stands if it is present.
pub(super) struct Asked<'s> {
    pub table: String,
    pub place: Option<(&'s Source, Range<usize>)>,
}

/// A key in the text that was never asked for.
struct Unknown<'s> {
    source: &'s Source,
    span: Range<usize>,
    key: String,
    path: String,
    table: String,
    siblings: Vec<&'static str>,
    /// The key of this table that goes by this name elsewhere.
    meant: Option<&'static str>,
}

/// Most mistakes of each kind that are reported: each keeps the line that it stands on.
pub(super) const MAX_MISTAKES: usize = 100;

/// What outlives a single table: mistakes and places.
pub(super) struct Context<'s> {
    pub literals: &'s LiteralCheck,
    pub errors: Vec<Diagnostic>,
    /// Keys asked for, by dotted path.
    pub asked: BTreeMap<String, Asked<'s>>,
    unknown: Vec<Unknown<'s>>,
}

impl<'s> Context<'s> {
    pub fn new(literals: &'s LiteralCheck) -> Self {
        Self { literals, errors: Vec::new(), asked: BTreeMap::new(), unknown: Vec::new() }
    }

    /// Walks the tree of one text, then reports keys that were not asked for. Mistakes are added in text order.
    pub fn walk(&mut self, source: &'s Source, tree: &DeTable<'_>, read: impl FnOnce(&mut Table<'_, 's>)) {
        let earlier = std::mem::take(&mut self.errors);
        let title = "at the top level".to_owned();
        let mut root = Table { cx: self, source, nodes: tree, path: String::new(), title, asked: Vec::new(), hidden: Vec::new(), alike: Vec::new() };
        read(&mut root);
        root.finish();
        for unknown in std::mem::take(&mut self.unknown).into_iter().take(MAX_MISTAKES) {
            self.errors.push(self.explain(&unknown));
        }
        self.errors.sort_by_key(|e| (e.line, e.column));
        self.errors.splice(0..0, earlier);
    }

    fn explain(&self, unknown: &Unknown<'s>) -> Diagnostic {
        let Unknown { source, span, key, path, table, siblings, meant } = unknown;
        let namesakes = self.asked.iter().filter(|(path, _)| path.rsplit('.').next() == Some(key));
        let mend = match (meant, namesakes.min_by_key(|(path, _)| path.len())) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, Some((_, home))) => format!("`{key}` belongs {}", home.table),
            (None, None) => did_you_mean(key, siblings).unwrap_or_else(|| format!("the keys here are {}", siblings.join(", "))),
        };
        source.error(span.clone(), format!("unknown key `{key}` {table}")).with_key(path).with_mend(mend)
    }

    /// Reports a conflict between two keys at the first of them that was written; defaults never conflict.
    pub fn conflict(&mut self, paths: [&str; 2], problem: &str, mend: &str) {
        let place = |path| Some((path, self.asked.get(path)?.place.clone()?));
        if let Some((path, (source, span))) = paths.into_iter().find_map(place) {
            self.errors.push(source.error(span, problem).with_key(path).with_mend(mend));
        }
    }
}

/// One table of the tree being walked.
pub(super) struct Table<'c, 's> {
    pub cx: &'c mut Context<'s>,
    pub source: &'s Source,
    nodes: &'c DeTable<'c>,
    path: String,
    /// Where the table is, in words: `in [limits]`.
    title: String,
    asked: Vec<&'static str>,
    /// Those keys of `asked` that are never proposed.
    hidden: Vec<&'static str>,
    /// Other names of keys of this table, each with the key.
    alike: Vec<(&'static str, &'static str)>,
}

impl<'c, 's> Table<'c, 's> {
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the value under a key. Asking alone makes the key known.
    pub fn node(&mut self, key: &'static str) -> Option<&'c Node<'c>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let node = self.nodes.get(key);
        let path = self.path_of(key);
        let table = self.title.clone();
        let asked = self.cx.asked.entry(path).or_insert(Asked { table, place: None });
        if let Some(node) = node {
            asked.place = Some((self.source, node.span()));
        }
        node
    }

    /// Marks a key as known here but never proposed.
    pub fn hide(&mut self, key: &'static str) {
        self.hidden.push(key);
    }

    /// Records that `key` is called `other` elsewhere.
    pub fn call_alike(&mut self, other: &'static str, key: &'static str) {
        self.alike.push((other, key));
    }

    pub fn value<T>(&mut self, key: &'static str, out: &mut T, convert: impl FnOnce(&DeValue<'_>) -> Result<T, Fault>) {
        if let Some(node) = self.node(key) {
            match convert(node.get_ref()) {
                Ok(value) => *out = value,
                Err(fault) => self.fault(key, node.span(), fault),
            }
        }
    }

    pub fn flag(&mut self, key: &'static str, out: &mut bool) {
        self.value(key, out, value::flag);
    }

    pub fn text<T>(&mut self, key: &'static str, out: &mut T, convert: impl FnOnce(String) -> Result<T, Fault>) {
        self.value(key, out, |v| convert(value::text(v)?));
    }

    pub fn count(&mut self, key: &'static str, out: &mut u32, range: RangeInclusive<u32>) {
        self.value(key, out, |v| value::count(v, range));
    }

    pub fn size(&mut self, key: &'static str, out: &mut u64, range: RangeInclusive<u64>) {
        self.value(key, out, |v| value::size(v, range));
    }

    pub fn duration(&mut self, key: &'static str, out: &mut Duration, range: RangeInclusive<Duration>) {
        self.value(key, out, |v| value::duration(v, range));
    }

    pub fn word<T: Word>(&mut self, key: &'static str, out: &mut T) {
        self.value(key, out, value::word);
    }

    /// Returns the elements of an array; `None` when the key is absent or holds something else, which is reported.
    pub fn items(&mut self, key: &'static str, mend: &str) -> Option<Vec<&'c Node<'c>>> {
        let node = self.node(key)?;
        match node.get_ref().as_array() {
            Some(array) => Some(array.iter().collect()),
            None => {
                self.fault(key, node.span(), Fault::must_be("a list", mend));
                None
            }
        }
    }

    /// Reads an array of strings and converts each. If present it replaces `out`; if absent `out` stays as it is.
    pub fn list<T>(&mut self, key: &'static str, out: &mut Vec<T>, convert: impl Fn(String) -> Result<T, Fault>) {
        let Some(items) = self.items(key, "write it in brackets: [\"…\"]") else {
            return;
        };
        out.clear();
        for item in items {
            match value::text(item.get_ref()).and_then(&convert) {
                Ok(value) => out.push(value),
                Err(fault) => self.fault(key, item.span(), fault),
            }
        }
    }

    /// Reads a `[section]`. An absent section is read as empty, so that its keys are known in any case.
    pub fn section(&mut self, key: &'static str, read: impl FnOnce(&mut Table<'_, 's>)) {
        let path = self.path_of(key);
        let title = format!("in [{path}]");
        let empty = DeTable::new();
        let nodes = match self.node(key) {
            None => &empty,
            Some(node) => match node.get_ref().as_table() {
                Some(table) => table,
                None => {
                    let mend = format!("write [{path}] and its keys below");
                    return self.fault(key, node.span(), Fault::must_be("a table", mend));
                }
            },
        };
        self.inner(nodes, path, title, read);
    }

    /// Reads each `[[block]]`, with the span of its header.
    pub fn blocks(&mut self, key: &'static str, mut read: impl FnMut(&mut Table<'_, 's>, Range<usize>)) {
        let mend = format!("write [[{key}]], in two pairs of brackets");
        for item in self.items(key, &mend).unwrap_or_default() {
            match item.get_ref().as_table() {
                Some(_) => self.entry(key, item, format!("in [[{key}]]"), |t| read(t, item.span())),
                None => self.fault(key, item.span(), Fault::must_be("a table", mend.as_str())),
            }
        }
    }

    /// Reads a table that is an element of the array under `key`.
    pub fn entry(&mut self, key: &'static str, node: &Node<'_>, title: String, read: impl FnOnce(&mut Table<'_, 's>)) {
        let path = self.path_of(key);
        if let Some(table) = node.get_ref().as_table() {
            self.inner(table, path, title, read);
        }
    }

    fn inner(&mut self, nodes: &DeTable<'_>, path: String, title: String, read: impl FnOnce(&mut Table<'_, 's>)) {
        let mut table = Table { cx: self.cx, source: self.source, nodes, path, title, asked: Vec::new(), hidden: Vec::new(), alike: Vec::new() };
        read(&mut table);
        table.finish();
    }

    /// Reports that the value of a key does not fit, at `span`.
    pub fn fault(&mut self, key: &str, span: Range<usize>, fault: Fault) {
        if self.cx.errors.len() >= MAX_MISTAKES {
            return;
        }
        let written = self.source.text.get(span.clone()).unwrap_or_default();
        let mut problem = format!("`{key}` {} {}", self.title, fault.problem);
        if fault.quotes_value {
            problem += &format!(" {}", excerpt(written));
        }
        let part = fault.within.and_then(|part| narrow(&span, written, part));
        let mut error = self.source.error(part.unwrap_or(span), problem);
        if fault.is_secret {
            let key = key.split('.').next().unwrap_or(key);
            (error.source_line, error.column, error.width) = (format!("{key} = …"), 1, key.chars().count());
        }
        let error = error.with_key(self.path_of(key)).with_mend(fault.mend);
        self.cx.errors.push(error);
    }

    fn finish(self) {
        let known = |key: &str| self.asked.contains(&key);
        for key in self.nodes.keys().filter(|key| !known(key.get_ref())) {
            self.cx.unknown.push(Unknown {
                source: self.source,
                span: key.span(),
                key: key.get_ref().to_string(),
                path: self.path_of(key.get_ref()),
                table: self.title.clone(),
                siblings: self.asked.iter().copied().filter(|key| !self.hidden.contains(key)).collect(),
                meant: self.alike.iter().find(|(other, _)| key.get_ref() == *other).map(|(_, meant)| *meant),
            });
        }
    }
}

/// Returns a value as written, shortened to fit a sentence.
fn excerpt(written: &str) -> String {
    let line = written.lines().next().unwrap_or_default();
    let short: String = line.chars().take(40).collect();
    if short.len() < written.trim_end().len() { format!("{short}…") } else { short }
}

/// Returns the span of part of a string; `None` unless the string is written without escapes, in single quotes.
fn narrow(span: &Range<usize>, written: &str, part: Range<usize>) -> Option<Range<usize>> {
    let plain = written.starts_with('\'') && !written.contains("''");
    plain.then(|| span.start + 1 + part.start..span.start + 1 + part.end)
}
