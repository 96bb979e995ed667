//! A state file that a command other than `run` finds damaged is set aside in the same way, under the same lock,
//! so that `exec --breaker` does not wait for a `run` that never comes. The next `run` reports what was lost.

use std::path::Path;
use std::time::Duration;

use super::lock::{Lock, LockError};
use super::store::{Store, StoreError};

/// Opens the state of a folder alongside other processes. A damaged state is set aside first, unless a `run` has the folder; the text says so.
pub(super) fn join(folder: &Path, patience: Duration) -> Result<(Store, Option<String>), StoreError> {
    let joined = Store::join(folder, patience);
    if !matches!(joined, Err(StoreError::Unreadable(_))) {
        return joined.map(|store| (store, None));
    }
    let _lock = Lock::take(folder).map_err(|error| match error {
        LockError::Held { pid } => StoreError::Busy(format!("process {pid} has it")),
        LockError::Io(error) => StoreError::Fatal(error.to_string()),
    })?;
    // Another process may have set it aside meanwhile.
    match Store::join(folder, patience) {
        Err(StoreError::Unreadable(why)) => Store::begin_anew(folder, &why).map(|(store, said)| (store, Some(said))),
        joined => joined.map(|store| (store, None)),
    }
}
