//! A bounded copy of an output, for reports after the run: its beginning and its end.

/// The first and last bytes of an output.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    max_head: usize,
    max_tail: usize,
    total: u64,
}

impl Kept {
    /// Creates an empty buffer for at most `max_head` first and `max_tail` last bytes.
    #[must_use]
    pub fn new(max_head: usize, max_tail: usize) -> Self {
        Self { max_head, max_tail, ..Self::default() }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.max_head - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.max_tail)..];
        // The buffer may grow to twice the limit, so that bytes are seldom moved.
        if self.tail.len() + rest.len() > 2 * self.max_tail {
            let from = (self.tail.len() + rest.len()).saturating_sub(self.max_tail).min(self.tail.len());
            self.tail.drain(..from);
        }
        self.tail.extend_from_slice(rest);
    }

    /// Returns the kept bytes. A line in place of the missing ones says how many there are.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let tail = &self.tail[self.tail.len().saturating_sub(self.max_tail)..];
        let missing = self.total - (self.head.len() + tail.len()) as u64;
        let mut all = self.head.clone();
        if missing > 0 {
            all.extend_from_slice(format!("\n[siftd: {missing} bytes are not kept]\n").as_bytes());
        }
        all.extend_from_slice(tail);
        all
    }

    /// Number of bytes seen.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_both_ends_whatever_the_pieces() {
        let all: Vec<u8> = (0..200u8).collect();
        for size in [1, 3, 7, 50, 200] {
            let mut kept = Kept::new(10, 20);
            all.chunks(size).for_each(|piece| kept.push(piece));
            let bytes = kept.bytes();
            assert!(bytes.starts_with(&all[..10]) && bytes.ends_with(&all[180..]), "{size}");
            assert!(String::from_utf8_lossy(&bytes).contains("170 bytes are not kept"));
        }
        let mut kept = Kept::new(10, 20);
        kept.push(&all[..30]);
        assert_eq!((kept.bytes(), kept.total()), (all[..30].to_vec(), 30));
    }
}
