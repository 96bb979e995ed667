//! Keeps an unreadable state file under another name.

use std::fs;
use std::path::{Path, PathBuf};

use super::make::{BESIDE, with_end};
use super::{FILE, StoreError};

/// Renames the file and those that belong to it; returns the new name, and a text for the user.
pub(super) fn set_aside(path: &Path, why: &str) -> Result<(PathBuf, String), StoreError> {
    let stamp = fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let stamp = stamp.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs());
    let name = path.file_name().map_or(FILE.into(), std::ffi::OsStr::to_string_lossy);
    let free = |n: u32| path.with_file_name(format!("{name}.unreadable-{stamp}{}", if n == 0 { String::new() } else { format!("-{n}") }));
    let aside = (0..).map(free).find(|aside| !aside.exists()).unwrap_or_else(|| free(0));
    let fault = |error: std::io::Error| StoreError::Fatal(format!("{} cannot be read ({why}) and not be renamed: {error}", path.display()));
    fs::rename(path, &aside).map_err(fault)?;
    for end in BESIDE {
        // They may not exist.
        let _ = fs::rename(with_end(path, end), with_end(&aside, end));
    }
    let said = format!("the state in {} cannot be read ({why}); it was set aside as {} and a new one begun", path.display(), aside.display());
    Ok((aside, said))
}
