//! Finds out who blocks the state file: the process that holds a lock on it, or else the `run` that has the folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::lock::Lock;
use super::store::{file, with_end};
use crate::locks::writer;

/// The byte of the shared-memory file that a writer locks (sqlite.org, "WAL-mode File Format", 2.3.1).
const WRITE_LOCK: u64 = 120;

/// Names the process that writes, in words for a message; `None` if it is not known.
#[must_use]
pub fn holder(folder: &Path) -> Option<String> {
    let file = file(folder);
    let inode = |end: &str| fs::metadata(with_end(&file, end)).map(|meta| meta.ino()).ok();
    let of_shared_memory = inode("-shm").and_then(|ino| writer(ino, WRITE_LOCK..=WRITE_LOCK));
    let of_database = || writer(inode("")?, 0..=u64::MAX);
    of_shared_memory.or_else(of_database).or_else(|| Lock::holder(folder).map(|pid| format!("process {pid} (siftd run)")))
}
