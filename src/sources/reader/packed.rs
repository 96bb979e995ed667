//! The end of a compressed file: it is read once, so everything open is finished. Later, its size shows that it was read.

use std::io;

use super::{Reader, Space, Turn};
use crate::core::event::Timestamp;
use crate::delivery::{Missed, Notice, Why, derived_id};

impl Reader {
    /// Whether this is a compressed file that was read, and is unchanged since.
    pub(super) fn is_done(&self) -> bool {
        self.size > 0 && self.file.as_ref().is_some_and(|file| file.is_packed() && file.file().metadata().is_ok_and(|meta| meta.len() == self.size))
    }

    /// Finishes the file; `fault` says why it cannot be unpacked any further.
    pub(super) fn end_packed(&mut self, fault: Option<&io::Error>, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        let Some((file, stream)) = self.file.as_ref().zip(self.stream.as_mut()) else { return Ok(()) };
        self.size = file.file().metadata()?.len();
        (self.safe, self.facts) = stream.facts();
        if let Some(fault) = fault {
            turn.trouble = Some(format!("cannot be unpacked beyond {} bytes: {fault}", self.offset));
            let id = derived_id("gap", &[&self.uid, &self.generation.to_be_bytes(), &self.offset.to_be_bytes()]);
            turn.notices.push(Notice::Gap { id, why: Why::TruncatedFile, missed: Missed::Unknown, from: now, to: now });
        }
        let mark = self.mark();
        if let Some(stream) = &mut self.stream {
            stream.detach(&mut space.stream);
        }
        self.finish_stream(now, turn);
        self.sent = Some(mark.clone());
        turn.mark = Some(mark);
        Ok(())
    }
}
