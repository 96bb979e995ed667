//! NULs at the beginning of a line: after the file is cut, a writer that does not append continues
//! at its old offset and leaves a hole before it. The hole is left out.

use super::Reader;
use crate::core::event::{Event, Timestamp};
use crate::core::pipeline::Stream;
use crate::sources::bytes::Bytes;
use crate::sources::content::HEAD_BYTES;

/// Passes bytes into a stream, leaving out NULs at the beginning of a line, which are a hole.
pub(super) fn pass(stream: &mut Stream, mut bytes: &[u8], now: Timestamp, events: &mut Vec<Event>) {
    let has_nul = memchr::memchr(0, bytes).is_some();
    while !bytes.is_empty() {
        if bytes[0] == 0 && stream.is_between_lines() {
            let hole = bytes.iter().take_while(|byte| **byte == 0).count();
            stream.skip(hole as u64);
            bytes = &bytes[hole..];
            continue;
        }
        let line = if has_nul { memchr::memmem::find(bytes, b"\n\0").map_or(bytes.len(), |at| at + 1) } else { bytes.len() };
        stream.push(&bytes[..line], now, events);
        bytes = &bytes[line..];
    }
}

impl Reader {
    /// Skips a hole without reading it, if the file system supports that.
    pub(super) fn skip_hole(&mut self) {
        let (Some(Bytes::Plain(file)), Some(stream)) = (&self.file, &mut self.stream) else { return };
        if !stream.is_between_lines() {
            return;
        }
        let data = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(self.offset)).unwrap_or(self.offset);
        if data > self.offset {
            tracing::debug!("{}: a hole of {} bytes is left out", self.path.display(), data - self.offset);
            stream.skip(data - self.offset);
            let zeros = [0; HEAD_BYTES];
            self.head.push(&zeros[..(data - self.offset).min(HEAD_BYTES as u64) as usize]);
            self.offset = data;
        }
    }
}
