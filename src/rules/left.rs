//! What the build leaves of the built-in rules, in the forms in which siftd takes it up: `src/build.rs` writes them,
//! `builtin` reads them.

use serde::{Deserialize, Serialize};

use super::spec::{EntrySpec, FamilySpec};

/// What is read at every start.
#[derive(Debug, Deserialize, Serialize)]
pub struct Index<'a> {
    /// The families, a file each.
    pub families: Vec<FamilySpec>,
    /// The cancels, each with the number of its family.
    pub cancels: Vec<(u16, EntrySpec)>,
    /// The entries in the order in which a line is offered to them.
    #[serde(borrow)]
    pub places: Vec<Place<'a>>,
    /// Their numbers in the order of their ids.
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
    /// Whether it is a word that prose uses too.
    pub generic: bool,
    /// Its number among all in the order of the files.
    pub order: u16,
    /// Where its [`Left`] begins, in bytes.
    pub at: u32,
}

/// The literals as the files have them, sorted, each with the numbers of its entries.
pub type Uses<'a> = Vec<(&'a str, Vec<u16>)>;

/// An entry, read when it is first asked.
#[derive(Debug, Deserialize, Serialize)]
pub struct Left {
    /// What its file says.
    pub spec: EntrySpec,
    /// Of a region: the entries that are tried only in it.
    pub weak: Vec<u16>,
}
