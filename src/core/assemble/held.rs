//! Events that are held back. A test may print errors that it expects, and its verdict comes after them. So the events
//! of a region with verdicts wait for the next one: a pass drops them, anything else releases them. A test runner's own
//! events wait for no verdict, only for the events before them: all come out in the order of their lines. Nothing waits
//! for longer than [`Patience::Verdict`], or than [`Patience::Long`] where nothing says yet that tests run, nor behind
//! more than [`MAX_EVENTS`] others, there [`MAX_UNSURE_EVENTS`]. Block boundaries decide nothing here; of the pauses, only these release events.

use std::collections::VecDeque;

use super::regions::{OpenRegion, region};
use super::{Assembler, Context};
use crate::core::event::{Event, Timestamp};
use crate::core::line::{Line, View};
use crate::core::notes::{Claimant, explains};
use crate::core::patience::Patience;
use crate::core::trace::{OpenTrace, Outcome};
use crate::core::writer::Writer;
use crate::rules::{Entry, Kind, Note, Region};
use crate::words::Category;

/// Maximum number of events held back in one stream; beyond it, the oldest is released.
const MAX_EVENTS: usize = 128;
/// The same where nothing says yet that tests run.
const MAX_UNSURE_EVENTS: usize = 32;

/// Events that wait for a verdict.
#[derive(Default)]
pub(super) struct Held {
    queue: VecDeque<Waiting>,
    /// What passes took back, if that is kept; at most [`MAX_EVENTS`].
    taken: Vec<Event>,
    keeps: bool,
    /// Whether a pass has been said of anything.
    has_passed: bool,
}

/// An event that waits, with its claim once it counts.
pub(super) struct Waiting {
    pub(super) event: Event,
    pub(super) anchor: u64,
    /// The line that began it: its number and its index within a record.
    pub(super) head: (u64, u32),
    pub(super) last_num: u64,
    /// Who wrote its lines.
    pub(super) writer: Writer,
    /// Who claims, and with which key.
    pub(super) claim: Option<(Claimant, Option<Vec<u8>>)>,
    /// How long it waits for a verdict.
    pub(super) wait: Patience,
    /// Whether it waits only for the events before it, and no pass drops it.
    pub(super) is_certain: bool,
}

impl Waiting {
    /// Whether it is an event of `family` about `key`.
    fn says(&self, family: u16, key: &[u8]) -> bool {
        self.claim.as_ref().is_some_and(|(who, said)| who.family == family && said.as_deref() == Some(key))
    }
}

/// What a line says about a region with verdicts; a failure if neither holds.
#[derive(Clone, Copy, Debug)]
struct Judged {
    /// Who says it.
    writer: Writer,
    /// What began before this line has nothing to do with it.
    since: (u64, u32),
    is_passed: bool,
    is_end: bool,
}

impl Held {
    /// Returns how long the first event waits, and since when.
    pub(super) fn wait(&self) -> Option<(Patience, Timestamp)> {
        self.queue.front().map(|waiting| (waiting.wait, waiting.event.observed_at))
    }

    /// Handles a verdict at line `num`, which is about what its writer wrote in its region before it: a pass takes those
    /// events back. A trace may have given that line back after later ones were read, which the next verdict is about.
    fn judge(&mut self, num: u64, judged: Judged) {
        let is_about = |waiting: &Waiting| waiting.head > judged.since && waiting.event.line_num <= num && waiting.writer.may_be(judged.writer);
        let is_meant = |waiting: &Waiting| !waiting.is_certain && is_about(waiting);
        if judged.is_passed {
            self.take(is_meant);
        }
        self.queue.iter_mut().filter(|waiting| is_meant(waiting)).for_each(|waiting| waiting.is_certain = true);
    }

    /// Takes back what `is_meant`: it is no error.
    fn take(&mut self, is_meant: impl Fn(&Waiting) -> bool) {
        self.has_passed = true;
        self.leave_out(is_meant);
    }

