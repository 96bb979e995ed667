//! The SQLite file: its form, how it is opened, and the rows in it. It knows how things are kept, not
//! why. A file that cannot be understood is set aside and a new one begun.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use super::withhold::{Held, Key};
use super::{breakers, history, wire};
use crate::core::event::Timestamp;
use crate::core::signature::SIG_VERSION;
use crate::delivery::{Chunk, Content, Label, Mark, Node, Print, SinkMark, Uid};

mod aside;
mod form;
mod tx;

use aside::set_aside;
use form::{APPLICATION_ID, SETTINGS, SILENCES, TABLES, VERSION, form, unknown_form};
pub use tx::Tx;

/// Name of the file in the state folder.
pub const FILE: &str = "siftd.db";
/// Statements that stay prepared.
const STATEMENTS: usize = 64;
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// So many free pages are kept for what comes next.
const SPARE_PAGES: i64 = 2000;
/// A larger file is not checked page by page at the start.
const MAX_CHECKED_BYTES: u64 = 64 << 20;

/// A silence that was told and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilenceRow {
    /// The stream, or the source as such.
    pub uid: Uid,
    /// What it is called.
    pub label: Label,
    /// Id of the record that told it.
    pub id: String,
    /// When it was heard last.
    pub since: Timestamp,
}

/// Why the state could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No room, or a disk that fails for now: to be tried again.
    #[error("{0}")]
    Later(String),
    /// Another process writes it: to be tried again.
    #[error("{0}")]
    Busy(String),
    /// The file is no good.
    #[error("{0}")]
    Unreadable(String),
    /// Nothing that waiting would mend.
    #[error("{0}")]
    Fatal(String),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(text),
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory) => Self::Later(text),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Unreadable(text),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => Self::Fatal(text),
            Some(_) => Self::Fatal(text),
            // A value that is not what was written.
            None => Self::Unreadable(text),
        }
    }
}

/// A known file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRow {
    /// Its identity.
    pub uid: Uid,
    /// What it is called.
    pub label: Label,
    /// How far it was read.
    pub mark: Mark,
    /// When its inode was last seen.
    pub seen: Timestamp,
}

impl StreamRow {
    /// Whether it is a file: the journal has a cursor instead of a path, and no inode.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.mark.node != Node::default()
    }
}

/// The open file.
pub struct Store {
    db: Connection,
}

impl Store {
    /// Opens or makes the state file of a folder. The text says what was set aside.
    ///
    /// # Errors
    /// The folder may not be written, or has no room.
    pub fn open(folder: &Path) -> Result<(Self, Option<String>), StoreError> {
        let path = folder.join(FILE);
        let said = match Self::try_open(&path) {
            Err(StoreError::Unreadable(why)) => Some(format!("{}: files are read as at a first start", set_aside(&path, &why)?)),
            opened => return opened.map(|store| (store, None)),
        };
        Ok((Self::try_open(&path)?, said))
    }

    /// Sets the file aside that this one was, and begins a new one; the text says so.
    ///
    /// # Errors
    /// The folder may not be written, or has no room.
    pub fn renew(folder: &Path, why: &str) -> Result<(Self, String), StoreError> {
        let path = folder.join(FILE);
        let said = set_aside(&path, why)?;
        Ok((Self::try_open(&path)?, said))
    }

    fn try_open(path: &Path) -> Result<Self, StoreError> {
        let mut store = Self::connect(path, BUSY)?;
        store.check(path)?;
        Ok(store)
    }

    /// Opens or makes the state file beside whoever else has it open; what cannot be read stays where it is.
    /// `patience`: how long others are waited for.
    ///
    /// # Errors
    /// The folder may not be written, others were waited for in vain, or the file is no state file.
    pub fn join(folder: &Path, patience: Duration) -> Result<Self, StoreError> {
        Self::connect(&folder.join(FILE), patience)
    }

