//! Which lines form one error: checks whether each line ends a region or continues an open trace,
//! then whether it begins something. Owns what is open in one stream; every bound is in lines of that
//! stream, never in time. What a line means is decided in `confirm`; fields are filled in `extract`.

use std::collections::{BTreeSet, VecDeque};

use super::block::Block;
use super::confirm::{Confirm, Found};
use super::engine::{Candidate, Engine};
use super::event::{Event, Lines, Spot};
use super::extract::Origin;
use super::leadin::LeadIn;
use super::line::{Line, Tried, View};
use super::lookback::LookBack;
use super::notes::Notes;
use super::prefilter::{Hit, Scratch};
use super::record;
use super::trace::{OpenTrace, lead_in};
use crate::rules::{Kind, Take};

mod again;
mod beneath;
mod ending;
mod facts;
mod held;
mod inner;
mod noise_block;
mod noted;
mod offer;
mod pause;
mod pointed;
mod publish;
mod quiet;
mod regions;
mod verdicts;
use again::Again;
pub use facts::Facts;
use held::Held;
pub use inner::{InnerText, MAX_TEXT_LINES, is_too_long};
use noise_block::OpenNoise;
use quiet::Cut;
pub use quiet::Snapshot;
use regions::OpenRegion;

/// Maximum number of traces open at once in a stream; beyond it, the one that was continued longest ago ends.
const MAX_OPEN_TRACES: usize = 32;
/// Maximum number of rival machines for one head line.
const MAX_RIVALS: usize = 8;
/// A line that traces have given back this often begins none itself: of many heads in a row that come to nothing, each would give back all that follow.
const MAX_REREADS: u8 = 16;
/// Which of them a row has refused is a bit for each.
const _: () = assert!(MAX_RIVALS <= u8::BITS as usize);

/// What is open in one stream.
#[derive(Default)]
pub struct Assembler {
    open: Vec<OpenTrace>,
    regions: Vec<OpenRegion>,
    /// Whether the first error opens the region that a finished log implies.
    implies: bool,
    notes: Notes,
    held: Held,
    noise: Option<OpenNoise>,
    /// Lines that a closed trace gave back.
    again: VecDeque<Again>,
    reread: u64,
    unasked: u64,
    cut_sections: u64,
    /// Lines of something open that a pause has published as events of their own.
    /// A trace that takes such a line in vain does not know about it.
    told: BTreeSet<Spot>,
    /// The lines given back last, and the context before them.
    given: Lines,
    /// Number of the last line that belongs to an event.
    claimed_to: u64,
    /// A place where the stream could be resumed if nothing open continues across it.
    cut: Option<Cut>,
    work: Work,
}

/// Buffers that are reused between lines.
#[derive(Default)]
pub struct Work {
    /// For scans of single lines.
    pub scratch: Scratch,
    /// Their hits.
    pub hits: Vec<Hit>,
    /// Their candidates.
    pub candidates: Vec<Candidate>,
}

/// What a line is processed with.
pub struct Context<'a> {
    /// Rules and limits.
    pub engine: &'a Engine,
    /// The stream.
    pub origin: &'a Origin,
    /// Lines before the current one.
    pub back: LookBack<'a>,
    /// How deeply this line is nested inside records.
    pub depth: u8,
}

impl<'a> Context<'a> {
    /// Returns the context of the stream as a whole: no line stands before, and none is nested.
    #[must_use]
    pub fn of(engine: &'a Engine, origin: &'a Origin) -> Self {
        Self { engine, origin, back: LookBack::default(), depth: 0 }
    }
}

