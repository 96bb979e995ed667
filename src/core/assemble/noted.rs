//! What a status line becomes: nothing if an error has said the same, an event of its own, or a note that waits.

use super::verdicts::is_runners;
use super::{Assembler, Context};
use crate::core::confirm::Found;
use crate::core::event::Event;
use crate::core::leadin::LeadIn;
use crate::core::line::Line;
use crate::core::lookback::LookBack;
use crate::core::notes::{Asked, Claimant, explains};
use crate::core::trace::OpenTrace;
use crate::rules::{Kind, Note};

impl Assembler {
    pub(super) fn note(&mut self, cx: &Context, line: &Line, found: Found, out: &mut Vec<Event>) {
        let Kind::Note(note) = &cx.engine.rules.entries[usize::from(found.entry)].kind else { return };
        let family = cx.engine.rules.entries[usize::from(found.entry)].family;
        let (service, who) = (line.service(), Claimant { family, passing: false, service: line.service() });
        let (key, text) = (found.key(cx.engine, line), found.view.of(line));
        if note.silent {
            self.notes.claim(who, key.as_deref(), line.place.num);
            return;
        }
        let since = cx.back.prompt_above(line, note.of_job);
        if self.notes.find_claim(&Asked { note, service, key: key.as_deref(), text, num: line.place.num, since }) {
            if key.is_some() {
                self.notes.renew(who, line.place.num);
            }
            return;
        }
        if key.is_none() && self.is_told_by_open(cx, note, line) {
            return;
        }
        let is_certain = is_runners(cx, &cx.engine.rules.entries[usize::from(found.entry)]);
        if self.wait_at(cx, line).is_some() && self.held.explains((note, service), key.as_deref(), line.place.num, is_certain) {
            self.release_certain(out);
            return;
        }
        let back = if line.place.inner == 0 { cx.back } else { LookBack::default() };
        let lead = self.lead_of(cx, found.entry, line, &LeadIn::of_writer(line, found.view), back);
        let mut trace =
            if lead.is_empty() { OpenTrace::single(found.entry, line, found.view) } else { OpenTrace::single_after(found.entry, lead, line, found.view) };
        trace.setting.context = self.context(cx, trace.lines.get(0).place.num, line);
        self.settle_in(&mut trace, line);
        if note.waits {
            for unclaimed in self.notes.wait(family, note, key, trace) {
                self.publish(cx, &unclaimed, out);
            }
        } else {
            // One status line is enough: it claims later ones that say the same.
            self.publish(cx, &trace, out);
            self.notes.claim_as_note(who, key.as_deref(), text, line.place.num);
        }
    }

    /// Whether an error of another writer, still waiting for continuation lines, says the same
    /// as `note`. It is an event already, and claims the note that sums it up.
    fn is_told_by_open(&self, cx: &Context, note: &Note, line: &Line) -> bool {
        let entries = &cx.engine.rules.entries;
        let told = |trace: &OpenTrace, lines: u64| {
            let outcome = trace.outcome(entries);
            outcome.is_some_and(|told| {
                let who = Claimant::of(&entries[usize::from(told.entry)], trace.setting.service);
                explains(who, (note, line.service()), lines)
            })
        };
        self.open.iter().any(|trace| line.place.num.checked_sub(trace.last_num).is_some_and(|lines| told(trace, lines)))
    }
}
