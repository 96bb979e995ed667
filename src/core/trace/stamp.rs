//! What a logger puts before every line of a trace that it is given line by line: time, level,
//! thread, its name. The head shows where the stamp ends; a record with the same stamp, not much
//! later, is the trace's next line. No format is assumed: words must be equal, times may differ.

use super::rival::starts;
use super::{Entries, Line, Timestamp, machine};
use crate::core::leadin;

/// Longest pause between two lines of one trace, in microseconds.
const MAX_PAUSE_US: u64 = 1_000_000;
/// Longest stamp, in bytes.
const MAX_BYTES: usize = 1024;

/// The stamp before the head of a trace that begins with a leveled record.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    /// The part of the head that may be stamp.
    text: Vec<u8>,
    /// Where its message begins, if the logger adds nothing more.
    message: usize,
    /// Whether no machine takes the level for a word of its own.
    alone: bool,
    /// Length of the stamp, once a further line had it, too.
    shared: Option<usize>,
    /// Time of the last line.
    time: Option<Timestamp>,
    /// Where the part of the head begins that the machines have seen.
    seen_from: usize,
}

impl Stamp {
    /// Returns the stamp of the record `head`, of which the machines `rivals` see `part`;
    /// `None` if the record has no level of its own, or if all machines need the level.
    pub(super) fn of(entries: &Entries, rivals: &[u16], head: &Line, part: &[u8]) -> Option<Self> {
        let prefix = head.prefix();
        let message = prefix.message;
        if prefix.levels == 0 || message == 0 || message > MAX_BYTES {
            return None;
        }
        let seen_from = head.text.len() - part.len();
        let begins = |&entry: &u16| machine(entries, entry).is_some_and(|machine| starts(machine, head.message()));
        let starts_after_message = seen_from > message;
        let alone = starts_after_message || rivals.iter().all(begins);
        (alone || rivals.iter().any(begins)).then(|| Self {
            text: head.text[..head.text.len().min(MAX_BYTES)].to_vec(),
            message,
            alone,
            shared: None,
            time: prefix.time,
            seen_from,
        })
    }

    /// Whether a line with this stamp is first read without it.
    pub(super) fn comes_first(&self) -> bool {
        self.alone || self.is_shared()
    }

    /// Returns the head as the machines have seen it, without the level.
    pub(super) fn said(&self) -> &[u8] {
        &self.text[self.message.max(self.seen_from).min(self.text.len())..]
    }

    /// Returns what follows the stamp in `line`, and the length of the stamp; `None` if the line does
    /// not have it. `begins`: whether the trace may begin with what follows the stamp in the head.
    pub(super) fn strip<'a>(&self, line: &Line<'a>, begins: impl Fn(&[u8]) -> bool) -> Option<(&'a [u8], usize)> {
        let prefix = line.prefix();
        let follows = match (self.time, prefix.time) {
            (Some(time), Some(other)) => is_near(time, other),
            (None, None) => true,
            _ => false,
        };
        if prefix.levels == 0 || !follows {
            return None;
        }
        if let Some(length) = self.shared {
            return Some((strip(&self.text[..length], line.text)?, length));
        }
        // Names after the level are the logger's if the line has them, too; blanks beyond the first are the trace's.
        let lengths: Vec<usize> = leadin::word_starts(&self.text, self.message).collect();
        let stripped = |length: usize| Some((strip(&self.text[..length], line.text)?, length));
        let found = |&length: &usize| stripped(length).or_else(|| stripped(self.but_one_blank(length))).filter(|_| begins(&self.text[length..]));
        lengths.iter().rev().find_map(found)
    }

    /// Whether the first `length` bytes of the stamp also precede `text`.
    pub(super) fn precedes(&self, length: usize, text: &[u8]) -> bool {
        let is_there = |length: usize| strip(&self.text[..length], text).is_some();
        is_there(length) || is_there(self.but_one_blank(length))
    }

    fn but_one_blank(&self, length: usize) -> usize {
        length - self.text[..length].iter().rev().take_while(|byte| **byte == b' ').count().saturating_sub(1)
    }

    /// Notes that `line` belongs to the trace.
    pub(super) fn go_on(&mut self, line: &Line) {
        self.time = line.prefix().time;
    }

    /// Notes that a further line of the trace has the first `length` bytes of the stamp.
    /// Returns how many bytes of what the machines have seen of the head are part of the stamp.
    pub(super) fn share(&mut self, length: usize) -> usize {
        self.shared = Some(length);
        length.saturating_sub(self.seen_from)
    }

    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }
}

/// Whether lines with these times may be of one trace.
pub(super) fn is_near(time: Timestamp, other: Timestamp) -> bool {
    time.0.abs_diff(other.0) <= MAX_PAUSE_US
}

fn strip<'a>(stamp: &[u8], text: &'a [u8]) -> Option<&'a [u8]> {
    text.strip_prefix(stamp).or_else(|| leadin::strip(stamp, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::line::Place;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000);

    fn line(text: &str) -> Line<'_> {
        Line::new(Place::default(), text.as_bytes(), NOW)
    }

    #[test]
    fn a_further_line_has_the_same_words_and_its_own_time() {
        let head = "2026-11-20 10:11:12,100 ERROR [main] till - ";
        let all = [head, "Traceback"].concat();
        let stamp = Stamp { text: all.into(), message: head.len(), alone: true, time: line(head).prefix().time, seen_from: 24, shared: None };
        for (text, said) in [
            ("2026-11-20 10:11:12,100 ERROR [main] till -   File", Some("  File")),
            ("2026-11-20 10:11:13,050 ERROR [main] till - \tat f", Some("\tat f")),
            ("2026-11-20 10:11:12,100 ERROR [main] till -", Some("")),
            ("2026-11-20 10:11:14,100 ERROR [main] till - later", None),
            ("2026-11-20 10:11:12,100 INFO [main] till - other level", None),
            ("2026-11-20 10:11:12,100 ERROR [http-1] till - other thread", None),
            ("  File", None),
        ] {
            assert_eq!(stamp.strip(&line(text), |text| text == b"Traceback").map(|(said, _)| said), said.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn what_is_stamp_is_no_part_of_the_head() {
        let mut stamp = Stamp { text: b"[ERROR] till: panic".to_vec(), message: 8, alone: true, time: None, seen_from: 0, shared: None };
        let (part, length) = stamp.strip(&line("[ERROR] till: \tmain.go:7"), |text| text == b"panic").unwrap();
        assert_eq!((part, stamp.share(length), stamp.is_shared()), (&b"\tmain.go:7"[..], 14, true));
    }
}
