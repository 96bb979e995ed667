//! The last line of a file, when nobody has ended it: the program died, or prompts and waits. Once the file has been quiet for long
//! enough, the line is published as it stands, as a pause publishes a trace. This ends nothing: the line stays open, and when it continues
//! it is read as a whole; its event then has the same id, so it is not written again. Torn JSON is not a line and is left alone.

use std::io;

use super::hole::pass;
use super::{READ_BYTES, Reader, Space, Turn};
use crate::core::event::{Event, Timestamp};
use crate::core::patience::Patience;
use crate::core::pipeline::{BEFORE_BYTES, Stream};
use crate::sources::bytes::ReadAt;
use crate::sources::content::bytes_at;

/// A line waits longer than a trace: programs print `building … ` and, later, `done`.
const IDLES: i64 = Patience::Long as i64;

/// When a file last grew, and how far its last line was published.
#[derive(Default)]
pub(super) struct Unfinished {
    grew_at: Timestamp,
    /// The length it had reached then: what is read again after a rest is not growth.
    end: u64,
    /// The offset up to which the line was published.
    published: u64,
    /// The offset up to which the line was joined to a paused trace.
    joined: u64,
}

impl Unfinished {
    /// Notes that the file was read up to `end`.
    pub fn read_to(&mut self, end: u64, now: Timestamp) {
        if end > self.end {
            (self.end, self.grew_at) = (end, now);
        }
    }

    /// Shortens the wait to the pause of a trace: there may be no later chance.
    pub fn hurry(&mut self, idle_us: i64) {
        self.grew_at.0 = self.grew_at.0.saturating_sub(idle_us.saturating_mul(IDLES - 1));
    }

    /// Notes that the line could not be read again: it is tried again after each further wait.
    fn fails(&mut self, now: Timestamp) {
        (self.published, self.joined, self.grew_at) = (0, 0, now);
    }

    /// Returns when the line that ends at `offset` is due, if it was not published yet.
    pub fn deadline(&self, offset: u64, idle_us: i64) -> Option<Timestamp> {
        (self.published != offset).then(|| Timestamp(self.grew_at.0.saturating_add(idle_us.saturating_mul(IDLES))))
    }
}

impl Reader {
    /// Publishes the events of an unfinished line if it is due: its own, or those of a trace that it may belong to.
    pub(super) fn look_ahead(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        let Some(stream) = self.stream.as_mut().filter(|stream| !turn.more && stream.has_partial()) else { return Ok(()) };
        let Some(due) = self.unfinished.deadline(self.offset, self.engine.limits.trace_idle_us) else { return Ok(()) };
        let (is_due, trace_is_due) = (due <= now, stream.deadline().is_some_and(|trace| trace <= now));
        if !is_due && (!trace_is_due || self.unfinished.joined == self.offset) {
            return Ok(());
        }
        self.unfinished.joined = self.offset;
        if is_due {
            self.unfinished.published = self.offset;
        }
        let done = self.publish_line(space, now, is_due, turn);
        if done.is_err() {
            self.unfinished.fails(now);
        }
        done
    }

    /// Publishes the events of the unfinished line, or, if it is not due itself, of a trace that it may belong to.
    fn publish_line(&mut self, space: &mut Space, now: Timestamp, is_due: bool, turn: &mut Turn) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let from = stream.position();
        // The place to begin at must be the newest one.
        (self.safe, self.facts) = stream.facts();
        if self.is_torn_record(from)? {
            return Ok(());
        }
        let patience = if is_due { Patience::Long } else { Patience::Short };
        let mut events = Vec::new();
        stream_aside(self, space, |reader, space| reader.end_line(space, now, patience, &mut events))?;
        // A paused trace takes only its part of the line.
        events.retain(|event| is_due || event.offset < from);
        self.keep(events, turn);
        Ok(())
    }

    /// Reads the same bytes again through a temporary stream that ends the line.
    fn end_line(&self, space: &mut Space, now: Timestamp, patience: Patience, events: &mut Vec<Event>) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let count = BEFORE_BYTES.min(self.safe);
        let mut ahead = self.stream_at_safe(&bytes_at(file, self.safe - count, count as usize)?);
        ahead.attach(&mut space.stream);
        let read = self.read_again(file, &mut ahead, now, events);
        // Earlier events are out, or come when they are due.
        events.clear();
        if read.is_ok() {
            ahead.end_line(now, events);
            ahead.pause(patience, events);
            events.iter_mut().for_each(|event| event.closed_idle = true);
        }
        ahead.detach(&mut space.stream);
        read
    }

    /// Passes what was read since the safe place into another stream.
    fn read_again(&self, file: &impl ReadAt, ahead: &mut Stream, now: Timestamp, events: &mut Vec<Event>) -> io::Result<()> {
        let mut at = self.safe;
        while at < self.offset {
            let bytes = bytes_at(file, at, (self.offset - at).min(READ_BYTES as u64) as usize)?;
            if bytes.is_empty() {
                break;
            }
            pass(ahead, &bytes, now, events);
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// Whether the line at `from` is a JSON record that was not completely written.
    fn is_torn_record(&self, from: u64) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        if bytes_at(file, from, 1)? != b"{" {
            return Ok(false);
        }
        let count = (self.offset - from).min(self.engine.limits.max_line_bytes as u64 + 1);
        let line = bytes_at(file, from, count as usize)?;
        Ok(serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_err())
    }
}

/// Runs a step while another stream uses the working memory.
fn stream_aside(reader: &mut Reader, space: &mut Space, step: impl FnOnce(&mut Reader, &mut Space) -> io::Result<()>) -> io::Result<()> {
    if let Some(stream) = &mut reader.stream {
        stream.detach(&mut space.stream);
    }
    let done = step(reader, space);
    if let Some(stream) = &mut reader.stream {
        stream.attach(&mut space.stream);
    }
    done
}
