//! Heads whose level is one letter, or has a shape of its own: glog, Ruby's logger, logcat, redis. Part of `prefix`,
//! which nests them; each takes one head at the current place or leaves it.

use super::Scan;
use crate::core::decode::android;
use crate::core::decode::letter::{self, Marked};
use crate::core::decode::scan::{byte, digits, group, is_gap};
use crate::core::decode::tag::Ground;
use crate::core::decode::time::{clock_end, moment};
use crate::core::decode::writer::past_blank;
use crate::core::event::Level;

impl Scan<'_> {
    pub(super) fn logcat(&mut self) -> bool {
        self.android(android::stamped(self.line, self.at))
    }

    pub(super) fn android(&mut self, found: Option<android::Entry>) -> bool {
        let Some(entry) = found else { return false };
        self.take_letter(entry.level, entry.key, entry.end);
        true
    }

    fn take_letter(&mut self, level: Level, key: (usize, usize), end: usize) {
        self.level(level);
        self.out.key = Some(key);
        self.tagged = true;
        self.ground = Ground::Bare;
        self.at = past_blank(self.line, end);
    }

    /// Takes the shapes that begin with a one-letter level.
    pub(super) fn lettered(&mut self) -> bool {
        let (line, at) = (self.line, self.at);
        match byte(line, at + 1) {
            b'0'..=b'9' => self.marked(letter::logged(line, at, self.now)),
            b'/' | b'(' => self.android(android::brief(line, at)),
            b',' => self.before_time(at + 3) || self.before_date(at + 3),
            b'|' | b';' => self.before_date(at + 2),
            b'[' => self.before_time(at + 1),
            b' ' if byte(line, at + 2) == b'(' => self.marked(letter::ticks(line, at)),
            b' ' => self.before_time(at + 2) || self.before_date(at + 2) || self.before_clock(at + 2) || self.marked(letter::named(line, at)),
            _ => false,
        }
    }

    /// Takes a level that is the whole tag.
    pub(super) fn marked(&mut self, found: Option<Marked>) -> bool {
        let Some(marked) = found else { return false };
        if let Some(moment) = marked.moment {
            self.time(moment.time);
        }
        self.level(marked.level);
        self.tagged = true;
        self.at = past_blank(self.line, marked.end);
        true
    }

    /// Takes a letter before a time in brackets; a level word may still follow.
    fn before_time(&mut self, open: usize) -> bool {
        let Some(marked) = letter::before_time(self.line, self.at, open, self.now) else { return false };
        if let Some(moment) = marked.moment {
            self.take_time(moment, marked.end);
        }
        self.level(marked.level);
        true
    }

    /// Takes a letter before a full date without brackets; a level word may still follow.
    fn before_date(&mut self, date: usize) -> bool {
        let level = letter::alone(byte(self.line, self.at)).filter(|_| digits(self.line, date) == date + 4);
        let (Some(level), Some(moment)) = (level, moment(self.line, date, self.now)) else { return false };
        self.take_time(moment, moment.end);
        self.level(level);
        true
    }

    /// Takes a letter before a time of day with seconds: `E 10:00:00.123 `.
    fn before_clock(&mut self, clock: usize) -> bool {
        let level = letter::alone(byte(self.line, self.at)).filter(|_| self.is_clock(clock));
        level.is_some_and(|level| {
            self.level(level);
            self.at = clock;
            true
        })
    }

    fn is_clock(&self, at: usize) -> bool {
        let known = clock_end(self.line, at).is_some_and(|end| is_gap(byte(self.line, end)));
        known && byte(self.line, at + 2) == b':' && byte(self.line, at + 5) == b':'
    }

    /// Takes a letter in a box before a time: `[E] 10:00:00 `, `(E) 2026-11-10T10:00:00 `, `<E> 10:00:00 `.
    pub(super) fn boxed_letter(&mut self) -> bool {
        let (line, at) = (self.line, self.at);
        let next = at + 4;
        let level = letter::alone(byte(line, at + 1)).filter(|_| group(line, at) == Some(at + 2) && byte(line, at + 3) == b' ');
        let Some(level) = level.filter(|_| self.is_clock(next) || moment(line, next, self.now).is_some()) else { return false };
        self.level(level);
        self.at = next;
        true
    }
}
