//! Records on their way into the outbox: what a transaction adds, in order, in chunks of a convenient size.

use super::WriteNotice;
use crate::core::event::{Category, Severity, Timestamp};
use crate::delivery::{Chunk, Head, Label, Notice, Record, Seen, WriteSeen};
use crate::state::breakers;
use crate::state::counting::Counted;
use crate::state::ledger::Made;
use crate::state::store::{StoreError, Tx};

/// A chunk ends once it has this many bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// A chunk that reaches this many bytes is expected to grow to full size.
const MANY_BYTES: usize = 32 << 10;

/// Records that are being put into chunks.
pub(super) struct Body {
    first: u64,
    chunk: Chunk,
    write_notice: WriteNotice,
    /// When the records are committed.
    pub now: Timestamp,
    /// The complete chunks.
    pub chunks: Vec<Chunk>,
    pub counted: Counted,
    /// Records of the breakers that have opened.
    pub opened: Vec<Vec<u8>>,
}

impl Body {
    /// Starts with record number `first`.
    pub fn new(first: u64, write_notice: WriteNotice, now: Timestamp) -> Self {
        Self { first, chunk: Chunk::default(), write_notice, now, chunks: Vec::new(), counted: Counted::default(), opened: Vec::new() }
    }

    /// Adds a record as it is.
    pub fn add(&mut self, bytes: &[u8], kind: Option<(Severity, Category)>) {
        let from = self.chunk.body.len();
        self.chunk.body.extend_from_slice(bytes);
        self.added(from, kind);
    }

    /// Adds an event, with what the history says of it.
    pub fn error(&mut self, bytes: &[u8], record: &Record, history: Option<(Seen, WriteSeen)>) {
        let kind = Some((record.severity, record.category));
        let Some((seen, write)) = history else { return self.add(bytes, kind) };
        let from = self.chunk.body.len();
        record.append_with(&mut self.chunk.body, bytes, |out| write(out, &seen));
        self.added(from, kind);
    }

    /// Accounts for the record that begins at `from`.
    fn added(&mut self, from: usize, kind: Option<(Severity, Category)>) {
        let len = self.chunk.body.len();
        self.chunk.heads.push(Head { len: (len - from) as u32, kind });
        if len >= CHUNK_BYTES {
            self.end();
        } else if len >= MANY_BYTES && self.chunk.body.capacity() < CHUNK_BYTES {
            // Reserve it at once: doubling would copy the whole chunk again and again.
            self.chunk.body.reserve_exact(CHUNK_BYTES + MANY_BYTES - len);
        }
    }

    /// Adds the records of breaker transitions.
    pub fn made(&mut self, made: &mut Vec<Made>, tx: &Tx<'_>) -> Result<(), StoreError> {
        for Made { label, name, notice, opens } in made.drain(..) {
            let mut line = Vec::new();
            (self.write_notice)(&mut line, &label, &notice, self.now);
            breakers::add_transition(tx.db(), &breakers::Addition { name: &name, body: &line, now: self.now, waits: false })?;
            self.add(&line, None);
            if opens {
                self.opened.push(line);
            }
        }
        Ok(())
    }

    /// Returns the number of the next record.
    pub fn next(&self) -> u64 {
        self.first + self.chunk.heads.len() as u64
    }

    /// Adds a record that is not an error.
    pub fn notice(&mut self, label: &Label, notice: &Notice) {
        self.counted.notice(notice);
        let mut line = Vec::new();
        (self.write_notice)(&mut line, label, notice, self.now);
        self.add(&line, notice.kind());
    }

    /// Ends the last chunk.
    pub fn end(&mut self) {
        if self.chunk.heads.is_empty() {
            return;
        }
        let chunk = Chunk { first: self.first, ..std::mem::take(&mut self.chunk) };
        self.first = chunk.last() + 1;
        self.chunks.push(chunk);
    }
}
