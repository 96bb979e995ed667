//! The core's front door: bytes of one stream in, events out. Frames whole lines, skips
//! lines without a hit, and shows the rest to the assembler. The only module that names
//! every stage. It reads no file and no clock: bytes and `now` are arguments.

use std::sync::Arc;

use super::assemble::{Assembler, Context, Snapshot};
use super::decode;
use super::engine::{Candidate, Engine};
use super::envelope::unwrap;
use super::event::{Event, Lines, Timestamp};
use super::extract::Origin;
use super::frame::{Buffer, Framed};
use super::line::{Line, Place};
use super::lookback::{self, LookBack};
use super::margin::Margin;
use super::patience::Patience;
use super::prefilter::{Hit, Marks, Scratch};
use super::redact::{ContextKey, KeyBlock};
use super::shown;
use super::transcript::{Read, Transcript};
use super::visible::visible;

mod ending;
mod envelope;
mod raw;
mod records;
mod resume;
mod wire;
use envelope::{Here, Pieces};
use raw::Raw;
pub use records::MAX_HEAD_BYTES;
pub use resume::{BEFORE_BYTES, Workspace};

/// Pseudo-literal of a line that must be looked at whatever its raw bytes hold.
const DRESSED: u16 = u16::MAX;
/// Room for the context after most errors.
const TYPICAL_CONTEXT_BYTES: usize = 400;

/// What a stream has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes.
    pub bytes: u64,
    /// Lines, the last one without a newline included.
    pub lines: u64,
    /// Lines that were looked at.
    pub candidates: u64,
    /// Events.
    pub events: u64,
    /// Lines that were longer than the limit.
    pub truncated: u64,
    /// Lines that were looked at again because an open error gave them back.
    pub reread: u64,
    /// Lines of which not all was asked: those without an event that led to more rules than may be asked about
    /// one line, those that repeat a literal more often than is followed up, those that errors on trial have given back
    /// too often to begin one, and those that were too long for an error on trial to give back. The lines of texts inside records count, too.
    pub unasked: u64,
    /// Sections of tools' outputs that were not followed to their end because too many were open; those of texts inside
    /// records do not count.
    pub cut_sections: u64,
    /// Records of a transcript that are too long to be read.
    pub unread: u64,
}

/// One stream of bytes, read from its beginning or from a known place.
pub struct Stream {
    engine: Arc<Engine>,
    origin: Origin,
    buffer: Buffer,
    assembler: Assembler,
    pieces: Vec<Pieces>,
    transcript: Transcript,
    /// Whether documents are read, and the one under way.
    document: records::Documents,
    counts: Counts,
    /// The counts that [`news`](Self::news) reported last.
    told: Counts,
    /// Set if lines may be syslog messages.
    wire: Option<wire::Wire>,
    /// The blanks before every line.
    margin: Margin,
    work: Work,
    /// The newest known place at which the stream can be resumed.
    safe: Snapshot,
}

#[derive(Default)]
struct Work {
    scratch: Scratch,
    hits: Vec<Hit>,
    candidates: Vec<Candidate>,
    line_scratch: Scratch,
    line_hits: Vec<Hit>,
    /// The block's lines with escapes, stripped of them. `clean_starts` has, for
    /// each, where it begins in here and where one of its escapes is in the block.
    clean: Vec<u8>,
    clean_starts: Vec<(u32, u32)>,
}

impl Counts {
    /// Returns both counts joined by `join`, field by field.
    fn zip(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            bytes: join(self.bytes, other.bytes),
            lines: join(self.lines, other.lines),
            candidates: join(self.candidates, other.candidates),
            events: join(self.events, other.events),
            truncated: join(self.truncated, other.truncated),
            reread: join(self.reread, other.reread),
            unasked: join(self.unasked, other.unasked),
            cut_sections: join(self.cut_sections, other.cut_sections),
            unread: join(self.unread, other.unread),
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        *self = self.zip(more, |all, more| all + more);
    }
}

