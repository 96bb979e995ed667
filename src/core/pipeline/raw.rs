//! A raw line within the buffer that holds it, and the lines around it.

use crate::core::frame::AHEAD_BYTES;
use crate::core::lookback::MAX_BYTES;

/// A raw line within the buffer that holds it.
pub(super) struct Raw<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) num: u64,
    pub(super) truncated: bool,
}

impl<'a> Raw<'a> {
    pub(super) fn line(&self) -> &'a [u8] {
        &self.bytes[self.from..self.to]
    }

    /// Returns the whole lines near this one after line `num`, which is this line or an earlier one; none if that is too far.
    pub(super) fn after(&self, num: u64) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let (mut current, mut from) = self.start_after(num);
        let bytes = &self.bytes[..self.bytes.len().min(self.to + 1 + AHEAD_BYTES)];
        let bytes = if current > num + 1 { &[] } else { bytes };
        std::iter::from_fn(move || {
            let rest = bytes.get(from..)?;
            let length = memchr::memchr(b'\n', rest)?;
            let line = (current, &rest[..length]);
            from += length + 1;
            current += 1;
            Some(line)
        })
    }

    /// Returns the lines in the buffer up to line `num`, which is this line or an earlier one, nearest first.
    pub(super) fn up_to(&self, num: u64) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (bytes, mut end) = (self.bytes, self.start_after(num).1);
        std::iter::from_fn(move || {
            let to = end.checked_sub(1)?;
            end = memchr::memrchr(b'\n', bytes.get(..to)?).map_or(0, |newline| newline + 1);
            Some(&bytes[end..to])
        })
    }

    /// Returns the number of the first line in the buffer after line `num`, and where it begins.
    fn start_after(&self, num: u64) -> (u64, usize) {
        let (mut current, mut from) = (self.num, self.from);
        // What else the buffer holds depends on where reads ended.
        let first = self.from.saturating_sub(MAX_BYTES);
        while current > num + 1 {
            let Some(newline) = from.checked_sub(1).and_then(|end| memchr::memrchr(b'\n', self.bytes.get(first..end)?)) else { break };
            from = first + newline + 1;
            current -= 1;
        }
        if current <= num { (current + 1, self.to + 1) } else { (current, from) }
    }
}
