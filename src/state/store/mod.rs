//! The SQLite file: opening and maintaining it. `form` is its layout, `read` and `tx` its rows. This module
//! knows how things are stored, not why. A file that cannot be understood is set aside and a new one begun.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use rustix::fs::Access;

use super::folder::FULL;
use super::{breakers, history};
use crate::core::event::Timestamp;
use crate::core::signature::SIG_VERSION;

mod aside;
mod ask;
mod form;
mod make;
mod reach;
mod read;
mod salvage;
mod tx;

use aside::set_aside;
use form::{APPLICATION_ID, DROPPED, LOSS, MAKING, SETTINGS, SILENCES, TABLES, VERSION, form};
pub(in crate::state) use make::with_end;
pub use read::{SilenceRow, StreamRow, WaitingChunk};
use salvage::salvage;
pub use tx::Tx;

/// Name of the file in the state folder.
pub const FILE: &str = "siftd.db";
/// Links to follow to the file, as many as the kernel does.
const MAX_LINKS: usize = 40;
/// Prepared statements to cache.
const STATEMENTS: usize = 64;
/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(5);
/// Free pages to keep for future use.
const SPARE_PAGES: i64 = 2000;
/// Pages to give back at once, so that nobody waits for long.
const SHRUNK_PAGES: i64 = 1000;
/// A larger file is not checked page by page at start.
const MAX_CHECKED_BYTES: u64 = 64 << 20;

/// Why the state could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No room, or the disk fails for now: try again.
    #[error("{0}")]
    Later(String),
    /// Another process is writing: try again.
    #[error("{0}")]
    Busy(String),
    /// The file is damaged or not a state file.
    #[error("{0}")]
    Unreadable(String),
    /// Waiting would not help.
    #[error("{0}")]
    Fatal(String),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(text),
            // SQLite's "database or disk is full" does not say which of the two.
            Some(ErrorCode::DiskFull) => Self::Later(FULL.to_owned()),
            Some(ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory) => Self::Later(text),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Unreadable(text),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => Self::Fatal(text),
            Some(_) => Self::Fatal(text),
            // A value is not of the type that was written.
            None => Self::Unreadable(text),
        }
    }
}

/// The open file.
pub struct Store {
    db: Connection,
    /// Device and inode of the file.
    node: Option<(u64, u64)>,
}

impl Store {
    /// Opens or creates the state file of a folder. The text says what was set aside. The caller must hold the folder's lock.
    ///
    /// # Errors
    /// The folder may not be written, or has no room.
    pub fn open(folder: &Path) -> Result<(Self, Option<String>), StoreError> {
        let path = file(folder);
        match Self::try_open(&path) {
            Err(StoreError::Unreadable(why)) => {
                let (store, said) = Self::begin_anew(folder, &why)?;
                Ok((store, Some(format!("{said}: files are read as at a first start, from where `start_at` says, and a gap record of each source says so"))))
            }
            opened => {
                let store = opened?;
                make::drop_next(&path);
                Ok((store, None))
            }
        }
    }

    /// As `renew`, where nobody knows what was in the file: the next `run` reports that.
    ///
    /// # Errors
    /// The folder may not be written, or has no room.
    pub fn begin_anew(folder: &Path, why: &str) -> Result<(Self, String), StoreError> {
        let written = written(&file(folder));
        let said = Self::renew(folder, why, |new| {
            let tx = new.begin()?;
            tx.note_loss(written)?;
            tx.commit()
        })?;
        Ok((Self::reopen(folder)?, said))
    }

    /// Sets the file aside and begins a new one, in which history and breakers continue as far as they can be read, with what `fill` adds; the text
    /// says so. The new file is complete before the old one leaves its place: neither a full disk nor a kill loses what only these two hold.
    ///
    /// # Errors
    /// The folder may not be written, or has no room; the file is then still where it was.
    pub(in crate::state) fn renew(folder: &Path, why: &str, fill: impl FnOnce(&mut Self) -> Result<(), StoreError>) -> Result<String, StoreError> {
        let path = file(folder);
        let mut kept = String::new();
        make::make_next(&path, |new| {
            kept = salvage(&path, &mut new.db)?;
            fill(new)
        })?;
        let (_, said) = set_aside(&path, why)?;
        make::name_next(&path)?;
        Ok(format!("{said}; {kept}"))
    }

