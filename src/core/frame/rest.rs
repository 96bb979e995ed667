//! A buffer between two turns: small while its stream rests, and resumed in the middle of a stream.

use super::super::lookback;
use super::{Buffer, Wide, utf16_bytes};

impl Buffer {
    /// Creates a buffer at `offset` of its stream, between two lines, with the bytes `before`
    /// that place for looking back. `wide`: set for UTF-16, whether it is big-endian.
    #[must_use]
    pub fn resume(max_line_bytes: usize, offset: u64, before: &[u8], wide: Option<bool>) -> Self {
        let mut buffer = Self { at_start: false, bytes: Vec::new(), ..Self::new(max_line_bytes) };
        if let Some(big_endian) = wide {
            buffer.wide = Some(Wide { big_endian, rest: Vec::new(), counted: offset, counted_at: 0, cut: 0 });
            let is_whole = before.len() as u64 == offset;
            buffer.transcode(if is_whole { before.get(2..).unwrap_or_default() } else { before });
        } else {
            buffer.bytes = before.to_vec();
            buffer.end = before.len();
            buffer.base = offset.saturating_sub(buffer.end as u64);
        }
        (buffer.start, buffer.searched) = (buffer.end, buffer.end);
        if let Some(wide) = &mut buffer.wide {
            wide.counted_at = buffer.base + buffer.start as u64;
        }
        buffer
    }

    /// Returns the offset in the stream of the first byte that was not handed out: the beginning of a line.
    #[must_use]
    pub fn position(&self) -> u64 {
        let narrow = self.base + self.start as u64;
        self.wide.as_ref().map_or(narrow, |wide| {
            let known = (wide.counted_at.max(self.base) - self.base) as usize;
            wide.counted + utf16_bytes(&self.bytes[known.min(self.start)..self.start])
        })
    }

    /// Whether a line has begun and not yet ended.
    #[must_use]
    pub fn has_partial(&self) -> bool {
        self.start < self.end || self.cut > 0 || self.wide.as_ref().is_some_and(|wide| !wide.rest.is_empty())
    }

    /// Set if the stream is UTF-16: whether it is big-endian.
    #[must_use]
    pub fn wide(&self) -> Option<bool> {
        self.wide.as_ref().map(|wide| wide.big_endian)
    }

    /// Whether the first bytes of the stream have not been seen yet.
    #[must_use]
    pub fn is_at_start(&self) -> bool {
        self.at_start
    }

    /// Skips the next `count` bytes of the stream, at a place between two lines. Nothing looks back across them.
    pub fn skip(&mut self, count: u64) {
        self.base = self.position() + count;
        (self.start, self.end, self.searched, self.at_start) = (0, 0, 0, false);
    }

    /// Gives its space away and keeps only what was not handed out and at most `lines` lines before that, for looking back.
    pub fn detach(&mut self, lines: usize) -> Vec<u8> {
        // Many streams may rest in the middle of an endless line.
        self.shorten(0);
        let far = self.start.saturating_sub(lookback::MAX_BYTES);
        let seen = &self.bytes[far..self.start];
        // One newline more than lines, since the newest line ends with one.
        let keep = memchr::memrchr_iter(b'\n', seen).nth(lines).map_or(far, |newline| far + newline + 1);
        let kept = self.bytes[keep..self.end].to_vec();
        self.base += keep as u64;
        self.start -= keep;
        self.end -= keep;
        self.searched -= keep;
        self.raw = Vec::new();
        std::mem::replace(&mut self.bytes, kept)
    }

    /// Takes space that another stream has given away.
    pub fn attach(&mut self, mut room: Vec<u8>) {
        if room.len() > self.end {
            room[..self.end].copy_from_slice(&self.bytes[..self.end]);
            self.bytes = room;
        }
    }
}