impl Stream {
    /// Creates a stream that begins at offset 0, line 1.
    #[must_use]
    pub fn new(engine: Arc<Engine>, origin: Origin) -> Self {
        let buffer = Buffer::new(engine.limits.max_line_bytes);
        let transcript = Transcript::new(engine.limits.mode);
        let (assembler, pieces, document) = Default::default();
        let (counts, told, wire, margin, work, safe) = Default::default();
        Self { engine, origin, buffer, assembler, pieces, transcript, document, counts, told, wire, margin, work, safe }
    }

    /// Says which command prints the text. What a test runner's tests print is judged by its verdict, as after `$ npm test`;
    /// any other command may run one, also one that is not known (empty). What its passes take back is kept for [`give_back`](Self::give_back).
    #[must_use]
    pub fn of_command(mut self, command: &str) -> Self {
        self.assembler.open_for(&Context::of(&self.engine, &self.origin), command);
        self.assembler.keep_taken();
        self
    }

    /// Says that the text is all of a finished log: what it says of its tests at its end counts for what they printed before.
    #[must_use]
    pub fn of_finished(mut self) -> Self {
        self.assembler.finished();
        self
    }

    /// Says with which bytes a finished log begins, as [`Margin::of`] wants them: it may be indented as a whole.
    pub fn begins_with(&mut self, head: &[u8], now: Timestamp) {
        self.margin = Margin::of(&self.engine, head, now);
    }

    /// Returns the blanks before every line.
    #[must_use]
    pub fn margin(&self) -> Margin {
        self.margin
    }

    /// Waits for the lines after an error that its context shows, so that the context does not depend on where a read
    /// ended. For inputs that are at hand: of a stream that pauses, nobody waits for a line that may never come.
    #[must_use]
    pub fn with_whole_context(mut self) -> Self {
        self.wait_for_context(true);
        self
    }

    /// Says whether the lines behind a line are at hand, so that it may [wait for them](Self::with_whole_context).
    pub fn wait_for_context(&mut self, is_at_hand: bool) {
        self.buffer.wait_for(if is_at_hand { self.engine.limits.context_a_side() } else { 0 });
    }

    /// Returns the space for the next bytes, at least 64 KiB.
    pub fn space(&mut self) -> &mut [u8] {
        self.buffer.space()
    }

    /// Takes in `count` bytes that were written into [`space`](Self::space) at `now`.
    pub fn advance(&mut self, count: usize, now: Timestamp, out: &mut Vec<Event>) {
        if self.in_document(count, now, out) {
            return;
        }
        self.counts.bytes += count as u64;
        self.buffer.filled(count);
        while let Some(framed) = self.buffer.next_lines() {
            self.read(&framed, now, out);
            self.buffer.done(&framed);
        }
    }

