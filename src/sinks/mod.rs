//! Where records go. `record` is the NDJSON contract and `notice` its other kinds; `choose` picks and
//! renames what a sink wants; `file` and `stdout` write it, `stream` and `http` send it to a peer; `backoff` and
//! `tls` are what peers need; `human` has the forms for people and their tools, `sarif` that of code-scanning viewers.

use std::io;

use crate::core::event::Timestamp;
use crate::delivery::{Chunk, Node, SinkMark};

pub mod backoff;
#[cfg(test)]
mod book;
pub mod choose;
pub mod file;
pub mod generations;
pub mod http;
pub mod human;
mod json;
pub mod notice;
pub mod record;
mod rest;
pub mod sarif;
mod schema;
mod stamp;
pub mod stdout;
pub mod stream;
mod tail;
pub mod tls;

/// What a sink sees of the state behind it.
pub trait Desk {
    /// Committed records after number `seq`, if there are any.
    ///
    /// # Errors
    /// The state cannot be read.
    fn after(&mut self, seq: u64) -> io::Result<Option<std::sync::Arc<Chunk>>>;
    /// Says how far the sink has come; it is committed some time later.
    fn tell(&mut self, mark: &SinkMark);
    /// Whether that is committed.
    fn is_committed(&mut self, mark: &SinkMark) -> bool;
    /// A file that is written now: nobody reads it as a log.
    fn owns(&mut self, node: Node);
    /// Whether nothing more will be committed.
    fn is_over(&mut self) -> bool {
        false
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done; there may be more.
    Done,
    /// The same, after a failure that this does not disprove.
    Trying,
    /// It failed, and is tried again at `deadline`.
    Paused,
    /// Nothing to do before something is committed.
    Idle,
    /// Nothing new, and all that was written is told.
    Settled,
}

/// A sink that is stepped by its owner. No step waits, but for the file system, or for a peer up to its
/// `timeout`; the first one never waits for a peer.
pub trait Sink {
    /// Does what is next. `hurry`: writes and tells everything now.
    ///
    /// # Errors
    /// What was not written is written by a later step. `BrokenPipe`: nobody reads any more.
    fn step(&mut self, desk: &mut dyn Desk, now: Timestamp, hurry: bool) -> io::Result<Step>;

    /// Whether it knows by itself when to try again after an error.
    fn paces_itself(&self) -> bool {
        false
    }

    /// The file was moved away by someone else: go on with a new one.
    fn reopen(&mut self) {}

    /// It ends, and may have records under way that it could not write: tells which ones are whole. `is_final`: nobody
    /// will write the others.
    fn give_up(&mut self, _desk: &mut dyn Desk, _is_final: bool) {}

    /// Which records it wants.
    fn choose(&self) -> &choose::Choose;

    /// Where it writes, for messages.
    fn place(&self) -> String;

    /// When it wants a step although nothing was committed.
    fn deadline(&self) -> Option<Timestamp>;
}
