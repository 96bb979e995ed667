//! Events that are held back. A test may print errors that it expects, and its [verdict](super::verdicts) comes after
//! them. So the events of a region with verdicts wait for the next one: a pass drops them, anything else releases them.
//! A test runner's own events wait for no verdict, only for the events before them: all come out in the order of their
//! lines. Nothing waits for longer than [`Patience::Verdict`], or than [`Patience::Long`] where nothing says yet that
//! tests run, nor behind more than [`MAX_EVENTS`] others, there [`MAX_UNSURE_EVENTS`]. Block boundaries decide nothing
//! here; of the pauses, only these release events. For a command, what passes took back is kept in case that it fails,
//! and the time of the last pass, which may be about its other output.

use std::collections::VecDeque;

use super::regions::OpenRegion;
use super::verdicts::{Judged, is_builds, is_runners};
use super::{Assembler, Context};
use crate::core::event::{Event, Timestamp};
use crate::core::line::{Line, Position};
use crate::core::notes::{Claimant, explains};
use crate::core::patience::Patience;
use crate::core::writer::Writer;
use crate::rules::{Entry, Note};

/// Maximum number of events held back in one stream; beyond it, the oldest is released.
const MAX_EVENTS: usize = 128;
/// The same where nothing says yet that tests run.
const MAX_UNSURE_EVENTS: usize = 32;

/// Events that wait for a verdict.
#[derive(Default)]
pub(super) struct Held {
    queue: VecDeque<HeldEvent>,
    /// What passes took back, if that is kept; at most [`MAX_EVENTS`].
    taken: Vec<Event>,
    keeps: bool,
    /// When tests were last said to have passed.
    passed_at: Option<Timestamp>,
}

/// An event that waits, with its claim once it counts.
pub(super) struct HeldEvent {
    pub(super) event: Event,
    pub(super) anchor: u64,
    /// The line that began it.
    pub(super) head: Position,
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

impl HeldEvent {
    /// An event that waits only for those before it: nothing asks which lines it has, nor who wrote them.
    fn certain(event: Event, anchor: u64) -> Self {
        Self { event, anchor, head: Position::BEFORE_ALL, last_num: 0, writer: Writer::default(), claim: None, wait: Patience::Verdict, is_certain: true }
    }

    /// Whether it is an event of `who` about `key`.
    fn says(&self, who: Claimant, key: &[u8]) -> bool {
        let is_who = |other: &Claimant| other.family == who.family && other.service.may_be(who.service);
        self.claim.as_ref().is_some_and(|(other, said)| is_who(other) && said.as_deref() == Some(key))
    }
}

impl Held {
    /// Returns how long the first event waits, and since when.
    pub(super) fn wait(&self) -> Option<(Patience, Timestamp)> {
        self.queue.front().map(|waiting| (waiting.wait, waiting.event.observed_at))
    }

    /// Handles a verdict at line `num`, which is about what its writer wrote in its region before it: a pass takes those
    /// events back. A trace may have given that line back after later ones were read, which the next verdict is about.
    pub(super) fn judge(&mut self, num: u64, judged: Judged, now: Timestamp) {
        let is_by = |waiting: &HeldEvent| {
            let is_known = waiting.head > judged.known_since;
            if is_known { waiting.writer.may_be(judged.writer) } else { waiting.writer == judged.writer && !is_builds(waiting.event.category) }
        };
        let is_about = |waiting: &HeldEvent| waiting.head > judged.since && waiting.event.line_num <= num && is_by(waiting);
        let is_meant = |waiting: &HeldEvent| !waiting.is_certain && is_about(waiting);
        if judged.is_passed {
            if judged.is_of_tests {
                self.passed_at = Some(now);
            }
            self.leave_out(is_meant);
        }
        self.make_certain(is_meant);
    }

    /// Lets no verdict be waited for by what `is_meant`.
    pub(super) fn make_certain(&mut self, is_meant: impl Fn(&HeldEvent) -> bool) {
        self.queue.iter_mut().filter(|waiting| is_meant(waiting)).for_each(|waiting| waiting.is_certain = true);
    }

