//! Reads the state file, table by table; the history and the breakers have modules of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rusqlite::{OptionalExtension, Row};

use super::{Store, StoreError, signed, unsigned};
use crate::core::event::Timestamp;
use crate::delivery::{Chunk, Content, Label, Mark, Node, Place, Print, SinkMark, Uid};
use crate::state::leave_out::LeftOut;
use crate::state::wire;
use crate::state::withhold::{Held, Key};

/// A silence that was reported and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilenceRow {
    /// The stream, or the source as a whole.
    pub uid: Uid,
    /// Its label.
    pub label: Label,
    /// Id of the record that reported it.
    pub id: String,
    /// When the stream was last heard from.
    pub since: Timestamp,
}

impl SilenceRow {
    /// The columns that [`read`](Self::read) expects.
    pub(super) const COLUMNS: &str = "uid, source, path, id, since";

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let label = Label { source: row.get(1)?, path: row.get(2)?, kind: "file", ..Label::default() };
        Ok(Self { uid: row.get(0)?, label, id: row.get(3)?, since: Timestamp(row.get(4)?) })
    }
}

/// A known file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRow {
    /// Its identity.
    pub uid: Uid,
    /// Its label.
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

/// A chunk that waits for sinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingChunk {
    /// Number of its first record.
    pub first: u64,
    /// Number of its last record.
    pub last: u64,
    /// Its length.
    pub bytes: u64,
}

impl WaitingChunk {
    /// Returns how many bytes wait.
    pub(in crate::state) fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> u64 {
        all.into_iter().map(|chunk| chunk.bytes).sum()
    }
}

impl Store {
    /// Returns all known files.
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

    /// Returns the sources that were followed before.
    ///
    /// # Errors
    /// SQLite's.
    pub fn sources(&self) -> Result<Vec<String>, StoreError> {
        let mut all = self.db.prepare("SELECT name FROM source")?;
        Ok(all.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Returns when a lost state was last written, if no `run` has reported its loss yet.
    ///
    /// # Errors
    /// SQLite's.
    pub fn loss(&self) -> Result<Option<Timestamp>, StoreError> {
        let first: Option<i64> = self.db.query_row("SELECT min(at) FROM loss", [], |row| row.get(0))?;
        Ok(first.map(Timestamp))
    }

    /// Passes each event that may be found again to `each`: its stream, and its place there.
    ///
    /// # Errors
    /// SQLite's.
    pub fn emitted(&self, each: &mut dyn FnMut(Uid, Place)) -> Result<(), StoreError> {
        let mut all = self.db.prepare("SELECT uid, generation, offset, inner FROM emitted")?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            each(row.get(0)?, Place { generation: row.get(1)?, offset: unsigned(row.get(2)?), inner: row.get(3)? });
        }
        Ok(())
    }

    /// Returns how far each sink is.
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

    /// Returns the records that sinks are no longer given, in order.
    ///
    /// # Errors
    /// SQLite's.
    pub(in crate::state) fn left_out(&self) -> Result<Vec<LeftOut>, StoreError> {
        let mut all = self.db.prepare("SELECT sink, past, upto, count, at, said FROM dropped ORDER BY sink, past")?;
        let rows = all.query_map([], |row| {
            Ok(LeftOut {
                sink: row.get(0)?,
                from: unsigned(row.get(1)?),
                to: unsigned(row.get(2)?),
                count: unsigned(row.get(3)?),
                at: Timestamp(row.get(4)?),
                said: Some(unsigned(row.get(5)?)),
                is_stored: true,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns what is held back.
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

    /// Returns the silences that were reported and have not ended.
    ///
    /// # Errors
    /// SQLite's.
    pub fn silences(&self) -> Result<Vec<SilenceRow>, StoreError> {
        let mut all = self.db.prepare(&format!("SELECT {} FROM silence", SilenceRow::COLUMNS))?;
        let rows = all.query_map([], SilenceRow::read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the waiting chunks.
    ///
    /// # Errors
    /// SQLite's.
    pub fn outbox(&self) -> Result<Vec<WaitingChunk>, StoreError> {
        let mut all = self.db.prepare("SELECT seq, count, length(body) FROM outbox ORDER BY seq")?;
        let rows = all.query_map([], |row| {
            let (first, count): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok(WaitingChunk { first: unsigned(first), last: unsigned(first + count - 1), bytes: unsigned(row.get(2)?) })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the number of the last record ever committed.
    ///
    /// # Errors
    /// SQLite's.
    pub fn last(&self) -> Result<u64, StoreError> {
        Ok(unsigned(self.db.query_row("SELECT seq FROM last", [], |row| row.get(0))?))
    }

    /// Returns the chunk that holds the record after `seq`, or else the first later one.
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
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}
