//! An outbox for tests: committed records, and what a sink reported.

use std::io;
use std::sync::Arc;

use super::OutboxReader;
use super::choose::Choose;
use crate::config::Schema;
use crate::core::event::{Category, Severity};
use crate::delivery::{Chunk, Head, Node, SinkMark};

/// Chooses all records, unchanged.
pub fn everything() -> Choose {
    Choose { name: "out".into(), min_severity: Severity::Low, categories: Vec::new(), sources: Vec::new(), schema: Schema::Native }
}

/// Committed records, and what the sink reported.
#[derive(Default)]
pub struct Book {
    pub chunks: Vec<Arc<Chunk>>,
    pub told: Vec<SinkMark>,
    pub is_over: bool,
}

impl Book {
    /// Adds `count` records of `bytes` bytes each, with consecutive numbers.
    pub fn add(&mut self, count: u64, bytes: usize) {
        self.add_lines(count, |number| format!("{number} {}\n", "x".repeat(bytes)));
    }

    /// Adds records whose lines, including the newline, come from the caller.
    pub fn add_lines(&mut self, count: u64, line: impl Fn(u64) -> String) {
        let first = self.chunks.last().map_or(1, |chunk| chunk.last() + 1);
        let mut chunk = Chunk { first, ..Chunk::default() };
        for number in first..first + count {
            let line = line(number);
            chunk.heads.push(Head { len: line.len() as u32, kind: Some((Severity::High, Category::ALL[0])) });
            chunk.body.extend(line.bytes());
        }
        self.chunks.push(Arc::new(chunk));
    }
}

impl OutboxReader for Book {
    fn after(&mut self, seq: u64) -> io::Result<Option<Arc<Chunk>>> {
        Ok(self.chunks.iter().find(|chunk| chunk.last() > seq).cloned())
    }

    fn tell(&mut self, mark: &SinkMark) {
        self.told.push(mark.clone());
    }

    fn is_committed(&self, mark: &SinkMark) -> bool {
        self.told.last().map_or(mark.seq == 0, |told| told == mark)
    }

    fn owns(&mut self, _: Node) {}

    fn is_over(&self) -> bool {
        self.is_over
    }
}
