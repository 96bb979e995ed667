//! Creates the state file: completely, under another name, and only then renamed to its own. So a file of
//! that name was never left half made by a kill or a full disk, and an empty one has always lost something. A
//! replacement for another file waits, complete, under a name of its own until the other is out of the way.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::reach::is_there;
use super::{Store, StoreError};

/// The files that SQLite keeps beside a database.
pub(super) const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Suffix of a file that waits to take its place.
const NEXT: &str = ".next";
/// Pause between two checks whether another process has created it.
const AGAIN: Duration = Duration::from_millis(10);

/// Creates the file if it does not exist; waits at most `patience` for others that are creating it.
pub(super) fn make(path: &Path, patience: Duration) -> Result<(), StoreError> {
    if is_there(path)? {
        return Ok(());
    }
    let _lock = lock(&with_end(path, ".lock"), patience)?;
    if path.exists() {
        return Ok(());
    }
    // Left from a file that somebody removed: SQLite would take them for part of the new one.
    remove(path);
    if with_end(path, NEXT).exists() {
        return name_next(path);
    }
    make_as(path, path, |_| Ok(()))
}

/// Creates the file that will replace the one at `path`, with what `fill` adds.
pub(super) fn make_next(path: &Path, fill: impl FnOnce(&mut Store) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let next = with_end(path, NEXT);
    remove(&next);
    make_as(path, &next, fill)
}

/// Moves the waiting file to its place, which is free.
pub(super) fn name_next(path: &Path) -> Result<(), StoreError> {
    name(&with_end(path, NEXT), path)
}

/// Removes the waiting file that a kill left, if the one at `path` can be read after all.
pub(super) fn drop_next(path: &Path) {
    remove(&with_end(path, NEXT));
}

/// Creates a file beside `path` and renames it to `called`.
fn make_as(path: &Path, called: &Path, fill: impl FnOnce(&mut Store) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let new = with_end(path, ".new");
    // Left by a process that was killed.
    remove(&new);
    let made = blank(path, &new).and_then(|()| Store::make_at(&new, fill)).and_then(|()| name(&new, called));
    if made.is_err() {
        remove(&new);
    }
    made
}

/// Creates the empty file that SQLite fills; the files that it keeps beside it get the same mode. It is that of the file to be
/// replaced, which a user may have changed. Otherwise nobody else may read it, except the group of a folder that is open to its
/// group and closed to all others, as `StateDirectoryMode=0750` makes one.
fn blank(path: &Path, new: &Path) -> Result<(), StoreError> {
    let mode = |path: &Path| fs::metadata(path).map(|meta| meta.permissions().mode() & 0o777).ok();
    let former = mode(path);
    let of_group = path.parent().and_then(mode).filter(|folder| folder & 0o007 == 0).map_or(0, |folder| folder & 0o060);
    let file = OpenOptions::new().write(true).create_new(true).mode(former.unwrap_or(0o600 | of_group)).open(new);
    let made = file.and_then(|file| former.map_or(Ok(()), |former| file.set_permissions(Permissions::from_mode(former))));
    made.map_err(|error| fault(new, &error))
}

fn lock(path: &Path, patience: Duration) -> Result<File, StoreError> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map_err(|error| fault(path, &error))?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(AGAIN),
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy("another process is making it".to_owned())),
            Err(TryLockError::Error(error)) => return Err(fault(path, &error)),
        }
    }
}

/// Renames the file durably.
fn name(new: &Path, path: &Path) -> Result<(), StoreError> {
    let named = fs::rename(new, path).and_then(|()| File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all());
    named.map_err(|error| fault(path, &error))
}

/// Removes a file and those SQLite keeps beside it; none of them need exist.
pub(super) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    for end in BESIDE {
        let _ = fs::remove_file(with_end(path, end));
    }
}

