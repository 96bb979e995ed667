//! Where records go. `record` is the NDJSON contract and `notice` its other kinds. `choose` picks and renames
//! what a sink wants; `file` and `stdout` write it, `stream` and `http` send it to a peer. `backoff` and `tls`
//! are for peers. `human` has the forms for people and their tools, `sarif` that for code-scanning viewers.

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
pub trait OutboxReader {
    /// Returns committed records after number `seq`, if there are any.
    ///
    /// # Errors
    /// The state cannot be read.
    fn after(&mut self, seq: u64) -> io::Result<Option<std::sync::Arc<Chunk>>>;
    /// Tells how far the sink has got; this is committed some time later.
    fn tell(&mut self, mark: &SinkMark);
    /// Whether this mark is committed.
    fn is_committed(&self, mark: &SinkMark) -> bool;
    /// Notes a file that siftd writes, so that it is not read as a log.
    fn owns(&mut self, node: Node);
    /// Whether no more records will be committed.
    fn is_over(&self) -> bool {
        false
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done; there may be more.
    Done,
    /// As `Done`, but an earlier failure may still persist.
    Trying,
    /// The sink failed, and tries again at `deadline`.
    Paused,
    /// There is nothing to do until something is committed.
    Idle,
    /// There is nothing new, and everything written has been told.
    Settled,
}

/// A sink that its owner steps. No step waits, except for the file system, or for a peer up to its `timeout`; the first step never waits for a peer.
pub trait Sink {
    /// Does what comes next. `hurry`: write and tell everything now.
    ///
    /// # Errors
    /// A later step writes what this one did not. `BrokenPipe`: the reader has gone.
    fn step(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) -> io::Result<Step>;

    /// Whether the sink itself decides when to retry after an error.
    fn paces_itself(&self) -> bool {
        false
    }

    /// Begins a new file: someone else has moved the current one away.
    fn reopen(&mut self) {}

    /// Ends the sink, which may have records in progress that it could not write: tells which ones are whole. `is_final`: nobody will write the others.
    fn give_up(&mut self, _outbox: &mut dyn OutboxReader, _is_final: bool) {}

    /// Returns the number of the last record that is written whole, whether or not that is told, as far as the sink knows it.
    fn written(&self) -> u64 {
        0
    }

    /// Which records the sink wants.
    fn choose(&self) -> &choose::Choose;

    /// Where the sink writes, for messages.
    fn place(&self) -> String;

    /// When the sink wants a step even if nothing was committed.
    fn deadline(&self) -> Option<Timestamp>;
}
