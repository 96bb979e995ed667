//! The form of the state file: its tables, SQLite's settings for it, and how it is recognised as ours.

use rusqlite::Connection;

use super::StoreError;

/// The version of the tables; older ones are upgraded to it.
pub(super) const VERSION: i64 = 8;
/// "sftd": marks the file as ours.
pub(super) const APPLICATION_ID: i64 = 0x7366_7464;
/// Settings in use. The cache is small: memory is bounded, and the system caches the file. The log grows to 16 MiB before it is copied
/// into the tables. By then most records have been written to sinks and deleted, and their pages reused, so they are not copied at all.
pub(super) const SETTINGS: &str = "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-2000;
    PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=33554432;";

/// Settings while a new file is made: without a log.
pub(super) const MAKING: &str = "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;";

/// Silences that were reported and have not ended; since version 4.
pub(super) const SILENCES: &str = "
CREATE TABLE silence (uid BLOB PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL, id TEXT NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;
";

/// When a file that was set aside was last written, until a `run` has reported the loss; since version 6.
pub(super) const LOSS: &str = "CREATE TABLE loss (at INTEGER NOT NULL);";

/// Records that a sink is no longer given, each with the number of the record that says so; since version 8.
pub(super) const DROPPED: &str = "
CREATE TABLE dropped (sink TEXT, past INTEGER, upto INTEGER NOT NULL, count INTEGER NOT NULL, at INTEGER NOT NULL, said INTEGER NOT NULL,
    PRIMARY KEY (sink, past)) WITHOUT ROWID;
";

/// The tables of the first form.
pub(super) const TABLES: &str = "
CREATE TABLE source (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE stream (uid BLOB PRIMARY KEY, source TEXT NOT NULL, shown TEXT NOT NULL, path BLOB NOT NULL, dev INTEGER NOT NULL, ino INTEGER NOT NULL,
    born INTEGER NOT NULL, generation INTEGER NOT NULL, start INTEGER NOT NULL, read INTEGER NOT NULL, safe INTEGER NOT NULL, size INTEGER NOT NULL,
    facts TEXT NOT NULL, head_len INTEGER NOT NULL, head BLOB NOT NULL, tail_len INTEGER NOT NULL, tail BLOB NOT NULL, seen INTEGER NOT NULL,
    old_read INTEGER, old_head_len INTEGER, old_head BLOB, old_tail_len INTEGER, old_tail BLOB) WITHOUT ROWID;
CREATE TABLE emitted (uid BLOB, generation INTEGER, offset INTEGER, inner INTEGER, PRIMARY KEY (uid, generation, offset, inner)) WITHOUT ROWID;
CREATE TABLE outbox (seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, heads BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE sink (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, dev INTEGER NOT NULL, ino INTEGER NOT NULL, born INTEGER NOT NULL, len INTEGER NOT NULL,
    since INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE withheld (source TEXT, signature TEXT, first_id TEXT NOT NULL, since INTEGER NOT NULL, upto INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (source, signature)) WITHOUT ROWID;
CREATE TABLE last (seq INTEGER NOT NULL);
INSERT INTO last VALUES (0);
";

/// Returns the version of the tables; 0 for a new file.
pub(super) fn form(db: &Connection) -> Result<i64, StoreError> {
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let owner: i64 = db.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    match (version, owner) {
        (0, 0) if tables == 0 => Ok(0),
        (1..=VERSION, APPLICATION_ID) => Ok(version),
        _ => Err(unknown_form(version)),
    }
}

/// Returns the error for an unknown version.
pub(super) fn unknown_form(version: i64) -> StoreError {
    StoreError::Unreadable(format!("it has form {version}, this version of siftd knows form {VERSION}"))
}