    /// Takes back what an event of `family` says of `key`: a runner has said at line `num` that this test should fail as it did.
    pub(super) fn take_back(&mut self, family: u16, key: &[u8], num: u64) {
        self.leave_out(|waiting| !waiting.is_certain && waiting.last_num < num && waiting.says(family, key));
    }

    fn leave_out(&mut self, is_meant: impl Fn(&Waiting) -> bool) {
        if self.queue.is_empty() {
            return;
        }
        let (meant, left): (VecDeque<Waiting>, _) = std::mem::take(&mut self.queue).into_iter().partition(is_meant);
        self.queue = left;
        let room = if self.keeps { MAX_EVENTS - self.taken.len() } else { 0 };
        self.taken.extend(meant.into_iter().map(|waiting| waiting.event).take(room));
    }

    /// Whether a waiting event says of `key` what another one of `family` says that begins at line `num`.
    pub(super) fn has_said(&self, family: u16, key: &[u8], num: u64) -> bool {
        self.queue.iter().any(|waiting| waiting.last_num < num && waiting.says(family, key))
    }

    /// Whether a waiting event says what `note` about `key` reports at line `num`. If a runner reports it (`is_certain`), no pass drops that event.
    pub(super) fn explains(&mut self, note: &Note, key: Option<&[u8]>, num: u64, is_certain: bool) -> bool {
        let mut found = false;
        for waiting in &mut self.queue {
            let (Some((who, said)), Some(lines)) = (&waiting.claim, num.checked_sub(waiting.last_num)) else { continue };
            if (key.is_none() || key == said.as_deref()) && explains(*who, note, lines) {
                found = true;
                waiting.is_certain |= is_certain;
            }
        }
        found
    }

    /// Returns the smallest offset at which a waiting event began.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.queue.iter().map(|waiting| waiting.anchor).min()
    }
}

impl OpenRegion {
    /// Returns what the line says about the region; `None` if it is neither a verdict nor the region's end, or of another writer.
    fn judged(&self, cx: &Context, line: &Line) -> Option<Judged> {
        let region = region(cx, self.entry).filter(|_| self.is_of(line.writer()))?;
        let judged = region.judged(line)?;
        // Where the first line comes late, some of what the region is about stands above it.
        Some(Judged { since: if region.late { (0, 0) } else { self.since }, ..judged })
    }
}

impl Region {
    pub(super) fn has_verdicts(&self) -> bool {
        self.verdicts.is_some()
    }

    /// Returns what the line says about the region; `None` if it is neither a verdict nor the region's end.
    fn judged(&self, line: &Line) -> Option<Judged> {
        let verdicts = self.verdicts.as_ref()?;
        let said = |text: &[u8], view: View| {
            let (is_passed, is_end) = (verdicts.pass.is_match(text), self.close.is_match(text));
            let is_failed = || verdicts.fail.as_ref().is_some_and(|fail| fail.is_match(text));
            (is_passed || is_end || is_failed()).then(|| Judged { writer: line.writer_before(view), since: (0, 0), is_passed, is_end })
        };
        let said_inside = || said(line.marked()?, View::AfterWriter);
        said(line.body(), View::Body).or_else(|| said(line.padded()?, View::Padded)).or_else(said_inside)
    }

    /// Whether `text` ends the region. Regions with verdicts are checked in `verdicts` instead.
    pub(super) fn ends_before(&self, text: &[u8]) -> bool {
        !self.has_verdicts() && self.close.is_match(text)
    }
}

/// Whether the entry is what a test runner says of a test: that waits for no verdict.
pub(super) fn is_runners(cx: &Context, entry: &Entry) -> bool {
    let is_report = entry.fault.category == Some(Category::TestFailure) && !entry.generic && !matches!(entry.kind, Kind::Rule(_));
    is_report || cx.engine.rules.families[usize::from(entry.family)].test
}

