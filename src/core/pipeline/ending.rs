//! The end of a stream: what is open ends, and what waits for a verdict comes out, or not if another output has passed.

use super::{Raw, Stream};
use crate::core::assemble::Context;
use crate::core::event::{Event, Timestamp};
use crate::core::lookback::LookBack;

impl Stream {
    /// Ends the stream.
    pub fn finish(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        self.finish_as(None, now, out);
    }

    /// Ends the stream of a command whose tests have passed at `until` by what another output
    /// says: what waits for a verdict and was seen until then is no error.
    pub fn finish_passed(&mut self, until: Timestamp, now: Timestamp, out: &mut Vec<Event>) {
        self.finish_as(Some(until), now, out);
    }

    /// Returns when the text last said that tests have passed.
    #[must_use]
    pub fn passed_at(&self) -> Option<Timestamp> {
        self.assembler.passed_at()
    }

    /// Returns the first errors that were taken back because tests passed, if the stream [keeps](Self::of_command) them:
    /// for a command that has failed although nothing else says why.
    pub fn give_back(&mut self) -> Vec<Event> {
        let events = self.assembler.give_back();
        self.counts.events += events.len() as u64;
        events
    }

    fn finish_as(&mut self, passed: Option<Timestamp>, now: Timestamp, out: &mut Vec<Event>) {
        self.end_head(now, out);
        self.end_line(now, out);
        self.finish_records(now, out);
        let events = out.len();
        self.end_pieces(now, out);
        let cx = Context { back: self.buffer.look_back(self.counts.lines + 1).within(self.margin), ..Context::of(&self.engine, &self.origin) };
        self.assembler.finish(&cx, now, passed, out);
        let end = self.buffer.end();
        let at_end = Raw { bytes: &self.buffer.bytes[..end], from: end, to: end, num: self.counts.lines + 1, truncated: false };
        self.add_context(&at_end, &mut out[events..]);
        self.counts.events += (out.len() - events) as u64;
    }

    /// Ends the records whose last piece has not come.
    fn end_pieces(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let (end, offset, is_wide) = (self.buffer.end(), self.buffer.position(), self.buffer.is_wide());
        let bytes = std::mem::take(&mut self.buffer.bytes);
        let back = LookBack::new(&bytes[..end], self.counts.lines + 1, offset, is_wide).within(self.margin);
        for piece in std::mem::take(&mut self.pieces) {
            self.envelope_line(&piece, back, now, out);
        }
        self.buffer.bytes = bytes;
    }
}
