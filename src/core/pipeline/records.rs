//! Records mode: a stream that is a transcript, line by line, and documents, which are one value over
//! all lines. Where a stream is text, this costs a look at its first lines.

use super::{DRESSED, Raw, Read, Stream};
use crate::core::assemble::Context;
use crate::core::event::{Event, Timestamp};
use crate::core::frame::Framed;
use crate::core::line::Place;
use crate::core::lookback::LookBack;
use crate::core::prefilter::Hit;
use crate::core::transcript::Document;

/// So many bytes wait at most until they tell whether they begin a document.
const MAX_HEAD_BYTES: usize = 256 << 10;

/// Whether documents are read, and the one that is.
#[derive(Default)]
pub(super) struct Documents {
    max_bytes: Option<u64>,
    /// The stream's beginning, as long as it does not tell whether it is one, and from which length on it is asked again.
    head: Vec<u8>,
    wanted: usize,
    /// That is settled.
    is_told: bool,
    open: Option<Document>,
    is_cut: bool,
}

impl Stream {
    /// Reads a document, too, up to so many bytes of it. For finished inputs.
    #[must_use]
    pub fn with_documents(mut self, max_bytes: u64) -> Self {
        self.document.max_bytes = Some(max_bytes);
        self
    }

    /// Whether a document was longer than the limit: the rest of it was not read.
    #[must_use]
    pub fn is_document_cut(&self) -> bool {
        self.document.is_cut
    }

    /// Whole lines, as text or as records.
    pub(super) fn read(&mut self, framed: &Framed, now: Timestamp, out: &mut Vec<Event>) {
        let begins = self.transcript.begins(&self.buffer.bytes[framed.from..framed.to]);
        let Some(begins) = begins else { return self.lines(framed, now, out) };
        let from = framed.from + begins;
        if begins > 0 {
            self.lines(&Framed { to: from, ..*framed }, now, out);
        }
        self.records(&Framed { from, ..*framed }, now, out);
    }

    /// The lines of a transcript, and those of other programs among them.
    fn records(&mut self, framed: &Framed, now: Timestamp, out: &mut Vec<Event>) {
        let bytes = std::mem::take(&mut self.buffer.bytes);
        let mut from = framed.from;
        while from < framed.to {
            let to = memchr::memchr(b'\n', &bytes[from..framed.to]).map_or(framed.to, |length| from + length);
            self.end_silent_pieces(self.counts.lines, now, out);
            self.counts.lines += 1;
            let raw = Raw { bytes: &bytes[..self.buffer.end()], from, to, num: self.counts.lines, truncated: framed.truncated };
            let place = Place { num: raw.num, offset: self.buffer.offset_of(raw.bytes, framed, from), truncated: raw.truncated, ..Place::default() };
            let events = out.len();
            let cx = Context { engine: &self.engine, origin: &self.origin, back: LookBack::default(), depth: 0 };
            if self.transcript.line(&cx, raw.line(), &place, now, out) == Read::Foreign {
                let look = [Hit { pos: (from - framed.from) as u32, literal: DRESSED }];
                self.line(&raw, framed, &look, now, out);
            }
            self.counts.events += (out.len() - events) as u64;
            self.counts.candidates += 1;
            from = to + 1;
        }
        self.counts.truncated += u64::from(framed.truncated);
        self.buffer.bytes = bytes;
        let cx = Context { engine: &self.engine, origin: &self.origin, back: LookBack::default(), depth: 0 };
        self.assembler.expire(&cx, self.counts.lines, out);
    }

    /// The bytes in the room belong to a document; whether they do.
    pub(super) fn in_document(&mut self, count: usize, now: Timestamp, out: &mut Vec<Event>) -> bool {
        let Some(max_bytes) = self.document.max_bytes else { return false };
        let begins = self.counts.bytes == 0 && count > 0 && !self.document.is_told;
        if !begins && self.document.open.is_none() {
            return false;
        }
        let space = &self.buffer.space()[..count];
        if begins && self.document.head.is_empty() && !Document::may_begin(space) {
            return false;
        }
        let mut bytes = space.to_vec();
        if begins {
            self.document.head.append(&mut bytes);
            if self.document.head.len() < self.document.wanted {
                return true;
            }
            self.document.open = self.transcript.begins_document(&self.document.head);
            if self.document.open.is_none() && self.document.head.len() < MAX_HEAD_BYTES && Document::may_go_on(&self.document.head) {
                // Twice as much each time: whoever writes byte by byte costs no more.
                self.document.wanted = MAX_HEAD_BYTES.min(2 * self.document.head.len());
                return true;
            }
            bytes = self.tell_document();
        }
        self.read_document(&bytes, max_bytes, now, out);
        true
    }

    /// It is settled whether the stream is a document: its bytes so far.
    fn tell_document(&mut self) -> Vec<u8> {
        self.document.is_told = true;
        std::mem::take(&mut self.document.head)
    }

    /// Reads what has waited for more of it, where no more comes.
    pub(super) fn end_head(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let Some(max_bytes) = self.document.max_bytes.filter(|_| !self.document.head.is_empty()) else { return };
        self.document.open = self.transcript.begins_document(&self.document.head);
        let bytes = self.tell_document();
        self.read_document(&bytes, max_bytes, now, out);
    }

    /// Reads bytes of the document; where there is none, as text.
    fn read_document(&mut self, bytes: &[u8], max_bytes: u64, now: Timestamp, out: &mut Vec<Event>) {
        let Some(mut document) = self.document.open.take() else { return self.push(bytes, now, out) };
        let count = bytes.len();
        let room = max_bytes.saturating_sub(self.counts.bytes).min(count as u64) as usize;
        self.document.is_cut |= room < count;
        let mut found = Vec::new();
        document.feed(&bytes[..room], |element| found.push(element));
        let cx = Context { engine: &self.engine, origin: &self.origin, back: LookBack::default(), depth: 0 };
        let events = out.len();
        for element in found {
            let place = Place { num: element.num, offset: element.offset, ..Place::default() };
            self.transcript.element(&cx, &element.bytes, &place, now, out);
        }
        self.counts.events += (out.len() - events) as u64;
        self.counts.bytes += count as u64;
        self.counts.lines = document.lines();
        self.document.open = Some(document);
    }

    /// What a transcript's end completes.
    pub(super) fn finish_records(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let events = out.len();
        let place = Place { num: self.counts.lines, offset: self.buffer.position(), ..Place::default() };
        let cx = Context { engine: &self.engine, origin: &self.origin, back: LookBack::default(), depth: 0 };
        self.transcript.finish(&cx, &place, now, out);
        self.counts.events += (out.len() - events) as u64;
    }
}