impl Assembler {
    /// Returns how long the event of `category` that `trace` became by `entry` waits for a verdict; `None`: it waits for none.
    pub(super) fn wait_for_verdict(&self, cx: &Context, trace: &OpenTrace, entry: u16, category: Option<Category>) -> Option<Patience> {
        if is_runners(cx, &cx.engine.rules.entries[usize::from(entry)]) { None } else { self.wait_on_trial(cx, trace, category) }
    }

    /// The same for an open trace, which may have no outcome yet.
    pub(super) fn may_wait_for_verdict(&self, cx: &Context, trace: &OpenTrace, outcome: Option<Outcome>) -> Option<Patience> {
        outcome.map_or_else(|| self.wait_on_trial(cx, trace, None), |outcome| self.wait_for_verdict(cx, trace, outcome.entry, None))
    }

    fn wait_on_trial(&self, cx: &Context, trace: &OpenTrace, category: Option<Category>) -> Option<Patience> {
        let head = trace.lines.from(trace.lead).next()?;
        self.wait(cx, (head.place.num, head.place.inner), trace.setting.writer, category)
    }

    /// Returns how long errors of `category`, if it is known, wait for a verdict: they begin
    /// at a line with this number and index within a record, which `writer` wrote.
    fn wait(&self, cx: &Context, place: (u64, u32), writer: Writer, category: Option<Category>) -> Option<Patience> {
        // Where nothing says that tests run, what a build says is its own.
        let is_builds = matches!(category, Some(Category::BuildError | Category::DependencyError | Category::SyntaxError));
        let has_verdicts = |open: &&OpenRegion| region(cx, open.entry).is_some_and(Region::has_verdicts);
        let holds = |open: &&OpenRegion| open.since < place && open.is_of(writer) && !(open.implied && is_builds);
        let around = self.regions.iter().filter(|open| holds(open) && has_verdicts(open));
        around.map(|open| if open.implied { Patience::Long } else { Patience::Verdict }).max()
    }

    /// The same for an error in a line that is being read.
    pub(super) fn wait_at(&self, cx: &Context, line: &Line) -> Option<Patience> {
        self.wait(cx, (line.place.num, line.place.inner), line.writer(), None)
    }

    /// Handles an event that a record in `line` states, by `entry`. It waits wherever events of other lines wait.
    pub fn state(&mut self, cx: &Context, line: &Line, event: Event, entry: Option<&Entry>, out: &mut Vec<Event>) {
        self.own(line.place.offset, line.place.num);
        if self.told.contains(&(event.offset, event.inner)) {
            return;
        }
        let claim = entry.filter(|entry| entry.claims()).map(|entry| (Claimant::of(entry), None));
        let (anchor, last_num) = (line.place.offset, line.place.num);
        if !entry.is_some_and(|entry| is_runners(cx, entry))
            && let Some(wait) = self.wait_at(cx, line)
        {
            let head = (line.place.num, line.place.inner);
            self.hold(Waiting { event, anchor, head, last_num, writer: line.writer(), claim, wait, is_certain: false }, out);
            return;
        }
        self.emit(event, anchor, out);
        if let Some((who, key)) = claim {
            self.claim(who, key.as_deref(), (anchor, last_num));
        }
    }

    /// Publishes an event that began at `anchor`, after those that wait.
    pub(super) fn emit(&mut self, event: Event, anchor: u64, out: &mut Vec<Event>) {
        if self.held.queue.is_empty() {
            out.push(event);
        } else {
            let (head, last_num, writer) = Default::default();
            self.hold(Waiting { event, anchor, head, last_num, writer, claim: None, wait: Patience::Verdict, is_certain: true }, out);
        }
    }

