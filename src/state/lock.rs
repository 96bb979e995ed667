//! One `run` per state folder: a lock file that holds the owner's process id.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::store::{FILE, file, with_end};

/// The lock of a state folder; held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    files: Vec<File>,
}

/// Why the lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it.
    Held {
        /// Its process id, if it could write one.
        pid: String,
    },
    /// The lock file could not be made.
    Io(std::io::Error),
}

impl Lock {
    /// Takes the lock of a state folder.
    ///
    /// # Errors
    /// Another process holds it, or the folder may not be written.
    pub fn take(folder: &Path) -> Result<Self, LockError> {
        names(folder).iter().map(|name| take(name)).collect::<Result<_, _>>().map(|files| Self { files })
    }

    /// Whether this lock still guards the folder: as far as can be seen, the lock files
    /// are where they were. If they are gone, another process can take the lock as well.
    #[must_use]
    pub fn is_of(&self, folder: &Path) -> bool {
        let node = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
        let names = names(folder);
        let is = |(file, name): (&File, &PathBuf)| match (file.metadata(), std::fs::metadata(name)) {
            (Ok(ours), Ok(there)) => node(ours) == node(there),
            (_, Err(error)) => error.kind() != std::io::ErrorKind::NotFound,
            (Err(_), _) => true,
        };
        names.len() == self.files.len() && self.files.iter().zip(&names).all(is)
    }

    /// Returns the process that holds the lock of a folder, if any.
    #[must_use]
    pub fn holder(folder: &Path) -> Option<String> {
        names(folder).iter().find_map(|name| holder(name))
    }
}

/// Returns the lock files of a folder. If the state file is a link, the lock of the file
/// it leads to is included: another folder may link to the same file, or contain it.
fn names(folder: &Path) -> Vec<PathBuf> {
    let (own, file) = (folder.join("lock"), file(folder));
    let of_file = match file.file_name() == Some(FILE.as_ref()) {
        true => file.with_file_name("lock"),
        false => with_end(&file, ".run"),
    };
    if of_file == own { vec![own] } else { vec![own, of_file] }
}

fn take(name: &Path) -> Result<File, LockError> {
    let fault = |error: std::io::Error| LockError::Io(std::io::Error::new(error.kind(), format!("{}: {error}", name.display())));
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(name).map_err(fault)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            return Err(LockError::Held { pid: pid.trim().to_owned() });
        }
        Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
    }
    // On a full disk the process id is missing, but the lock holds all the same.
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
    Ok(file)
}

fn holder(name: &Path) -> Option<String> {
    let mut file = File::open(name).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            Some(pid.trim().to_owned())
        }
        _ => None,
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
        assert!(lock.is_of(folder.path()));
        std::fs::remove_file(folder.path().join("lock")).unwrap();
        let other = Lock::take(folder.path()).unwrap();
        assert!(!lock.is_of(folder.path()) && other.is_of(folder.path()));
        drop((lock, other));
        assert_eq!(Lock::holder(folder.path()), None);
        Lock::take(folder.path()).unwrap();
    }

    #[test]
    fn folders_whose_state_is_one_file_have_one_lock() {
        let [home, linked, named] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(home.path().join(FILE), linked.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink(home.path().join("other.db"), named.path().join(FILE)).unwrap();
        let us = std::process::id().to_string();
        let _lock = Lock::take(linked.path()).unwrap();
        assert!(matches!(Lock::take(home.path()), Err(LockError::Held { pid }) if pid == us));
        assert_eq!(Lock::holder(home.path()), Some(us));
        assert!(Lock::take(named.path()).is_ok(), "another file beside it");
    }
}
