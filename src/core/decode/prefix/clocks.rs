//! Stamps without a date: clocks of loggers, of CI systems and of test harnesses, and seconds since a start.

use super::Scan;
use super::behind::{PADDING, is_padded};
use crate::core::decode::level::{is_common, level_word};
use crate::core::decode::runner;
use crate::core::decode::scan::{blanks, byte, digits, is_gap, rest, run};
use crate::core::decode::tag::Ground;
use crate::core::decode::time::clock_end;

/// Length of `10:00:00`.
const CLOCK_BYTES: usize = 8;
/// Minimum length of a clock with nanoseconds, `0:00:00.123456789`: GStreamer's, which has a level in its third column.
const NANOSECOND_CLOCK_BYTES: usize = 17;
/// What mozharness puts after its clock: a blank and its own message follow, or two and what a command printed.
const HARNESS: &[u8] = b"     INFO -";

impl Scan<'_> {
    /// Whether a clock with a level follows: `17:13:47.808 [error] `
    pub(super) fn leveled_clock(&self, at: usize) -> bool {
        let Some(end) = clock_end(self.line, at).filter(|&end| rest(self.line, end).starts_with(b" [")) else { return false };
        let close = run(self.line, end + 2, |b| b.is_ascii_alphabetic());
        byte(self.line, close) == b']' && level_word(&self.line[end + 2..close]).is_some()
    }

    /// Takes `85.28 `: seconds in five bytes (BuildKit's last output of a failed step), before text or an empty line.
    pub(super) fn elapsed(&mut self) -> bool {
        const BYTES: usize = 5;
        let point = digits(self.line, 0);
        let text = blanks(self.line, BYTES);
        let known =
            self.at == 0 && point > 0 && byte(self.line, point) == b'.' && digits(self.line, point + 1) == BYTES && matches!(byte(self.line, BYTES), b' ' | 0);
        let is_text = !byte(self.line, text).is_ascii_digit();
        if known && is_text {
            self.at = (BYTES + 1).min(self.line.len());
        }
        known && is_text
    }

    /// Takes `10:00:00 `, and strace's `123 10:00:00.123456 `: a shape without a date, so no time.
    pub(super) fn clock(&mut self) -> bool {
        let number = digits(self.line, self.at);
        let start = if byte(self.line, number) == b' ' { number + 1 } else { self.at };
        let Some(end) = clock_end(self.line, start).filter(|&end| is_stamp_end(self.line, end)).or_else(|| zulu_end(self.line, start)) else {
            return false;
        };
        let text = &self.line[start..end];
        let seconds = text.iter().filter(|b| **b == b':').count() == 2;
        if !seconds && !text.ends_with(b"M") {
            return false;
        }
        self.out.times += 1;
        if let Some(output) = harness_output(self.line, end) {
            self.ground = Ground::Bare;
            self.at = output;
            return true;
        }
        // Jenkins' timestamper puts two blanks after its clock, and
        // then what a program printed; a logger puts its level there.
        let padded = start == 0 && end == CLOCK_BYTES && is_padded(self.line, end);
        let word = blanks(self.line, end);
        let level = run(self.line, word, |b| b.is_ascii_uppercase());
        if padded && !is_common(&self.line[word..level]) {
            self.ground = Ground::Bare;
            self.at = end + PADDING.len();
            self.out.padded = true;
            return true;
        }
        self.ground = Ground::Logger;
        let _ = self.step_over(end);
        self.at += usize::from(padded);
        if text.len() < NANOSECOND_CLOCK_BYTES {
            self.ground = self.either();
        }
        let _ = self.writer(runner::writer_after_time(self.line, self.at));
        true
    }
}

/// Returns where the output of a command, or the continuation of a message, begins after
/// mozharness' clock, which ends at `clock`. Programs indent by an even number of blanks; of an empty line none are left.
fn harness_output(line: &[u8], clock: usize) -> Option<usize> {
    let start = clock + HARNESS.len();
    let gap = run(line, start, |b| b == b' ').saturating_sub(start);
    if !rest(line, clock).starts_with(HARNESS) || (gap < 2 && start < line.len()) {
        return None;
    }
    Some((start + 2 - gap % 2).min(line.len()))
}

/// Whether a gap follows, or a colon and a gap.
fn is_stamp_end(line: &[u8], end: usize) -> bool {
    is_gap(byte(line, end)) || (byte(line, end) == b':' && is_gap(byte(line, end + 1)))
}

/// Returns the end of `10:00:00.123Z` at `at`.
fn zulu_end(line: &[u8], at: usize) -> Option<usize> {
    let end = run(line, at, |b| b.is_ascii_digit() || matches!(b, b':' | b'.'));
    let zulu = byte(line, end) == b'Z' && is_gap(byte(line, end + 1)) && clock_end(&line[..end], at) == Some(end);
    zulu.then_some(end + 1)
}
