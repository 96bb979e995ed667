//! The content of the envelopes that container runtimes and test runners put around a line, joined where it was split.

use super::Stream;
use crate::core::assemble::Context;
use crate::core::event::{Event, Timestamp};
use crate::core::line::{Line, Place};
use crate::core::lookback::LookBack;
use crate::core::visible::visible;

/// Maximum size of a record that a container runtime has split, in bytes.
const MAX_PIECES_BYTES: usize = 1 << 20;
/// Maximum number of records per stream that wait for their last piece.
const MAX_OPEN_RECORDS: usize = 8;

/// The first pieces of a split record.
pub(super) struct Pieces {
    place: Place,
    text: Vec<u8>,
}

impl Stream {
    /// Handles the content of an envelope: joins it with its earlier pieces, or keeps it until the last piece comes.
    pub(super) fn unwrapped(&mut self, text: &[u8], partial: bool, place: Place, back: LookBack, now: Timestamp, out: &mut Vec<Event>) {
        let at = self.pieces.iter().position(|piece| piece.place.io == place.io && piece.place.key == place.key);
        let mut piece = match at {
            Some(at) => self.pieces.swap_remove(at),
            None => Pieces { place, text: Vec::new() },
        };
        let room = MAX_PIECES_BYTES.saturating_sub(piece.text.len());
        piece.place.truncated |= text.len() > room;
        piece.text.extend_from_slice(&text[..text.len().min(room)]);
        if partial && self.pieces.len() < MAX_OPEN_RECORDS {
            self.pieces.push(piece);
            return;
        }
        self.envelope_line(&piece, back, now, out);
    }

    pub(super) fn whole_piece(&mut self, piece: Pieces, now: Timestamp, out: &mut Vec<Event>) {
        self.envelope_line(&piece, LookBack::default(), now, out);
    }

    fn envelope_line(&mut self, piece: &Pieces, back: LookBack, now: Timestamp, out: &mut Vec<Event>) {
        let text = visible(&piece.text, None);
        let mut candidates = std::mem::take(&mut self.work.candidates);
        self.engine.candidates(&text, &mut self.work.line_scratch, &mut self.work.line_hits, &mut candidates);
        self.decide(&piece.place, &text, &mut candidates);
        let cx = Context { engine: &self.engine, origin: &self.origin, back, depth: 0 };
        self.assembler.line(&cx, &Line::new(piece.place.clone(), &text, now), &candidates, out);
        self.work.candidates = candidates;
    }
}
