//! What a stream publishes while it is quiet. A short pause publishes what already has an outcome; the
//! trace stays open and swallows its late lines, and no id changes. After a longer one, nothing waits for a
//! line that might change the result any more: an error that a next line could take back, lines taken in
//! vain so far, what only a verdict decides. What has been published stays published, whatever comes later.

use super::publish::tried;
use super::{Assembler, Context};
use crate::core::block::Taken;
use crate::core::engine::Engine;
use crate::core::event::{Event, Timestamp};
use crate::core::extract;
use crate::core::line::{Line, Place, Tried};
use crate::core::patience::Patience;
use crate::core::trace::OpenTrace;

impl Assembler {
    /// Returns the next moment at which a pause of at most `longest` publishes something open.
    #[must_use]
    pub fn deadline(&self, engine: &Engine, longest: Patience) -> Option<Timestamp> {
        let open = self.open.iter().filter_map(|trace| Some((trace.pauses.next?, trace.pauses.since)));
        let asked = open.chain(self.held.wait()).filter(|(patience, _)| *patience <= longest);
        asked.map(|(patience, since)| patience.ends(since, engine)).min()
    }

    /// Publishes whatever was quiet until its deadline. A trace stays open, swallows its late lines and
    /// makes its claims when it ends. An event held back for a verdict has ended already and claims now.
    pub fn tick(&mut self, cx: &Context, now: Timestamp, longest: Patience, out: &mut Vec<Event>) {
        while self.held.wait().is_some_and(|(patience, since)| patience <= longest && patience.ends(since, cx.engine) <= now) {
            self.release_first(out);
        }
        for at in 0..self.open.len() {
            let since = self.open[at].pauses.since;
            let is_due = |patience: &Patience| *patience <= longest && patience.ends(since, cx.engine) <= now;
            while let Some(patience) = self.open[at].pauses.next.filter(is_due) {
                self.open[at].pauses.next = self.ask(cx, at, patience, out);
            }
        }
    }

    /// Publishes the outcome of the trace at `at`, as far as `patience` allows.
    /// Returns the length of the pause after which the trace is asked again.
    fn ask(&mut self, cx: &Context, at: usize, patience: Patience, out: &mut Vec<Event>) -> Option<Patience> {
        if patience > Patience::Short {
            self.open[at].keep_announced();
        }
        let trace = &self.open[at];
        let outcome = trace.outcome(&cx.engine.rules.entries);
        // Only a verdict, or a line of its own, tells whether it is an error.
        // What names it may still come, and would be swallowed as a late line.
        let wait = if trace.is_unnamed() { Some(Patience::Verdict) } else { self.may_wait_for_verdict(cx, trace, outcome) };
        if wait.is_some_and(|wait| patience < wait) {
            return wait;
        }
        if patience == Patience::Short && trace.may_turn_void(&cx.engine.rules.entries) {
            return Some(Patience::Long);
        }
        if !trace.pauses.answered {
            let event = match outcome {
                Some(outcome) if self.says_nothing_new(cx, trace, outcome) || self.is_published(trace.lines.get(0).place) => None,
                Some(outcome) => Some(extract::event(cx.engine, cx.origin, trace, outcome, true)),
                None => self.by_itself(cx, trace),
            };
            let trace = &mut self.open[at];
            trace.pauses.answered = outcome.is_some() || event.is_some();
            if let Some(mut event) = event {
                event.on_trial = wait.is_some();
                (trace.pauses.published, trace.pauses.told_to) = (true, event.line_end);
                trace.adopted.iter_mut().for_each(|single| single.pauses.publish());
                if outcome.is_none() {
                    self.tell(&event);
                }
                out.push(event);
            }
        }
        if patience > Patience::Short {
            self.tell_rest(cx, at, out);
            return None;
        }
        Some(Patience::Long).filter(|_| self.has_rest(cx, &self.open[at]))
    }

    fn tell(&mut self, event: &Event) {
        // An event begins with its look-back lines, which come before what its trace holds.
        let first = self.open.iter().map(|trace| trace.lines.get(0).place.offset);
        let oldest = first.chain(self.oldest()).min();
        self.told.retain(|told| Some(told.offset) >= oldest);
        self.told.insert(event.spot());
    }

