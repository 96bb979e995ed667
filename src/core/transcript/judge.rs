//! Turns steps into events: the only place that decides which steps are failures, and what the event
//! of a failure says. The text of a failing step is read, as separate lines, by the machines that read
//! a plain log; the worst event that they find fills the step's event. One failing step is one event.

use super::account::{Fate, Ruling, Rulings};
use super::asked::Asked;
use super::memory::Memory;
use super::phrases;
use super::step::{Flag, Said, Step, Who};
use crate::core::assemble::{Assembler, Context, InnerText, is_too_long};
use crate::core::classify::{self, Subject};
use crate::core::event::{Call, Event, Lines, RecordPlace, Severity, Timestamp};
use crate::core::extract::{self, Plain};
use crate::core::line::Place;
use crate::core::visible::visible;
use crate::rules::FactKind;

/// Bytes at each end of a long text that its event keeps.
const MAX_END_BYTES: usize = 32 << 10;

/// Where and when something of a transcript is read, and with what.
pub struct Scene<'a, 'c> {
    /// The engine and the origin of the stream.
    pub cx: &'a Context<'c>,
    /// Where it begins.
    pub place: &'a Place,
    /// When it is read.
    pub now: Timestamp,
}

/// What is made of what a record says.
pub struct Outcome<'o> {
    /// Receives the events.
    pub events: &'o mut Vec<Event>,
    /// What became of each step and call.
    pub rulings: Rulings,
    /// Lines of steps of which not all was asked.
    pub unasked: u64,
}

/// Turns what a record says into events, and rules what became of each step and call.
pub fn judge(scene: &Scene<'_, '_>, memory: &mut Memory, said: Vec<Said>, outcome: &mut Outcome<'_>) {
    let mut base = 0;
    // Two steps of one record may belong to one call.
    let mut answered: Option<(String, (String, Option<Asked>))> = None;
    let asked_for = |command: &str| Asked::new(scene.cx.engine, command);
    for said in said {
        match said {
            Said::Session(session) => memory.enter(&session),
            Said::Call { id, tool, command } => {
                memory.call(&id, &tool, command.as_deref().map(asked_for));
                outcome.rulings.add(|| Ruling { step: Step { tool: Some(tool), command, ..Step::fine(None) }, fate: Fate::Called, flag: None });
            }
            Said::Reset(at) => memory.reset(&at),
            Said::Step(mut step) => {
                let mut asked = step.command.as_deref().map(asked_for);
                if let Some(id) = &step.id {
                    answered = memory.answered(id).map(|call| (id.clone(), call)).or(answered).filter(|(known, _)| known == id);
                    if let Some((_, (tool, request))) = &answered {
                        step.tool.get_or_insert_with(|| tool.clone());
                        asked = asked.or_else(|| request.clone());
                    }
                }
                step.command = asked.as_ref().map(|asked| asked.text.clone());
                let lines = step.text.lines().count().max(1) as u32;
                let mut read = Reading { scene, base, asked, unasked: 0 };
                let fate = match read.event(memory, &step) {
                    Ok(event) => {
                        outcome.events.push(event);
                        Fate::Reported
                    }
                    Err(fate) => fate,
                };
                outcome.unasked += read.unasked;
                outcome.rulings.add(|| Ruling { step, fate, flag: None });
                base += lines;
            }
        }
    }
}

/// A step being judged.
struct Reading<'a, 'c> {
    scene: &'a Scene<'a, 'c>,
    /// Number of inner lines before the step's first line.
    base: u32,
    /// What its call asked for, if that is known.
    asked: Option<Asked>,
    /// Lines so far of which not all was asked.
    unasked: u64,
}

impl Reading<'_, '_> {
    /// Returns the event of a failure, or what becomes of the step instead.
    fn event(&mut self, memory: &mut Memory, step: &Step) -> Result<Event, Fate> {
        let found = match step.flag {
            Flag::Failed => None,
            _ => Some(self.worst(step, self.evidence(step)?).ok_or(Fate::Harmless)?),
        };
        if let Some(line) = memory.told_at(step, self.scene.place.num) {
            return Err(Fate::Told(line));
        }
        // A command's output may be the text of any program, so it cannot mark itself as a refusal.
        let flavour = step.flavour.or_else(|| phrases::flavour(&step.text).filter(|_| step.exit.is_none() && step.flag == Flag::Failed));
        let mut event = match (found, step.who, flavour) {
            (Some(found), ..) => found,
            (None, Who::Tool, None) if !self.is_difference(step) => self.worst(step, phrases::output(&step.text)).unwrap_or_else(|| self.plain(step)),
            _ => self.plain(step),
        };
        if step.who != Who::Tool {
            self.classify_again(step, memory, &mut event);
        }
        self.place(step, &mut event);
        event.truncated |= step.is_cut || is_too_long(&step.text);
        if flavour.is_some() || self.is_answer(step) {
            event.severity = Severity::Low;
        }
        event.call = Some(Box::new(self.call(memory, step, flavour, &mut event.redactions)));
        Ok(event)
    }

