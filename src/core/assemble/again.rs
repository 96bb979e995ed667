//! Lines that a closed trace gave back. They are processed again, with what is already known about them.

use super::{Assembler, Context, Work};
use crate::core::event::{Event, Timestamp};
use crate::core::line::{Line, Memory, Place, Tried};

/// A line that a trace gave back.
pub(super) struct Again {
    pub(super) place: Place,
    pub(super) text: Vec<u8>,
    pub(super) tried: Tried,
    /// How often traces have given it back.
    pub(super) rereads: u8,
    pub(super) memory: Option<Box<Memory>>,
}

impl Assembler {
    /// Processes lines that a closed trace gave back, before the current line.
    pub(super) fn redo(&mut self, cx: &Context, now: Timestamp, out: &mut Vec<Event>) {
        while let Some(Again { place, text, tried, rereads, memory }) = self.again.pop_front() {
            let (mut line, known) = Line::remembered(place, &text, now, memory.map(|memory| *memory));
            (line.tried, line.rereads) = (tried, rereads);
            self.reread += 1;
            self.note_reread(line.place.offset);
            let before = self.again.len();
            self.close_reopened(cx, &line, out);
            if self.again.len() == before && self.continue_open(cx, &line, known.as_deref(), out) {
                continue;
            }
            if self.again.len() > before {
                // The line closed a trace that gave lines back: those come first.
                let given_back = self.again.len() - before;
                self.again.rotate_right(given_back);
                let memory = known.map(|candidates| Box::new(line.memory(&candidates)));
                self.again.insert(given_back, Again { place: line.place, text, tried, rereads, memory });
                continue;
            }
            if let Some(candidates) = known {
                self.fresh(cx, &line, &candidates, out);
                continue;
            }
            let mut candidates = std::mem::take(&mut self.work.candidates);
            let Work { scratch, hits, .. } = &mut self.work;
            cx.engine.candidates(&text, scratch, hits, &mut candidates);
            self.fresh(cx, &line, &candidates, out);
            self.work.candidates = candidates;
        }
    }
}
