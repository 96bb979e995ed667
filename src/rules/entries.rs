//! The entries of a rule set, in the order in which a line is offered to them. A run
//! meets few of the compiled-in entries, so each is read when it is first tried.

use std::collections::HashMap;
use std::ops::Index;
use std::sync::OnceLock;

use super::builtin;
use super::entry::{Entry, Family, Kind};
use super::spec::Table;

/// Entries by number.
#[derive(Debug, Default)]
pub struct Entries {
    /// An empty cell: the entry has not been needed yet.
    cells: Vec<OnceLock<Box<Entry>>>,
    /// For each entry, its number among the compiled-in entries, if it is one of them.
    compiled: Vec<Option<u16>>,
    /// For each compiled-in entry, its number here; `None`: it is gone.
    numbers: Vec<Option<u16>>,
    /// The other entries that are tried only in a region, by the region's id.
    weak: HashMap<String, Vec<u16>>,
    /// Entry numbers in the order of their ids.
    by_id: Vec<u16>,
}

/// An entry on its way into a set.
#[derive(Debug)]
pub(super) enum Member {
    /// A compiled-in entry, by its number among those; it need not be read.
    Compiled(u16),
    /// Any other.
    Read(Box<Entry>),
}

impl Member {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Compiled(at) => builtin::places()[usize::from(*at)].id,
            Self::Read(entry) => &entry.id,
        }
    }

    pub(super) fn table(&self) -> Table {
        match self {
            Self::Compiled(at) => Table::ALL[usize::from(builtin::places()[usize::from(*at)].table)],
            Self::Read(entry) => entry.kind.table(),
        }
    }

    /// Whether the entry is a word that prose uses too.
    pub(super) fn is_generic(&self) -> bool {
        match self {
            Self::Compiled(at) => builtin::places()[usize::from(*at)].generic,
            Self::Read(entry) => entry.generic,
        }
    }

    pub(super) fn compiled(&self) -> Option<u16> {
        if let Self::Compiled(at) = self { Some(*at) } else { None }
    }

    pub(super) fn read(&self) -> Option<&Entry> {
        if let Self::Read(entry) = self { Some(entry) } else { None }
    }
}

impl Entries {
    /// Returns the compiled-in entries.
    pub(super) fn compiled() -> Self {
        let by_id = builtin::by_id().to_vec();
        let numbers: Vec<_> = (0..).zip(&by_id).map(|(at, _)| Some(at)).collect();
        Self { cells: by_id.iter().map(|_| OnceLock::new()).collect(), compiled: numbers.clone(), numbers, weak: HashMap::new(), by_id }
    }

    /// Numbers `members` in their order.
    pub(super) fn new(members: Vec<Member>, families: &[Family]) -> Self {
        let mut all = Self { compiled: members.iter().map(Member::compiled).collect(), numbers: vec![None; builtin::places().len()], ..Self::default() };
        all.by_id = (0..).zip(&members).map(|(at, _)| at).collect();
        all.by_id.sort_by(|a, b| members[usize::from(*a)].id().cmp(members[usize::from(*b)].id()));
        for (at, member) in (0..).zip(&members) {
            if let Some(known) = member.compiled() {
                all.numbers[usize::from(known)] = Some(at);
            } else if let Some(region) = member.read().and_then(|entry| entry.region.clone()) {
                all.weak.entry(region).or_default().push(at);
            }
        }
        all.cells = members.into_iter().map(|member| all.cell(member, families)).collect();
        all
    }

    fn cell(&self, member: Member, families: &[Family]) -> OnceLock<Box<Entry>> {
        let Member::Read(entry) = member else { return OnceLock::new() };
        // An entry that replaces a built-in region takes over the entries that are tried only in that region.
        let region = matches!(entry.kind, Kind::Region(_)).then(|| builtin::position(&entry.id)).flatten();
        let weak = region.map(builtin::weak).unwrap_or_default();
        let (family, weak) = (entry.family, self.weak_in(&entry.id, weak));
        OnceLock::from(Box::new(entry.linked(family, families, weak)))
    }

    /// Returns the entries that are tried only in `region`; `compiled` are the compiled-in ones among them.
    fn weak_in(&self, region: &str, compiled: Vec<u16>) -> Vec<u16> {
        let known = compiled.into_iter().filter_map(|at| self.numbers[usize::from(at)]);
        let mut weak: Vec<u16> = known.chain(self.weak.get(region).into_iter().flatten().copied()).collect();
        weak.sort_unstable();
        weak
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        (0..self.len()).map(|at| &self[at])
    }

    /// Returns the number of the entry with an id.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<u16> {
        let found = self.by_id.binary_search_by(|&at| self.id(usize::from(at)).cmp(id)).ok()?;
        Some(self.by_id[found])
    }

    /// Returns the first region that the first error of a finished log opens. Reads no entry for it.
    #[must_use]
    pub fn implied(&self) -> Option<u16> {
        let is_implied = |&at: &u16| match self.compiled[usize::from(at)] {
            Some(known) => builtin::places()[usize::from(known)].implied,
            None => matches!(&self[usize::from(at)].kind, Kind::Region(region) if region.implied.is_some()),
        };
        (0..).take(self.len()).find(is_implied)
    }

    /// Returns the id of an entry without reading the entry.
    fn id(&self, at: usize) -> &str {
        match self.compiled[at] {
            Some(known) => builtin::id(known),
            None => &self[at].id,
        }
    }

    /// Returns the entry's number among the compiled-in entries.
    pub(super) fn compiled_as(&self, at: u16) -> Option<u16> {
        self.compiled[usize::from(at)]
    }

    /// Returns all entries as members.
    pub(super) fn into_members(self) -> impl Iterator<Item = Member> {
        self.cells.into_iter().zip(self.compiled).filter_map(|(cell, compiled)| match compiled {
            Some(at) => Some(Member::Compiled(at)),
            None => cell.into_inner().map(Member::Read),
        })
    }

    /// Reads a compiled-in entry; any other is in its cell from the start.
    fn read(&self, at: usize) -> Entry {
        let mut entry = builtin::entry(usize::from(self.compiled[at].unwrap_or_default()));
        if let Kind::Region(region) = &mut entry.kind {
            region.weak = self.weak_in(&entry.id, std::mem::take(&mut region.weak));
        }
        entry
    }
}

impl Index<usize> for Entries {
    type Output = Entry;

    fn index(&self, at: usize) -> &Entry {
        self.cells[at].get_or_init(|| Box::new(self.read(at)))
    }
}