    /// Returns the worst event that the machines find in `text`, a part of the step's; of equals, the first.
    fn worst(&mut self, step: &Step, text: &str) -> Option<Event> {
        let place = |number: usize, offset: usize| Place { num: number as u64 + 1, offset: offset as u64, inner: 0, ..self.scene.place.clone() };
        let mut found = Vec::new();
        self.unasked += Assembler::read_text(self.scene.cx, &InnerText { text, place: &place, looks_back: true, now: self.scene.now }, &mut found);
        let mut event = found.into_iter().reduce(|best, next| if next.severity > best.severity { next } else { best })?;
        event.inner = self.base + lines_before(&step.text, text) as u32 + (event.line_num as u32).saturating_sub(1);
        Some(event)
    }

    /// Returns the event of a failure in which no rule matches a line.
    fn plain(&self, step: &Step) -> Event {
        let wanted = match step.who {
            Who::Tool => FactKind::Tool,
            Who::Api => FactKind::Api,
            Who::Run => FactKind::Run,
        };
        let entry = self.scene.cx.engine.rules.fact(wanted).unwrap_or_default();
        // What the lines that differ say is no fault.
        let (number, line) = if self.is_difference(step) { (0, exited(1)) } else { telling(step) };
        let place = Place { inner: self.base + number as u32, ..self.scene.place.clone() };
        let plain = Plain { entry, lines: Lines::new(line), place: &place, time: self.scene.place.time, now: self.scene.now };
        extract::plain(self.scene.cx.engine, self.scene.cx.origin, &plain)
    }

    /// Classifies the event again: the status and kind that the API states outweigh its words.
    fn classify_again(&self, step: &Step, memory: &mut Memory, event: &mut Event) {
        let status = step.status.or_else(|| step.kind.as_deref().and_then(phrases::status));
        let verdict = classify::classify(&Subject { text: &event.text, whole: event.multiline.as_str(), status, ..Subject::default() });
        event.category = verdict.category;
        event.severity = self.scene.cx.engine.limits.severity_override(&event.rule, verdict.category).unwrap_or(verdict.severity);
        event.cause = verdict.cause;
        event.retry = verdict.retry;
        if let Some(at) = memory.take_reset() {
            event.retry.reset_at.get_or_insert(at);
        }
    }

    /// Places the event where the step stands, with all of its lines.
    fn place(&self, step: &Step, event: &mut Event) {
        let number = event.inner.saturating_sub(self.base) as usize;
        let place = match step.lines.get(number) {
            Some(&(num, offset)) => Place { num, offset, ..self.scene.place.clone() },
            None => Place { inner: self.base, ..self.scene.place.clone() },
        };
        extract::restart(self.scene.cx.engine, self.scene.cx.origin, event, &place, self.scene.place.time);
        let (text, gap) = ends(&step.text);
        let mut redactions = 0;
        let text = extract::clean(self.scene.cx.engine, text, &mut redactions);
        event.context = self.context(step, (&text, gap), number, event.multiline.len());
        if step.lines.is_empty() {
            event.truncated |= gap.is_some();
            event.redactions += redactions;
            event.multiline = text;
            event.record = Some(RecordPlace { pointer: step.pointer.clone(), line: number as u32 + 1 });
        } else {
            event.line_end = event.line_num + event.multiline.len().saturating_sub(1) as u64;
        }
    }

    /// Returns the lines of the step before an error of `count` lines, its first line
    /// `number`, and the lines after it. They are numbered as `record.line` or, if they have
    /// their own lines in the stream, as those lines. Other records are other writers' text.
    fn context(&self, step: &Step, (text, gap): (&Lines, Option<Gap>), number: usize, count: usize) -> Lines {
        let side = self.scene.cx.engine.limits.context_a_side();
        let behind = number + count.max(1);
        let near = |at: usize| (number.saturating_sub(side)..=number).contains(&at) || (behind..behind + side).contains(&at);
        let mut context = Lines::default();
        for (at, line) in text.iter().enumerate() {
            let at = match gap {
                Some(gap) if at == gap.at => continue,
                Some(gap) if at > gap.at => at + gap.lines,
                _ => at,
            };
            if near(at) {
                context.push_numbered(step.lines.get(at).map_or(at as u64 + 1, |(num, _)| *num), line.as_bytes());
            }
        }
        context
    }

