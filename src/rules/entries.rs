//! The entries of a rule set in the order in which a line is offered to them. A run meets few of those that are compiled
//! in: each is read when it is first asked.

use std::ops::Index;
use std::sync::OnceLock;

use super::builtin;
use super::entry::Entry;

/// Entries by number.
#[derive(Debug, Default)]
pub struct Entries {
    /// An empty one stands for the built-in entry of its number.
    cells: Vec<OnceLock<Box<Entry>>>,
    /// Numbers in the order of their ids.
    by_id: Vec<u16>,
}

impl Entries {
    /// Those that are compiled in.
    pub(super) fn compiled() -> Self {
        let by_id = builtin::by_id().to_vec();
        Self { cells: by_id.iter().map(|_| OnceLock::new()).collect(), by_id }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        (0..self.len()).map(|at| &self[at])
    }

    /// The number of the entry with an id.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<u16> {
        let found = self.by_id.binary_search_by(|&at| self.id(usize::from(at)).cmp(id)).ok()?;
        Some(self.by_id[found])
    }

    /// The id of an entry, which is not read for it.
    fn id(&self, at: usize) -> &str {
        self.cells[at].get().map_or_else(|| builtin::id(at), |entry| &entry.id)
    }

    /// All of them.
    pub(super) fn into_vec(self) -> Vec<Entry> {
        let all = self.cells.into_iter().enumerate();
        all.map(|(at, cell)| cell.into_inner().map_or_else(|| builtin::entry(at), |entry| *entry)).collect()
    }
}

impl Index<usize> for Entries {
    type Output = Entry;

    fn index(&self, at: usize) -> &Entry {
        self.cells[at].get_or_init(|| Box::new(builtin::entry(at)))
    }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let cells: Vec<_> = entries.into_iter().map(|entry| OnceLock::from(Box::new(entry))).collect();
        let mut all = Self { by_id: (0..cells.len() as u16).collect(), cells };
        let mut by_id = std::mem::take(&mut all.by_id);
        by_id.sort_by(|a, b| all.id(usize::from(*a)).cmp(all.id(usize::from(*b))));
        Self { by_id, ..all }
    }
}
