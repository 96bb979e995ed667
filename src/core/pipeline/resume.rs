//! Suspending and resuming a stream: where it can be resumed, and how little it keeps in between.

use std::sync::Arc;

use super::{Stream, Work};
use crate::core::assemble::{Facts, Snapshot};
use crate::core::engine::Engine;
use crate::core::extract::Origin;
use crate::core::frame::Buffer;
use crate::core::lookback;
use crate::core::transcript::Transcript;

/// Maximum number of bytes before a place that [`Stream::resume`] needs: one look-back, twice as long in UTF-16.
pub const BEFORE_BYTES: u64 = 2 * lookback::MAX_BYTES as u64;
/// A safe place further back than this is replaced by a newer one, even if something is open there.
const MAX_SAFE_LAG_BYTES: u64 = 64 << 20;

/// Buffers that streams share; a stream has them only while it works.
#[derive(Default)]
pub struct Workspace {
    room: Vec<u8>,
    work: Work,
    inner: crate::core::assemble::Work,
}

impl Stream {
    /// Resumes a stream at a place that [`safe`](Self::safe) returned; `before`
    /// are the bytes in front of it, up to [`BEFORE_BYTES`], for the look-back.
    #[must_use]
    pub fn resume(engine: Arc<Engine>, origin: Origin, safe: Snapshot, before: &[u8]) -> Self {
        let mut stream = Self::new(engine, origin);
        // A byte order mark may come only at the very beginning.
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

    /// Returns the newest place at which the stream can be resumed. Call it between two calls
    /// of [`advance`](Self::advance). What was found after that place will be found again.
    pub fn safe(&mut self) -> &Snapshot {
        let mut here = Snapshot::here(self.buffer.position(), self.counts.lines, self.buffer.wide());
        if here.offset == self.safe.offset || self.buffer.is_at_start() {
            return &self.safe;
        }
        here.transcript = self.transcript.memory();
        if let Some(newer) = self.quiet(&here) {
            self.safe = newer;
        }
        if here.offset.saturating_sub(self.safe.offset) > MAX_SAFE_LAG_BYTES {
            self.safe = here;
        }
        &self.safe
    }

    /// Returns the newest place that nothing open continues across, if there is one since the last call.
    fn quiet(&mut self, here: &Snapshot) -> Option<Snapshot> {
        if self.pieces.is_empty() && self.transcript.is_between() { self.assembler.quiet(here) } else { None }
    }

    /// Returns a number of lines at the beginning of which no later line changes what was made; 0 if that is not known
    /// yet, and for a document. Not to be mixed with [`safe`](Self::safe).
    pub fn settled_lines(&mut self) -> u64 {
        let here = Snapshot::here(self.buffer.position(), self.counts.lines, self.buffer.wide());
        if self.is_document() || self.buffer.is_at_start() { 0 } else { self.quiet(&here).map_or(0, |place| place.lines) }
    }

    /// Returns [`safe`](Self::safe) in a form that can be stored.
    pub fn facts(&mut self) -> (u64, Facts) {
        let engine = self.engine.clone();
        let safe = self.safe();
        (safe.offset, safe.facts(&engine))
    }

    /// Returns the offset of the first unfinished line, or of the end.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.buffer.position()
    }

    /// Returns `true` if a line has begun and not yet ended.
    #[must_use]
    pub fn has_partial(&self) -> bool {
        self.buffer.has_partial()
    }

    /// Returns `true` if the stream is not UTF-16 and is between two lines.
    #[must_use]
    pub fn is_between_lines(&self) -> bool {
        self.buffer.wide().is_none() && !self.buffer.has_partial()
    }

    /// Skips the next `count` bytes. The stream must be [between two lines](Self::is_between_lines).
    pub fn skip(&mut self, count: u64) {
        self.buffer.skip(count);
        self.counts.bytes += count;
    }

    /// Takes the shared buffers from `space`.
    pub fn attach(&mut self, space: &mut Workspace) {
        self.buffer.attach(std::mem::take(&mut space.room));
        std::mem::swap(&mut self.work, &mut space.work);
        std::mem::swap(self.assembler.work(), &mut space.inner);
    }

    /// Returns the shared buffers to `space` and keeps only what it must.
    pub fn detach(&mut self, space: &mut Workspace) {
        let is_idle = self.pieces.is_empty() && self.assembler.oldest().is_none();
        // Whatever is open may look back from one of its own lines.
        space.room = self.buffer.detach(if is_idle { lookback::MAX_LINES } else { usize::MAX });
        std::mem::swap(&mut self.work, &mut space.work);
        std::mem::swap(self.assembler.work(), &mut space.inner);
    }
}