/// Chooses the view after the quote mark if every machine that begins at the line as it
/// stands begins there, too. After a logger's prefix, more machines than that must begin
/// there. If the mark is mere indentation, none may begin at the line as it stands.
fn prefer_quoted((quoted, inner): (Vec<u16>, View), rivals: &mut Vec<u16>, view: View, line: &Line) -> View {
    let View::Quoted(from) = inner else { return view };
    let prefix = line.prefix();
    let has_sign = prefix.levels == 0 && !line.text[prefix.body..from].trim_ascii().is_empty();
    let has_hidden = prefix.levels > 0 && quoted.len() > rivals.len();
    if !rivals.is_empty() && !((has_sign || has_hidden) && rivals.iter().all(|entry| quoted.contains(entry))) {
        return view;
    }
    *rivals = quoted;
    inner
}

/// Returns what precedes the head of a trace of the machines `rivals` in `line`.
fn lead_in_of(cx: &Context, rivals: &[u16], line: &Line, view: View) -> LeadIn {
    match view {
        View::AfterWriter => LeadIn::of_writer(line, view),
        View::Quoted(from) => LeadIn::quoting(line, from),
        View::Body | View::Message if let Some(name) = line.outer_name() => LeadIn::named(name),
        _ => lead_in(&cx.engine.rules.entries, rivals, line, view),
    }
}

/// Whether a line before the head must name the error.
fn needs_lead(kind: &Kind) -> bool {
    matches!(kind, Kind::Trace(machine) if machine.before.iter().any(|before| matches!(before.take, Take::Exception | Take::Text)))
}

