//! A stream that stops and goes on: where it may be taken up again, and how little it keeps in between.

use std::sync::Arc;

use super::{Stream, Work};
use crate::core::assemble::{Facts, Snapshot};
use crate::core::engine::Engine;
use crate::core::extract::Origin;
use crate::core::frame::Buffer;
use crate::core::lookback;
use crate::core::transcript::Transcript;

/// Bytes before a place that [`Stream::resume`] needs, at most: a look-back, in UTF-16 twice as long.
pub const BEFORE_BYTES: u64 = 2 * lookback::MAX_BYTES as u64;
/// A place that lies further back is given up for a newer one, at which something is open.
const MAX_BEHIND_BYTES: u64 = 64 << 20;

/// Room that streams share: one has it while it works.
#[derive(Default)]
pub struct Workspace {
    room: Vec<u8>,
    work: Work,
    inner: crate::core::assemble::Work,
}

impl Stream {
    /// A stream that goes on at a place that [`safe`](Self::safe) named; `before` are the bytes in front
    /// of it, up to [`BEFORE_BYTES`], for looking back.
    #[must_use]
    pub fn resume(engine: Arc<Engine>, origin: Origin, safe: Snapshot, before: &[u8]) -> Self {
        let mut stream = Self::new(engine, origin);
        // At the very beginning a byte order mark may still come.
        if safe.offset > 0 {
            stream.buffer = Buffer::resume(stream.engine.limits.max_line_bytes, safe.offset, before, safe.wide);
        }
        stream.counts.lines = safe.lines;
        stream.told.lines = safe.lines;
        stream.assembler.restore(&safe);
        stream.transcript = Transcript::resume(stream.engine.limits.mode, safe.lines, safe.transcript.as_deref());
        stream.safe = safe;
        stream
    }

    /// The newest place at which the stream may be taken up again. Asked between two calls of
    /// [`advance`](Self::advance); what was found behind it is found again.
    pub fn safe(&mut self) -> &Snapshot {
        let mut here = Snapshot::here(self.buffer.position(), self.counts.lines, self.buffer.wide());
        if here.offset == self.safe.offset || self.buffer.is_at_start() {
            return &self.safe;
        }
        here.transcript = self.transcript.memory();
        if self.pieces.is_empty()
            && self.transcript.is_between()
            && let Some(newer) = self.assembler.quiet(&here)
        {
            self.safe = newer;
        }
        if here.offset.saturating_sub(self.safe.offset) > MAX_BEHIND_BYTES {
            self.safe = here;
        }
        &self.safe
    }

    /// [`safe`](Self::safe) in a form that can be kept.
    pub fn facts(&mut self) -> (u64, Facts) {
        let engine = self.engine.clone();
        let safe = self.safe();
        (safe.offset, safe.facts(&engine))
    }

    /// Offset of the first line that is not finished, or of the end.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.buffer.position()
    }

    /// Whether a line has begun and not ended.
    #[must_use]
    pub fn has_partial(&self) -> bool {
        self.buffer.has_partial()
    }

    /// Whether the stream stands between two lines of plain bytes.
    #[must_use]
    pub fn is_between_lines(&self) -> bool {
        self.buffer.wide().is_none() && !self.buffer.has_partial()
    }

    /// Leaves out the next `count` bytes, where it stands [between two lines](Self::is_between_lines).
    pub fn skip(&mut self, count: u64) {
        self.buffer.skip(count);
        self.counts.bytes += count;
    }

    /// Takes the room.
    pub fn attach(&mut self, space: &mut Workspace) {
        self.buffer.attach(std::mem::take(&mut space.room));
        std::mem::swap(&mut self.work, &mut space.work);
        std::mem::swap(self.assembler.work(), &mut space.inner);
    }

    /// Gives the room back and keeps only what it must.
    pub fn detach(&mut self, space: &mut Workspace) {
        let is_idle = self.pieces.is_empty() && self.assembler.oldest().is_none();
        // Something open may look back from one of its own lines.
        space.room = self.buffer.detach(if is_idle { lookback::MAX_LINES } else { usize::MAX });
        std::mem::swap(&mut self.work, &mut space.work);
        std::mem::swap(self.assembler.work(), &mut space.inner);
    }
}