    /// Whether a pause has published the line at `place` as an event of its own.
    pub(super) fn is_published(&self, place: &Place) -> bool {
        self.told.contains(&place.spot())
    }

    /// Returns the error that begins with the first line of a trace without an outcome, if
    /// that gives its lines back. Its event has the same id, whatever the trace comes to.
    fn by_itself(&self, cx: &Context, trace: &OpenTrace) -> Option<Event> {
        let entries = &cx.engine.rules.entries;
        if let Some(single) = &trace.adopted {
            let outcome = single.outcome(entries).filter(|_| !single.pauses.published)?;
            return Some(extract::event(cx.engine, cx.origin, single, outcome, true));
        }
        let head = trace.lines.get(0);
        let line = Line::new(head.place.clone(), head.text, trace.opened_at);
        // A look-back line would be the first line of the trace's event, but not of this one.
        if trace.lead > 0 || (trace.is_weak(entries) && self.absorbed(cx, &line)) || self.may_be_owned(cx, &line) {
            return None;
        }
        let first = self.read_again(cx, trace, 0).into_iter().next()?;
        let is_its = first.spot() == head.place.spot() && !first.is_status;
        is_its.then_some(first)
    }

    /// Whether an open trace may give back the lines just before this one, so that what they form takes it.
    fn may_be_owned(&self, cx: &Context, line: &Line) -> bool {
        self.open.iter().any(|trace| trace.last_num + 1 == line.place.num && self.has_rest(cx, trace))
    }

    /// Returns the index of the first line of `trace` that belongs to no event so far.
    fn rest(&self, cx: &Context, trace: &OpenTrace) -> usize {
        if let Some(outcome) = trace.outcome(&cx.engine.rules.entries) {
            return outcome.lines;
        }
        let first = trace.lead + usize::from(trace.has_told_head());
        let is_told = |line: &Taken| trace.has_told_head() && line.place.num <= trace.pauses.told_to;
        first + trace.lines.from(first).take_while(is_told).count()
    }

    fn has_rest(&self, cx: &Context, trace: &OpenTrace) -> bool {
        self.rest(cx, trace) < trace.lines.len()
    }

    /// Publishes the errors in the lines that the trace would give back if it ended here.
    fn tell_rest(&mut self, cx: &Context, at: usize, out: &mut Vec<Event>) {
        let trace = &self.open[at];
        let rest = self.rest(cx, trace);
        if rest >= trace.lines.len() {
            return;
        }
        // What an open trace has told, and claims when it ends, or what waits, a status line may repeat.
        let may_be_told =
            self.notes.oldest().is_some() || self.open.iter().any(|trace| trace.has_told_head() || trace.outcome(&cx.engine.rules.entries).is_some());
        for event in self.read_again(cx, trace, rest).into_iter().filter(|event| !(may_be_told && event.is_status)) {
            let trace = &mut self.open[at];
            if event.spot() == trace.lines.get(0).place.spot() {
                trace.pauses.publish();
            }
            self.tell(&event);
            out.push(event);
        }
    }

    /// Returns the errors in the lines of `trace` from the one at `from` on, if it gave them back now.
    /// Status lines that wait for what may still say the same are left out.
    fn read_again(&self, cx: &Context, trace: &OpenTrace, from: usize) -> Vec<Event> {
        let head = tried(cx, trace);
        let mut aside = Assembler { regions: self.regions.clone(), claimed_to: self.claimed_to, told: self.told.clone(), ..Assembler::default() };
        aside.notes.restore(self.notes.claimed());
        aside.given.clone_from(&trace.setting.context);
        let before = from.saturating_sub(cx.engine.limits.context_a_side());
        trace.lines.from(before).for_each(|taken| aside.given.push_numbered(taken.place.num, taken.text));
        let mut events = Vec::new();
        for (index, taken) in trace.lines.from(from).enumerate() {
            let mut line = Line::new(taken.place.clone(), taken.text, trace.pauses.since);
            line.tried = if index + from == trace.lead { head } else { Tried::No };
            aside.line(cx, &line, &cx.engine.candidates_of(taken.text), &mut events);
        }
        aside.end_open(cx, trace.pauses.since, &mut events);
        aside.release(&mut events);
        events.iter_mut().for_each(|event| event.closed_idle = true);
        events
    }
}
