//! A file that is followed from its end: the lines before are counted, so that line numbers are right, and its head is examined for the format.

use std::io;

use super::{Reader, Space};
use crate::core::assemble::Facts;
use crate::core::transcript::Memory;
use crate::sources::content::push_tail;

/// Lines before the start are counted, not read.
#[derive(Default)]
pub(super) struct Counting {
    lines: u64,
    line_start: u64,
    /// What the head of the file shows, if it is a transcript.
    transcript: Option<Memory>,
}

impl Reader {
    pub(super) fn count(&mut self, bytes: &[u8], space: &mut Space) -> io::Result<()> {
        let Some(counting) = &mut self.counting else { return Ok(()) };
        let before = bytes.len().min((self.start - self.offset) as usize);
        let part = &bytes[..before];
        if self.offset == 0 {
            counting.transcript = Memory::of_head(self.engine.limits.mode, part);
        }
        counting.lines += memchr::memchr_iter(b'\n', part).count() as u64;
        if let Some(last) = memchr::memrchr(b'\n', part) {
            counting.line_start = self.offset + last as u64 + 1;
        }
        self.head.push(part);
        self.offset += before as u64;
        push_tail(&mut self.tail, part);
        if self.offset == self.start {
            // The line that lies half before the start is read whole.
            let facts = Facts::plain(counting.lines).with_transcript(counting.transcript.take());
            (self.safe, self.start, self.facts) = (counting.line_start, counting.line_start, facts);
            self.counting = None;
            self.take_up(None, space)?;
        }
        Ok(())
    }
}