    fn call(&self, memory: &Memory, step: &Step, flavour: Option<&'static str>, redactions: &mut u32) -> Call {
        let mut clean = |text: &str| extract::secretless(self.scene.cx.engine, text, redactions);
        Call {
            session: memory.session().map(&mut clean),
            tool: step.tool.as_deref().map(&mut clean),
            id: step.id.as_deref().filter(|_| step.who == Who::Tool).map(&mut clean),
            command: self.asked.as_ref().map(|asked| {
                *redactions += asked.redactions;
                asked.text.clone()
            }),
            flavour,
        }
    }

    /// Returns what tells, in the text of a step that nobody has flagged, whether it failed after all.
    fn evidence<'s>(&self, step: &'s Step) -> Result<&'s str, Fate> {
        let tool = step.tool.as_deref().unwrap_or_default();
        let asked = self.asked.as_ref();
        match step.flag {
            Flag::Failed | Flag::Stderr => Ok(&step.text),
            Flag::Fine if !step.text.is_empty() && phrases::is_shell(tool) && asked.is_some_and(|asked| asked.hides_failures) => Ok(&step.text),
            Flag::Fine => Err(Fate::Fine),
            Flag::Unknown if phrases::shows(tool) => Err(Fate::Shown),
            Flag::Unknown => match asked {
                Some(asked) if asked.shows => Some(asked.own(&step.text)).filter(|own| !own.is_empty()).ok_or(Fate::Shown),
                _ => Ok(&step.text),
            },
        }
    }

    /// Whether the step is an answer rather than a failure: a search that found nothing, a comparison that found a difference.
    fn is_answer(&self, step: &Step) -> bool {
        let finds_nothing = || phrases::output(&step.text).is_empty() && self.asked.as_ref().is_some_and(|asked| asked.answers);
        step.exit == Some(1) && finds_nothing() || self.is_difference(step)
    }

    /// Whether the step is a comparison that shows a difference.
    fn is_difference(&self, step: &Step) -> bool {
        step.exit == Some(1) && self.asked.as_ref().is_some_and(|asked| asked.compares) && phrases::differs(phrases::output(&step.text))
    }
}

/// Returns how many lines of `text` end before its part `part`.
fn lines_before(text: &str, part: &str) -> usize {
    let at = part.as_ptr() as usize - text.as_ptr() as usize;
    memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count()
}

/// The gap in the lines of a long text: line `at` is only a marker, and stands for `lines` + 1 missing lines.
#[derive(Clone, Copy)]
struct Gap {
    at: usize,
    lines: usize,
}

/// Returns the lines of a text without escapes; of a long text only the lines at both
/// ends. Records are smaller still, and what an event keeps is redacted and copied.
fn ends(text: &str) -> (Lines, Option<Gap>) {
    if text.len() <= 2 * MAX_END_BYTES {
        return (text.lines().map(visible_text).collect(), None);
    }
    let head = &text[..text.floor_char_boundary(MAX_END_BYTES)];
    let tail = &text[text.ceil_char_boundary(text.len() - MAX_END_BYTES)..];
    let (all, at) = (text.lines().count(), head.lines().count());
    let gap = Gap { at, lines: all.saturating_sub(at + 1 + tail.lines().count()) };
    (head.lines().chain(std::iter::once("…")).chain(tail.lines()).map(visible_text).collect(), Some(gap))
}

/// Returns the most telling line of a failure, and its number from 0: the last line of a command's output, else the first.
fn telling(step: &Step) -> (usize, String) {
    let text = phrases::output(&step.text);
    let is_code = |line: &str| line.starts_with("Command exited with code ");
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_code(line));
    let line = if step.exit.is_some() { lines.next_back() } else { lines.next() };
    match (line, step.exit) {
        (Some(line), _) => (lines_before(&step.text, line), visible_text(line)),
        (None, Some(code)) => (0, exited(code)),
        (None, None) if text.is_empty() => (0, step.kind.clone().or(step.flavour.map(str::to_owned)).unwrap_or_else(|| "failed without a word".to_owned())),
        (None, None) => (0, text.to_owned()),
    }
}

fn exited(code: impl std::fmt::Display) -> String {
    format!("exited with code {code}")
}

fn visible_text(line: &str) -> String {
    String::from_utf8_lossy(&visible(line.as_bytes(), None)).into_owned()
}
