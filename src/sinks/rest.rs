//! The records of a chunk on their way into a descriptor: as they are committed, where a sink wants all of them
//! so, without a copy; else those that it wants, under its names.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use super::choose::Choose;
use crate::delivery::Chunk;
use crate::telemetry::metrics;
use crate::telemetry::metrics::SinkMetrics;

/// Records of a chunk that are not written yet.
pub(super) struct Rest {
    chunk: Arc<Chunk>,
    /// Not all of them, or under other names.
    own: Option<Vec<u8>>,
    /// Bytes that are written: of `own`, or of the chunk.
    at: usize,
    counted: Arc<SinkMetrics>,
}

impl Rest {
    /// The records of a chunk after number `seq`.
    pub fn new(chunk: Arc<Chunk>, seq: u64, choose: &Choose) -> Self {
        let counted = metrics().sinks.of(&choose.name);
        if choose.takes_all(&chunk) {
            let at = chunk.body.len() - chunk.body_after(seq).len();
            return Self { chunk, own: None, at, counted };
        }
        let mut bytes = Vec::new();
        chunk.after(seq).for_each(|(_, head, record)| choose.write(head, record, &mut bytes));
        Self { chunk, own: Some(bytes), at: 0, counted }
    }

    /// Writes all of it, and returns the number of the last record.
    ///
    /// # Errors
    /// The file's; the next call goes on behind what was written.
    pub fn write(&mut self, mut file: impl Write) -> io::Result<u64> {
        let bytes = self.own.as_ref().unwrap_or(&self.chunk.body);
        while self.at < bytes.len() {
            match file.write(&bytes[self.at..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.at += count;
                    self.counted.bytes.add(count as u64);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.chunk.last())
    }
}
