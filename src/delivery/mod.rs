//! The data that passes from sources through the state to sinks. Sources, state and sinks know these types but
//! not each other; nor do sources and sinks, so the names that an output has had are known here, too.

mod names;
mod notice;
mod seen;

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use md5::{Digest, Md5};

use crate::core::event::{Category, Event, Hex, Io, RetryClass, Severity, Timestamp};
pub use names::{is_generation, is_output};
pub use notice::{Exit, Judged, Missed, Notice, Rerun, Why};
pub use seen::{Seen, Status, WriteSeen};

/// Identity of a stream; kept in the state, never recomputed.
pub type Uid = [u8; 16];

/// `kind` in the label of a record that is for one sink only; its `source` is the sink's name.
pub const FOR_SINK: &str = "sink";

/// Describes where a stream comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label {
    /// Name of its source.
    pub source: String,
    /// `file`, `stdin`, …
    pub kind: &'static str,
    /// Its path, as the user would write it; empty if it has none.
    pub path: String,
    /// The peer that sends it over a socket, such as `192.0.2.7:40112`; empty if there is none.
    pub peer: String,
    /// The command that prints it, without secrets; empty if there is none.
    pub argv: Vec<String>,
    /// Which output of the command.
    pub io: Option<Io>,
}

/// Identity of a file: its device, its inode and when it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Birth time in microseconds since 1970; 0 if the file system does not say.
    pub born: i64,
}

impl Node {
    /// Returns the identity of a file, from its metadata.
    #[must_use]
    pub fn of(meta: &Metadata) -> Self {
        let born = meta.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { dev: meta.dev(), ino: meta.ino(), born: born.map_or(0, |since| since.as_micros() as i64) }
    }

    /// Whether both are the same file, as far as the file system can tell. Birth times are compared, because inodes are reused.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino) && (self.born == other.born || self.born == 0 || other.born == 0)
    }
}

/// The hash of a run of bytes, kept instead of the log's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Print {
    /// How many bytes.
    pub len: u32,
    /// MD5 of them.
    pub hash: [u8; 16],
}

impl Print {
    /// Hashes these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { len: bytes.len() as u32, hash: Md5::digest(bytes).into() }
    }
}

/// How far a file was read, and how the file is recognized again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Which file it is.
    pub node: Node,
    /// Where it was last seen; for the journal, the cursor of the entry before `safe`.
    pub path: PathBuf,
    /// Rises whenever the content at offset 0 is replaced.
    pub generation: u32,
    /// Offset from which the content is read; what is before it is only counted.
    pub start: u64,
    /// Bytes that were read.
    pub read: u64,
    /// Offset where reading resumes after a restart.
    pub safe: u64,
    /// The stream's state at `safe`, as JSON.
    pub facts: String,
    /// The first bytes, at most 4096.
    pub head: Print,
    /// The last bytes before `read`, at most 64.
    pub tail: Print,
    /// Its size when it was last checked.
    pub size: u64,
    /// What was read of the previous generation, by which a copy of it is recognized.
    pub previous: Option<Content>,
}

/// What was read of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Bytes that were read.
    pub read: u64,
    /// The first bytes, at most 4096.
    pub head: Print,
    /// The last bytes before `read`, at most 64.
    pub tail: Print,
}

impl Mark {
    /// Returns what was read of this generation.
    #[must_use]
    pub fn content(&self) -> Content {
        Content { read: self.read, head: self.head, tail: self.tail }
    }
}

/// Where an event is in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Generation of the stream.
    pub generation: u32,
    /// Offset of the event's first line.
    pub offset: u64,
    /// Index of that line within a decoded record.
    pub inner: u32,
}

/// One record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its bytes in the batch's body, the newline included.
    pub len: u32,
    /// Generation of its stream.
    pub generation: u32,
    /// Offset of its first line.
    pub offset: u64,
    /// Index of that line within a decoded record.
    pub inner: u32,
    /// Its id, 32 hex digits.
    pub id: String,
    /// Its signature.
    pub signature: Hex,
    /// For filters.
    pub severity: Severity,
    /// For filters.
    pub category: Category,
    /// When its first line was read.
    pub at: Timestamp,
    /// Index in its bytes where the member `seen` is to be inserted; 0: nowhere.
    pub seen_at: u32,
    /// How it counts for a breaker.
    pub weight: Weight,
    /// The agent's session, if the log names one.
    pub session: Option<Box<str>>,
}

