//! A raw line within the buffer that holds it, and the lines after it.

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

    /// Returns the whole lines in the buffer after line `num`, which is this line or an earlier one.
    pub(super) fn after(&self, num: u64) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let mut from = self.from;
        let mut current = self.num;
        while current > num + 1 && from > 0 {
            from = memchr::memrchr(b'\n', &self.bytes[..from - 1]).map_or(0, |newline| newline + 1);
            current -= 1;
        }
        if current <= num {
            from = self.to + 1;
            current += 1;
        }
        let bytes = self.bytes;
        std::iter::from_fn(move || {
            let rest = bytes.get(from..)?;
            let length = memchr::memchr(b'\n', rest)?;
            let line = (current, &rest[..length]);
            from += length + 1;
            current += 1;
            Some(line)
        })
    }
}
