//! The content of the envelopes that container runtimes and test runners put around a line, joined where it was split.

use super::Stream;
use crate::core::assemble::Context;
use crate::core::event::{Event, Timestamp};
use crate::core::frame::Framed;
use crate::core::line::{Line, Place};
use crate::core::lookback::LookBack;
use crate::core::visible::visible;

/// Maximum size of a record that a container runtime has split, in bytes.
const MAX_PIECES_BYTES: usize = 1 << 20;
/// Maximum number of records per stream that wait for their last piece.
const MAX_OPEN_RECORDS: usize = 8;
/// A record whose next piece has not come within so many lines of its stream gets none: the container was killed while it
/// wrote the line.
const MAX_SILENT_LINES: u64 = 1000;

/// The first pieces of a split record.
pub(super) struct Pieces {
    /// Of the first one.
    place: Place,
    /// The line of the last one.
    last_num: u64,
    text: Vec<u8>,
}

/// A place between two lines.
pub(super) struct Here<'b> {
    /// The buffer's bytes.
    pub(super) bytes: &'b [u8],
    /// The lines under way, in which the place is.
    pub(super) framed: &'b Framed,
    /// Where it is in the bytes.
    pub(super) at: usize,
    /// Number of lines of the stream before it.
    pub(super) lines: u64,
}

impl Stream {
    /// Handles the content of an envelope: joins it with its earlier pieces, or keeps it until the last piece comes.
    pub(super) fn unwrapped(&mut self, text: &[u8], partial: bool, place: Place, back: LookBack, now: Timestamp, out: &mut Vec<Event>) {
        let at = self.pieces.iter().position(|piece| piece.place.io == place.io && piece.place.key == place.key);
        let last_num = place.num;
        let mut piece = match at {
            Some(at) => Pieces { last_num, ..self.pieces.swap_remove(at) },
            None => Pieces { place, last_num, text: Vec::new() },
        };
        let room = MAX_PIECES_BYTES.saturating_sub(piece.text.len());
        piece.place.truncated |= text.len() > room;
        piece.text.extend_from_slice(&text[..text.len().min(room)]);
        if partial && self.pieces.len() < MAX_OPEN_RECORDS {
            self.pieces.push(piece);
            return;
        }
        piece.place.truncated |= partial;
        self.envelope_line(&piece, back, now, out);
    }

    /// Ends the records that have got no further piece by `here`. The result must not depend on where a read ended, so this
    /// is checked before every line.
    pub(super) fn end_silent_pieces(&mut self, here: &Here, now: Timestamp, out: &mut Vec<Event>) {
        let is_silent = |piece: &Pieces| here.lines.saturating_sub(piece.last_num) > MAX_SILENT_LINES;
        while let Some(at) = self.pieces.iter().position(is_silent) {
            let mut piece = self.pieces.remove(at);
            piece.place.truncated = true;
            let events = out.len();
            let offset = self.buffer.offset_of(here.bytes, here.framed, here.at);
            let back = LookBack::new(&here.bytes[..here.at], here.lines + 1, offset, self.buffer.is_wide()).within(self.margin);
            self.envelope_line(&piece, back, now, out);
            self.counts.truncated += 1;
            self.counts.events += (out.len() - events) as u64;
        }
    }

    /// Handles a record all of whose pieces have come. Lines that it makes an open error give back may begin anew, with lines of `back` before them.
    pub(super) fn envelope_line(&mut self, piece: &Pieces, back: LookBack, now: Timestamp, out: &mut Vec<Event>) {
        let text = visible(&piece.text, None);
        let mut candidates = std::mem::take(&mut self.work.candidates);
        let is_cut = self.engine.candidates(&text, &mut self.work.line_scratch, &mut self.work.line_hits, &mut candidates);
        self.counts.unasked += u64::from(is_cut);
        self.decide(&piece.place, &text, &mut candidates);
        let cx = Context { engine: &self.engine, origin: &self.origin, back, depth: 0 };
        self.assembler.line(&cx, &Line::new(piece.place.clone(), &text, now), &candidates, out);
        self.work.candidates = candidates;
    }
}