impl Assembler {
    /// Returns `true` if something is open: then every line must be shown.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.open.is_empty() || !self.regions.is_empty()
    }

    /// Processes one line with the candidates that its literals lead to. What it ends comes out in the order of the events' lines.
    pub fn line(&mut self, cx: &Context, line: &Line, candidates: &[Candidate], out: &mut Vec<Event>) {
        let before = out.len();
        self.take(cx, line, candidates, out);
        out[before..].sort_by_key(|event| (event.offset, event.inner));
    }

    fn take(&mut self, cx: &Context, line: &Line, candidates: &[Candidate], out: &mut Vec<Event>) {
        // Here too, and not only at the end of a block: block boundaries must not affect the order of events.
        self.expire(cx, line.place.num.saturating_sub(1), out);
        if self.close_regions(cx, line, out) {
            return;
        }
        if self.continue_open(cx, line, Some(candidates), out) {
            return;
        }
        while !self.again.is_empty() {
            self.redo(cx, line.now(), out);
            self.close_reopened(cx, line, out);
            if self.again.is_empty() && self.continue_open(cx, line, Some(candidates), out) {
                return;
            }
        }
        self.fresh(cx, line, candidates, out);
        // The new trace may have pushed out an older one, which gave lines back.
        self.redo(cx, line.now(), out);
    }

    fn fresh(&mut self, cx: &Context, line: &Line, candidates: &[Candidate], out: &mut Vec<Event>) {
        let is_hit = !candidates.is_empty();
        if self.sealed(cx, line) {
            self.end_unadopted(cx, line, out);
            return;
        }
        self.verdicts(cx, line, out);
        if (is_hit || !self.regions.is_empty()) && !self.in_noise_block(cx, line, is_hit) {
            self.begin(cx, line, candidates, out);
        }
        self.end_unadopted(cx, line, out);
    }

    fn begin(&mut self, cx: &Context, line: &Line, candidates: &[Candidate], out: &mut Vec<Event>) {
        let mut confirm = Confirm::new(cx.engine, line, candidates);
        if let Some(structured) = record::decode(line, candidates) {
            if !self.absorbed(cx, line) {
                record::Reading { outer: self, cx, line, candidates, out }.read(structured);
            }
            return;
        }
        if let Some(entry) = confirm.border() {
            self.border(cx, line, entry, out);
        }
        if let Some((entry, lines)) = confirm.noise_block() {
            self.noise = Some(OpenNoise { entry, left: lines, last_num: line.place.num, writer: line.writer() });
            return;
        }
        if let Some((entry, region, view)) = confirm.region() {
            self.enter(cx, (entry, region), line, view, out);
            return;
        }
        let is_spent = line.rereads >= MAX_REREADS;
        let may_begin = line.tried.may_begin() && cx.engine.limits.capture_multiline && !is_spent;
        if may_begin && self.start_trace(cx, line, &mut confirm, out) {
            return;
        }
        if line.tried.may_be_absorbed() && self.absorbed(cx, line) {
            return;
        }
        // What still waits for continuation lines comes before this line, and claims it.
        self.end_unadopted(cx, line, out);
        if let Some(found) = confirm.note() {
            self.note(cx, line, found, out);
        } else if let Some(found) = confirm.rule() {
            self.single(cx, line, found, out);
        } else {
            self.unasked += u64::from(confirm.unasked().is_some() || (is_spent && !confirm.starts().0.is_empty()));
        }
    }

    /// Returns the machines that may begin at the line, and the part of it that they are shown.
    fn rivals(&self, cx: &Context, line: &Line, confirm: &mut Confirm) -> (Vec<u16>, View) {
        let (mut rivals, mut view) = self.weak_starts(cx, line);
        if rivals.is_empty() && !self.absorbed(cx, line) {
            (rivals, view) = confirm.starts();
            if line.tried != Tried::Quoted {
                view = prefer_quoted(confirm.quoted_starts(), &mut rivals, view, line);
            }
        }
        rivals.truncate(MAX_RIVALS);
        (rivals, view)
    }

    /// Returns the lines before `line` with which `entry` begins; none if another open trace holds one of them.
    fn lead_of(&self, cx: &Context, entry: u16, line: &Line, lead_in: &LeadIn, back: LookBack) -> Block {
        let lead = back.lead(&cx.engine.rules.entries, entry, line, lead_in, self.claimed_to);
        if lead.is_empty() {
            return lead;
        }
        let mine = self.record_above(line);
        let is_held = self.open.iter().enumerate().any(|(at, trace)| Some(at) != mine && trace.lines.shares(&lead));
        if is_held { Block::default() } else { lead }
    }

    /// Returns the longest lead of the rivals, and drops rivals that need one but have none.
    fn lead(&self, cx: &Context, line: &Line, lead_in: &LeadIn, back: LookBack, rivals: &mut Vec<u16>) -> Block {
        let entries = &cx.engine.rules.entries;
        let leads: Vec<Block> = rivals.iter().map(|&entry| self.lead_of(cx, entry, line, lead_in, back)).collect();
        let mut found = leads.iter().map(|lead| !lead.is_empty());
        // The record above the line names the error.
        let has_head = self.record_above(line).is_some();
        rivals.retain(|&entry| found.next() == Some(true) || has_head || !needs_lead(&entries[usize::from(entry)].kind));
        leads.into_iter().max_by_key(Block::len).unwrap_or_default()
    }

    fn start_trace(&mut self, cx: &Context, line: &Line, confirm: &mut Confirm, out: &mut Vec<Event>) -> bool {
        let (mut rivals, view) = self.rivals(cx, line, confirm);
        if rivals.is_empty() {
            return false;
        }
        let entries = &cx.engine.rules.entries;
        if !self.keep_under_record(cx, line, view, &mut rivals) {
            self.end_unadopted(cx, line, out);
        }
        let (lead_in, back) = (lead_in_of(cx, &rivals, line, view), self.look_back(cx, line));
        let lead = self.lead(cx, line, &lead_in, back, &mut rivals);
        if rivals.is_empty() {
            return false;
        }
        let adopted = self.adopt(line);
        let lead = adopted.as_ref().map_or(lead, |single| single.lines.clone());
        let mut trace = OpenTrace::new(entries, &rivals, (lead, lead_in), line, view);
        match adopted {
            Some(single) => {
                trace.unproven = single.prefix.levels > 0 && !single.outranks(line);
                trace.key.clone_from(&single.key);
                trace.time = single.time;
                trace.opened_at = single.opened_at;
                trace.setting.context.clone_from(&single.setting.context);
                trace.pauses.inherit(single.pauses);
                trace.adopted = Some(Box::new(single));
            }
            None => {
                trace.setting.context = self.context(cx, trace.lines.get(0).place.num, line);
                self.heed(cx, &mut trace, line);
                beneath::heed_record(cx, &mut trace, line, view, back);
            }
        }
        let above = rivals.iter().find_map(|&entry| entries[usize::from(entry)].above.as_ref());
        trace.setting.heading = above.and_then(|above| back.file_above(above, line, view));
        self.imply(cx);
        self.settle_in(&mut trace, line);
        trace.setting.claims = self.notes.claims();
        trace.head = Some(Box::new(line.memory(confirm.candidates())));
        self.open(cx, trace, out);
        true
    }

    /// Returns the lines before `line` in which a trace that begins at it may have its first ones.
    fn look_back<'c>(&self, cx: &Context<'c>, line: &Line) -> LookBack<'c> {
        // A line that a pause has published is the first of its event.
        if line.place.inner == 0 && !self.is_published(&line.place) { cx.back } else { LookBack::default() }
    }

    fn open(&mut self, cx: &Context, trace: OpenTrace, out: &mut Vec<Event>) {
        if self.open.len() >= MAX_OPEN_TRACES
            && let Some(at) = (0..self.open.len()).min_by_key(|&at| self.open[at].last_num)
        {
            self.open[at].is_cut_off = true;
            self.close(cx, at, out);
        }
        self.open.push(trace);
    }

    fn single(&mut self, cx: &Context, line: &Line, found: Found, out: &mut Vec<Event>) {
        let mut trace = OpenTrace::single(found.entry, line, found.view);
        // Words that any program uses, and a logger's record, may precede a stack trace that only says where.
        let entry = &cx.engine.rules.entries[usize::from(found.entry)];
        trace.waits = line.is_stamped() || entry.generic;
        self.imply(cx);
        self.settle_in(&mut trace, line);
        if let Some(above) = &entry.above {
            trace.setting.heading = cx.back.file_above(above, line, found.view);
        }
        trace.setting.context = self.context(cx, line.place.num, line);
        self.heed(cx, &mut trace, line);
        // Its source may be shown below it.
        let may_be_shown = trace.waits || pointed::is_placed(found.view.of(line));
        if may_be_shown && cx.engine.limits.capture_multiline {
            self.open(cx, trace, out);
        } else {
            self.publish(cx, &trace, out);
        }
    }

    /// Records in a trace that begins at `line` whether that line is inside the block of a private key,
    /// of which a logger makes a record for each line, and whether a pause has published it.
    fn heed(&self, cx: &Context, trace: &mut OpenTrace, line: &Line) {
        trace.setting.key = cx.back.key_around(line);
        if self.is_published(&line.place) {
            trace.pauses.publish();
        }
    }

    /// Returns the context before line `first`. If that line was given back after
    /// the look-back had moved on, the context comes from the lines given back.
    fn context(&self, cx: &Context, first: u64, line: &Line) -> Lines {
        let wanted = cx.engine.limits.context_a_side();
        let found = cx.back.context(wanted, first, line);
        if found.len() >= wanted || self.given.is_empty() {
            return found;
        }
        self.given.before(first, wanted).unwrap_or(found)
    }

    /// Number of lines that were looked at again.
    #[must_use]
    pub fn reread(&self) -> u64 {
        self.reread
    }

    /// Number of lines that were not asked in full: see [`Counts::unasked`](super::pipeline::Counts::unasked).
    #[must_use]
    pub fn unasked(&self) -> u64 {
        self.unasked
    }

    /// Number of sections that were not followed to their end because too many were open.
    #[must_use]
    pub fn cut_sections(&self) -> u64 {
        self.cut_sections
    }

    /// Counts lines inside a record of which not all was asked.
    pub(super) fn add_unasked(&mut self, lines: u64) {
        self.unasked += lines;
    }

    /// Buffers for scans of single lines.
    pub fn work(&mut self) -> &mut Work {
        &mut self.work
    }
}
