//! Before anything is followed: the state folder is taken, and the limits of the process are asked for.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::wake::Wake;
use crate::state::holder::holder;
use crate::state::lock::{Lock, LockError};
use crate::state::store::{Store, StoreError, StreamRow};

pub(super) type Opened = (Option<Lock>, Option<Store>, Vec<StreamRow>, Vec<String>);

/// Takes the state folder if that can be done now: who has it is to be named before anything else of that one's is in
/// the way. `None` where it cannot be written, which is waited for later.
pub(super) fn take_state(folder: &Path) -> Result<Option<Lock>, String> {
    match take(folder) {
        Ok(lock) => Ok(Some(lock)),
        Err(StoreError::Later(_)) => Ok(None),
        Err(error) => Err(fatal(folder, &error)),
    }
}

/// Opens the state in a folder, and takes that unless `lock` has it already; waits where its disk is full.
pub(super) fn open_state(folder: &Path, mut lock: Option<Lock>, wakes: &Receiver<Wake>) -> Result<Opened, String> {
    let mut said = false;
    loop {
        let why = match try_open_state(folder, &mut lock) {
            Ok(opened) => return Ok(opened),
            Err(StoreError::Later(why)) => why,
            Err(StoreError::Busy(why)) => held(folder, &why),
            Err(error) => return Err(fatal(folder, &error)),
        };
        if !std::mem::replace(&mut said, true) {
            tracing::warn!("state folder {}: {why}; waiting until it can be written", folder.display());
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

/// Who keeps the state from us, as far as it is known.
pub(super) fn held(folder: &Path, why: &str) -> String {
    holder(folder).map_or_else(|| why.to_owned(), |who| format!("it is held by {who}"))
}

/// Makes a state folder where there is none, and takes it.
pub(super) fn take(folder: &Path) -> Result<Lock, StoreError> {
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Later(error.to_string()),
        _ => StoreError::Fatal(format!("{error}: make it, or name another one with state_dir or --state-dir")),
    };
    std::fs::create_dir_all(folder).map_err(io)?;
    Lock::take(folder).map_err(|error| match error {
        LockError::Held { pid } => {
            StoreError::Fatal(format!("is in use by process {pid}: stop that one, or give this one a state folder of its own with --state-dir"))
        }
        LockError::Io(error) => io(error),
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

/// Descriptors that files may take: half of what the system allows.
pub(super) fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(65_536).min(65_536);
    // Without more, fewer files stay open.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    let have = if raised.is_ok() { wanted } else { limit.current.unwrap_or(1024) };
    (have / 2).clamp(64, 1024) as usize
}
