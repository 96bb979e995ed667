//! A file that was replaced by one that holds all of it and more, as `rsync` and editors do when they update a file: what was read is not read again.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Reader, find_inode};
use crate::delivery::Node;
use crate::sources::content;

/// Minimum bytes of content that prove that a file was known by another inode.
pub const MIN_MOVED_BYTES: u64 = 256;

impl Reader {
    /// Whether `other`, of `size` bytes, begins with everything this file held, and this file has no name any more. At equal
    /// size, `other` may as well be the log of a program that writes the same at each start: reading that again loses nothing.
    #[must_use]
    pub fn goes_on_in(&self, other: &File, size: u64) -> bool {
        self.offset >= MIN_MOVED_BYTES && self.size < size && self.holds_what_was_read(other, size).unwrap_or_default()
    }

    fn holds_what_was_read(&self, other: &File, size: u64) -> io::Result<bool> {
        let Some(file) = &self.file else {
            let mark = self.mark();
            let is_gone = || find_inode(self.path.parent().unwrap_or(Path::new("/")), self.node).is_none();
            return Ok(mark.read == mark.size && content::is_same(other, mark.content())? && is_gone());
        };
        let meta = file.file().metadata()?;
        Ok(!file.is_packed() && meta.nlink() == 0 && meta.len() < size && content::is_prefix(file, other, meta.len())?)
    }

    /// Continues in the file that has taken this one's place.
    pub fn renew(&mut self, node: Node) {
        self.rest();
        self.node = node;
    }
}
