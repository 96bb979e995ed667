//! Heads of a line in brackets: times, uptimes, labels, Chromium's fields; and the few words that precede a full date.
//! Part of `prefix`, which nests them; each takes one head at the current place or leaves it.

use super::Scan;
use crate::core::decode::level::level_word;
use crate::core::decode::scan::{blanks, byte, digits, group, is_blank, is_gap, is_name, rest, run, word};
use crate::core::decode::tag::{self, Ground};
use crate::core::decode::time::{clock_end, moment};
use crate::core::decode::writer::{self, past_blank};
use crate::core::decode::{android, letter, runner};
use crate::core::event::Level;

/// Maximum number of names with a colon before a date.
const MAX_NAMES: usize = 2;

impl Scan<'_> {
    pub(super) fn enclosed(&mut self) -> bool {
        let (line, at, now) = (self.line, self.at, self.now);
        self.enclosed_time()
            || self.marked(letter::bracketed(line, at, now))
            || self.boxed_letter()
            || self.uptime()
            || self.build_seconds()
            || self.chromium()
            || self.key()
            || self.counter()
            || self.label()
            || self.names()
    }

    /// `[2026-01-01 10:00:00]`, `(…):`, `"…"`, `[2026-01-01T00:00:00Z ERROR mod::x]`, `[10:00:00 ERR]`; and
    /// `[task 2026-01-01T10:00:00.123Z]`, where Taskcluster names the step that printed the text.
    pub(super) fn enclosed_time(&mut self) -> bool {
        let (open, mut start) = (self.at, blanks(self.line, self.at + 1));
        let mut stamp = moment(self.line, start, self.now);
        let label = run(self.line, start, |b| b.is_ascii_lowercase() || b == b'-');
        let labelled = label > start && byte(self.line, label) == b' ' && byte(self.line, open) == b'[';
        if labelled {
            start = label + 1;
            stamp = moment(self.line, start, self.now);
        }
        let Some(end) = stamp.map(|m| m.end).or_else(|| clock_end(self.line, start)) else {
            return false;
        };
        if let Some(stamp) = stamp.filter(|_| byte(self.line, open) == b'[')
            && self.android(android::long(self.line, end))
        {
            self.time(stamp.time);
            return true;
        }
        let quote = byte(self.line, open);
        let close = if matches!(quote, b'"' | b'\'') { Some(end).filter(|&end| byte(self.line, end) == quote) } else { group(self.line, open) };
        let Some(close) = close.filter(|&close| close >= end) else {
            return false;
        };
        let tag = tag::in_group(self.line, end, close).or_else(|| tag::letter_in_group(self.line, end, close));
        match stamp {
            Some(moment) if labelled => {
                if close > end {
                    return false;
                }
                self.time(moment.time);
                self.at = past_blank(self.line, close + 1);
            }
            Some(moment) if close == end && quote == b'[' && self.line[close - 1] == b'Z' && is_before_text(self.line, close) => {
                self.time(moment.time);
                self.ground = Ground::Bare;
                self.at = past_blank(self.line, close + 1);
            }
            Some(moment) => self.take_time(moment, close + 1),
            None if tag.is_some() || close == end => {
                self.out.times += 1;
                // AppVeyor's clock, and gulp's: `[00:01:12] - hook id: flake8`.
                if tag.is_none() && quote == b'[' && is_before_text(self.line, close) && runner::writer_after_time(self.line, close + 2).is_none() {
                    self.ground = Ground::Bare;
                    self.at = past_blank(self.line, close + 1);
                } else {
                    self.ground = Ground::Logger;
                    self.step_over(close + 1);
                    let _ = self.writer(runner::writer_after_time(self.line, self.at));
                }
            }
            None => return false,
        }
        if let Some(tag) = tag {
            self.level(tag.level);
            self.tagged = true;
        }
        true
    }

    /// `####<Nov 10, 2026 10:00:00,123 AM UTC> ` (WebLogic)
    pub(super) fn weblogic(&mut self) -> bool {
        let stamped = rest(self.line, self.at).starts_with(b"####<") && moment(self.line, self.at + 5, self.now).is_some();
        self.at += if stamped { 4 } else { 0 };
        stamped && self.enclosed_time()
    }

    /// `[12345.678901] ` (kernel); with `journalctl -o short-monotonic`, host
    /// and program follow. With a unit it is a logger's: a level follows.
    fn uptime(&mut self) -> bool {
        let Some(end) = uptime_end(self.line, self.at) else {
            return false;
        };
        if self.line[..end].ends_with(b"s]") {
            self.ground = Ground::Logger;
        }
        self.at = past_blank(self.line, end);
        let _ = self.writer(writer::program(self.line, self.at, false));
        true
    }

    /// `[   18s] `: the time since the build began (openSUSE's build service).
    pub(super) fn build_seconds(&mut self) -> bool {
        let start = blanks(self.line, self.at + 1);
        let end = digits(self.line, start);
        let known = byte(self.line, self.at) == b'[' && end > start && rest(self.line, end).starts_with(b"s] ");
        if known {
            self.at = end + 3;
        }
        known
    }

    /// `1.234567s `: the time since the start (tracing).
    pub(super) fn seconds(&mut self) -> bool {
        let point = digits(self.line, self.at);
        let end = digits(self.line, point + 1);
        let known = byte(self.line, point) == b'.' && end - point > 3 && byte(self.line, end) == b's' && is_blank(byte(self.line, end + 1));
        if known {
            self.ground = Ground::Logger;
            self.at = past_blank(self.line, end + 1);
        }
        known
    }

    /// ` 0:12.34 `, `12:34.56 `: minutes and seconds since the start, in eight columns (Mozilla's mach).
    pub(super) fn minutes(&mut self) -> bool {
        const COLON: usize = 2;
        const END: usize = 8;
        let digit = |at: usize| byte(self.line, at).is_ascii_digit();
        let padded = digit(0) || byte(self.line, 0) == b' ';
        let known = self.at == 0 && padded && [1, 3, 4, 6, 7].into_iter().all(digit) && byte(self.line, COLON) == b':' && byte(self.line, 5) == b'.';
        let known = known && is_gap(byte(self.line, END));
        if known {
            self.at = past_blank(self.line, END);
        }
        known
    }

    /// `123 <11>1 2026-…`: the length of a syslog message, before the message (RFC 6587).
    pub(super) fn counted(&mut self) -> bool {
        let next = digits(self.line, self.at) + 1;
        let follows = byte(self.line, next - 1) == b' ' && writer::priority(self.line, next).is_some_and(|(_, end)| rest(self.line, end).starts_with(b"1 "));
        self.at = if follows { next } else { self.at };
        follows && self.priority()
    }

    fn counter(&mut self) -> bool {
        let Some(end) = letter::counter_end(self.line, self.at).filter(|_| self.ground == Ground::Bare) else { return false };
        self.ground = Ground::Logger;
        self.at = past_blank(self.line, end);
        true
    }

    /// `[nsqd] 2026/11/10 …`, `[1234] [10:00:00] …`, `[web] 10:00:00.123 [error] …`: a name or process before the time.
    fn label(&mut self) -> bool {
        let close = run(self.line, self.at + 1, is_name);
        let name = &self.line[self.at + 1..close.max(self.at + 1)];
        let named = byte(self.line, self.at) == b'[' && !name.is_empty() && level_word(name).is_none() && rest(self.line, close).starts_with(b"] ");
        let stamped = named && self.is_stamp(close + 2);
        self.at = if stamped { close + 2 } else { self.at };
        stamped || self.stamp_follows(close + 2, named)
    }

    /// Whether a head with a time begins at `at`.
    fn is_stamp(&self, at: usize) -> bool {
        let mut inner = Self::new(self.line, self.now);
        inner.at = at;
        // In brackets, only a time: names in brackets may follow each other without end.
        let is_head = if matches!(byte(self.line, at), b'[' | b'(') { inner.enclosed_time() } else { inner.head() };
        self.leveled_clock(at) || is_head && inner.out.times > 0
    }

    /// `nova-api.log.1 2026-11-10 10:00:00 …`
    pub(super) fn file_name(&mut self) -> bool {
        let end = run(self.line, self.at, |b| is_name(b) || matches!(b, b'/' | b':'));
        let named = byte(self.line, end) == b' ' && memchr::memmem::find(&self.line[self.at..end], b".log").is_some();
        self.stamp_follows(end + 1, named)
    }

    /// Moves to a full date, whose level follows, behind the names of a logger and
    /// of its thread, each with a colon: `(shop.store): `, `ImageService: 1398: `.
    pub(super) fn names(&mut self) -> bool {
        let mut at = self.at;
        for _ in 0..MAX_NAMES {
            let end = word(self.line, at);
            let name = self.line[at..end].strip_suffix(b":").filter(|name| byte(self.line, end) == b' ' && level_word(name).is_none());
            if name.is_none() {
                return false;
            }
            at = end + 1;
            if digits(self.line, at) == at + 4 {
                break;
            }
        }
        let leveled = moment(self.line, at, self.now).is_some_and(|moment| tag::find(self.line, past_blank(self.line, moment.end), Ground::Logger).is_some());
        self.stamp_follows(at, leveled)
    }

    /// Moves to a full date at `at`.
    fn stamp_follows(&mut self, at: usize, named: bool) -> bool {
        let dated = named && digits(self.line, at) == at + 4 && moment(self.line, at, self.now).is_some();
        self.at = if dated { at } else { self.at };
        dated
    }

    /// `[1234:5678:1120/131323.123456:ERROR:gpu_init.cc(441)] `: process, thread, time, level, place.
    fn chromium(&mut self) -> bool {
        let close = run(self.line, self.at, |b| b != b']' && !is_blank(b));
        if byte(self.line, self.at + 1).is_ascii_digit() && byte(self.line, close) == b']' {
            let mut fields = self.line[self.at + 1..close].rsplit(|b| *b == b':');
            let place = fields.next().unwrap_or_default();
            if let Some(level) = fields.next().and_then(level_word).filter(|_| place.ends_with(b")")) {
                self.level(level);
                self.tagged = true;
                self.at = past_blank(self.line, close + 1);
                return true;
            }
        }
        false
    }
}

