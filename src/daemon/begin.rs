//! Before anything is followed: locks and opens the state folder, and raises the limit on open files.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::wake::Wake;
use crate::delivery::{Label, Uid};
use crate::sources::silence::Told;
use crate::state::folder;
use crate::state::holder::holder;
use crate::state::lock::{Lock, LockError};
use crate::state::store::{Store, StoreError, StreamRow};

/// What earlier runs have left; empty without a state folder.
#[derive(Default)]
pub(super) struct Restored {
    /// The state itself.
    pub store: Option<Store>,
    /// The files that were followed.
    pub files: Vec<StreamRow>,
    /// The other streams that can be resumed.
    pub journals: Vec<StreamRow>,
    /// Names of the sources of files that were followed.
    pub sources: Vec<String>,
    /// The silences that were reported and have not ended.
    pub silences: Vec<(Uid, Label, Told)>,
}

type Opened = (Option<Lock>, Restored);

/// The lock on the state folder, shared with the thread that takes it again.
pub(super) type SharedLock = Arc<Mutex<Option<Lock>>>;

impl Restored {
    /// Opens the state in a folder, if there is to be one, and locks the folder unless `lock` already does; waits while its
    /// disk is full.
    pub fn open(folder: Option<&Path>, lock: Option<Lock>, wakes: &Receiver<Wake>) -> Result<(SharedLock, Self), String> {
        let Some(folder) = folder else { return Ok((Arc::default(), Self::default())) };
        let (lock, mut restored) = open_state(folder, lock, wakes)?;
        let silences = restored.store.as_ref().map_or(Ok(Vec::new()), Store::silences).map_err(|error| error.to_string())?;
        restored.silences = silences.into_iter().map(|row| (row.uid, row.label, Told { id: row.id, since: row.since })).collect();
        Ok((Arc::new(Mutex::new(lock)), restored))
    }
}

/// Locks the state folder, if possible. This comes first, so that when another process has the folder, the error names that
/// process and not some other resource it holds. `None` if the folder cannot be written; [`Restored::open`] waits for that.
pub(super) fn take_state(folder: &Path) -> Result<Option<Lock>, String> {
    match take(folder) {
        Ok(lock) => Ok(Some(lock)),
        Err(StoreError::Later(_)) => Ok(None),
        Err(error) => Err(fatal(folder, &error)),
    }
}

fn open_state(folder: &Path, mut lock: Option<Lock>, wakes: &Receiver<Wake>) -> Result<Opened, String> {
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
    let (files, journals) = store.streams()?.into_iter().partition(StreamRow::is_file);
    let restored = Restored { files, journals, sources: store.sources()?, silences: Vec::new(), store: Some(store) };
    Ok((lock.take(), restored))
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
