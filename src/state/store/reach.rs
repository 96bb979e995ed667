//! Whether the state file is there and may be used. SQLite says neither which file it could not open, nor why.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::StoreError;
use super::make::{BESIDE, with_end};
use crate::state::folder::in_the_way;

/// What to do about a file of another user.
const MEND: &str = "ask as the user that siftd runs as, or with sudo";

/// Whether the file is there. Only a name that does not exist means "no": where it cannot be looked up,
/// nobody knows what it would have said, and a breaker in it may be open.
pub(super) fn is_there(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(path.parent().and_then(in_the_way).map_or_else(|| denied(path, &error), StoreError::Fatal))
        }
        Err(error) => Err(denied(path, &error)),
    }
}

/// Puts the file that may not be used, and why, in place of SQLite's words, if that is the cause; `wanted`: what it was opened for.
pub(super) fn explained(path: &Path, wanted: Access, error: StoreError) -> StoreError {
    if !matches!(error, StoreError::Fatal(_)) {
        return error;
    }
    let beside = BESIDE.map(|end| with_end(path, end));
    let files = std::iter::once(path).chain(beside.iter().map(AsRef::as_ref));
    // SQLite makes files beside the state even to read it, if another process has it open.
    let all = files.map(|file| (file, wanted)).chain(path.parent().map(|folder| (folder, Access::WRITE_OK)));
    let may_not = |(file, wanted): (&Path, Access)| match accessat(CWD, file, wanted, AtFlags::EACCESS).map_err(Error::from) {
        Err(why) if why.kind() != ErrorKind::NotFound => Some(denied(file, &why)),
        _ => None,
    };
    all.into_iter().find_map(may_not).unwrap_or(error)
}

fn denied(path: &Path, error: &Error) -> StoreError {
    StoreError::Fatal(match error.kind() {
        ErrorKind::PermissionDenied => format!("{}: {error}: {MEND}", path.display()),
        _ => format!("{}: {error}", path.display()),
    })
}
