//! Which lines make one error: offers each line to the open traces, then to the regions, then asks
//! whether it begins something. Owns what is open in one stream; every bound is in lines of that
//! stream, never in time. It decides nothing about what a line means (`confirm`) and fills no fields
//! (`extract`).

use std::collections::VecDeque;

use super::confirm::{Confirm, Found};
use super::engine::{Candidate, Engine};
use super::event::{Event, Lines, Timestamp};
use super::extract::{self, Origin};
use super::line::{Line, Place};
use super::lookback::LookBack;
use super::notes::Notes;
use super::prefilter::{Hit, Scratch};
use super::record;
use super::shown;
use super::trace::{Block, MAX_SEEN_LINES, OpenTrace, Outcome, View, starts};
use crate::rules::{Kind, Region};

mod quiet;
use quiet::Cut;
pub use quiet::{Facts, Snapshot};

/// Most traces that are open at once in a stream; the least recently continued one ends.
const MAX_OPEN_TRACES: usize = 16;
/// Most regions inside each other.
const MAX_REGIONS: usize = 3;
/// An open trace of another writer ends when its own has been silent for so many lines.
const MAX_SILENT_LINES: u64 = 1000;
/// Most rivals for one head line.
const MAX_RIVALS: usize = 8;

/// What is open in one stream.
#[derive(Default)]
pub struct Assembler {
    open: Vec<OpenTrace>,
    regions: Vec<OpenRegion>,
    notes: Notes,
    noise: Option<OpenNoise>,
    /// Lines that a trace gave back.
    again: VecDeque<(Place, Vec<u8>, bool)>,
    reread: u64,
    /// The lines that were given back last, and the context before them.
    given: Lines,
    /// Last line that belongs to an event.
    claimed_to: u64,
    /// A place where the stream could be taken up again, if nothing goes on across it.
    cut: Option<Cut>,
    work: Work,
}

/// Buffers that are kept between lines.
#[derive(Default)]
pub struct Work {
    /// For scans of single lines.
    pub scratch: Scratch,
    /// Their hits.
    pub hits: Vec<Hit>,
    /// Their candidates.
    pub candidates: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenRegion {
    entry: u16,
    left: u32,
}

/// A noise block under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenNoise {
    entry: u16,
    /// How many more lines it may take.
    left: u32,
    /// Number of the last line that it is known to have taken.
    last_num: u64,
}

/// What a line is processed with.
pub struct Context<'a> {
    /// Rules and limits.
    pub engine: &'a Engine,
    /// The stream.
    pub origin: &'a Origin,
    /// Lines before the current one.
    pub back: LookBack<'a>,
    /// How deep inside records this line stands.
    pub depth: u8,
}

