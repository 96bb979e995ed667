//! What happens when an open trace ends: its event, the lines that it gives back, its claims.

use super::again::Again;
use super::held::HeldEvent;
use super::{Assembler, Context};
use crate::core::event::{Event, Timestamp};
use crate::core::extract;
use crate::core::line::{Position, Tried, View};
use crate::core::notes::Claimant;
use crate::core::trace::{OpenTrace, Outcome};
use crate::core::writer::Writer;
use crate::rules::Kind;

impl Assembler {
    /// Ends the trace at `at`. It becomes an event if it has an outcome;
    /// the lines after its last accepting line go back to the start state.
    pub(super) fn close(&mut self, cx: &Context, at: usize, out: &mut Vec<Event>) {
        let mut trace = self.open.remove(at);
        trace.keep_announced();
        let outcome = trace.outcome(&cx.engine.rules.entries);
        let used = outcome.map_or(0, |outcome| outcome.lines);
        self.unasked += trace.lost(outcome) as u64;
        let tried = tried(cx, &trace);
        if outcome.is_some() {
            self.publish(cx, &trace, out);
        }
        let first = if used == 0 { trace.lead } else { used.min(trace.lines.len()) };
        if used == 0
            && let Some(single) = trace.adopted.take()
        {
            // The one-line error that it had adopted stands by itself again.
            self.open.push(*single);
        }
        if first < trace.lines.len() {
            self.given = std::mem::take(&mut trace.setting.context);
            let before = first.saturating_sub(cx.engine.limits.context_a_side());
            trace.lines.from(before).for_each(|taken| self.given.push_numbered(taken.place.num, taken.text));
        }
        let mut head = (used == 0).then(|| (tried, trace.head.take()));
        for taken in trace.lines.from(first) {
            let (tried, memory) = head.take().unwrap_or_default();
            let rereads = taken.rereads.saturating_add(1);
            self.again.push_back(Again { place: taken.place.clone(), text: taken.text.to_vec(), tried, rereads, memory });
        }
    }

    /// Records that an event which began at `anchor` owns the lines up to number `last_num`: no other look-back uses them.
    pub(super) fn own(&mut self, anchor: u64, last_num: u64) {
        self.claimed_to = self.claimed_to.max(last_num);
        if let Some(cut) = self.cut_after(anchor) {
            cut.claimed(last_num);
        }
    }

    /// Publishes the event of a trace that has ended, unless that is done already, and makes its claims.
    pub(super) fn publish(&mut self, cx: &Context, trace: &OpenTrace, out: &mut Vec<Event>) {
        let Some(outcome) = trace.outcome(&cx.engine.rules.entries) else { return };
        let last_num = outcome.last_num.max(trace.lines.get(0).place.num);
        self.own(trace.anchor(), last_num);
        if trace.lead > 0 {
            self.notes.drop_taken(|place| trace.lines.first(trace.lead).any(|taken| taken.place.spot() == place.spot()));
        }
        if self.says_nothing_new(cx, trace, outcome) {
            self.take_back(cx, trace, outcome);
            // The one-line error that it had adopted is not a repetition.
            if let Some(single) = &trace.adopted {
                self.publish(cx, single, out);
            }
            return;
        }
        let entry = &cx.engine.rules.entries[usize::from(outcome.entry)];
        if !trace.pauses.published && !self.is_published(trace.lines.get(0).place) {
            let event = extract::event(cx.engine, cx.origin, trace, outcome, false);
            if let Some(wait) = self.wait_for_verdict(cx, trace, outcome.entry, Some(event.category)) {
                let claim = entry.claims().then(|| (Claimant::of(entry, trace.setting.service), extract::key(cx.engine, trace, outcome)));
                let head = trace.lines.from(trace.lead).next().map_or(Position::BEFORE_ALL, |head| head.place.position());
                let (anchor, last_num, writer) = (trace.anchor(), outcome.last_num, trace.setting.writer);
                self.hold(HeldEvent { event, anchor, head, last_num, writer, claim, wait, is_certain: false }, out);
                return;
            }
            self.emit(event, trace.anchor(), out);
        }
        if entry.claims() {
            let key = extract::key(cx.engine, trace, outcome);
            self.claim(Claimant::of(entry, trace.setting.service), key.as_deref(), (trace.anchor(), outcome.last_num));
        }
    }

