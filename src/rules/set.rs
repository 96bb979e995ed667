//! Rules of all files put together: the entries in the order in which a line is offered to them, and
//! the literals that lead to them. It checks nothing; `load` has.

use std::collections::HashMap;
use std::sync::Arc;

use super::literal::{self, LiteralForm};
use super::{Cancel, Entry, Examples, Family, Kind, Labels, Pattern, RulesFile, builtin_files};

/// Everything that the core needs to know about errors.
#[derive(Debug, Default)]
pub struct RuleSet {
    /// Families, in order of loading.
    pub families: Vec<Family>,
    /// Entries in the order in which a line is offered to them.
    pub entries: Vec<Entry>,
    /// Cancels, in order of loading.
    pub cancels: Vec<Cancel>,
    /// The prefilter's literals.
    pub literals: Vec<LiteralForm>,
    /// For each literal, the entries it leads to.
    pub targets: Vec<Vec<u16>>,
    /// Noise patterns that need no literal, because they are asked only of a line with a hit.
    pub noise: Vec<u16>,
}

impl RuleSet {
    /// The rules that are compiled in.
    #[must_use]
    pub fn builtin() -> Self {
        Self::with_files(builtin_files(Examples::Read))
    }

    /// Joins files into one set. Later files add; an entry with a known id replaces the earlier one.
    #[must_use]
    pub fn with_files(files: Vec<RulesFile>) -> Self {
        let mut set = Self::default();
        for file in files {
            set.add(file);
        }
        set.finish();
        set
    }

    /// Every pattern of every entry and cancel.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.entries.iter().flat_map(|entry| entry.kind.patterns()).chain(self.cancels.iter().map(|cancel| &cancel.regex))
    }

    fn add(&mut self, file: RulesFile) {
        let family = match self.families.iter().position(|f| f.id == file.family.id) {
            Some(known) => known,
            None => {
                self.families.push(file.family);
                self.families.len() - 1
            }
        } as u16;
        for mut entry in file.entries {
            entry.family = family;
            // It keeps its place among the others: of machines that take as many lines the first wins.
            match self.entries.iter().position(|known| known.id == entry.id) {
                Some(known) => self.entries[known] = entry,
                None => self.entries.push(entry),
            }
        }
        for cancel in file.cancels {
            self.cancels.retain(|known| known.id != cancel.id);
            self.cancels.push(cancel);
        }
    }

    /// Removes entries and cancels by id, or whole families by theirs.
    pub fn disable(&mut self, ids: &[String]) {
        let off = |id: &str| ids.iter().any(|d| d == id || id.strip_prefix(d.as_str()).is_some_and(|rest| rest.starts_with('.')));
        self.entries.retain(|entry| !off(&entry.id));
        self.cancels.retain(|cancel| !off(&cancel.id));
        self.finish();
    }

    fn finish(&mut self) {
        self.entries.sort_by_key(|entry| (entry.kind.order(), entry.generic));
        self.link_names();
        self.collect_literals();
    }

    /// Regions and notes name regions and families by id; the core wants indexes.
    fn link_names(&mut self) {
        let mut weak: HashMap<String, Vec<u16>> = HashMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            if let Some(region) = &entry.region {
                weak.entry(region.clone()).or_default().push(index as u16);
            }
        }
        let family = |name: &String| self.families.iter().position(|f| f.id == *name).map(|i| i as u16);
        for entry in &mut self.entries {
            let language = entry.fault.language.as_deref().or(self.families[usize::from(entry.family)].language.as_deref());
            entry.labels = Labels { rule: entry.id.as_str().into(), language: language.map(Arc::from), hint: entry.fault.hint.as_deref().map(Arc::from) };
            match &mut entry.kind {
                Kind::Region(region) => region.weak = weak.remove(&entry.id).unwrap_or_default(),
                Kind::Note(note) if entry.claimed_by.is_empty() => note.claimed_by = vec![entry.family],
                Kind::Note(note) => note.claimed_by = entry.claimed_by.iter().filter_map(family).collect(),
                _ => {}
            }
        }
    }

    fn collect_literals(&mut self) {
        let mut forms: Vec<(LiteralForm, u16)> = Vec::new();
        self.noise.clear();
        for (index, entry) in self.entries.iter().enumerate() {
            if let Kind::Noise { .. } = entry.kind {
                self.noise.push(index as u16);
            }
            forms.extend(literal::forms(&entry.gate, matches!(entry.kind, Kind::Fact(_))).into_iter().map(|form| (form, index as u16)));
        }
        // Their numbers are sorted: the forms are large.
        let mut order: Vec<usize> = (0..forms.len()).collect();
        order.sort_unstable_by(|a, b| forms[*a].cmp(&forms[*b]));
        (self.literals, self.targets) = (Vec::new(), Vec::new());
        for at in order {
            let (form, entry) = std::mem::take(&mut forms[at]);
            match self.targets.last_mut().filter(|_| self.literals.last() == Some(&form)) {
                Some(targets) if targets.last() == Some(&entry) => {}
                Some(targets) => targets.push(entry),
                None => {
                    self.literals.push(form);
                    self.targets.push(vec![entry]);
                }
            }
        }
    }
}