    fn connect(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        let db = Connection::open(path)?;
        db.busy_timeout(patience)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS);
        let mut store = Self { db };
        // All in one look: another process may be making the file just now.
        let tx = store.db.transaction()?;
        form(&tx)?;
        drop(tx);
        store.db.execute_batch(SETTINGS)?;
        store.bring_up()?;
        Ok(store)
    }

    /// Makes the tables that are missing, and readies the history for this version's signatures.
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
        if version < VERSION {
            tx.execute_batch(&format!("PRAGMA user_version={VERSION}; PRAGMA application_id={APPLICATION_ID};"))?;
        }
        history::prepare(&tx, SIG_VERSION)?;
        Ok(tx.commit()?)
    }

    /// Everything that a start needs can be read.
    fn check(&mut self, path: &Path) -> Result<(), StoreError> {
        if fs::metadata(path).is_ok_and(|meta| meta.len() <= MAX_CHECKED_BYTES) {
            let found: String = self.db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if found != "ok" {
                return Err(StoreError::Unreadable(found));
            }
        }
        self.streams()?;
        self.sinks()?;
        self.withheld()?;
        self.emitted(&mut |_, _| ())?;
        self.outbox()?;
        self.last()?;
        Ok(())
    }

    /// Opens the state of a folder to look at it; `None` when there is none.
    ///
    /// # Errors
    /// It may not be read, or is no state file.
    pub fn look(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        db.busy_timeout(Duration::from_secs(5))?;
        let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if !(1..=VERSION).contains(&version) {
            return Err(unknown_form(version));
        }
        Ok(Some(Self { db }))
    }

    /// For tables that have a module of their own.
    pub(in crate::state) fn db(&self) -> &Connection {
        &self.db
    }

    /// Changes whenever another connection has written.
    ///
    /// # Errors
    /// SQLite's.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        Ok(self.db.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }

    /// Begins a transaction; waits for another process that writes.
    ///
    /// # Errors
    /// SQLite's.
    pub fn begin(&mut self) -> Result<Tx<'_>, StoreError> {
        Ok(Tx(self.db.transaction_with_behavior(TransactionBehavior::Immediate)?))
    }

    /// All known files.
    ///
    /// # Errors
    /// SQLite's.
    pub fn streams(&self) -> Result<Vec<StreamRow>, StoreError> {
        let mut all = self.db.prepare(
            "SELECT uid, source, shown, path, dev, ino, born, generation, start, read, safe, size, facts, head_len, head, tail_len, tail, seen, old_read, old_head_len, old_head, old_tail_len, old_tail FROM stream ORDER BY source, shown",
        )?;
        let rows = all.query_map([], |row| {
            let path: Vec<u8> = row.get(3)?;
            let node = Node { dev: unsigned(row.get(4)?), ino: unsigned(row.get(5)?), born: row.get(6)? };
            let previous = match row.get::<_, Option<i64>>(18)? {
                Some(read) => Some(Content {
                    read: unsigned(read),
                    head: Print { len: row.get(19)?, hash: row.get(20)? },
                    tail: Print { len: row.get(21)?, hash: row.get(22)? },
                }),
                None => None,
            };
            let mark = Mark {
                previous,
                node,
                path: path_of(path),
                generation: row.get(7)?,
                start: unsigned(row.get(8)?),
                read: unsigned(row.get(9)?),
                safe: unsigned(row.get(10)?),
                size: unsigned(row.get(11)?),
                facts: row.get(12)?,
                head: Print { len: row.get(13)?, hash: row.get(14)? },
                tail: Print { len: row.get(15)?, hash: row.get(16)? },
            };
            Ok(StreamRow {
                uid: row.get(0)?,
                label: Label { source: row.get(1)?, kind: "file", path: row.get(2)?, ..Label::default() },
                mark,
                seen: Timestamp(row.get(17)?),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Sources that were followed before.
    ///
    /// # Errors
    /// SQLite's.
    pub fn sources(&self) -> Result<Vec<String>, StoreError> {
        let mut all = self.db.prepare("SELECT name FROM source")?;
        Ok(all.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Events that could be found again: stream, and generation, offset, inner line.
    ///
    /// # Errors
    /// SQLite's.
    pub fn emitted(&self, each: &mut dyn FnMut(Uid, (u32, u64, u32))) -> Result<(), StoreError> {
        let mut all = self.db.prepare("SELECT uid, generation, offset, inner FROM emitted")?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            each(row.get(0)?, (row.get(1)?, unsigned(row.get(2)?), row.get(3)?));
        }
        Ok(())
    }

    /// How far each sink is.
    ///
    /// # Errors
    /// SQLite's.
    pub fn sinks(&self) -> Result<Vec<SinkMark>, StoreError> {
        let mut all = self.db.prepare("SELECT name, seq, dev, ino, born, len, since FROM sink")?;
        let rows = all.query_map([], |row| {
            let node = Node { dev: unsigned(row.get(2)?), ino: unsigned(row.get(3)?), born: row.get(4)? };
            Ok(SinkMark { name: row.get(0)?, seq: unsigned(row.get(1)?), node, len: unsigned(row.get(5)?), since: Timestamp(row.get(6)?) })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What is held back.
    ///
    /// # Errors
    /// SQLite's.
    pub fn withheld(&self) -> Result<BTreeMap<Key, Held>, StoreError> {
        let mut all = self.db.prepare("SELECT source, signature, first_id, since, upto, count, kind FROM withheld")?;
        let rows = all.query_map([], |row| {
            let (first_id, since, to) = (row.get(2)?, Timestamp(row.get(3)?), Timestamp(row.get(4)?));
            let held = Held { first_id, since, to, count: unsigned(row.get(5)?), kind: wire::unpacked(row.get(6)?) };
            Ok((Key { source: row.get(0)?, signature: row.get(1)? }, held))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Silences that were told and have not ended.
    ///
    /// # Errors
    /// SQLite's.
    pub fn silences(&self) -> Result<Vec<SilenceRow>, StoreError> {
        let mut all = self.db.prepare("SELECT uid, source, path, id, since FROM silence")?;
        let rows = all.query_map([], |row| {
            let label = Label { source: row.get(1)?, kind: "file", path: row.get(2)?, ..Label::default() };
            Ok(SilenceRow { uid: row.get(0)?, label, id: row.get(3)?, since: Timestamp(row.get(4)?) })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The chunks that wait: numbers of the first and the last record, bytes.
    ///
    /// # Errors
    /// SQLite's.
    pub fn outbox(&self) -> Result<Vec<(u64, u64, u64)>, StoreError> {
        let mut all = self.db.prepare("SELECT seq, count, length(body) FROM outbox ORDER BY seq")?;
        let rows = all.query_map([], |row| {
            let (first, count): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok((unsigned(first), unsigned(first + count - 1), unsigned(row.get(2)?)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Number of the last record that was ever committed.
    ///
    /// # Errors
    /// SQLite's.
    pub fn last(&self) -> Result<u64, StoreError> {
        Ok(unsigned(self.db.query_row("SELECT seq FROM last", [], |row| row.get(0))?))
    }

    /// The chunk that holds the record after `seq`, or the first one behind it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn chunk_after(&self, seq: u64) -> Result<Option<Chunk>, StoreError> {
        let one = |sql: &str| {
            let mut one = self.db.prepare_cached(sql)?;
            let chunk = one.query_row([signed(seq + 1)], |row| {
                let heads: Vec<u8> = row.get(1)?;
                Ok(Chunk { first: unsigned(row.get(0)?), heads: wire::decode(&heads), body: row.get(2)? })
            });
            Ok::<_, StoreError>(chunk.optional()?)
        };
        let holds = one("SELECT seq, heads, body FROM outbox WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1")?.filter(|chunk| chunk.last() > seq);
        if holds.is_some() { Ok(holds) } else { one("SELECT seq, heads, body FROM outbox WHERE seq > ?1 ORDER BY seq LIMIT 1") }
    }

    /// Copies the log into the tables, as far as no reader is in the way: what is written next may take its room.
    ///
    /// # Errors
    /// There is no room for the tables, either.
    pub fn empty_log(&self) -> Result<(), StoreError> {
        Ok(self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
    }

    /// Gives room of rows that are gone back to the file system, a part of it; true: there is more.
    ///
    /// # Errors
    /// SQLite's.
    pub fn shrink(&self) -> Result<bool, StoreError> {
        let free: i64 = self.db.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
        if free <= SPARE_PAGES {
            return Ok(false);
        }
        self.db.execute_batch("PRAGMA incremental_vacuum(1000)")?;
        Ok(true)
    }
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// SQLite's integers have a sign; offsets and inodes keep their bits.
fn signed(value: u64) -> i64 {
    value as i64
}

fn unsigned(value: i64) -> u64 {
    value as u64
}