    /// Begins a new file after the one that `old` has open has gone from the folder, with its history and breakers and what `fill` adds; the
    /// text says so. A file that has taken its place is set aside. The new file is complete before it gets its name.
    ///
    /// # Errors
    /// The folder may not be written, or has no room.
    pub(in crate::state) fn replace(folder: &Path, old: Option<&Self>, fill: impl FnOnce(&mut Self) -> Result<(), StoreError>) -> Result<String, StoreError> {
        let path = file(folder);
        let mut kept = String::new();
        make::make_next(&path, |new| {
            kept = old.map_or(Ok(String::new()), |old| salvage::take_over(&old.db, &mut new.db))?;
            fill(new)
        })?;
        let aside = path.exists().then(|| set_aside(&path, "it is not the one that is in use")).transpose()?;
        // What the old one has left beside it would be taken for part of the new one.
        make::remove(&path);
        make::name_next(&path)?;
        let gone = format!("the state in {} was removed or replaced while it is in use; a new one was begun: {kept}", path.display());
        Ok(aside.map_or(gone.clone(), |(_, said)| format!("{said}; {gone}")))
    }

    /// Opens the file that [`renew`](Self::renew) or [`replace`](Self::replace) has begun.
    ///
    /// # Errors
    /// There is no room even for that.
    pub(in crate::state) fn reopen(folder: &Path) -> Result<Self, StoreError> {
        Self::try_open(&file(folder))
    }

    /// Removes the file of a folder that [`replace`](Self::replace) has begun and that cannot be opened.
    pub(in crate::state) fn remove_from(folder: &Path) {
        make::remove(&file(folder));
    }

    /// Whether a folder has a state file.
    ///
    /// # Errors
    /// It cannot be known: the folder may not be read, or something else is in its place.
    pub fn is_in(folder: &Path) -> Result<bool, StoreError> {
        reach::is_there(&file(folder))
    }

    fn try_open(path: &Path) -> Result<Self, StoreError> {
        let mut store = Self::connect(path, BUSY)?;
        store.check(path)?;
        Ok(store)
    }

    /// Opens or creates the state file alongside other processes; an unreadable file stays where it is. `patience`: how long to wait for others.
    ///
    /// # Errors
    /// The folder may not be written, waiting for others timed out, or the file is not a state file.
    pub fn join(folder: &Path, patience: Duration) -> Result<Self, StoreError> {
        Self::connect(&file(folder), patience)
    }

    fn connect(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        make::make(path, patience)?;
        if fs::metadata(path).is_ok_and(|meta| meta.len() == 0) {
            return Err(StoreError::Unreadable("it is empty".to_owned()));
        }
        Self::form_at(path, patience).map_err(|error| reach::explained(path, Access::READ_OK | Access::WRITE_OK, error))
    }

