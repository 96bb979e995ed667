//! What an open trace comes to: an event when it ends, or when it has been quiet for too long; the lines
//! that it gives back; what it claims.

use super::held::Waiting;
use super::{Assembler, Context};
use crate::core::confirm::Confirm;
use crate::core::engine::Engine;
use crate::core::event::{Event, Timestamp};
use crate::core::extract;
use crate::core::line::{Line, Place, Tried, View};
use crate::core::prefilter::Scratch;
use crate::core::trace::{OpenTrace, Outcome};
use crate::rules::Kind;

impl Assembler {
    /// Ends the trace at `at`: an event if it came to one; the lines after its last accepting one
    /// go back to the start state.
    pub(super) fn close(&mut self, cx: &Context, at: usize, out: &mut Vec<Event>) {
        let mut trace = self.open.remove(at);
        trace.keep_announced();
        let outcome = trace.outcome(&cx.engine.rules.entries);
        let used = outcome.map_or(0, |outcome| outcome.lines);
        let under_record = trace.adopted.is_some();
        let is_told = trace.published && !under_record;
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
        let head = match used {
            0 if trace.is_weak(&cx.engine.rules.entries) && !is_told => Tried::InRegion,
            0 if under_record => Tried::UnderRecord,
            0 if matches!(trace.view, View::Quoted(_)) => Tried::Quoted,
            0 => Tried::InVain,
            _ => Tried::No,
        };
        for (index, taken) in trace.lines.from(first).enumerate() {
            self.again.push_back((taken.place.clone(), taken.text.to_vec(), if index == 0 { head } else { Tried::No }));
        }
    }