impl Assembler {
    /// Whether every line must be shown: something is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.open.is_empty() || !self.regions.is_empty()
    }

    /// Processes one line with the candidates that its literals lead to.
    pub fn line(&mut self, cx: &Context, line: &Line, candidates: &[Candidate], out: &mut Vec<Event>) {
        // Here, and not only at the end of a block: blocks must not decide about the order of events.
        self.expire(cx, line.place.num.saturating_sub(1), out);
        self.close_regions(cx, line, out);
        if self.continue_open(cx, line, out) {
            return;
        }
        if self.again.is_empty() {
            self.fresh(cx, line, candidates, out);
            return;
        }
        self.again.push_back((line.place.clone(), line.text.to_vec(), line.settled));
        self.redo(cx, line.now(), out);
    }

    /// Lines that a closed trace gave back are processed again, before the current one.
    fn redo(&mut self, cx: &Context, now: Timestamp, out: &mut Vec<Event>) {
        while let Some((place, text, settled)) = self.again.pop_front() {
            let mut line = Line::new(place, &text, now);
            line.settled = settled;
            self.reread += 1;
            self.note_reread(line.place.offset);
            let before = self.again.len();
            if self.continue_open(cx, &line, out) {
                continue;
            }
            if self.again.len() > before {
                // The line closed a trace, which gave lines back: they come first.
                let given_back = self.again.len() - before;
                self.again.rotate_right(given_back);
                self.again.insert(given_back, (line.place.clone(), text.clone(), settled));
                continue;
            }
            let mut candidates = std::mem::take(&mut self.work.candidates);
            let Work { scratch, hits, .. } = &mut self.work;
            cx.engine.candidates(&text, scratch, hits, &mut candidates);
            self.fresh(cx, &line, &candidates, out);
            self.work.candidates = candidates;
        }
    }

    /// Offers the line to the open traces, newest first; a trace that does not go on ends.
    fn continue_open(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) -> bool {
        let mut at = self.open.len();
        while at > 0 {
            at -= 1;
            match offer(cx, &mut self.open[at], line) {
                Offer::Taken => {
                    self.note_crossing(self.open[at].anchor(), line.place.offset);
                    return true;
                }
                Offer::Elsewhere if line.place.num.saturating_sub(self.open[at].last_num) <= MAX_SILENT_LINES => {}
                Offer::Elsewhere | Offer::Ended => {
                    if self.adoptable(at, line) {
                        continue;
                    }
                    self.close(cx, at, out);
                    if !self.again.is_empty() {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// A one-line error with a time stamp waits for the line after it: a stack trace without one
    /// belongs to it. `fresh` settles that.
    fn adoptable(&self, at: usize, line: &Line) -> bool {
        let trace = &self.open[at];
        let same_writer = || line.key() == trace.key.as_deref() || is_bare(line);
        trace.stamped
            && line.place.num == trace.last_num + 1
            && trace.is_single()
            && !trace.is_on_trial_beyond_blanks()
            && !line.settled
            && line.place.io == trace.lines.get(0).place.io
            && !line.is_stamped()
            && same_writer()
    }

    fn fresh(&mut self, cx: &Context, line: &Line, candidates: &[Candidate], out: &mut Vec<Event>) {
        let is_hit = !candidates.is_empty();
        if (is_hit || !self.regions.is_empty()) && !self.in_noise_block(cx, line, is_hit) {
            self.begin(cx, line, candidates, out);
        }
        self.end_unadopted(cx, line, out);
    }

    fn begin(&mut self, cx: &Context, line: &Line, candidates: &[Candidate], out: &mut Vec<Event>) {
        let mut confirm = Confirm::new(cx.engine, line, candidates);
        if let Some(structured) = record::decode(line, candidates) {
            record::events(self, cx, line, structured, candidates, out);
            return;
        }
        if confirm.border() {
            self.border(cx, out);
        }
        if let Some((entry, lines)) = confirm.noise_block() {
            self.noise = Some(OpenNoise { entry, left: lines, last_num: line.place.num });
            return;
        }
        if let Some((entry, region)) = confirm.region() {
            self.enter(entry, region);
            return;
        }
        if !line.settled && cx.engine.limits.capture_multiline && self.start_trace(cx, line, &mut confirm, out) {
            return;
        }
        if self.absorbed(cx) {
            return;
        }
        // What is still waiting for lines of its own comes before this line, and claims it.
        self.end_unadopted(cx, line, out);
        if let Some(found) = confirm.note() {
            self.note(cx, line, found, out);
        } else if let Some(found) = confirm.rule() {
            self.single(cx, line, found, out);
        }
    }

    fn start_trace(&mut self, cx: &Context, line: &Line, confirm: &mut Confirm, out: &mut Vec<Event>) -> bool {
        let (mut rivals, mut view) = self.weak_starts(cx, line);
        if rivals.is_empty() && !self.absorbed(cx) {
            (rivals, view) = confirm.starts();
        }
        if rivals.is_empty() {
            return false;
        }
        rivals.truncate(MAX_RIVALS);
        let entries = &cx.engine.rules.entries;
        let back = if line.place.inner == 0 { cx.back } else { LookBack::default() };
        let lead = rivals.iter().map(|&entry| back.lead(entries, entry, line, self.claimed_to)).max_by_key(Block::len).unwrap_or_default();
        let adopted = self.adopt(line);
        let lead = adopted.as_ref().map_or(lead, |single| single.lines.clone());
        let mut trace = OpenTrace::new(entries, &rivals, lead, line, view);
        match adopted {
            Some(single) => {
                trace.key.clone_from(&single.key);
                trace.time = single.time;
                trace.opened_at = single.opened_at;
                trace.context.clone_from(&single.context);
                (trace.paused, trace.published) = (single.paused, single.published);
                trace.adopted = Some(Box::new(single));
            }
            None => trace.context = self.context(cx, trace.lines.get(0).place.num, line),
        }
        trace.depth = self.regions.len();
        trace.claims_before = self.notes.claims();
        if self.open.len() >= MAX_OPEN_TRACES {
            self.close(cx, 0, out);
        }
        self.open.push(trace);
        true
    }

    /// Takes the one-line error that `line` follows out of the open ones.
    fn adopt(&mut self, line: &Line) -> Option<OpenTrace> {
        let at = (0..self.open.len()).rev().find(|&at| self.adoptable(at, line))?;
        self.note_crossing(self.open[at].anchor(), line.place.offset);
        Some(self.open.remove(at))
    }

    fn end_unadopted(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) {
        while let Some(at) = (0..self.open.len()).find(|&at| self.adoptable(at, line)) {
            self.close(cx, at, out);
        }
    }

    /// The weak traces that the line begins, innermost region first: as it stands, or behind its
    /// prefix.
    fn weak_starts(&self, cx: &Context, line: &Line) -> (Vec<u16>, View) {
        let entries = &cx.engine.rules.entries;
        for open in self.regions.iter().rev() {
            let Some(region) = region(cx, open.entry) else { continue };
            for view in [View::Text, View::Body] {
                let part = view.of(line);
                let begins = |entry: u16| matches!(&entries[usize::from(entry)].kind, Kind::Trace(machine) if starts(machine, part));
                let found: Vec<u16> = region.weak.iter().copied().filter(|&entry| begins(entry)).collect();
                if !found.is_empty() {
                    return (found, view);
                }
                if line.prefix().body == 0 {
                    break;
                }
            }
        }
        (Vec::new(), View::Text)
    }

    fn single(&mut self, cx: &Context, line: &Line, found: Found, out: &mut Vec<Event>) {
        let mut trace = OpenTrace::single(found.entry, line, found.view);
        trace.depth = self.regions.len();
        trace.context = self.context(cx, line.place.num, line);
        if line.is_stamped() && cx.engine.limits.capture_multiline {
            if self.open.len() >= MAX_OPEN_TRACES {
                self.close(cx, 0, out);
            }
            self.open.push(trace);
        } else {
            self.publish(cx, &trace, out);
        }
    }

    /// The lines before line `first`, which may have been given back when the look-back had gone on.
    fn context(&self, cx: &Context, first: u64, line: &Line) -> Lines {
        let wanted = cx.engine.limits.context_a_side();
        let found = cx.back.context(wanted, first, line);
        if found.len() >= wanted || self.given.is_empty() {
            return found;
        }
        self.given.before(first, wanted).unwrap_or(found)
    }

    fn note(&mut self, cx: &Context, line: &Line, found: Found, out: &mut Vec<Event>) {
        let Kind::Note(note) = &cx.engine.rules.entries[usize::from(found.entry)].kind else { return };
        let family = cx.engine.rules.entries[usize::from(found.entry)].family;
        let key = found.key(cx.engine, line);
        if note.silent {
            self.notes.claim(family, key.as_deref(), line.place.num);
            return;
        }
        if self.notes.is_claimed(&note.claimed_by, key.as_deref(), line.place.num) {
            return;
        }
        let mut trace = OpenTrace::single(found.entry, line, found.view);
        trace.context = self.context(cx, line.place.num, line);
        if note.waits {
            for unclaimed in self.notes.wait(note.claimed_by.clone(), key, trace) {
                self.publish(cx, &unclaimed, out);
            }
        } else {
            // One status line is enough: it claims those that say the same after it.
            self.publish(cx, &trace, out);
            self.notes.claim(family, key.as_deref(), line.place.num);
        }
    }

    fn border(&mut self, cx: &Context, out: &mut Vec<Event>) {
        self.end_regions(cx, 0, out);
        for unclaimed in self.notes.settle() {
            self.publish(cx, &unclaimed, out);
        }
    }

    fn absorbed(&self, cx: &Context) -> bool {
        self.regions.iter().any(|open| region(cx, open.entry).is_some_and(|region| region.absorb))
    }

    fn enter(&mut self, entry: u16, region: &Region) {
        if let Some(open) = self.regions.iter_mut().find(|open| open.entry == entry) {
            open.left = region.max_lines;
        } else if self.regions.len() < MAX_REGIONS {
            self.regions.push(OpenRegion { entry, left: region.max_lines });
        }
    }

    fn close_regions(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) {
        for at in 0..self.regions.len() {
            let open = &mut self.regions[at];
            open.left = open.left.saturating_sub(1);
            let ended = open.left == 0 || region(cx, open.entry).is_none_or(|region| region.close.is_match(line.body()));
            if ended {
                self.end_regions(cx, at, out);
                self.redo(cx, line.now(), out);
                return;
            }
        }
    }

    /// Ends the regions from `first` on, with the traces that began in them.
    fn end_regions(&mut self, cx: &Context, first: usize, out: &mut Vec<Event>) {
        if self.regions.len() <= first {
            return;
        }
        self.regions.truncate(first);
        while let Some(at) = self.open.iter().position(|trace| trace.depth > first) {
            self.close(cx, at, out);
        }
    }

    /// Whether the line is a further one of the noise block under way. The lines between, which had no
    /// hit, are judged only now.
    fn in_noise_block(&mut self, cx: &Context, line: &Line, is_hit: bool) -> bool {
        let Some(open) = self.noise else { return false };
        let Kind::Noise { block: Some((regex, _)), .. } = &cx.engine.rules.entries[usize::from(open.entry)].kind else { return false };
        let lines = line.place.num.saturating_sub(open.last_num);
        let continues = |line: &Line| regex.is_match(line.text) || regex.is_match(line.body());
        let inside = lines <= u64::from(open.left) && continues(line) && cx.back.all_between(open.last_num, line, continues);
        // Only a hit moves the block on: whoever skips the other lines must come to the same.
        if is_hit {
            self.noise = inside.then(|| OpenNoise { left: open.left - lines as u32, last_num: line.place.num, ..open });
        }
        inside
    }

    /// Ends the trace at `at`: an event if it came to one; the lines after its last accepting one
    /// go back to the start state.
    fn close(&mut self, cx: &Context, at: usize, out: &mut Vec<Event>) {
        let mut trace = self.open.remove(at);
        let outcome = trace.outcome(&cx.engine.rules.entries);
        let used = outcome.map_or(0, |outcome| outcome.lines);
        if outcome.is_some() {
            self.publish(cx, &trace, out);
        }
        let first = if used == 0 { trace.lead } else { used.min(trace.lines.len()) };
        if used == 0
            && let Some(single) = trace.adopted.take()
        {
            // It had adopted a one-line error, which stands by itself again.
            self.open.push(*single);
        }
        if first < trace.lines.len() {
            self.given = std::mem::take(&mut trace.context);
            let before = first.saturating_sub(cx.engine.limits.context_a_side());
            trace.lines.from(before).for_each(|taken| self.given.push_numbered(taken.place.num, taken.text));
        }
        for (index, taken) in trace.lines.from(first).enumerate() {
            self.again.push_back((taken.place.clone(), taken.text.to_vec(), used == 0 && index == 0));
        }
    }

    /// The trace has ended: an event, if it is none yet; what it claims.
    fn publish(&mut self, cx: &Context, trace: &OpenTrace, out: &mut Vec<Event>) {
        let Some(outcome) = trace.outcome(&cx.engine.rules.entries) else { return };
        let last_num = outcome.last_num.max(trace.lines.get(0).place.num);
        self.claimed_to = self.claimed_to.max(last_num);
        if let Some(cut) = self.cut_after(trace.anchor()) {
            cut.claimed(last_num);
        }
        if self.is_repeat(cx, trace, outcome) {
            // The one-line error that it had adopted is no repeat.
            if let Some(single) = &trace.adopted {
                self.publish(cx, single, out);
            }
            return;
        }
        if !trace.published {
            out.push(extract::event(cx.engine, cx.origin, trace, outcome, false));
        }
        let entry = &cx.engine.rules.entries[usize::from(outcome.entry)];
        if entry.claims() {
            let key = extract::key(cx.engine, trace, outcome);
            self.notes.claim(entry.family, key.as_deref(), outcome.last_num);
            if let Some(cut) = self.cut_after(trace.anchor()) {
                cut.claim(entry.family, key.as_deref(), outcome.last_num);
            }
        }
    }

    /// At line `num`: notes that have waited in vain are events.
    pub fn expire(&mut self, cx: &Context, num: u64, out: &mut Vec<Event>) {
        for unclaimed in self.notes.expired(num) {
            self.publish(cx, &unclaimed, out);
        }
    }

    /// A runner prints a failure again: an event said the same before this trace began.
    fn is_repeat(&self, cx: &Context, trace: &OpenTrace, outcome: Outcome) -> bool {
        let entry = &cx.engine.rules.entries[usize::from(outcome.entry)];
        let once = matches!(&entry.kind, Kind::Trace(machine) if machine.once);
        once && extract::key(cx.engine, trace, outcome)
            .is_some_and(|key| self.notes.was_claimed(entry.family, &key, trace.claims_before, trace.lines.get(0).place.num))
    }

    /// The next moment at which something open is published.
    #[must_use]
    pub fn deadline(&self, engine: &Engine) -> Option<Timestamp> {
        let due = |trace: &OpenTrace| Timestamp(trace.touched_at.0.saturating_add(engine.limits.trace_idle_us));
        self.open.iter().filter(|trace| !trace.paused && trace.outcome(&engine.rules.entries).is_some()).map(due).min()
    }

    /// Publishes what has been quiet since before its deadline; it stays open and swallows its late
    /// lines. Nothing else changes: what it claims, it claims when it ends.
    pub fn tick(&mut self, cx: &Context, now: Timestamp, out: &mut Vec<Event>) {
        for at in 0..self.open.len() {
            let trace = &self.open[at];
            let due = trace.touched_at.0.saturating_add(cx.engine.limits.trace_idle_us) <= now.0;
            if !due || trace.paused {
                continue;
            }
            let Some(outcome) = trace.outcome(&cx.engine.rules.entries) else { continue };
            if !self.is_repeat(cx, trace, outcome) {
                out.push(extract::event(cx.engine, cx.origin, trace, outcome, true));
                self.open[at].published = true;
            }
            self.open[at].paused = true;
        }
    }

    /// The stream has ended: everything open comes to what it has come to.
    pub fn finish(&mut self, cx: &Context, now: Timestamp, out: &mut Vec<Event>) {
        while !self.open.is_empty() {
            self.close(cx, 0, out);
            self.redo(cx, now, out);
        }
        self.regions.clear();
        self.noise = None;
        for unclaimed in self.notes.settle() {
            self.publish(cx, &unclaimed, out);
        }
    }

    /// Tells the notes that an event of `entry`'s family was found elsewhere (in a record).
    pub fn claim(&mut self, family: u16, num: u64) {
        self.notes.claim(family, None, num);
    }

    /// The entries of the regions that are open, outermost first, and of the traces; for `explain`.
    #[must_use]
    pub fn opened(&self) -> (Vec<u16>, Vec<u16>) {
        let traces = self.open.iter().flat_map(OpenTrace::rivals);
        (self.regions.iter().map(|region| region.entry).collect(), traces.collect())
    }

    /// Lines that were looked at again.
    #[must_use]
    pub fn reread(&self) -> u64 {
        self.reread
    }

    /// Buffers for scans of single lines.
    pub fn work(&mut self) -> &mut Work {
        &mut self.work
    }
}

/// Says nothing of its writer: it stands where the line before it left off.
fn is_bare(line: &Line) -> bool {
    !line.prefix().shaped && line.place.key.is_none()
}

fn region<'e>(cx: &Context<'e>, entry: u16) -> Option<&'e Region> {
    match &cx.engine.rules.entries[usize::from(entry)].kind {
        Kind::Region(region) => Some(region),
        _ => None,
    }
}

enum Offer {
    /// The line belongs to the trace.
    Taken,
    /// The line is another writer's: it says nothing about the trace.
    Elsewhere,
    /// The line is the same writer's and does not belong to the trace.
    Ended,
}

fn offer(cx: &Context, trace: &mut OpenTrace, line: &Line) -> Offer {
    if line.place.io != trace.lines.get(0).place.io {
        return Offer::Elsewhere;
    }
    if shown::stands_alone(line.text) {
        return Offer::Ended;
    }
    let limits = &cx.engine.limits;
    if trace.is_single() {
        return offer_single(cx, trace, line);
    }
    let entries = &cx.engine.rules.entries;
    let view = if trace.shaped && line.prefix().shaped { trace.view.at_least_body() } else { View::Text };
    let keyed = trace.key.is_some() && line.prefix().key.is_some() || line.place.key.is_some();
    if keyed && trace.key.as_deref() != line.key() {
        return Offer::Elsewhere;
    }
    let part = view.of(line);
    if trace.offer(entries, part, line.place.num) {
        trace.push(line, part, limits.max_trace_lines, limits.max_trace_bytes);
        return Offer::Taken;
    }
    Offer::Ended
}

/// A one-line error with a time stamp owns the indented lines without one that follow it.
fn offer_single(cx: &Context, trace: &mut OpenTrace, line: &Line) -> Offer {
    let limits = &cx.engine.limits;
    let adjacent = line.place.num == trace.last_num + 1;
    let indented = matches!(line.body().first(), Some(b' ' | b'\t'));
    if line.prefix().shaped && line.key() != trace.key.as_deref() {
        return Offer::Elsewhere;
    }
    if adjacent && indented && !line.is_stamped() && trace.stamped && trace.taken() < MAX_SEEN_LINES {
        // A blank line that is indented belongs to it when a further line does.
        trace.extend_single(line, !line.is_blank(), limits.max_trace_lines, limits.max_trace_bytes);
        return Offer::Taken;
    }
    // Its causes may stand behind a blank line, in a trace that adopts it.
    if adjacent && line.text.is_empty() && trace.stamped && !trace.is_on_trial() {
        trace.extend_single(line, false, limits.max_trace_lines, limits.max_trace_bytes);
        return Offer::Taken;
    }
    Offer::Ended
}
