//! Rules of all files put together: the entries in the order in which a line is offered to them, and
//! the literals that lead to them. It checks nothing; `load` has.

use std::collections::HashMap;
use std::sync::Arc;

use super::literal::Literals;
use super::prove::QuietWords;
use super::{Cancel, Entry, Examples, Family, Kind, Labels, Pattern, RulesFile, builtin, builtin_files};

/// Everything that the core needs to know about errors.
#[derive(Debug)]
pub struct RuleSet {
    /// Families, in order of loading.
    pub families: Vec<Family>,
    /// Entries in the order in which a line is offered to them.
    pub entries: Vec<Entry>,
    /// Cancels, in order of loading.
    pub cancels: Vec<Cancel>,
    /// Noise patterns that need no literal, because they are asked only of a line with a hit.
    pub noise: Vec<u16>,
    /// `None`: these are the built-in rules, no more and no less, whose literals the build has found.
    own: Option<Literals>,
}

impl Default for RuleSet {
    /// No rules.
    fn default() -> Self {
        Self { families: Vec::new(), entries: Vec::new(), cancels: Vec::new(), noise: Vec::new(), own: Some(Literals::default()) }
    }
}

impl RuleSet {
    /// The rules that are compiled in.
    #[must_use]
    pub fn builtin() -> Self {
        Self::with_files(builtin_files(Examples::Read))
    }

    /// The same without their examples, for reading logs: the quickest start, since the build has found their literals.
    #[must_use]
    pub fn compiled() -> Self {
        let mut set = Self { own: None, ..Self::default() };
        builtin_files(Examples::Skipped).into_iter().for_each(|file| set.append(file));
        set.link();
        set
    }

    /// Whether these are the built-in rules, no more and no less, so that what the build has made of them holds.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.own.is_none()
    }

    /// What the prefilter looks for, and the entries behind it.
    #[must_use]
    pub fn literals(&self) -> &Literals {
        self.own.as_ref().unwrap_or_else(|| builtin::literals())
    }

    /// Words of which a line holds one, in any case, if it is noise or a cancel matches in it.
    #[must_use]
    pub fn quiet_words(&self) -> QuietWords {
        if self.is_compiled() {
            return builtin::quiet_words();
        }
        let entries = self.noise.iter().map(|&entry| &self.entries[usize::from(entry)].kind);
        QuietWords {
            noise: entries.map(|kind| if let Kind::Noise { regex, .. } = kind { regex.required_words() } else { None }).collect(),
            cancels: self.cancels.iter().map(|cancel| cancel.regex.required_words()).collect(),
        }
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

    /// Joins a file whose entries may have the ids of earlier ones: such a one takes the earlier one's place, since of
    /// machines that take as many lines the first wins.
    fn add(&mut self, file: RulesFile) {
        let family = self.family(file.family);
        for mut entry in file.entries {
            entry.family = family;
            match self.entries.iter_mut().find(|known| known.id == entry.id) {
                Some(known) => *known = entry,
                None => self.entries.push(entry),
            }
        }
        for cancel in file.cancels {
            match self.cancels.iter_mut().find(|known| known.id == cancel.id) {
                Some(known) => *known = cancel,
                None => self.cancels.push(cancel),
            }
        }
    }

    /// Joins a file all of whose ids are new.
    fn append(&mut self, mut file: RulesFile) {
        let family = self.family(file.family);
        file.entries.iter_mut().for_each(|entry| entry.family = family);
        self.entries.append(&mut file.entries);
        self.cancels.append(&mut file.cancels);
    }

    fn family(&mut self, family: Family) -> u16 {
        let known = self.families.iter().position(|f| f.id == family.id).unwrap_or_else(|| {
            self.families.push(family);
            self.families.len() - 1
        });
        known as u16
    }

    /// Removes entries and cancels by id, or whole families by theirs.
    pub fn disable(&mut self, ids: &[String]) {
        let off = |id: &str| ids.iter().any(|d| d == id || id.strip_prefix(d.as_str()).is_some_and(|rest| rest.starts_with('.')));
        self.entries.retain(|entry| !off(&entry.id));
        self.cancels.retain(|cancel| !off(&cancel.id));
        self.finish();
    }

    fn finish(&mut self) {
        self.link();
        self.own = Some(Literals::of(self.entries.iter().map(|entry| (&entry.gate, matches!(entry.kind, Kind::Fact(_))))));
    }

    fn link(&mut self) {
        self.entries.sort_by_key(|entry| (entry.kind.table(), entry.generic));
        self.noise = (0..).zip(&self.entries).filter(|(_, entry)| matches!(entry.kind, Kind::Noise { .. })).map(|(index, _)| index).collect();
        self.link_names();
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
}