    /// The trace has ended: an event, if it is none yet; what it claims.
    pub(super) fn publish(&mut self, cx: &Context, trace: &OpenTrace, out: &mut Vec<Event>) {
        let Some(outcome) = trace.outcome(&cx.engine.rules.entries) else { return };
        let last_num = outcome.last_num.max(trace.lines.get(0).place.num);
        self.claimed_to = self.claimed_to.max(last_num);
        if let Some(cut) = self.cut_after(trace.anchor()) {
            cut.claimed(last_num);
        }
        if trace.lead > 0 {
            let is_same = |place: &Place, other: &Place| (place.offset, place.inner) == (other.offset, other.inner);
            self.notes.drop_taken(|place| trace.lines.first(trace.lead).any(|taken| is_same(taken.place, place)));
        }
        if self.says_nothing_new(cx, trace, outcome) {
            // The one-line error that it had adopted is no repeat.
            if let Some(single) = &trace.adopted {
                self.publish(cx, single, out);
            }
            return;
        }
        let entry = &cx.engine.rules.entries[usize::from(outcome.entry)];
        if !trace.published && !self.is_told(trace.lines.get(0).place) {
            let event = extract::event(cx.engine, cx.origin, trace, outcome, false);
            if self.waits_for_verdict(cx, trace, outcome.entry) {
                let claim = entry.claims().then(|| (entry.family, extract::key(cx.engine, trace, outcome)));
                self.hold(Waiting { event, anchor: trace.anchor(), last_num: outcome.last_num, claim }, out);
                return;
            }
            out.push(event);
        }
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

    /// A runner prints a failure again, and an event said the same before this trace began; or a test that holds others
    /// failed because they did.
    pub(super) fn says_nothing_new(&self, cx: &Context, trace: &OpenTrace, outcome: Outcome) -> bool {
        let entry = &cx.engine.rules.entries[usize::from(outcome.entry)];
        let once = matches!(&entry.kind, Kind::Trace(machine) if machine.once);
        trace.is_void(outcome)
            || once
                && extract::key(cx.engine, trace, outcome)
                    .is_some_and(|key| self.notes.was_claimed(entry.family, &key, trace.claims_before, trace.lines.get(0).place.num))
    }

    /// The next moment at which something open is published.
    #[must_use]
    pub fn deadline(&self, engine: &Engine) -> Option<Timestamp> {
        let due = |trace: &OpenTrace| Timestamp(trace.touched_at.0.saturating_add(engine.limits.trace_idle_us));
        self.open.iter().filter(|trace| !trace.paused && !trace.asked).map(due).min()
    }

    /// Publishes what has been quiet since before its deadline; it stays open and swallows its late
    /// lines. Nothing else changes: what it claims, it claims when it ends.
    pub fn tick(&mut self, cx: &Context, now: Timestamp, out: &mut Vec<Event>) {
        for at in 0..self.open.len() {
            let trace = &self.open[at];
            let due = trace.touched_at.0.saturating_add(cx.engine.limits.trace_idle_us) <= now.0;
            if !due || trace.paused || trace.asked {
                continue;
            }
            let outcome = trace.outcome(&cx.engine.rules.entries);
            // Only a verdict, or a line of its own, tells whether it is an error.
            if trace.may_turn_void(&cx.engine.rules.entries) || self.may_wait_for_verdict(cx, trace, outcome) {
                self.open[at].asked = true;
                continue;
            }
            let event = match outcome {
                Some(outcome) if self.says_nothing_new(cx, trace, outcome) => None,
                Some(outcome) => Some(extract::event(cx.engine, cx.origin, trace, outcome, true)),
                None => self.by_itself(cx, trace),
            };
            let trace = &mut self.open[at];
            trace.asked = true;
            trace.paused = outcome.is_some() || event.is_some();
            if let Some(event) = event {
                trace.published = true;
                trace.adopted.iter_mut().for_each(|single| (single.paused, single.published) = (true, true));
                if outcome.is_none() {
                    let oldest = self.oldest();
                    self.told.retain(|told| Some(told.0) >= oldest);
                    self.told.push((event.offset, event.inner));
                }
                out.push(event);
            }
        }
    }

    /// Whether a pause has published the line at `place` by itself.
    pub(super) fn is_told(&self, place: &Place) -> bool {
        self.told.contains(&(place.offset, place.inner))
    }

    /// The error that the first line of a trace which has come to nothing so far is by itself: its event has
    /// the same id, whatever the trace comes to.
    fn by_itself(&self, cx: &Context, trace: &OpenTrace) -> Option<Event> {
        let entries = &cx.engine.rules.entries;
        if let Some(single) = &trace.adopted {
            let outcome = single.outcome(entries).filter(|_| !single.published)?;
            return Some(extract::event(cx.engine, cx.origin, single, outcome, true));
        }
        let head = trace.lines.get(0);
        let line = Line::new(head.place.clone(), head.text, trace.opened_at);
        // A look-back line would be the first one of the trace's event, and not of this one.
        if trace.lead > 0 || (trace.is_weak(entries) && self.absorbed(cx, &line)) || self.may_be_owned(cx, &line) {
            return None;
        }
        let mut candidates = Vec::new();
        cx.engine.candidates(head.text, &mut Scratch::default(), &mut Vec::new(), &mut candidates);
        let mut confirm = Confirm::new(cx.engine, &line, &candidates);
        if confirm.note().is_some() {
            return None;
        }
        let found = confirm.rule()?;
        let mut single = OpenTrace::single(found.entry, &line, found.view);
        single.context = trace.context.clone();
        let outcome = single.outcome(entries)?;
        Some(extract::event(cx.engine, cx.origin, &single, outcome, true))
    }

    /// Whether an open trace may give back the line before an indented one, which would own it.
    fn may_be_owned(&self, cx: &Context, line: &Line) -> bool {
        let is_undecided = |trace: &OpenTrace| trace.outcome(&cx.engine.rules.entries).is_none_or(|outcome| outcome.last_num < trace.last_num);
        matches!(line.body().first(), Some(b' ' | b'\t')) && self.open.iter().any(|trace| trace.last_num + 1 == line.place.num && is_undecided(trace))
    }

    /// The stream has ended: everything open comes to what it has come to.
    pub fn finish(&mut self, cx: &Context, now: Timestamp, out: &mut Vec<Event>) {
        while !self.open.is_empty() {
            self.close(cx, 0, out);
            self.redo(cx, now, out);
        }
        self.regions.clear();
        self.release(out);
        self.noise = None;
        for unclaimed in self.notes.settle() {
            self.publish(cx, &unclaimed, out);
        }
    }
}
