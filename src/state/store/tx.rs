//! What a transaction writes, row by row.

use rusqlite::{Connection, Transaction, params};

use super::{StoreError, signed};
use crate::core::event::Timestamp;
use crate::delivery::{Chunk, Label, Mark, Node, Place, SinkMark, Uid};
use crate::state::leave_out::LeftOut;
use crate::state::wire;
use crate::state::withhold::{Held, Key};

/// A transaction; if dropped without `commit`, it changes nothing.
pub struct Tx<'a>(pub(super) Transaction<'a>);

impl Tx<'_> {
    /// Returns the connection, for tables that have a module of their own.
    pub(in crate::state) fn db(&self) -> &Connection {
        &self.0
    }

    /// Returns a number that changes whenever another connection has written.
    pub(in crate::state) fn data_version(&self) -> Result<i64, StoreError> {
        Ok(self.0.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
    }

    pub(in crate::state) fn source(&self, name: &str) -> Result<(), StoreError> {
        self.0.execute("INSERT OR IGNORE INTO source VALUES (?1)", [name])?;
        Ok(())
    }

    pub(in crate::state) fn note_loss(&self, at: Timestamp) -> Result<(), StoreError> {
        self.0.execute("INSERT INTO loss VALUES (?1)", [at.0])?;
        Ok(())
    }

    pub(in crate::state) fn no_loss(&self) -> Result<(), StoreError> {
        self.0.execute("DELETE FROM loss", [])?;
        Ok(())
    }

    pub(in crate::state) fn mark(&self, uid: &Uid, label: &Label, mark: &Mark, seen: Timestamp) -> Result<(), StoreError> {
        let mut put = self.0.prepare_cached(
            "INSERT OR REPLACE INTO stream VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)",
        )?;
        put.execute(params![
            uid,
            label.source,
            label.path,
            mark.path.as_os_str().as_encoded_bytes(),
            signed(mark.node.dev),
            signed(mark.node.ino),
            mark.node.born,
            mark.generation,
            signed(mark.start),
            signed(mark.read),
            signed(mark.safe),
            signed(mark.size),
            mark.facts,
            mark.head.len,
            mark.head.hash,
            mark.tail.len,
            mark.tail.hash,
            seen.0,
            mark.previous.map(|old| signed(old.read)),
            mark.previous.map(|old| old.head.len),
            mark.previous.map(|old| old.head.hash),
            mark.previous.map(|old| old.tail.len),
            mark.previous.map(|old| old.tail.hash),
        ])?;
        Ok(())
    }

    pub(in crate::state) fn seen(&self, uid: &Uid, at: Timestamp) -> Result<(), StoreError> {
        self.0.prepare_cached("UPDATE stream SET seen = ?2 WHERE uid = ?1")?.execute(params![uid, at.0])?;
        Ok(())
    }

    pub(in crate::state) fn emit(&self, uid: &Uid, place: Place) -> Result<(), StoreError> {
        let Place { generation, offset, inner } = place;
        self.0.prepare_cached("INSERT OR IGNORE INTO emitted VALUES (?1, ?2, ?3, ?4)")?.execute(params![uid, generation, signed(offset), inner])?;
        Ok(())
    }

    pub(in crate::state) fn settle(&self, uid: &Uid, generation: u32, offset: u64) -> Result<(), StoreError> {
        let mut gone = self.0.prepare_cached("DELETE FROM emitted WHERE uid = ?1 AND (generation < ?2 OR (generation = ?2 AND offset < ?3))")?;
        gone.execute(params![uid, generation, signed(offset)])?;
        Ok(())
    }

    pub(in crate::state) fn chunk(&self, chunk: &Chunk) -> Result<(), StoreError> {
        let mut put = self.0.prepare_cached("INSERT INTO outbox VALUES (?1, ?2, ?3, ?4)")?;
        put.execute(params![signed(chunk.first), chunk.heads.len() as i64, wire::encode(&chunk.heads), chunk.body])?;
        self.last(chunk.last())
    }

    pub(in crate::state) fn last(&self, seq: u64) -> Result<(), StoreError> {
        self.0.prepare_cached("UPDATE last SET seq = ?1")?.execute([signed(seq)])?;
        Ok(())
    }

    /// Stores a reported silence, or deletes one that has ended.
    pub(in crate::state) fn silence(&self, uid: &Uid, label: &Label, (id, since): (&str, Timestamp), has_ended: bool) -> Result<(), StoreError> {
        match has_ended {
            true => self.0.prepare_cached("DELETE FROM silence WHERE uid = ?1")?.execute([uid])?,
            false => {
                let mut put = self.0.prepare_cached("INSERT OR REPLACE INTO silence VALUES (?1, ?2, ?3, ?4, ?5)")?;
                put.execute(params![uid, label.source, label.path, id, since.0])?
            }
        };
        Ok(())
    }

    pub(in crate::state) fn done(&self, seq: u64) -> Result<(), StoreError> {
        self.0.prepare_cached("DELETE FROM outbox WHERE seq <= ?1 AND seq + count - 1 <= ?1")?.execute([signed(seq)])?;
        Ok(())
    }

    pub(in crate::state) fn drop_chunk(&self, first: u64) -> Result<(), StoreError> {
        self.0.prepare_cached("DELETE FROM outbox WHERE seq = ?1")?.execute([signed(first)])?;
        Ok(())
    }

    pub(in crate::state) fn sink(&self, mark: &SinkMark) -> Result<(), StoreError> {
        let mut put = self.0.prepare_cached("INSERT OR REPLACE INTO sink VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        let Node { dev, ino, born } = mark.node;
        put.execute(params![mark.name, signed(mark.seq), signed(dev), signed(ino), born, signed(mark.len), mark.since.0])?;
        Ok(())
    }

    pub(in crate::state) fn no_sink(&self, name: &str) -> Result<(), StoreError> {
        self.0.execute("DELETE FROM sink WHERE name = ?1", [name])?;
        self.0.execute("DELETE FROM dropped WHERE sink = ?1", [name])?;
        Ok(())
    }

    /// Stores what a sink is no longer given, and the number of the record that says so.
    pub(in crate::state) fn left_out(&self, out: &LeftOut, said: u64) -> Result<(), StoreError> {
        let mut put = self.0.prepare_cached("INSERT OR REPLACE INTO dropped VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
        put.execute(params![out.sink, signed(out.from), signed(out.to), signed(out.count), out.at.0, signed(said)])?;
        Ok(())
    }

    pub(in crate::state) fn no_left_out(&self, out: &LeftOut) -> Result<(), StoreError> {
        self.0.prepare_cached("DELETE FROM dropped WHERE sink = ?1 AND past = ?2")?.execute(params![out.sink, signed(out.from)])?;
        Ok(())
    }

    pub(in crate::state) fn withheld(&self, key: &Key, held: Option<&Held>) -> Result<(), StoreError> {
        match held {
            Some(held) => self.0.prepare_cached("INSERT OR REPLACE INTO withheld VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(params![
                key.source,
                key.signature,
                held.first_id,
                held.since.0,
                held.to.0,
                signed(held.count),
                wire::packed(held.kind)
            ])?,
            None => self.0.prepare_cached("DELETE FROM withheld WHERE source = ?1 AND signature = ?2")?.execute(params![key.source, key.signature])?,
        };
        Ok(())
    }

    /// Deletes all that is known of a stream.
    ///
    /// # Errors
    /// SQLite's.
    pub fn forget(&self, uid: &Uid) -> Result<(), StoreError> {
        self.0.execute("DELETE FROM stream WHERE uid = ?1", [uid])?;
        self.0.execute("DELETE FROM emitted WHERE uid = ?1", [uid])?;
        Ok(())
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// SQLite's; nothing has changed then.
    pub fn commit(self) -> Result<(), StoreError> {
        Ok(self.0.commit()?)
    }
}
