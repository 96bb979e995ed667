//! One `run` per state folder: a lock file that holds the owner's process number.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// Held as long as it lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it.
    Held {
        /// Its number, as far as it has said.
        pid: String,
    },
    /// The file could not be made.
    Io(std::io::Error),
}

impl Lock {
    /// Takes the lock of a state folder.
    ///
    /// # Errors
    /// Another process has it, or the folder may not be written.
    pub fn take(folder: &Path) -> Result<Self, LockError> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.join("lock")).map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                return Err(LockError::Held { pid: pid.trim().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        // On a full disk the number is missing, and the lock holds all the same.
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }

    /// The process that holds the lock of a folder, if one does.
    #[must_use]
    pub fn holder(folder: &Path) -> Option<String> {
        let mut file = File::open(folder.join("lock")).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                Some(pid.trim().to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Lock::holder(folder.path()), None);
        let lock = Lock::take(folder.path()).unwrap();
        let us = std::process::id().to_string();
        assert!(matches!(Lock::take(folder.path()), Err(LockError::Held { pid }) if pid == us));
        assert_eq!(Lock::holder(folder.path()), Some(us));
        drop(lock);
        assert_eq!(Lock::holder(folder.path()), None);
        Lock::take(folder.path()).unwrap();
    }
}
