//! The records of a chunk on their way into a descriptor. If the sink wants all of them unchanged,
//! they are written as committed, without a copy; else only those it wants, under its field names.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use super::choose::Choose;
use crate::delivery::Chunk;
use crate::telemetry::metrics;
use crate::telemetry::metrics::SinkMetrics;

/// Records of a chunk that are not written yet.
pub(super) struct Rest {
    chunk: Arc<Chunk>,
    /// Number of the record before them.
    seq: u64,
    /// The sink's own form, if it does not want all of them unchanged.
    own: Option<Vec<u8>>,
    /// Where the records begin.
    from: usize,
    /// Where the next byte to write is, in `own` or in the chunk.
    at: usize,
    counted: Arc<SinkMetrics>,
}

impl Rest {
    /// Takes the records of a chunk after number `seq`.
    pub fn new(chunk: Arc<Chunk>, seq: u64, choose: &Choose) -> Self {
        let counted = metrics().sinks.of(&choose.name);
        if choose.takes_all(&chunk) {
            let at = chunk.body.len() - chunk.body_after(seq).len();
            return Self { chunk, seq, own: None, from: at, at, counted };
        }
        let mut bytes = Vec::new();
        chunk.after(seq).for_each(|(_, head, record)| choose.write(head, record, &mut bytes));
        Self { chunk, seq, own: Some(bytes), from: 0, at: 0, counted }
    }

    /// Writes all records, and returns the number of the last one.
    ///
    /// # Errors
    /// Those of the file; the next call continues after what was written.
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

    /// Returns the number of the last record written whole, and what is written of the next one.
    pub fn written(&self, choose: &Choose) -> (u64, &[u8]) {
        let bytes = self.own.as_ref().unwrap_or(&self.chunk.body);
        let (mut last, mut end, mut space) = (self.seq, self.from, Vec::new());
        for (number, head, record) in self.chunk.after(self.seq) {
            let len = if self.own.is_some() {
                space.clear();
                choose.write(head, record, &mut space);
                space.len()
            } else {
                record.len()
            };
            if end + len > self.at {
                break;
            }
            (last, end) = (number, end + len);
        }
        (last, &bytes[end..self.at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Schema;
    use crate::core::event::{Category, Severity};
    use crate::delivery::Head;

    /// Takes this many bytes, then no more.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.0);
            self.0 -= count;
            if count == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(count) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_whole_and_what_is_torn() {
        let head = |severity| Head { len: 5, kind: Some((severity, Category::ALL[0])) };
        let heads = vec![head(Severity::High), head(Severity::Low), head(Severity::High), head(Severity::High)];
        let chunk = Arc::new(Chunk { first: 7, heads, body: b"aaaa\nbbbb\ncccc\ndddd\n".to_vec() });
        let choose = |min_severity| Choose { name: "s".into(), min_severity, categories: Vec::new(), sources: Vec::new(), schema: Schema::Native };
        let written = |choose: &Choose, seq, room| {
            let mut rest = Rest::new(chunk.clone(), seq, choose);
            assert!(rest.write(Full(room)).is_err());
            let (last, torn) = rest.written(choose);
            (last, String::from_utf8(torn.to_vec()).unwrap(), choose.count(&chunk, last))
        };
        let all = choose(Severity::Low);
        assert_eq!(written(&all, 6, 0), (6, String::new(), 4));
        assert_eq!(written(&all, 6, 5), (7, String::new(), 3));
        assert_eq!(written(&all, 7, 8), (8, "ccc".into(), 2));
        // A record that is not wanted is done together with the one before.
        assert_eq!(written(&choose(Severity::High), 6, 7), (8, "cc".into(), 2));
    }
}
