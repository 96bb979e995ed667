//! Records mode. A transcript is read line by line; a document is one value that
//! spans all lines. For plain text, this costs only a look at the first lines.

use super::envelope::Here;
use super::{DRESSED, Raw, Read, Stream};
use crate::core::assemble::Context;
use crate::core::event::{Event, Timestamp};
use crate::core::frame::Framed;
use crate::core::line::Place;
use crate::core::prefilter::Hit;
use crate::core::transcript::{Account, Document, Format, Scene};

/// Maximum number of bytes held back until it is clear whether they begin a document.
pub const MAX_HEAD_BYTES: usize = 256 << 10;

/// Whether documents are read, and the open one.
#[derive(Default)]
pub(super) struct Documents {
    max_bytes: Option<u64>,
    /// The beginning of the stream while it is undecided whether it
    /// is a document, and the length at which it is checked again.
    head: Vec<u8>,
    wanted: usize,
    /// Whether that is decided.
    is_told: bool,
    open: Option<Document>,
    is_cut: bool,
}

impl Stream {
    /// Also reads a document, up to `max_bytes` of it. For finished inputs.
    #[must_use]
    pub fn with_documents(mut self, max_bytes: u64) -> Self {
        self.document.max_bytes = Some(max_bytes);
        self
    }

    /// Returns `true` if a document was longer than the limit, so that the rest of it was not read.
    #[must_use]
    pub fn is_document_cut(&self) -> bool {
        self.document.is_cut
    }

    /// Also keeps an account of each record of a transcript. For finished inputs.
    #[must_use]
    pub fn with_accounts(mut self) -> Self {
        self.transcript.keep_accounts();
        self
    }

    /// Returns the accounts since the last call.
    pub fn take_accounts(&mut self) -> Vec<Account> {
        self.transcript.take_accounts()
    }

    /// Returns the format of a transcript; `None` for text.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.transcript.format()
    }

    /// Whether the stream is one document.
    #[must_use]
    pub fn is_document(&self) -> bool {
        self.document.open.is_some()
    }

    /// Reads whole lines, as text or as records.
    pub(super) fn read(&mut self, framed: &Framed, now: Timestamp, out: &mut Vec<Event>) {
        let begins = self.transcript.begins(&self.buffer.bytes[framed.from..framed.to]);
        let Some(begins) = begins else { return self.lines(framed, now, out) };
        let from = framed.from + begins;
        if begins > 0 {
            self.lines(&Framed { to: from, ..*framed }, now, out);
        }
        self.records(&Framed { from, ..*framed }, now, out);
    }

    /// Reads the lines of a transcript, and lines of other programs among them.
    fn records(&mut self, framed: &Framed, now: Timestamp, out: &mut Vec<Event>) {
        let bytes = std::mem::take(&mut self.buffer.bytes);
        let mut from = framed.from;
        while from < framed.to {
            let to = memchr::memchr(b'\n', &bytes[from..framed.to]).map_or(framed.to, |length| from + length);
            self.end_silent_pieces(&Here { bytes: &bytes, framed, at: from, lines: self.counts.lines }, now, out);
            self.counts.lines += 1;
            let raw = Raw { bytes: &bytes[..self.buffer.end()], from, to, num: self.counts.lines, truncated: framed.truncated };
            let place = Place { num: raw.num, offset: self.buffer.offset_of(raw.bytes, framed, from), truncated: raw.truncated, ..Place::default() };
            let events = out.len();
            let cx = Context::of(&self.engine, &self.origin);
            if self.transcript.line(&Scene { cx: &cx, place: &place, now }, raw.line(), out) == Read::Foreign {
                let look = [Hit { pos: (from - framed.from) as u32, literal: DRESSED }];
                self.line(&raw, framed, &look, now, out);
            }
            self.counts.events += (out.len() - events) as u64;
            self.counts.candidates += 1;
            from = to + 1;
        }
        self.counts.truncated += u64::from(framed.truncated);
        self.buffer.bytes = bytes;
        let cx = Context::of(&self.engine, &self.origin);
        self.assembler.expire(&cx, self.counts.lines, out);
    }

    /// Takes the bytes in the buffer's space if they belong to a document; returns whether they do.
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
                // Doubling keeps the cost low for input that arrives byte by byte.
                self.document.wanted = MAX_HEAD_BYTES.min(2 * self.document.head.len());
                return true;
            }
            bytes = self.tell_document();
        }
        self.read_document(&bytes, max_bytes, now, out);
        true
    }

    /// Marks as decided whether the stream is a document; returns its bytes so far.
    fn tell_document(&mut self) -> Vec<u8> {
        self.document.is_told = true;
        std::mem::take(&mut self.document.head)
    }

    /// At the end of the stream, reads what was held back.
    pub(super) fn end_head(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let Some(max_bytes) = self.document.max_bytes.filter(|_| !self.document.head.is_empty()) else { return };
        self.document.open = self.transcript.begins_document(&self.document.head);
        let bytes = self.tell_document();
        self.read_document(&bytes, max_bytes, now, out);
    }

    /// Reads bytes of the document, or as text if there is none.
    fn read_document(&mut self, bytes: &[u8], max_bytes: u64, now: Timestamp, out: &mut Vec<Event>) {
        let Some(mut document) = self.document.open.take() else { return self.push(bytes, now, out) };
        let count = bytes.len();
        let room = max_bytes.saturating_sub(self.counts.bytes).min(count as u64) as usize;
        self.document.is_cut |= room < count;
        let mut found = Vec::new();
        document.feed(&bytes[..room], |element| found.push(element));
        let cx = Context::of(&self.engine, &self.origin);
        let events = out.len();
        for element in found {
            let place = Place { num: element.num, offset: element.offset, truncated: element.truncated, ..Place::default() };
            self.transcript.element(&Scene { cx: &cx, place: &place, now }, &element, out);
        }
        self.counts.events += (out.len() - events) as u64;
        self.counts.bytes += count as u64;
        self.counts.lines = document.lines();
        self.document.open = Some(document);
    }

    /// Finishes the transcript at the end of the stream.
    pub(super) fn finish_records(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let events = out.len();
        let place = Place { num: self.counts.lines, offset: self.buffer.position(), ..Place::default() };
        let cx = Context::of(&self.engine, &self.origin);
        self.transcript.finish(&Scene { cx: &cx, place: &place, now }, out);
        self.counts.events += (out.len() - events) as u64;
    }
}
