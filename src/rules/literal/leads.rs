//! Which entries the literals lead to: two arrays for all literals, as thousands of small lists would
//! take ten times as much memory, and each hit reads one of them.

use serde::{Deserialize, Serialize};

use super::LiteralForm;

/// The entries that each literal leads to, and its length.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Leads {
    /// Length of each literal, in bytes: at most [`MAX_BYTES`](super::MAX_BYTES).
    lens: Vec<u8>,
    /// For each literal, where its entries end in `entries`; they begin where those of the one before end.
    ends: Vec<u32>,
    entries: Vec<u16>,
}

impl Leads {
    /// Adds the next literal, which leads to `entries`, in ascending order.
    pub(super) fn push(&mut self, literal: &LiteralForm, entries: impl IntoIterator<Item = u16>) {
        self.lens.push(literal.bytes.len() as u8);
        self.entries.extend(entries);
        self.ends.push(self.entries.len() as u32);
    }

    /// Adds an entry to the last literal.
    pub(super) fn push_entry(&mut self, entry: u16) {
        if let Some(end) = self.ends.last_mut() {
            self.entries.push(entry);
            *end += 1;
        }
    }

    /// Returns the entries that the literal at `index` leads to; one that leads to none is not searched for.
    ///
    /// # Panics
    /// If there is no such literal.
    #[must_use]
    pub fn of(&self, index: usize) -> &[u16] {
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[from as usize..self.ends[index] as usize]
    }

    /// Returns the length of the literal at `index`, in bytes.
    ///
    /// # Panics
    /// If there is no such literal.
    #[must_use]
    pub fn len_of(&self, index: usize) -> u16 {
        self.lens[index].into()
    }
}
