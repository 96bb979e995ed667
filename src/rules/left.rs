//! What the build leaves of the built-in rules, in the formats in which
//! siftd reads it: `src/build.rs` writes them, `builtin` reads them.

use serde::{Deserialize, Serialize};

use super::spec::{EntrySpec, FamilySpec};

/// The part that is read at every start.
#[derive(Debug, Deserialize, Serialize)]
pub struct Index<'a> {
    /// The families, one for each file.
    pub families: Vec<FamilySpec>,
    /// The cancels, each with the number of its family.
    pub cancels: Vec<(u16, EntrySpec)>,
    /// The entries in the order in which a line is offered to them.
    #[serde(borrow)]
    pub places: Vec<Place<'a>>,
    /// Entry numbers in the order of their ids.
    pub by_id: Vec<u16>,
}

/// Where an entry is found.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Place<'a> {
    /// Its id.
    pub id: &'a str,
    /// Number of its family.
    pub family: u16,
    /// Number of its table in `Table::ALL`.
    pub table: u8,
    /// Whether the entry is a word that prose uses too.
    pub generic: bool,
    /// Whether it is a region that a finished log implies.
    pub implied: bool,
    /// Its position among all entries, in the order of the files.
    pub order: u16,
    /// Byte offset at which its [`Left`] begins.
    pub at: u32,
}

/// The literals as written in the files, sorted, each with the numbers of its entries.
pub type Uses<'a> = Vec<(&'a str, Vec<u16>)>;

/// An entry, read when it is first tried.
#[derive(Debug, Deserialize, Serialize)]
pub struct Left {
    /// What its file says.
    pub spec: EntrySpec,
    /// For a region, the entries that are tried only in it.
    pub weak: Vec<u16>,
}
