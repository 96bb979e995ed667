//! What tells that a file under another name is one that is known: its first bytes, and its inode in the same folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::delivery::{Mark, Print};
use crate::sources::bytes::ReadAt;
use crate::sources::content::{HEAD_BYTES, bytes_at};
use crate::sources::open;
use crate::sources::reader::find_inode;

/// Returns how far a name that no source includes may lead: to files in its folder.
pub(super) fn trust_beside(path: &Path) -> open::Trust {
    open::Trust::Matched { link: false, within: path.parent().and_then(|folder| folder.canonicalize().ok()).into_iter().collect() }
}

/// Returns where the file of a mark is now, if it is still in its folder.
pub(super) fn find_anywhere(mark: &Mark) -> Option<PathBuf> {
    find_inode(mark.path.parent().unwrap_or(Path::new("/")), mark.node)
}

/// Hashes of a file's first bytes, each computed once.
#[derive(Default)]
pub(super) struct Heads {
    bytes: Option<Vec<u8>>,
    prints: HashMap<u32, Print>,
}

impl Heads {
    fn of<'h>(bytes: &'h mut Option<Vec<u8>>, file: &impl ReadAt) -> &'h [u8] {
        bytes.get_or_insert_with(|| bytes_at(file, 0, HEAD_BYTES).unwrap_or_default())
    }

    /// Reads the head, if it is not read yet, and returns whether the file has fewer than `len` bytes.
    pub fn end_before(&mut self, file: &impl ReadAt, len: u32) -> bool {
        Self::of(&mut self.bytes, file).len() < len as usize
    }

    /// Reads the head, if it is not read yet, and returns whether the file begins with the bytes of this hash.
    pub fn begin_with(&mut self, file: &impl ReadAt, wanted: &Print) -> bool {
        let bytes = Self::of(&mut self.bytes, file);
        let head = bytes.get(..wanted.len as usize);
        head.is_some_and(|head| self.prints.entry(wanted.len).or_insert_with(|| Print::of(head)) == wanted)
    }
}
