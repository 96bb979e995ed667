//! Rules of all files put together: the entries in the order in which a line is offered to them, and
//! the literals that lead to them. It checks nothing; `load` has.

use std::collections::HashMap;

use super::literal::Literals;
use super::prove::QuietWords;
use super::spec::Table;
use super::{Cancel, Entries, Entry, Examples, FactKind, Family, Kind, Pattern, RulesFile, builtin, builtin_files};

/// Everything that the core needs to know about errors.
#[derive(Debug)]
pub struct RuleSet {
    /// Families, in order of loading.
    pub families: Vec<Family>,
    /// Entries in the order in which a line is offered to them.
    pub entries: Entries,
    /// Cancels, in order of loading.
    pub cancels: Vec<Cancel>,
    /// Noise patterns that need no literal, because they are asked only of a line with a hit.
    pub noise: Vec<u16>,
    /// Facts: what decoding says of a line, or a transcript of a step.
    pub facts: Vec<u16>,
    /// `None`: these are the built-in rules, no more and no less, whose literals the build has found.
    own: Option<Literals>,
}

impl Default for RuleSet {
    /// No rules.
    fn default() -> Self {
        Joined::default().set()
    }
}

impl RuleSet {
    /// The rules that are compiled in.
    #[must_use]
    pub fn builtin() -> Self {
        Self::with_files(builtin_files(Examples::Read))
    }

    /// The same without their examples, for reading logs: the quickest start, since the build has read them.
    #[must_use]
    pub fn compiled() -> Self {
        Self {
            families: builtin::families().to_vec(),
            entries: Entries::compiled(),
            cancels: builtin::cancels(),
            noise: builtin::of_table(Table::Noise),
            facts: builtin::of_table(Table::Fact),
            own: None,
        }
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

    /// The entry of a fact.
    #[must_use]
    pub fn fact(&self, wanted: FactKind) -> Option<u16> {
        self.facts.iter().copied().find(|&entry| matches!(self.entries[usize::from(entry)].kind, Kind::Fact(kind) if kind == wanted))
    }

    /// Joins files into one set. Later files add; an entry with a known id replaces the earlier one.
    #[must_use]
    pub fn with_files(files: Vec<RulesFile>) -> Self {
        let mut joined = Joined::default();
        files.into_iter().for_each(|file| joined.add(file));
        joined.set()
    }

    /// Every pattern of every entry and cancel.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.entries.iter().flat_map(|entry| entry.kind.patterns()).chain(self.cancels.iter().map(|cancel| &cancel.regex))
    }

    /// Removes entries and cancels by id, or whole families by theirs.
    pub fn disable(&mut self, ids: &[String]) {
        let off = |id: &str| ids.iter().any(|d| d == id || id.strip_prefix(d.as_str()).is_some_and(|rest| rest.starts_with('.')));
        let Self { families, entries, cancels, .. } = std::mem::take(self);
        let mut joined = Joined { families, entries: entries.into_vec(), cancels };
        joined.entries.retain(|entry| !off(&entry.id));
        joined.cancels.retain(|cancel| !off(&cancel.id));
        *self = joined.set();
    }
}

/// A set in the making.
#[derive(Default)]
struct Joined {
    families: Vec<Family>,
    entries: Vec<Entry>,
    cancels: Vec<Cancel>,
}

impl Joined {
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

    fn family(&mut self, family: Family) -> u16 {
        let known = self.families.iter().position(|f| f.id == family.id).unwrap_or_else(|| {
            self.families.push(family);
            self.families.len() - 1
        });
        known as u16
    }

    fn set(mut self) -> RuleSet {
        self.entries.sort_by_key(|entry| (entry.kind.table(), entry.generic));
        let own = Literals::of(self.entries.iter().map(|entry| (&entry.gate, matches!(entry.kind, Kind::Fact(_)))));
        let of_table = |table: Table| (0..).zip(&self.entries).filter(|(_, entry)| entry.kind.table() == table).map(|(at, _)| at).collect();
        let (noise, facts) = (of_table(Table::Noise), of_table(Table::Fact));
        let mut weak: HashMap<String, Vec<u16>> = HashMap::new();
        for (at, entry) in (0..).zip(&self.entries) {
            if let Some(region) = &entry.region {
                weak.entry(region.clone()).or_default().push(at);
            }
        }
        let Self { families, entries, cancels } = self;
        let linked = |entry: Entry| {
            let (family, weak) = (entry.family, weak.remove(&entry.id).unwrap_or_default());
            entry.linked(family, &families, weak)
        };
        let entries = entries.into_iter().map(linked).collect();
        RuleSet { families, entries, cancels, noise, facts, own: Some(own) }
    }
}
