//! The rules of all files: the entries in the order in which a line is offered to them, and the literals
//! that lead to them. `load` has already checked the rules, and `join` puts the files together.

use super::clue::Clues;
use super::join::Joined;
use super::literal::{Leads, Literals};
use super::spec::Table;
use super::{Cancel, Entries, Examples, FactKind, Family, Kind, Pattern, RulesFile, builtin, builtin_files};

/// Everything that the core needs to know about errors.
#[derive(Debug)]
pub struct RuleSet {
    /// Families, in order of loading.
    pub families: Vec<Family>,
    /// Entries in the order in which a line is offered to them.
    pub entries: Entries,
    /// Cancels, in order of loading.
    pub cancels: Vec<Cancel>,
    /// Noise entries that need no literal, because they are tried only on a line with a hit.
    pub noise: Vec<u16>,
    /// Facts, which decoding states about a line, or a transcript about a step.
    pub facts: Vec<u16>,
    /// `None` if these are exactly the built-in rules, whose literals the build has computed.
    pub(super) own: Option<Literals>,
}

impl Default for RuleSet {
    /// Returns a set without rules.
    fn default() -> Self {
        Joined::default().set()
    }
}

impl RuleSet {
    /// Returns the compiled-in rules, with their examples.
    #[must_use]
    pub fn builtin() -> Self {
        Self::with_files(builtin_files(Examples::Read))
    }

    /// Returns the compiled-in rules without their examples, for reading logs: the fastest start, since the build has read them.
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

    /// [`compiled`](Self::compiled) with further files. Later files add; an entry with a known
    /// id replaces the earlier one. What the build has made of the entries that stay is reused.
    #[must_use]
    pub fn compiled_with(more: Vec<RulesFile>) -> Self {
        if more.is_empty() {
            return Self::compiled();
        }
        let mut joined = Joined::compiled();
        more.into_iter().for_each(|file| joined.add(file));
        joined.set()
    }

    /// Whether these are exactly the built-in rules, so that everything that the build has made of them applies.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.own.is_none()
    }

    /// Returns the entries that the literals lead to.
    #[must_use]
    pub fn leads(&self) -> &Leads {
        self.own.as_ref().map_or_else(|| builtin::leads(), |own| &own.leads)
    }

    /// Returns the literals; `None` if these are exactly the built-in rules.
    #[must_use]
    pub fn own_literals(&self) -> Option<&Literals> {
        self.own.as_ref()
    }

    /// Returns the clues that a line shows if it is noise or a cancel matches in it.
    #[must_use]
    pub fn clues(&self) -> Clues {
        if self.is_compiled() {
            return builtin::clues();
        }
        // Computing clues is expensive, so those of the built-in patterns come from the build.
        let (mut known, first) = (builtin::clues(), builtin::of_table(Table::Noise).first().copied().unwrap_or_default());
        let of_noise = |&at: &u16| match self.entries.compiled_as(at) {
            Some(at) => std::mem::take(&mut known.noise[usize::from(at - first)]),
            None => match &self.entries[usize::from(at)].kind {
                Kind::Noise { regex, .. } => regex.clues(),
                _ => Vec::new(),
            },
        };
        let of_cancel = |cancel: &Cancel| match cancel.compiled {
            Some(at) => std::mem::take(&mut known.cancels[usize::from(at)]),
            None => cancel.regex.clues(),
        };
        Clues { noise: self.noise.iter().map(of_noise).collect(), cancels: self.cancels.iter().map(of_cancel).collect() }
    }

    /// Returns the entry of a fact.
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

    /// Returns every pattern of every entry and cancel.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.entries.iter().flat_map(|entry| entry.kind.patterns()).chain(self.cancels.iter().map(|cancel| &cancel.regex))
    }

    /// Removes entries and cancels by id, or whole families by theirs; returns those of `ids` that name nothing.
    pub fn disable(&mut self, ids: &[String]) -> Vec<String> {
        let names = |name: &String, id: &str| name == id || id.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let all = || self.entries.iter().map(|entry| &entry.id).chain(self.cancels.iter().map(|cancel| &cancel.id));
        let unknown = ids.iter().filter(|name| !all().any(|id| names(name, id))).cloned().collect();
        *self = Joined::without(std::mem::take(self), |id| ids.iter().any(|name| names(name, id))).set();
        unknown
    }
}
