//! A bounded copy of an output, for reports after the run: its beginning and its end. Neither holds a part of a line or
//! word that the limits cut: no pattern knows a part of a secret.

/// Bytes at a cut in which a whole line, or else a whole word, is looked for. Without one, all of them are left out.
const EDGE_BYTES: usize = 4 << 10;

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

    /// Returns the kept bytes, whole lines if anything is missing between them. A line in its place says how much.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let tail = &self.tail[self.tail.len().saturating_sub(self.max_tail)..];
        let is_cut = self.total > (self.head.len() + tail.len()) as u64;
        if !is_cut {
            return [&self.head[..], tail].concat();
        }
        let (head, tail) = (whole_head(&self.head), whole_tail(tail));
        let missing = self.total - (head.len() + tail.len()) as u64;
        let end = if head.is_empty() || head.ends_with(b"\n") { "" } else { "\n" };
        [head, format!("{end}[siftd: {missing} bytes are not kept]\n").as_bytes(), tail].concat()
    }

    /// Number of bytes seen.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// Returns the head without the line that the cut goes through, or only without its last word if the line is long.
fn whole_head(head: &[u8]) -> &[u8] {
    let least = head.len().saturating_sub(EDGE_BYTES);
    let edge = &head[least..];
    let end = memchr::memrchr(b'\n', edge).or_else(|| edge.iter().rposition(u8::is_ascii_whitespace)).map_or(0, |at| at + 1);
    &head[..least + end]
}

/// Returns the tail without the line that the cut goes through, or only without its first word if the line is long.
fn whole_tail(tail: &[u8]) -> &[u8] {
    let edge = &tail[..tail.len().min(EDGE_BYTES)];
    let from = memchr::memchr(b'\n', edge).or_else(|| edge.iter().position(u8::is_ascii_whitespace)).map_or(edge.len(), |at| at + 1);
    &tail[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(all: &[u8], size: usize, (head, tail): (usize, usize)) -> String {
        let mut kept = Kept::new(head, tail);
        all.chunks(size).for_each(|piece| kept.push(piece));
        assert_eq!(kept.total(), all.len() as u64);
        String::from_utf8(kept.bytes()).unwrap()
    }

    #[test]
    fn keeps_both_ends_whatever_the_pieces() {
        let all: String = (100..200).map(|number| format!("{number}\n")).collect();
        for size in [1, 3, 7, 50, 400] {
            assert_eq!(kept(all.as_bytes(), size, (10, 22)), "100\n101\n[siftd: 372 bytes are not kept]\n195\n196\n197\n198\n199\n");
            assert_eq!(kept(all.as_bytes(), size, (100, 300)), all);
        }
    }

    #[test]
    fn a_cut_leaves_no_part_of_a_word() {
        let token = format!("ghp_{}", "0123456789abcdefghij".repeat(2));
        let all = format!("{} {token} {}", "first ".repeat(1000), " last".repeat(1000));
        for at in 0..token.len() + 4 {
            let text = kept(all.as_bytes(), 100, (6000 + at, 100));
            assert!(text.contains(&token) || !text.contains("ghp_"), "{text}");
            let text = kept(all.as_bytes(), 100, (100, 5000 + at));
            assert!(text.contains(&token) || !text.contains("ghij "), "{text}");
        }
        assert_eq!(kept(&[b'x'; 20_000], 100, (100, 5000)).len(), 34 + 5000 - EDGE_BYTES);
    }
}
