//! The state folder itself: that it is made, and whether its disk has room.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;

use rustix::process::geteuid;

use super::store::StoreError;

/// What is said where there is none.
pub const FULL: &str = "no room is left on its disk";
/// With less SQLite cannot even make the file by which those who have the state open know of each other, of 32 KiB.
const LITTLE: u64 = 64 << 10;

/// Makes it where there is none.
///
/// # Errors
/// Something else has its name, it may not be written, or there is no room. The text says what to do.
pub fn make(folder: &Path) -> Result<(), StoreError> {
    let Err(error) = fs::create_dir_all(folder) else { return Ok(()) };
    Err(in_the_way(folder).map_or_else(|| fault(&error), StoreError::Fatal))
}

/// What is no folder, and has its name or that of one above it. The text says what to do.
#[must_use]
pub fn in_the_way(folder: &Path) -> Option<String> {
    let other = folder.ancestors().find(|path| path.symlink_metadata().is_ok()).filter(|path| !path.is_dir())?;
    let name = if other == folder { "it".to_owned() } else { other.display().to_string() };
    let what = if other.is_file() { "a file, no folder" } else { "no folder" };
    Some(format!("{name} is {what}: name another one with state_dir or --state-dir"))
}

/// What the system says of a file in it.
pub fn fault(error: &Error) -> StoreError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Later(error.to_string()),
        _ => StoreError::Fatal(format!("{error}: make it, or name another one with state_dir or --state-dir")),
    }
}

/// Why nothing can be written there for now: SQLite says no more than "disk I/O error" of some files that find no room.
#[must_use]
pub fn reason(folder: &Path, why: &str) -> String {
    if why != FULL && is_full(folder) { format!("{FULL} ({why})") } else { why.to_owned() }
}

/// Whether its disk, or the one where it is to be made, is full.
fn is_full(folder: &Path) -> bool {
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let Ok(disk) = rustix::fs::statvfs(there) else { return false };
    // What is kept for root is free for root alone.
    let blocks = if geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
    // File systems that do not count in advance say that there are none at all.
    let is_without_bytes = disk.f_blocks > 0 && blocks.saturating_mul(disk.f_frsize) < LITTLE;
    is_without_bytes || disk.f_files > 0 && disk.f_favail == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_where_the_folder_is_to_be_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let said = |path: &Path| make(path).unwrap_err().to_string();
        assert_eq!(said(&file), "it is a file, no folder: name another one with state_dir or --state-dir");
        assert!(said(&file.join("state")).starts_with(&format!("{} is a file, no folder: ", file.display())));
        assert!(said(&link).starts_with("it is no folder: "));
        make(&folder.path().join("a/b")).unwrap();
        make(&folder.path().join("a/b")).unwrap();
    }

    #[test]
    fn a_disk_with_room_is_no_reason() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(reason(&folder.path().join("not/there"), "disk I/O error"), "disk I/O error");
    }
}