pub(in crate::state) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn fault(path: &Path, error: &std::io::Error) -> StoreError {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Later(text),
        _ => StoreError::Fatal(text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::FILE;
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_kill_left_half_made_is_no_state_that_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["siftd.db.new", "siftd.db.new-journal", "siftd.db-wal", "siftd.db-journal"] {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        let (store, said) = Store::open(folder.path()).unwrap();
        assert_eq!(said, None);
        drop(store);
        assert_eq!(names(folder.path()), [FILE, "siftd.db.lock"]);
    }

    #[test]
    fn nobody_else_may_read_it_unless_somebody_has_said_so() {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for (of_folder, want) in [(0o700, 0o600), (0o755, 0o600), (0o777, 0o600), (0o750, 0o640)] {
            let folder = tempfile::tempdir().unwrap();
            set(folder.path(), of_folder);
            let file = folder.path().join(FILE);
            let (store, _) = Store::open(folder.path()).unwrap();
            // A umask may take more away.
            assert_eq!((mode(&file) | want, mode(&with_end(&file, "-wal"))), (want, mode(&file)), "{of_folder:o}");
            drop(store);
            set(&file, 0o664);
            drop(Store::open(folder.path()).unwrap());
            assert_eq!(mode(&file), 0o664, "it is left as it is");
            fs::write(&file, "no database").unwrap();
            drop(Store::open(folder.path()).unwrap());
            assert_eq!(mode(&file), 0o664, "a new one is like the one that it replaces");
        }
    }

    #[test]
    fn what_waits_beside_a_state_that_can_be_read_never_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path()).unwrap());
        make_next(&folder.path().join(FILE), |_| Ok(())).unwrap();
        let (store, said) = Store::open(folder.path()).unwrap();
        assert_eq!(said, None);
        drop(store);
        assert_eq!(names(folder.path()), [FILE, "siftd.db.lock"]);
    }

    #[test]
    fn a_kill_while_one_takes_the_place_of_another_loses_nothing_that_only_they_say() {
        let at = crate::core::event::Timestamp(7);
        let note = |new: &mut Store| {
            let tx = new.begin()?;
            tx.note_loss(at)?;
            tx.commit()
        };
        for is_aside in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(FILE);
            fs::write(&path, "no database").unwrap();
            make_next(&path, note).unwrap();
            if is_aside {
                super::super::aside::set_aside(&path, "killed").unwrap();
            }
            let (store, _) = Store::open(folder.path()).unwrap();
            let loss = store.loss().unwrap();
            assert!(if is_aside { loss == Some(at) } else { loss.is_some() }, "{loss:?}");
            let names = names(folder.path());
            assert!(
                names.iter().any(|name| name.contains("unreadable")) && !names.iter().any(|name| name.contains(".new") || name.contains(NEXT)),
                "{names:?}"
            );
        }
    }

    #[test]
    fn many_that_make_it_at_once_have_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let patience = Duration::from_secs(60);
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d", "e", "f"] {
                let folder = folder.path();
                scope.spawn(move || {
                    let mut store = Store::join(folder, patience).unwrap();
                    let tx = store.begin().unwrap();
                    tx.source(name).unwrap();
                    tx.commit().unwrap();
                });
            }
        });
        let store = Store::join(folder.path(), patience).unwrap();
        let count: i64 = store.db.query_row("SELECT count(*) FROM source", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 6);
    }

    #[test]
    fn a_link_stays_one_and_what_it_names_is_made_and_set_aside() {
        let (folder, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, there) = (folder.path().join(FILE), far.path().join("state.db"));
        std::os::unix::fs::symlink(&there, &link).unwrap();
        let is_link = || fs::read_link(&link).is_ok_and(|to| to == there);
        assert!(Store::look(folder.path()).unwrap().is_none());
        drop(Store::open(folder.path()).unwrap());
        assert!(is_link() && there.is_file());
        fs::write(&there, "no database").unwrap();
        let (_, said) = Store::open(folder.path()).unwrap();
        assert!(said.is_some_and(|said| said.contains("state.db.unreadable-")));
        assert!(is_link() && fs::metadata(&there).unwrap().len() > 100);
        assert_eq!(names(folder.path()), [FILE]);
        assert!(names(far.path()).iter().any(|name| name.starts_with("state.db.unreadable-")));
    }

    #[test]
    fn one_that_is_being_made_for_too_long_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let _lock = lock(&with_end(&path, ".lock"), Duration::ZERO).unwrap();
        assert_eq!(make(&path, Duration::ZERO), Err(StoreError::Busy("another process is making it".to_owned())));
        assert_eq!(names(folder.path()), ["siftd.db.lock"]);
    }
}