    pub(super) fn hold(&mut self, waiting: Waiting, out: &mut Vec<Event>) {
        let most = if waiting.wait == Patience::Verdict { MAX_EVENTS } else { MAX_UNSURE_EVENTS };
        // A trace that began earlier may end later.
        let place = |waiting: &Waiting| (waiting.event.offset, waiting.event.inner);
        let at = self.held.queue.partition_point(|other| place(other) <= place(&waiting));
        self.held.queue.insert(at, waiting);
        if self.held.queue.len() > most {
            self.release_first(out);
        }
    }

    /// Handles what the line says about its regions: a verdict or an end.
    pub(super) fn verdicts(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) {
        for at in 0..self.regions.len() {
            let Some(judged) = self.regions[at].judged(cx, line) else { continue };
            // What still waited for continuation lines comes first.
            self.end_unadopted(cx, line, out);
            self.held.judge(line.place.num, judged);
            self.release_certain(out);
            if judged.is_end {
                self.end_region(cx, at, out);
                return;
            }
        }
    }

    /// Returns who says with this line whether what an open region holds back is an error, or that the region ends;
    /// if `passed`, only who says that it is none.
    pub(super) fn verdict_of(&self, cx: &Context, line: &Line, passed: bool) -> Option<Writer> {
        let verdict = |open: &OpenRegion| open.judged(cx, line).filter(|judged| judged.is_passed || !passed);
        self.regions.iter().find_map(verdict).map(|judged| judged.writer)
    }

    /// Lets nothing wait for a verdict whose writer is in no region with verdicts any more.
    pub(super) fn release_outside(&mut self, cx: &Context, out: &mut Vec<Event>) {
        let is_outside = |writer: Writer| !self.regions.iter().any(|open| open.is_of(writer) && region(cx, open.entry).is_some_and(Region::has_verdicts));
        self.held.queue.iter_mut().filter(|waiting| is_outside(waiting.writer)).for_each(|waiting| waiting.is_certain = true);
        let waits = |trace: &&mut OpenTrace| trace.pauses.next == Some(Patience::Verdict) && is_outside(trace.setting.writer);
        self.open.iter_mut().filter(waits).for_each(|trace| trace.pauses.next = Some(Patience::Short));
        self.release_certain(out);
    }

    /// Keeps the first events that passes take back, for [`give_back`](Self::give_back).
    pub fn keep_taken(&mut self) {
        self.held.keeps = true;
    }

    /// Whether anything in the stream has passed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.held.has_passed
    }

    /// Returns what passes took back.
    pub fn give_back(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.held.taken)
    }

    /// Takes back everything that waits for a verdict.
    pub(super) fn pass_all(&mut self) {
        self.held.take(|waiting| !waiting.is_certain);
    }

    pub(super) fn release(&mut self, out: &mut Vec<Event>) {
        while self.held.wait().is_some() {
            self.release_first(out);
        }
    }

    /// Releases the event that has waited longest, and those that have waited only for it.
    pub(super) fn release_first(&mut self, out: &mut Vec<Event>) {
        let Some(mut first) = self.held.queue.pop_front() else { return };
        first.event.on_trial = !first.is_certain;
        self.give(first, out);
        self.release_certain(out);
    }

    /// Releases what no longer waits, up to the first event that does.
    pub(super) fn release_certain(&mut self, out: &mut Vec<Event>) {
        while self.held.queue.front().is_some_and(|next| next.is_certain)
            && let Some(next) = self.held.queue.pop_front()
        {
            self.give(next, out);
        }
    }

    fn give(&mut self, waiting: Waiting, out: &mut Vec<Event>) {
        out.push(waiting.event);
        if let Some((who, key)) = waiting.claim {
            self.claim(who, key.as_deref(), (waiting.anchor, waiting.last_num));
        }
    }

    /// Makes the claim of an event that began at `anchor` and whose last line is `last_num`.
    pub(super) fn claim(&mut self, who: Claimant, key: Option<&[u8]>, (anchor, last_num): (u64, u64)) {
        self.notes.claim(who, key, last_num);
        if let Some(cut) = self.cut_after(anchor) {
            cut.claim(who, key, last_num);
        }
    }
}