impl Record {
    /// Makes the record of an event; `len` and `seen_at` refer to its bytes.
    #[must_use]
    pub fn new(event: &Event, generation: u32, len: u32, seen_at: u32) -> Self {
        Self {
            len,
            generation,
            offset: event.offset,
            inner: event.inner,
            id: event.id.to_string(),
            signature: event.signature,
            severity: event.severity,
            category: event.category,
            at: event.observed_at,
            seen_at,
            weight: Weight::of(event),
            session: event.call.as_ref().and_then(|call| call.session.as_deref()).map(Into::into),
        }
    }

    /// Returns where its event is.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { generation: self.generation, offset: self.offset, inner: self.inner }
    }
}

/// How an event counts for a breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Not at all: a warning, a refusal, a cancelled call.
    #[default]
    None,
    /// By its signature.
    Bug,
    /// With all transient ones.
    Transient,
}

impl Weight {
    /// Returns the weight of an event. A text that calls the error fatal is only a claim, so the event counts like any other.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        match event.retry.class {
            _ if !event.is_fault() || event.severity == Severity::Low => Self::None,
            RetryClass::Transient => Self::Transient,
            _ => Self::Bug,
        }
    }
}

/// The result of one turn of a stream. It is committed whole or not at all.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The stream.
    pub uid: Uid,
    /// Label of the stream.
    pub label: Arc<Label>,
    /// Its events, in order.
    pub records: Vec<Record>,
    /// The records as NDJSON, one after the other.
    pub body: Vec<u8>,
    /// What was lost.
    pub notices: Vec<Notice>,
    /// How far the file was read; `None` for a stream that cannot be read again.
    pub mark: Option<Mark>,
    /// When it was read.
    pub at: Timestamp,
}

impl Batch {
    /// Returns how many bytes of the queue's budget the batch takes.
    #[must_use]
    pub fn cost(&self) -> usize {
        // The allocated bytes count, not only those in use.
        self.body.capacity() + 250 * self.records.len() + 1024
    }
}

/// Derives the id of a record from the identity of what it is about: the same parts give the same id.
#[must_use]
pub fn derived_id(kind: &str, parts: &[&[u8]]) -> String {
    let mut hash = Md5::new();
    hash.update(kind.as_bytes());
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    crate::core::event::Hex::new(hash.finalize().into()).to_string()
}

/// How far a sink has written, so that it can resume there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkMark {
    /// Name of the sink.
    pub name: String,
    /// Records up to this one are done.
    pub seq: u64,
    /// The file that it writes; all 0 if there is none.
    pub node: Node,
    /// Bytes of that file up to the end of record `seq`.
    pub len: u64,
    /// When the file was started.
    pub since: Timestamp,
}

/// An event's record on its way into the history.
#[derive(Clone, Copy)]
pub struct Sighting<'a> {
    /// Where the event was seen.
    pub label: &'a Label,
    /// The record.
    pub record: &'a Record,
    /// Its line.
    pub line: &'a [u8],
}

/// What a sink needs to know about a record to filter it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its bytes, the newline included.
    pub len: u32,
    /// `None` if the record is not an error: then it passes every filter of severity and category.
    pub kind: Option<(Severity, Category)>,
}

/// A run of consecutive committed records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the first record; they count from 1.
    pub first: u64,
    /// One for each record.
    pub heads: Vec<Head>,
    /// The records.
    pub body: Vec<u8>,
}

impl Chunk {
    /// Returns the number of the last record.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.first + self.heads.len() as u64 - 1
    }

    /// Returns the bytes of the records after number `seq`.
    #[must_use]
    pub fn body_after(&self, seq: u64) -> &[u8] {
        let done = (seq + 1).saturating_sub(self.first) as usize;
        let from: usize = self.heads.iter().take(done).map(|head| head.len as usize).sum();
        self.body.get(from..).unwrap_or_default()
    }

    /// Returns the records after number `seq`: number, head, bytes.
    pub fn after(&self, seq: u64) -> impl Iterator<Item = (u64, Head, &[u8])> {
        let mut at = 0;
        let all = self.heads.iter().zip(self.first..).map(move |(head, number)| {
            let bytes = self.body.get(at..at + head.len as usize).unwrap_or_default();
            at += head.len as usize;
            (number, *head, bytes)
        });
        all.skip_while(move |(number, ..)| *number <= seq)
    }
}
