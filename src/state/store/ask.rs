//! Reads a state file without changing anything: nothing is created, upgraded, or left beside it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::Access;

use super::form::{VERSION, unknown_form};
use super::make::with_end;
use super::reach::{explained, is_there};
use super::salvage::take_over;
use super::{Store, StoreError, file};
use crate::core::signature::SIG_VERSION;
use crate::state::history;

const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

impl Store {
    /// Opens the state of a folder for reading, alongside processes that write it; `None` if there is none.
    ///
    /// # Errors
    /// It may not be read, or is not a state file.
    pub fn look(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = file(folder);
        if !is_there(&path)? { Ok(None) } else { Self::looked(&path, Connection::open_with_flags(&path, FLAGS)).map(Some) }
    }

    /// As [`look`](Self::look), for one query of a command: if no process has the file open, SQLite's files beside it are not created.
    /// They would stay behind, owned by the user who asked, and a siftd running as another user might not be able to write them.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn ask(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = file(folder);
        let alone = || Self::looked(&path, Connection::open_with_flags(alone(&path), FLAGS | OpenFlags::SQLITE_OPEN_URI)).map(Some);
        if is_there(&path)? && ["-wal", "-shm"].iter().all(|end| !with_end(&path, end).exists()) {
            return alone();
        }
        // A full disk has no room for these files. If nothing waits in them, as after a write that has failed, the state is whole without.
        let is_whole = with_end(&path, "-wal").metadata().map_or(true, |meta| meta.len() == 0);
        Self::look(folder).or_else(|error| if is_whole { alone().map_err(|_| error) } else { Err(error) })
    }

    /// As [`ask`](Self::ask), with history and breakers as they would be after a start. If
    /// that takes more than reading, as for a file of an older form, a copy in memory is used.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn ask_history(folder: &Path) -> Result<Option<Self>, StoreError> {
        let Some(store) = Self::ask(folder)? else { return Ok(None) };
        let version: i64 = store.db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version == VERSION && history::tail::is_empty(&store.db)? && history::is_prepared(&store.db, SIG_VERSION)? {
            return Ok(Some(store));
        }
        let mut copy = Self { db: Connection::open_in_memory()?, node: None };
        copy.bring_up()?;
        take_over(&store.db, &mut copy.db)?;
        Ok(Some(copy))
    }

    fn looked(path: &Path, opened: rusqlite::Result<Connection>) -> Result<Self, StoreError> {
        let asked = opened.and_then(|db| {
            db.busy_timeout(Duration::from_secs(5))?;
            let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            Ok((db, version))
        });
        let (db, version) = asked.map_err(|error| explained(path, Access::READ_OK, error.into()))?;
        if (1..=VERSION).contains(&version) { Ok(Self { db, node: None }) } else { Err(unknown_form(version)) }
    }
}

/// Returns the URI by which SQLite reads a file that nobody writes (sqlite.org, "URI Filenames").
fn alone(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for &byte in std::path::absolute(path).as_deref().unwrap_or(path).as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' => uri.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            _ => uri += &format!("%{byte:02x}"),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn who_asks_leaves_nothing_and_sees_all() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("ä b%20?c#");
        fs::create_dir(&folder).unwrap();
        let names = || fs::read_dir(&folder).unwrap().count();
        assert!(Store::ask_history(&folder).unwrap().is_none() && names() == 0);
        let mut store = Store::open(&folder).unwrap().0;
        let tx = store.begin().unwrap();
        tx.source("a").unwrap();
        tx.commit().unwrap();
        assert_eq!(Store::ask(&folder).unwrap().unwrap().sources().unwrap(), ["a"], "beside its writer");
        drop(store);
        let before = names();
        assert_eq!(Store::ask_history(&folder).unwrap().unwrap().sources().unwrap(), ["a"]);
        assert_eq!(names(), before);
    }

    /// A link into a folder that is not there, in the place of one of SQLite's files, does what a full disk does.
    #[test]
    fn what_is_whole_is_read_even_if_nothing_can_be_made_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let mut store = Store::open(folder.path()).unwrap().0;
        let tx = store.begin().unwrap();
        tx.source("a").unwrap();
        tx.commit().unwrap();
        drop(store);
        std::os::unix::fs::symlink("missing/shm", with_end(&path, "-shm")).unwrap();
        fs::write(with_end(&path, "-wal"), "").unwrap();
        assert_eq!(Store::ask(folder.path()).unwrap().unwrap().sources().unwrap(), ["a"]);
        fs::write(with_end(&path, "-wal"), "x").unwrap();
        assert!(Store::ask(folder.path()).is_err(), "something may be missing");
    }

    #[test]
    fn an_older_form_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path()).unwrap());
        let path = folder.path().join(super::super::FILE);
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "DROP TABLE history_tail; DROP TABLE loss; DROP TABLE left_out; DROP TABLE dropped; PRAGMA user_version=4; PRAGMA journal_mode=DELETE;",
        )
        .unwrap();
        drop(db);
        let before = fs::read(&path).unwrap();
        let store = Store::ask_history(folder.path()).unwrap().unwrap();
        assert!(history::tail::is_empty(&store.db).unwrap());
        drop(store);
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
