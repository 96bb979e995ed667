//! How much of a long trace is kept. Its first lines and its last ones are, as either may name it.

use super::{OpenTrace, Outcome};
use crate::core::line::Line;
use crate::rules::Entries;

/// Maximum number of lines kept from the end of a trace that is too long; the other kept lines are its beginning.
const MAX_TAIL_LINES: usize = 64;

/// How much of a trace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of lines.
    pub lines: usize,
    /// Number of their bytes.
    pub bytes: usize,
}

impl Room {
    pub(super) const UNBOUNDED: Self = Self { lines: usize::MAX, bytes: usize::MAX };
}

/// Where lines were taken out of a trace that is too long.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gap {
    /// Index of the kept line before which they stood.
    at: usize,
    /// Their number.
    pub dropped: usize,
}

impl Gap {
    /// Returns how many of the first `lines` lines are kept.
    pub(super) fn kept(self, lines: usize) -> usize {
        if self.dropped == 0 || lines <= self.at { lines } else { self.at.max(lines.saturating_sub(self.dropped)) }
    }
}

impl OpenTrace {
    /// Keeps a line that a machine took. If there is too much, lines go from the middle: a trace may be named by its first line
    /// or by its last. Lines that may have to be given back stay, unless their bytes are too many; machines try few lines.
    pub fn push(&mut self, entries: &Entries, line: &Line, part: &[u8], room: Room) {
        self.pauses.touch(line.now());
        self.last_num = line.place.num;
        self.lines.push(line, part);
        let most = room.lines.max(self.lead + 2);
        if self.lines.len() <= most && self.lines.bytes() <= room.bytes {
            return;
        }
        let events = self.rivals.iter().filter(|rival| rival.makes_an_event(entries));
        let owned = events.map(|rival| rival.accepted).max().unwrap_or_default();
        while self.lines.len() > most || self.lines.bytes() > room.bytes {
            if self.gap.dropped == 0 {
                let lines = self.lines.len().min(most + 1);
                self.gap.at = (lines - MAX_TAIL_LINES.min(lines / 2)).max(self.lead + 1);
            }
            let gap = self.gap.at;
            if gap + 1 >= self.lines.len() || gap + self.gap.dropped >= owned && self.lines.bytes() <= room.bytes {
                break;
            }
            self.lines.remove(gap);
            self.gap.dropped += 1;
            for rival in self.rivals.iter_mut().filter(|rival| rival.rows.len() > gap) {
                rival.rows.remove(gap);
            }
        }
    }

    /// Returns how many of the lines that are not the event's can no longer be given back.
    #[must_use]
    pub fn lost(&self, outcome: Option<Outcome>) -> usize {
        let owned = outcome.map_or(0, |outcome| outcome.taken);
        (self.gap.at + self.gap.dropped).saturating_sub(owned.max(self.gap.at))
    }

    /// Number of lines taken, kept or not.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lines.len() + self.gap.dropped
    }

    /// Number of bytes of the kept lines.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.lines.bytes()
    }
}
