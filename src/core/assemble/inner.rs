//! A text inside a record: read as the lines of a stream of its own, by the same machines.

use super::super::event::{Event, Timestamp};
use super::super::line::{Line, Place};
use super::super::lookback::LookBack;
use super::super::margin::Margin;
use super::super::visible::visible;
use super::{Assembler, Context};

/// Maximum number of lines of a text that are read: half of them at each end. Few texts within `max_line_bytes` have more.
pub const MAX_TEXT_LINES: usize = 20_000;

/// A text, and how its lines are placed.
pub struct InnerText<'a> {
    /// Its lines.
    pub text: &'a str,
    /// Returns the place of a line, by its number from 0 and its offset in the text.
    pub place: &'a dyn Fn(usize, usize) -> Place,
    /// Whether an error may have lines above the one that names it, and context; else the record around the text is that.
    pub looks_back: bool,
    /// When it is read.
    pub now: Timestamp,
}

/// Whether a text has more lines than are read.
#[must_use]
pub fn is_too_long(text: &str) -> bool {
    text.len() > MAX_TEXT_LINES && text.lines().count() > MAX_TEXT_LINES
}

impl Assembler {
    /// Reads a text inside a record of the stream of `cx`; returns the number of its lines of which not all was asked.
    /// If its middle is left out, that shows in its events as `truncated`.
    pub fn read_text(cx: &Context, inner: &InnerText, out: &mut Vec<Event>) -> u64 {
        let outer = Context { depth: cx.depth + 1, ..Context::of(cx.engine, cx.origin) };
        let (mut assembler, mut candidates, begun) = (Self::default(), Vec::new(), out.len());
        let (is_cut, margin) = (is_too_long(inner.text), Margin::of(cx.engine, inner.text.as_bytes(), inner.now));
        let count = if is_cut { inner.text.lines().count() } else { MAX_TEXT_LINES };
        let left_out = MAX_TEXT_LINES / 2..count - MAX_TEXT_LINES / 2;
        let (mut from, mut unasked) = (0, 0);
        for (number, line) in inner.text.split_inclusive('\n').enumerate() {
            let start = from;
            from += line.len();
            if left_out.contains(&number) {
                // Nothing goes on across the gap.
                if number == left_out.start {
                    assembler.finish(&outer, inner.now, None, out);
                    unasked += std::mem::take(&mut assembler).unasked;
                }
                continue;
            }
            let shown = margin.cut_off(visible(line.trim_end_matches(['\n', '\r']).as_bytes(), None));
            let work = assembler.work();
            unasked += u64::from(cx.engine.candidates(&shown, &mut work.scratch, &mut work.hits, &mut candidates));
            let place = (inner.place)(number, start);
            let back = if inner.looks_back {
                LookBack::new(&inner.text.as_bytes()[..start], place.num, place.offset, false).within(margin)
            } else {
                LookBack::default()
            };
            assembler.line(&Context { back, ..outer }, &Line::new(place, &shown, inner.now), &candidates, out);
        }
        assembler.finish(&outer, inner.now, None, out);
        out[begun..].iter_mut().for_each(|event| event.truncated |= is_cut);
        unasked + assembler.unasked
    }
}