/// Whether the text after `[2026-11-10T10:00:00.123Z]`, or after a clock in brackets, which ends at
/// `close`, is what a program printed, as Jenkins or AppVeyor stamps it, and no field of a logger.
/// It is indented deeper than a level in a column, begins with a sign, or has no level at all.
fn is_before_text(line: &[u8], close: usize) -> bool {
    let text = blanks(line, close + 1);
    let gap = &line[close + 1..text];
    let first = byte(line, text);
    let is_field = first.is_ascii_alphabetic() || first == b'[';
    match gap.len() {
        0 => false,
        1 => gap == b" " && (matches!(first, b'=' | b'^' | b'~' | b'+' | b'#') || is_untagged(line, text) || is_stated(line, text)),
        2 => gap == b" \t" || !is_field || is_untagged(line, text),
        _ => true,
    }
}

/// Whether the text at `at` begins as a tool's own message does: `ERROR: No matching distribution found`, `ERROR, 1 WARNING`.
/// It is an error whoever says so, and its further lines are more than a logger's.
fn is_stated(line: &[u8], at: usize) -> bool {
    let end = run(line, at, |b| !is_blank(b));
    let word = line[at..end].strip_suffix(b":").or_else(|| line[at..end].strip_suffix(b",")).unwrap_or_default();
    level_word(word).is_some_and(|level| level >= Level::Error)
}

