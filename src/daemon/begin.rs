//! Before anything is followed: locks and opens the state folder, and raises the limit on open files.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::wake::Wake;
use crate::state::folder;
use crate::state::holder::holder;
use crate::state::lock::{Lock, LockError};
use crate::state::store::{Store, StoreError, StreamRow};

pub(super) type Opened = (Option<Lock>, Option<Store>, Vec<StreamRow>, Vec<String>);

/// Locks the state folder, if possible. This comes first, so that when another process has the folder, the error names that
/// process and not some other resource it holds. `None` if the folder cannot be written; [`open_state`] waits for that.
pub(super) fn take_state(folder: &Path) -> Result<Option<Lock>, String> {
    match take(folder) {
        Ok(lock) => Ok(Some(lock)),
        Err(StoreError::Later(_)) => Ok(None),
        Err(error) => Err(fatal(folder, &error)),
    }
}

/// Opens the state in a folder, and locks the folder unless `lock` already does; waits while its disk is full.
pub(super) fn open_state(folder: &Path, mut lock: Option<Lock>, wakes: &Receiver<Wake>) -> Result<Opened, String> {
    let mut said = false;
    loop {
        let why = match try_open_state(folder, &mut lock) {
            Ok(opened) => return Ok(opened),
            Err(error @ (StoreError::Later(_) | StoreError::Busy(_))) => reason(Some(folder), &error),
            Err(error) => return Err(fatal(folder, &error)),
        };
        if !std::mem::replace(&mut said, true) {
            tracing::warn!("state folder {}: {why}; nothing is lost, reading waits until it can be written", folder.display());
        }
        match wakes.recv_timeout(Duration::from_secs(1)) {
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return Err(format!("state folder {}: {why}", folder.display())),
            _ => {}
        }
    }
}

fn fatal(folder: &Path, error: &StoreError) -> String {
    format!("state folder {}: {error}", folder.display())
}

/// Why the state cannot be written for now, as far as that is known: the process that holds it, or that its disk is full.
pub(super) fn reason(folder: Option<&Path>, error: &StoreError) -> String {
    let why = error.to_string();
    match (folder, error) {
        (Some(folder), StoreError::Busy(_)) => holder(folder).map_or(why, |who| format!("it is held by {who}")),
        (Some(folder), _) => folder::reason(folder, &why),
        (None, _) => why,
    }
}

/// Creates the state folder if it is missing, and locks it.
pub(super) fn take(folder: &Path) -> Result<Lock, StoreError> {
    folder::make(folder)?;
    Lock::take(folder).map_err(|error| match error {
        LockError::Held { pid } => {
            StoreError::Fatal(format!("is in use by process {pid}: stop that one, or give this one a state folder of its own with --state-dir"))
        }
        LockError::Io(error) => folder::fault(&error),
    })
}

fn try_open_state(folder: &Path, lock: &mut Option<Lock>) -> Result<Opened, StoreError> {
    if lock.is_none() {
        *lock = Some(take(folder)?);
    }
    let (store, said) = Store::open(folder)?;
    if let Some(said) = said {
        tracing::error!("{said}");
    }
    let (rows, sources) = (store.streams()?, store.sources()?);
    Ok((lock.take(), Some(store), rows, sources))
}

/// Raises the limit on open files, and returns how many descriptors followed files may use: half the limit, within 64–1024.
pub(super) fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(65_536).min(65_536);
    // If the limit cannot be raised, fewer files stay open.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    let have = if raised.is_ok() { wanted } else { limit.current.unwrap_or(1024) };
    (have / 2).clamp(64, 1024) as usize
}
