//! A followed file: what it is called, who reads it, and what is to be done with it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::core::event::Timestamp;
use crate::delivery::{Label, Mark, Node, Uid};
use crate::sources::reader::Reader;

/// A followed file.
pub(super) struct Followed {
    /// Index of its source.
    pub(super) spec: usize,
    pub(super) names: Names,
    pub(super) uid: Uid,
    pub(super) node: Node,
    pub(super) reader: ReaderOf,
    pub(super) mark: Mark,
    pub(super) activity: Activity,
    pub(super) life: Life,
    pub(super) errands: Errands,
}

/// What a file is called.
pub(super) struct Names {
    pub(super) path: PathBuf,
    /// The name under which it was met: a younger file with that name has taken its place.
    pub(super) met_as: PathBuf,
    pub(super) label: Arc<Label>,
}

/// A file's reader, which whoever takes its turn has meanwhile.
pub(super) struct ReaderOf {
    pub(super) shared: Arc<Mutex<Reader>>,
    /// Whether it holds a descriptor, as far as its last turn said.
    pub(super) is_open: bool,
}

/// When a file was last written.
pub(super) struct Activity {
    pub(super) changed_at: Timestamp,
    /// The modification time seen at the last check.
    pub(super) written: i128,
    /// The size seen at that check, until a turn has read the file: what a file has beyond its mark is lost with it. 0: none.
    pub(super) seen_size: u64,
    /// Whether it was not yet read to its end since it was met.
    pub(super) is_new: bool,
}

/// How far a file is from its end.
#[derive(Default)]
pub(super) struct Life {
    /// Since when no name of its source leads to it.
    pub(super) retired: Option<Timestamp>,
    /// Whether its last turn is to be taken. A file that its source no longer means ends with its name.
    pub(super) is_last: bool,
    /// Whether it is not a log; this was reported.
    pub(super) is_left_out: bool,
}

/// What is to be done between two turns of a file, because its reader is in one.
#[derive(Default)]
pub(super) struct Errands {
    /// Whether new rules or another trust apply from its next turn on.
    pub(super) is_changed: bool,
    /// Whether its reader does not know its name yet.
    pub(super) is_renamed: bool,
    /// Whether a new file under its name waits for the end of its turn, because the stream may continue in that file.
    pub(super) is_awaited: bool,
}