    /// Copies `bytes` in; for callers that already hold them.
    pub fn push(&mut self, mut bytes: &[u8], now: Timestamp, out: &mut Vec<Event>) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = bytes.len().min(space.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.advance(count, now, out);
            bytes = &bytes[count..];
        }
    }

    /// Treats the unfinished line as complete; whatever follows is another line.
    pub fn end_line(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let lines = self.buffer.wait_for(0);
        while let Some(framed) = self.buffer.next_lines().or_else(|| self.buffer.last_line()) {
            self.read(&framed, now, out);
            self.buffer.done(&framed);
        }
        self.buffer.wait_for(lines);
    }

    /// Returns the time at which something open is due to be published.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.assembler.deadline(&self.engine, Patience::Verdict)
    }

    /// Publishes whatever has been quiet for too long.
    pub fn tick(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        self.tick_within(Patience::Verdict, now, out);
    }

    fn tick_within(&mut self, longest: Patience, now: Timestamp, out: &mut Vec<Event>) {
        let events = out.len();
        let cx = Context { back: self.buffer.look_back(self.counts.lines + 1).within(self.margin), ..Context::of(&self.engine, &self.origin) };
        self.assembler.tick(&cx, now, longest, out);
        self.counts.events += (out.len() - events) as u64;
    }

    /// Publishes everything that a pause of this length would publish,
    /// as if the pause were over. What is published stays open.
    pub fn pause(&mut self, patience: Patience, out: &mut Vec<Event>) {
        while let Some(deadline) = self.assembler.deadline(&self.engine, patience) {
            self.tick_within(patience, deadline, out);
        }
    }

    /// Returns the entries of the open regions, outermost first, and those of the open traces.
    #[must_use]
    pub fn opened(&self) -> (Vec<u16>, Vec<u16>) {
        self.assembler.opened()
    }

    /// Returns the totals so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let unasked = self.counts.unasked + self.assembler.unasked() + self.transcript.unasked();
        let (reread, cut_sections) = (self.assembler.reread(), self.assembler.cut_sections());
        Counts { reread, unasked, cut_sections, unread: self.transcript.unread(), ..self.counts }
    }

    /// Returns the counts since the last call.
    pub fn news(&mut self) -> Counts {
        let now = self.counts();
        now.zip(std::mem::replace(&mut self.told, now), u64::saturating_sub)
    }

    fn needs_every_line(&self) -> bool {
        self.assembler.is_open() || !self.pieces.is_empty() || self.margin.is_any() || !self.engine.limits.two_stage
    }

    /// Handles whole lines: scans the block with the prefilter, then looks at each line that needs it.
    fn lines(&mut self, framed: &Framed, now: Timestamp, out: &mut Vec<Event>) {
        let bytes = std::mem::take(&mut self.buffer.bytes);
        let block = &bytes[framed.from..framed.to];
        let (mut hits, mut scratch) = (std::mem::take(&mut self.work.hits), std::mem::take(&mut self.work.scratch));
        hits.clear();
        self.engine.prefilter().scan(block, &mut scratch, &mut hits);
        let newlines = &scratch.marks.newlines;
        self.mark_dressed(block, &scratch.marks, &mut hits);
        self.mark_stated(block, &mut hits);
        let mut at = 0;
        let mut next = 0;
        let mut num = self.counts.lines + 1;
        while at < block.len() {
            if !self.needs_every_line() {
                let Some(hit) = hits.get(next) else { break };
                let line_start = newlines.last(hit.pos as usize).map_or(at, |newline| at.max(newline + 1));
                num += newlines.count(at..line_start);
                at = line_start;
            }
            let end = newlines.first(at).unwrap_or(block.len());
            let first = next;
            while hits.get(next).is_some_and(|hit| (hit.pos as usize) < end) {
                next += 1;
            }
            let raw = Raw { bytes: &bytes[..self.buffer.end()], from: framed.from + at, to: framed.from + end, num, truncated: framed.truncated };
            self.end_silent_pieces(&Here { bytes: &bytes, framed, at: raw.from, lines: num - 1 }, now, out);
            let events = out.len();
            self.line(&raw, framed, &hits[first..next], now, out);
            self.add_context(&raw, &mut out[events..]);
            self.counts.events += (out.len() - events) as u64;
            self.counts.candidates += 1;
            at = end + 1;
            num += 1;
        }
        self.counts.lines = if at >= block.len() { num - 1 } else { num - 1 + newlines.count(at..block.len()) + u64::from(!block.ends_with(b"\n")) };
        self.counts.truncated += u64::from(framed.truncated);
        (self.work.hits, self.work.scratch) = (hits, scratch);
        self.end_silent_pieces(&Here { bytes: &bytes, framed, at: framed.to, lines: self.counts.lines }, now, out);
        self.buffer.bytes = bytes;
        let cx = Context::of(&self.engine, &self.origin);
        self.assembler.expire(&cx, self.counts.lines, out);
    }

    /// Escape sequences may interrupt a literal: searches each line
    /// with an escape again without them, and marks it if there is a hit.
    fn mark_dressed(&mut self, block: &[u8], marks: &Marks, hits: &mut Vec<Hit>) {
        let known = hits.len();
        let (clean, starts) = (&mut self.work.clean, &mut self.work.clean_starts);
        clean.clear();
        starts.clear();
        let mut at = 0;
        while let Some(escape) = marks.escapes.first(at) {
            let from = marks.newlines.last(escape).map_or(0, |newline| newline + 1);
            let to = marks.newlines.first(escape).unwrap_or(block.len());
            starts.push((clean.len() as u32, escape as u32));
            decode::strip(&block[from..to], clean);
            clean.push(b'\n');
            at = (to + 1).min(block.len());
        }
        if starts.is_empty() {
            return;
        }
        self.work.line_hits.clear();
        self.engine.prefilter().scan(clean, &mut self.work.line_scratch, &mut self.work.line_hits);
        let mut marked = None;
        for hit in &self.work.line_hits {
            let line = starts.partition_point(|(start, _)| *start <= hit.pos) - 1;
            if marked.replace(line) != Some(line) {
                hits.push(Hit { pos: starts[line].1, literal: DRESSED });
            }
        }
        if hits.len() > known {
            // Two sorted runs, which this sort only merges.
            hits.sort();
        }
    }

    fn line(&mut self, raw: &Raw, framed: &Framed, hits: &[Hit], now: Timestamp, out: &mut Vec<Event>) {
        let offset = self.buffer.offset_of(raw.bytes, framed, raw.from);
        let mut place = Place { num: raw.num, offset, truncated: raw.truncated, ..Place::default() };
        let back = LookBack::new(&raw.bytes[..raw.from], raw.num, offset, self.buffer.is_wide()).within(self.margin);
        if let Some((text, partial)) = self.message(raw.line(), now, &mut place).or_else(|| unwrap(raw.line(), now, &mut place)) {
            self.unwrapped(&text, partial, place, back, now, out);
            return;
        }
        let mut found = hits.iter().filter(|hit| hit.literal != DRESSED);
        let hit = if shown::is_overwritten(raw.line()) { found.next_back() } else { found.next() };
        let text = self.margin.cut_off(visible(raw.line(), hit.map(|hit| hit.pos as usize + framed.from - raw.from)));
        let mut candidates = std::mem::take(&mut self.work.candidates);
        let in_place = std::ptr::eq(text.as_ptr(), raw.line().as_ptr()) && !hits.iter().any(|hit| hit.literal == DRESSED);
        let is_cut = if in_place {
            self.engine.resolve(hits, (raw.from - framed.from) as u32, &mut candidates)
        } else {
            self.engine.candidates(&text, &mut self.work.line_scratch, &mut self.work.line_hits, &mut candidates)
        };
        self.counts.unasked += u64::from(is_cut);
        let cx = Context { engine: &self.engine, origin: &self.origin, back, depth: 0 };
        self.assembler.line(&cx, &Line::new(place, &text, now), &candidates, out);
        self.work.candidates = candidates;
    }

    /// Adds the context lines after each event that have already arrived, except those of other writers:
    /// of the lines after the current one, only the next few, and none behind one that was cut.
    fn add_context(&self, raw: &Raw, events: &mut [Event]) {
        let wanted = self.engine.limits.context_a_side();
        for event in events.iter_mut().filter(|event| wanted > 0 && event.line_end >= event.line_num) {
            let is_other = |text: &[u8]| {
                event.key.is_some()
                    && self.wire.is_none()
                    && Line::new(Place::default(), text, event.observed_at).key().is_some_and(|key| Some(key) != event.key.as_deref().map(str::as_bytes))
            };
            let last = raw.num + if raw.truncated { 0 } else { wanted as u64 };
            let lines = raw
                .after(event.line_end)
                .take_while(|(num, _)| *num <= last)
                .take(lookback::MAX_LINES)
                .map(|(num, text)| (num, self.margin.cut_off(visible(text, None))))
                .filter(|(_, text)| !is_other(text));
            let mut after = Lines::default().with_room(TYPICAL_CONTEXT_BYTES);
            let lines: Vec<_> = lines.take(wanted).collect();
            let before = raw.up_to(event.line_end).take(lookback::MAX_LINES).map(|text| visible(text, None)).filter(|text| !is_other(text));
            let key = KeyBlock::around(lines.iter().map(|(_, text)| &**text), before);
            lines.iter().for_each(|(num, text)| after.push_numbered(*num, text));
            self.engine.redactor.redact_context(ContextKey::Before(key), &mut after);
            event.context.append(&after);
        }
    }
}
