//! A state file that another command than `run` finds damaged, so that `exec --breaker` does not wait for a `run` that never
//! comes: it is set aside in the same way, under the same lock. What it leaves to be said, the next `run` says.

use std::path::Path;
use std::time::Duration;

use super::lock::{Lock, LockError};
use super::store::{Store, StoreError};

/// Opens the state of a folder beside whoever else has it open; a damaged one is set aside first, unless a `run` has it.
/// The text says so.
pub(super) fn join(folder: &Path, patience: Duration) -> Result<(Store, Option<String>), StoreError> {
    let joined = Store::join(folder, patience);
    if !matches!(joined, Err(StoreError::Unreadable(_))) {
        return joined.map(|store| (store, None));
    }
    let _lock = Lock::take(folder).map_err(|error| match error {
        LockError::Held { pid } => StoreError::Busy(format!("process {pid} has it")),
        LockError::Io(error) => StoreError::Fatal(error.to_string()),
    })?;
    // Another one may have done it meanwhile.
    match Store::join(folder, patience) {
        Err(StoreError::Unreadable(why)) => Store::begin_anew(folder, &why).map(|(store, said)| (store, Some(said))),
        joined => joined.map(|store| (store, None)),
    }
}