    /// Opens a file and upgrades it to this version's form.
    fn form_at(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        let db = Connection::open(path)?;
        db.busy_timeout(patience)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS);
        let mut store = Self { db, node: node(path) };
        // In one transaction: another process may be upgrading the file just now.
        let tx = store.db.transaction()?;
        form(&tx)?;
        drop(tx);
        store.db.execute_batch(SETTINGS)?;
        store.bring_up()?;
        Ok(store)
    }

    /// Creates a file that no other process knows, with what `fill` adds. Its tables are not written through a log. On a full disk the log might
    /// not be copied into the file at close, without an error, and what is left without it is not a database. It also takes half the room.
    fn make_at(path: &Path, fill: impl FnOnce(&mut Self) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let mut store = Self { db: Connection::open(path)?, node: None };
        store.db.execute_batch(MAKING)?;
        store.bring_up()?;
        fill(&mut store)?;
        store.db.execute_batch(SETTINGS)?;
        store.db.close().map_err(|(_, error)| error)?;
        match fs::metadata(with_end(path, "-wal")) {
            Ok(log) if log.len() > 0 => Err(StoreError::Later(format!("{}: could not be written whole", path.display()))),
            _ => Ok(()),
        }
    }

    /// Creates missing tables, and prepares the history for this version's signatures.
    fn bring_up(&mut self) -> Result<(), StoreError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = form(&tx)?;
        if version < 1 {
            tx.execute_batch(TABLES)?;
        }
        if version < 2 {
            tx.execute_batch(history::TABLES)?;
            tx.execute_batch(breakers::TABLES)?;
        }
        if version < 3 {
            tx.execute_batch("ALTER TABLE withheld ADD COLUMN kind INTEGER")?;
        }
        if version < 4 {
            tx.execute_batch(SILENCES)?;
        }
        if version < 5 {
            tx.execute_batch(history::tail::TABLE)?;
        }
        if version < 6 {
            tx.execute_batch(LOSS)?;
        }
        if version < 7 {
            tx.execute_batch(breakers::LEFT_OUT)?;
        }
        if version < 8 {
            tx.execute_batch(DROPPED)?;
        }
        if version < VERSION {
            tx.execute_batch(&format!("PRAGMA user_version={VERSION}; PRAGMA application_id={APPLICATION_ID};"))?;
        }
        history::tail::fold(&tx)?;
        history::prepare(&tx, SIG_VERSION)?;
        Ok(tx.commit()?)
    }

    /// Checks that everything a start needs can be read.
    fn check(&mut self, path: &Path) -> Result<(), StoreError> {
        if fs::metadata(path).is_ok_and(|meta| meta.len() <= MAX_CHECKED_BYTES) {
            let found: String = self.db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if found != "ok" {
                return Err(StoreError::Unreadable(found));
            }
        }
        self.streams()?;
        self.sinks()?;
        self.left_out()?;
        self.withheld()?;
        self.silences()?;
        self.emitted(&mut |_, _| ())?;
        self.outbox()?;
        self.last()?;
        Ok(())
    }

    /// Whether a path leads to the open file.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        self.node.is_some() && self.node == node(path)
    }

    /// Returns the connection, for tables that have a module of their own.
    pub(in crate::state) fn db(&self) -> &Connection {
        &self.db
    }

    /// Returns a number that changes whenever another connection has written.
    ///
    /// # Errors
    /// SQLite's.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        Ok(self.db.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }

    /// Begins a transaction; waits for another process that is writing.
    ///
    /// # Errors
    /// SQLite's.
    pub fn begin(&mut self) -> Result<Tx<'_>, StoreError> {
        Ok(Tx(self.db.transaction_with_behavior(TransactionBehavior::Immediate)?))
    }

    /// Copies the log into the tables, as far as no reader prevents it: later writes may then reuse its space.
    ///
    /// # Errors
    /// There is no room for the tables either.
    pub fn empty_log(&self) -> Result<(), StoreError> {
        Ok(self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
    }

    /// Returns some of the space of deleted rows to the file system; `true` if there is more.
    ///
    /// # Errors
    /// SQLite's.
    pub fn shrink(&self) -> Result<bool, StoreError> {
        let free: i64 = self.db.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
        if free <= SPARE_PAGES {
            return Ok(false);
        }
        // Each step frees one page.
        let mut vacuum = self.db.prepare_cached(&format!("PRAGMA incremental_vacuum({SHRUNK_PAGES})"))?;
        let mut freed = vacuum.query([])?;
        while freed.next()?.is_some() {}
        Ok(true)
    }
}

/// Returns the state file of a folder. A link of that name is followed, whether or not
/// its target exists, so that the target is created or set aside and the link stays.
#[must_use]
pub fn file(folder: &Path) -> PathBuf {
    let mut path = folder.join(FILE);
    for _ in 0..MAX_LINKS {
        let Ok(to) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(to);
    }
    path
}

fn node(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Returns when a file was last written.
fn written(path: &Path) -> Timestamp {
    let time = fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or_default())
}

/// SQLite's integers are signed; offsets and inodes keep their bits.
fn signed(value: u64) -> i64 {
    value as i64
}

fn unsigned(value: i64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_of_rows_that_are_gone_is_given_back_down_to_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(folder.path()).unwrap();
        store.db.execute_batch("CREATE TABLE filler (bytes BLOB)").unwrap();
        store.db.execute("INSERT INTO filler VALUES (zeroblob(18 << 20))", []).unwrap();
        store.db.execute_batch("DROP TABLE filler").unwrap();
        let free = || store.db.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0)).unwrap();
        let mut before = free();
        assert!(before > SPARE_PAGES + 2 * SHRUNK_PAGES, "{before}");
        while store.shrink().unwrap() {
            assert!(before - free() >= SHRUNK_PAGES, "{before} {}", free());
            before = free();
        }
        assert!((SPARE_PAGES - SHRUNK_PAGES..=SPARE_PAGES).contains(&before), "{before}");
    }
}
