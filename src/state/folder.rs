//! The state folder itself: creating it, and checking whether its disk has room.

use std::fs::{self, DirBuilder};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::process::geteuid;

use super::store::StoreError;

/// The reason given when there is no room.
pub const FULL: &str = "no room is left on its disk";
/// With less room SQLite cannot even create its 32 KiB shared-memory file, by which the processes that have the state open know of each other.
const LITTLE: u64 = 64 << 10;

/// Creates the folder if it does not exist. Only its user may enter it: the state holds text of logs.
///
/// # Errors
/// Something else has its name, it may not be created, or there is no room. The text says what to do.
pub fn make(folder: &Path) -> Result<(), StoreError> {
    let above = folder.parent().map_or(Ok(()), fs::create_dir_all);
    let Err(error) = above.and_then(|()| DirBuilder::new().recursive(true).mode(0o700).create(folder)) else { return Ok(()) };
    Err(in_the_way(folder).map_or_else(|| fault(&error), StoreError::Fatal))
}

/// Names whatever is not a folder and has the name of the folder or of one of its parents. The text says what to do.
#[must_use]
pub fn in_the_way(folder: &Path) -> Option<String> {
    let other = folder.ancestors().find(|path| path.symlink_metadata().is_ok()).filter(|path| !path.is_dir())?;
    let name = if other == folder { "it".to_owned() } else { other.display().to_string() };
    let what = if other.is_file() { "a file, no folder" } else { "no folder" };
    Some(format!("{name} is {what}: name another one with state_dir or --state-dir"))
}

/// Turns an I/O error on a file in the folder into a [`StoreError`].
pub fn fault(error: &Error) -> StoreError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Later(error.to_string()),
        _ => StoreError::Fatal(format!("{error}: make it, or name another one with state_dir or --state-dir")),
    }
}

/// Says why nothing can be written there for now: for some files without room, SQLite says only "disk I/O error".
#[must_use]
pub fn reason(folder: &Path, why: &str) -> String {
    if why != FULL && is_full(folder) { format!("{FULL} ({why})") } else { why.to_owned() }
}

/// Whether the disk of the folder (or of its nearest existing parent) is full.
fn is_full(folder: &Path) -> bool {
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let Ok(disk) = rustix::fs::statvfs(there) else { return false };
    // The blocks reserved for root are available to root alone.
    let blocks = if geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
    // File systems that do not count in advance report a total of 0.
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
        let mode = || std::os::unix::fs::PermissionsExt::mode(&fs::metadata(folder.path().join("a/b")).unwrap().permissions()) & 0o777;
        assert_eq!(mode(), 0o700);
        fs::set_permissions(folder.path().join("a/b"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        make(&folder.path().join("a/b")).unwrap();
        assert_eq!(mode(), 0o755, "it is left as it is");
    }

    #[test]
    fn a_disk_with_room_is_no_reason() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(reason(&folder.path().join("not/there"), "disk I/O error"), "disk I/O error");
    }
}