    /// Publishes the notes that have waited in vain at line `num`.
    pub fn expire(&mut self, cx: &Context, num: u64, out: &mut Vec<Event>) {
        for unclaimed in self.notes.expired(num) {
            self.publish(cx, &unclaimed, out);
        }
    }

    /// Whether the trace adds nothing: a runner prints a failure again that an event reported
    /// before this trace began, or a test that contains others failed because they did.
    pub(super) fn says_nothing_new(&self, cx: &Context, trace: &OpenTrace, outcome: Outcome) -> bool {
        let entry = &cx.engine.rules.entries[usize::from(outcome.entry)];
        let once = matches!(&entry.kind, Kind::Trace(machine) if machine.once);
        let num = trace.lines.get(0).place.num;
        let who = Claimant::of(entry, trace.setting.service);
        let was_said = |key: &[u8]| self.notes.was_claimed(who, key, trace.setting.claims, num) || self.held.has_said(who, key, num);
        trace.is_void(outcome) || once && extract::key(cx.engine, trace, outcome).is_some_and(|key| was_said(&key))
    }

    /// A runner says of a test that it passed when it was tried again, or failed as it should: what is told of it is no error.
    fn take_back(&mut self, cx: &Context, trace: &OpenTrace, outcome: Outcome) {
        let entry = &cx.engine.rules.entries[usize::from(outcome.entry)];
        if !trace.is_void(outcome) || !matches!(&entry.kind, Kind::Trace(machine) if machine.once) {
            return;
        }
        if let Some(key) = extract::key(cx.engine, trace, outcome) {
            let who = Claimant::of(entry, trace.setting.service);
            self.notes.take_back(who, &key, outcome.last_num);
            self.held.take_back(who, &key, trace.lines.get(0).place.num);
            if let Some(cut) = self.cut_after(trace.anchor()) {
                cut.take_back(who, &key, outcome.last_num);
            }
        }
    }

    /// Ends everything open, and what begins with the lines given back. What has come to nothing ends first, for the
    /// lines that it gives back may be an older trace's.
    pub(super) fn end_open(&mut self, cx: &Context, now: Timestamp, out: &mut Vec<Event>) {
        while !self.open.is_empty() {
            let in_vain = self.open.iter().rposition(|trace| trace.outcome(&cx.engine.rules.entries).is_none());
            self.close(cx, in_vain.unwrap_or_default(), out);
            self.redo(cx, now, out);
        }
    }

    /// Ends the stream: everything open ends with the outcome that it has. `passed`: what waits for a
    /// verdict and was seen until then is no error.
    pub fn finish(&mut self, cx: &Context, now: Timestamp, passed: Option<Timestamp>, out: &mut Vec<Event>) {
        self.end_open(cx, now, out);
        if let Some(until) = passed {
            self.pass_all(until);
        }
        self.held.make_certain(|_| true);
        self.regions.clear();
        self.release(out);
        self.noise = None;
        for unclaimed in self.notes.settle(Writer::default()) {
            self.publish(cx, &unclaimed, out);
        }
    }
}

/// Returns what is known about the head of a trace that has come to nothing.
pub(super) fn tried(cx: &Context, trace: &OpenTrace) -> Tried {
    if trace.is_weak(&cx.engine.rules.entries) && !trace.has_told_head() {
        Tried::InRegion
    } else if trace.adopted.is_some() {
        Tried::UnderRecord
    } else if matches!(trace.view, View::Quoted(_)) {
        Tried::Quoted
    } else {
        Tried::InVain
    }
}
