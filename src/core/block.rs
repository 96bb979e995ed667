//! The lines of an open error in one piece of memory. The length of each line is bounded here, their number in `trace`.

use super::frame::CUT;
use super::line::{Line, Place};

/// Maximum number of bytes kept of one line.
const MAX_TAKEN_BYTES: usize = 64 << 10;

/// A line that a trace has taken.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// Its place in the stream.
    pub place: &'a Place,
    /// Its visible text.
    pub text: &'a [u8],
    /// The part that the machines saw.
    pub part: &'a [u8],
    /// How often it was given back before.
    pub rereads: u8,
}

/// Lines in one piece of memory.
#[derive(Clone, Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    lines: Vec<Kept>,
    /// Bytes of lines that were removed.
    waste: usize,
}

#[derive(Clone, Debug)]
struct Kept {
    place: Place,
    from: usize,
    to: usize,
    part: (usize, usize),
    rereads: u8,
}

impl Block {
    /// Creates a block with room for `lines` lines and `bytes` bytes.
    #[must_use]
    pub fn with_room(lines: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), lines: Vec::with_capacity(lines), waste: 0 }
    }

    /// Appends a copy of `line`, of which the machines saw `part`; of a long line, only its beginning and its end.
    pub fn push(&mut self, line: &Line, part: &[u8]) {
        let offset = (part.as_ptr() as usize).saturating_sub(line.text.as_ptr() as usize).min(line.text.len());
        let mut seen = (offset, (offset + part.len()).min(line.text.len()));
        let mut place = line.place.clone();
        let from = self.bytes.len();
        // The mark takes bytes, too: a cut must make the line shorter.
        if line.text.len() <= MAX_TAKEN_BYTES + CUT.len() {
            self.bytes.extend_from_slice(line.text);
        } else {
            let half = MAX_TAKEN_BYTES / 2;
            self.bytes.extend_from_slice(&line.text[..half]);
            self.bytes.extend_from_slice(CUT);
            self.bytes.extend_from_slice(&line.text[line.text.len() - half..]);
            place.truncated = true;
            let gone = line.text.len() - (self.bytes.len() - from);
            let within = |at: usize| if at <= half { at } else { at.saturating_sub(gone).max(half) };
            seen = (within(seen.0), within(seen.1));
        }
        self.lines.push(Kept { place, from, to: self.bytes.len(), part: (from + seen.0, from + seen.1), rereads: line.rereads });
    }

    /// Returns line `at`.
    #[must_use]
    pub fn get(&self, at: usize) -> Taken<'_> {
        self.taken(&self.lines[at])
    }

    /// Returns the first `count` lines.
    pub fn first(&self, count: usize) -> impl Iterator<Item = Taken<'_>> + Clone {
        self.lines.iter().take(count).map(|kept| self.taken(kept))
    }

    /// Returns the lines from `from` on.
    pub fn from(&self, from: usize) -> impl Iterator<Item = Taken<'_>> + Clone {
        self.lines.iter().skip(from).map(|kept| self.taken(kept))
    }

    /// Whether a line of `other` is also one of its lines.
    #[must_use]
    pub fn shares(&self, other: &Self) -> bool {
        let is_here = |kept: &Kept| self.lines.iter().any(|own| own.place.spot() == kept.place.spot());
        other.lines.iter().any(is_here)
    }

    /// Removes `bytes` bytes from the front of the part of line `at`.
    pub fn shorten(&mut self, at: usize, bytes: usize) {
        let (from, to) = self.lines[at].part;
        self.lines[at].part.0 = (from + bytes).min(to);
    }

    fn taken<'a>(&'a self, kept: &'a Kept) -> Taken<'a> {
        Taken { place: &kept.place, text: &self.bytes[kept.from..kept.to], part: &self.bytes[kept.part.0..kept.part.1], rereads: kept.rereads }
    }

    /// Number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Reverses the order of the lines.
    pub fn reverse(&mut self) {
        self.lines.reverse();
    }

    /// Number of bytes of the lines.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len() - self.waste
    }

    /// Removes line `at`.
    pub fn remove(&mut self, at: usize) {
        let gone = self.lines.remove(at);
        self.waste += gone.to - gone.from;
        if self.waste > MAX_TAKEN_BYTES && self.waste > self.bytes.len() / 2 {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes());
        for kept in &mut self.lines {
            let (from, old) = (bytes.len(), kept.from);
            bytes.extend_from_slice(&self.bytes[kept.from..kept.to]);
            let moved = |at: usize| at - old + from;
            (kept.from, kept.to, kept.part) = (from, bytes.len(), (moved(kept.part.0), moved(kept.part.1)));
        }
        (self.bytes, self.waste) = (bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::Timestamp;
    use crate::core::line::Place;

    /// A line is cut only if that makes it shorter, and its part stays within it.
    #[test]
    fn the_part_of_a_cut_line_has_its_end() {
        for bytes in MAX_TAKEN_BYTES - 2..MAX_TAKEN_BYTES + 2 * CUT.len() {
            let text = "x".repeat(bytes - 3) + "end";
            let line = Line::new(Place::default(), text.as_bytes(), Timestamp::default());
            let mut block = Block::default();
            block.push(&line, line.text);
            let taken = block.get(0);
            assert_eq!(taken.part, taken.text, "{bytes}");
            assert!(taken.text.ends_with(b"end") && taken.text.len() <= bytes, "{bytes}");
        }
    }
}