/// Whether there is no level at `at`, not even after the fields of a logger, or only a compiler's, after the place.
pub(super) fn is_untagged(line: &[u8], at: usize) -> bool {
    let end = run(line, at, |b| !is_blank(b));
    let place = line[at..end].strip_suffix(b":").unwrap_or_default();
    let number = place.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let placed = number > 0 && number < place.len() && place[place.len() - number - 1] == b':' && place.contains(&b'.');
    // `0x564e7bee2571: note: pointer points here` is a sanitizer's.
    let is_address = place.starts_with(b"0x");
    placed || is_address || line[at..].starts_with(b"::") || tag::find(line, at, Ground::Logger).is_none()
}

/// Returns the end of `[   12.345678]` at `at`, of `[   12.345678s]`
/// (Linkerd) and of `[   12.345678][  T123]` (the kernel's caller).
pub(super) fn uptime_end(line: &[u8], at: usize) -> Option<usize> {
    let start = blanks(line, at + 1);
    let point = digits(line, start);
    let end = digits(line, point + 1);
    let known = byte(line, at) == b'[' && point > start && byte(line, point) == b'.' && end - point >= 4;
    let end = end + usize::from(byte(line, end) == b's');
    if !known || byte(line, end) != b']' {
        return None;
    }
    let caller = blanks(line, end + 2);
    let close = digits(line, caller + 1);
    let called = byte(line, end + 1) == b'[' && matches!(byte(line, caller), b'T' | b'C') && byte(line, close) == b']';
    Some(if called { close + 1 } else { end + 1 })
}