    /// Another command begins by `writer`'s words: lets what waits for nothing but the verdict of
    /// whatever runner a command calls, in such `regions`, wait no longer.
    pub(super) fn begin(&mut self, cx: &Context, regions: &[OpenRegion], writer: Writer) {
        let is_called = |waiting: &HeldEvent| {
            let mut around = regions.iter().filter(|open| open.has_verdicts(cx) && open.holds_from(waiting.head, waiting.writer));
            around.all(|open| open.is_for_any_runner(cx))
        };
        self.make_certain(|waiting| waiting.writer.may_be(writer) && is_called(waiting));
    }

    /// Takes back what an event of `who` says of `key`: a runner has said at line `num` that this test should fail as it did.
    pub(super) fn take_back(&mut self, who: Claimant, key: &[u8], num: u64) {
        self.leave_out(|waiting| !waiting.is_certain && waiting.last_num < num && waiting.says(who, key));
    }

    /// Takes back what `is_meant`: it is no error.
    fn leave_out(&mut self, is_meant: impl Fn(&HeldEvent) -> bool) {
        if self.queue.is_empty() {
            return;
        }
        let (meant, left): (VecDeque<HeldEvent>, _) = std::mem::take(&mut self.queue).into_iter().partition(is_meant);
        self.queue = left;
        let room = if self.keeps { MAX_EVENTS - self.taken.len() } else { 0 };
        self.taken.extend(meant.into_iter().map(|waiting| waiting.event).take(room));
    }

    /// Whether a waiting event says of `key` what another one of `who` says that begins at line `num`.
    pub(super) fn has_said(&self, who: Claimant, key: &[u8], num: u64) -> bool {
        self.queue.iter().any(|waiting| waiting.last_num < num && waiting.says(who, key))
    }

    /// Whether a waiting event says what `note` by a service about `key` reports at line `num`. If a runner
    /// reports it (`is_certain`), no pass drops that event.
    pub(super) fn explains(&mut self, note: (&Note, Writer), key: Option<&[u8]>, num: u64, is_certain: bool) -> bool {
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

impl Assembler {
    /// Handles an event that a record in `line` states, by `entry`. It waits wherever events of other lines wait.
    pub fn state(&mut self, cx: &Context, line: &Line, event: Event, entry: Option<&Entry>, out: &mut Vec<Event>) {
        self.own(line.place.offset, line.place.num);
        if self.told.contains(&event.spot()) {
            return;
        }
        let claim = entry.filter(|entry| entry.claims()).map(|entry| (Claimant::of(entry, line.service()), None));
        let (anchor, last_num) = (line.place.offset, line.place.num);
        if !entry.is_some_and(|entry| is_runners(cx, entry))
            && let Some(wait) = self.wait_at(cx, line)
        {
            let head = line.place.position();
            self.hold(HeldEvent { event, anchor, head, last_num, writer: line.writer(), claim, wait, is_certain: false }, out);
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
            self.hold(HeldEvent::certain(event, anchor), out);
        }
    }

    pub(super) fn hold(&mut self, waiting: HeldEvent, out: &mut Vec<Event>) {
        let most = if waiting.wait == Patience::Verdict { MAX_EVENTS } else { MAX_UNSURE_EVENTS };
        // A trace that began earlier may end later.
        let at = self.held.queue.partition_point(|other| other.event.spot() <= waiting.event.spot());
        self.held.queue.insert(at, waiting);
        if self.held.queue.len() > most {
            self.release_first(out);
        }
    }

    /// Keeps the first events that passes take back, for [`give_back`](Self::give_back).
    pub fn keep_taken(&mut self) {
        self.held.keeps = true;
    }

    /// Returns when tests were last said to have passed.
    #[must_use]
    pub fn passed_at(&self) -> Option<Timestamp> {
        self.held.passed_at
    }

    /// Returns what passes took back.
    pub fn give_back(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.held.taken)
    }

    /// Takes back everything that waits for a verdict and was seen until then.
    pub(super) fn pass_all(&mut self, until: Timestamp) {
        self.held.leave_out(|waiting| !waiting.is_certain && waiting.event.observed_at <= until);
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

    fn give(&mut self, waiting: HeldEvent, out: &mut Vec<Event>) {
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
