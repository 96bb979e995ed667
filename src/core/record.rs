//! Structured lines: JSON and logfmt. A level field decides alone; without one, every string
//! of the record is read as lines of its own, by the same machines as the lines of a stream.

use std::borrow::Cow;

use super::assemble::{Assembler, Context, InnerText, MAX_TEXT_LINES, is_too_long};
use super::decode::{self, Json, Record, Text, with_error};
use super::engine::Candidate;
use super::event::{Event, Lines, Location, RecordPlace, Timestamp};
use super::extract::{self, Plain};
use super::line::{Line, Place};
use super::structured;
use crate::rules::{FactKind, Kind};
use crate::words::Level;

/// Maximum nesting depth of records inside strings of records.
const MAX_DEPTH: u8 = 3;
/// Maximum number of events of one record.
const MAX_EVENTS: usize = 4;
/// Maximum number of events of a record that the others are compared with, for repetitions.
const MAX_COMPARED: usize = 64;

/// A structured line.
pub enum Structured {
    /// A JSON object.
    Json(Box<Record>),
    /// `key=value` pairs with a level: the level, and the ranges of the message and of its error's words.
    Logfmt(Level, [Option<(usize, usize)>; 2]),
}

/// Decodes the line if it is structured. Only called for candidate lines.
#[must_use]
pub fn decode(line: &Line, candidates: &[Candidate]) -> Option<Structured> {
    if candidates.is_empty() {
        return None;
    }
    let body = line.body().trim_ascii();
    if let Some(object) = object(line) {
        return match decode::json(object, line.now())? {
            Json::Record(record) => Some(Structured::Json(record)),
            Json::Envelope(_) => None,
        };
    }
    if !has_level_pair(body) {
        return None;
    }
    // What a transport wrote before the pairs does not belong to them.
    let pairs = decode::logfmt(line.body(), line.now())?;
    let from = line.text.len() - line.body().len();
    let said = [pairs.message, pairs.error].map(|range| range.map(|(start, end)| (start + from, end + from)));
    Some(Structured::Logfmt(pairs.level?, said))
}

/// Whether the line is a log record with a structure of its own:
/// a JSON object with a level or a time, or logfmt with a level.
#[must_use]
pub fn is_one(line: &Line) -> bool {
    match object(line) {
        Some(object) => decode::json_stamp(object, line.now()).is_some_and(|(level, time)| level.is_some() || time.is_some()),
        None => has_level_pair(line.body()),
    }
}

/// Returns the object that the line is, after what its transport and its writer put before it.
fn object<'a>(line: &Line<'a>) -> Option<&'a [u8]> {
    let is_object = |text: &&[u8]| text.first() == Some(&b'{');
    let body = line.body().trim_ascii();
    Some(body).filter(is_object).or_else(|| line.after_writer().map(<[u8]>::trim_ascii).filter(is_object))
}

/// Returns the level of the record that the line is, whether it is structured or not.
#[must_use]
pub fn level(line: &Line) -> Option<Level> {
    let body = line.body().trim_ascii();
    match object(line) {
        Some(object) => decode::json_stamp(object, line.now())?.0,
        None if has_level_pair(body) => decode::logfmt(line.body(), line.now())?.level,
        None => line.prefix().level,
    }
}

/// Whether the line contains a `level=` of logfmt: a cheap test before parsing it.
fn has_level_pair(body: &[u8]) -> bool {
    const KEYS: [&[u8]; 5] = [b"level", b"lvl", b"severity", b"levelname", b"severity_text"];
    let ends_with = |text: &[u8], key: &[u8]| text.len().checked_sub(key.len()).is_some_and(|from| text[from..].eq_ignore_ascii_case(key));
    memchr::memchr_iter(b'=', body).any(|at| KEYS.iter().any(|key| ends_with(&body[..at], key)))
}

/// A structured line whose events are published.
pub struct Reading<'a, 'c> {
    /// What is open in the stream.
    pub outer: &'a mut Assembler,
    /// The stream.
    pub cx: &'a Context<'c>,
    /// The line.
    pub line: &'a Line<'a>,
    /// What its literals lead to.
    pub candidates: &'a [Candidate],
    /// Receives the events.
    pub out: &'a mut Vec<Event>,
}

impl Reading<'_, '_> {
    /// Publishes the events of the line.
    pub fn read(&mut self, structured: Structured) {
        match structured {
            Structured::Logfmt(level, [message, error]) if level >= Level::Error || (level == Level::Warn && self.has_fact(FactKind::Warning)) => {
                let kind = if level == Level::Warn { FactKind::Warning } else { FactKind::Level };
                let said = |(from, to): (usize, usize)| String::from_utf8_lossy(&self.line.text[from..to]);
                let text = said(message.or(error).unwrap_or((0, self.line.text.len())));
                let text = error.and_then(|error| with_error(&text, &said(error))).unwrap_or_else(|| text.into_owned());
                let mut event = self.plain(self.fact(kind), Lines::new(text), self.line.place.time);
                event.multiline = extract::clean(self.cx.engine, Lines::of_bytes(std::iter::once(self.line.text)), &mut event.redactions);
                self.push(event);
            }
            Structured::Logfmt(..) => {}
            Structured::Json(record) => self.json(&record),
        }
    }

    fn json(&mut self, record: &Record) {
        let flagged = self.has_fact(FactKind::Flag);
        match record.level {
            Some(level) if level >= Level::Error => self.leveled(record, self.fact(FactKind::Level)),
            Some(Level::Warn) if self.has_fact(FactKind::Warning) => self.warned(record),
            Some(_) => {}
            None if flagged => self.leveled(record, self.fact(FactKind::Flag)),
            None => {
                let (engine, body) = (self.cx.engine, self.line.body().trim_ascii());
                match structured::by_code(engine, record, self.candidates).or_else(|| structured::by_shape(engine, body, self.candidates)) {
                    Some(entry) => self.leveled(record, entry),
                    None => self.unleveled(record),
                }
            }
        }
    }

    fn kind(&self, entry: u16) -> &Kind {
        &self.cx.engine.rules.entries[usize::from(entry)].kind
    }

    /// Whether a literal leads to an entry of the fact `wanted`.
    fn has_fact(&self, wanted: FactKind) -> bool {
        self.candidates.iter().any(|c| matches!(self.kind(c.entry), Kind::Fact(kind) if *kind == wanted))
    }

    /// Returns the entry of a fact: the one that a literal led to, or the first of its kind.
    fn fact(&self, wanted: FactKind) -> u16 {
        let is = |entry: u16| matches!(self.kind(entry), Kind::Fact(kind) if *kind == wanted);
        self.candidates.iter().map(|c| c.entry).find(|&entry| is(entry)).or_else(|| self.cx.engine.rules.fact(wanted)).unwrap_or_default()
    }

    /// Builds an event of these lines, by `entry`.
    fn plain(&self, entry: u16, lines: Lines, time: Option<Timestamp>) -> Event {
        extract::plain(self.cx.engine, self.cx.origin, &Plain { entry, lines, place: &self.line.place, time, now: self.line.now() })
    }

    /// Handles a record that states that it is a warning: its message is the event, whatever errors it quotes.
    fn warned(&mut self, record: &Record) {
        let said = record.message.as_ref().or(record.strings.first());
        let lines = said.map(|said| split(&said.text)).unwrap_or_default();
        let mut event = self.plain(self.fact(FactKind::Warning), headed(record, &lines), record.time);
        event.record = said.map(|said| RecordPlace { pointer: said.pointer.clone(), line: 1 });
        self.push(event);
    }

    /// Handles a record that states that it is an error: one event, whose details come from its stack.
    fn leveled(&mut self, record: &Record, entry: u16) {
        let (engine, said) = (self.cx.engine, record.message.as_ref().or(record.stack.as_ref()).or_else(|| telling(record)).or(record.strings.first()));
        // A message such as "Reconciler error" is the same for all faults: the error's own words tell them apart.
        let both = record.message.as_ref().zip(error_of(record));
        let full = both.and_then(|(message, error)| Some(Text { text: with_error(&message.text, &error)?, ..message.clone() }));
        let said = full.as_ref().or(said);
        let mut lines: Lines = said.map(|said| split(&said.text)).unwrap_or_default();
        if let (Some(stack), Some(_)) = (&record.stack, &record.message) {
            lines.append(&split(&stack.text));
        }
        let inner = record.stack.as_ref().or(said).map(|text| self.nested(text, self.line.place.inner)).unwrap_or_default();
        // A rule may find only one of the two: its event would lose the other.
        let is_whole = |event: &Event| record.stack.is_some() || full.as_ref().is_none_or(|full| full.text.lines().next() == Some(&*event.text));
        let mut event = inner.into_iter().next().filter(is_whole).unwrap_or_else(|| self.plain(entry, headed(record, &lines), record.time));
        extract::restart(engine, self.cx.origin, &mut event, &self.line.place, record.time);
        event.record = said.map(|said| RecordPlace { pointer: said.pointer.clone(), line: 1 });
        event.truncated |= said.into_iter().chain(&record.stack).any(|text| is_too_long(&text.text));
        if !lines.is_empty() {
            event.multiline = extract::clean(engine, lines, &mut event.redactions);
        }
        structured::restate(engine, record, &mut event);
        if let (None, Some((file, line, column))) = (&event.location, &record.finding) {
            let file = extract::secretless(engine, file, &mut event.redactions);
            event.location = Some(Location { file, line: *line, column: *column });
        }
        self.push(event);
    }

    /// Handles a record without a level: a string counts if a rule hits inside it.
    fn unleveled(&mut self, record: &Record) {
        // A record may itself be a line of a string.
        let mut base = self.line.place.inner;
        let mut found = Vec::new();
        for text in record.message.iter().chain(&record.stack).chain(&record.strings) {
            if names_a_test(record, &text.pointer) {
                continue;
            }
            for mut event in self.nested(text, base) {
                event.record = Some(RecordPlace { pointer: text.pointer.clone(), line: event.inner - base + 1 });
                event.timestamp = extract::credible(record.time, event.observed_at);
                found.push(event);
            }
            base += text.text.lines().count() as u32;
        }
        if !found.is_empty() && self.cx.engine.is_noisy_record(self.line.body().trim_ascii()) {
            return;
        }
        let compared = &found[..found.len().min(MAX_COMPARED)];
        let restated: Vec<bool> = found.iter().map(|event| compared.iter().any(|other| restates(other, event))).collect();
        let mut seen = Vec::new();
        for (event, restated) in found.into_iter().zip(restated) {
            if !restated && seen.len() < MAX_EVENTS && !seen.contains(&event.signature) {
                seen.push(event.signature);
                self.push(event);
            }
        }
    }

    fn push(&mut self, mut event: Event) {
        event.context = extract::context_lines(self.cx, self.line);
        if let Some(place) = &mut event.record {
            let plain = place.pointer.replace("~1", "/").replace("~0", "~");
            let clean = extract::secretless(self.cx.engine, &plain, &mut event.redactions);
            if clean != plain {
                place.pointer = clean;
            }
        }
        let entries = &self.cx.engine.rules.entries;
        let entry = entries.position(&event.rule).map(|entry| &entries[usize::from(entry)]);
        self.outer.state(self.cx, self.line, event, entry, self.out);
    }

    /// Reads a string of the record as lines of a stream of its own, the first of which has number `base`.
    fn nested(&mut self, text: &Text, base: u32) -> Vec<Event> {
        let mut out = Vec::new();
        if self.cx.depth < MAX_DEPTH {
            let place = |number: usize, _| Place { inner: base + number as u32, ..self.line.place.clone() };
            let inner = InnerText { text: &text.text, place: &place, looks_back: false, now: self.line.now() };
            self.outer.add_unasked(Assembler::read_text(self.cx, &inner, &mut out));
        }
        out
    }
}

/// Returns what the first finding of a report says.
fn telling(record: &Record) -> Option<&Text> {
    let says = |text: &&Text| matches!(text.pointer.rsplit('/').next(), Some("message" | "summary" | "text" | "Text" | "title"));
    record.strings.iter().find(says)
}

/// Returns the words of the record's error, headed by its type.
fn error_of(record: &Record) -> Option<Cow<'_, str>> {
    let error = record.error.as_deref()?;
    Some(match &record.kind {
        Some(kind) if !error.contains(kind.as_str()) && !record.message.as_ref().is_some_and(|message| message.text.contains(error)) => {
            format!("{kind}: {error}").into()
        }
        _ => error.into(),
    })
}

/// Returns the message, headed by the type that a field of the record names.
fn headed(record: &Record, lines: &Lines) -> Lines {
    match (structured::name(record), lines.iter().next()) {
        (Some(kind), Some(first)) if !first.contains(kind) => Lines::new(format!("{kind}: {}", lines.as_str())),
        _ => lines.clone(),
    }
}

/// Whether `event` is in a sibling of `other`'s string and says only
/// a part of it: a message, beside the stack that begins with it.
fn restates(other: &Event, event: &Event) -> bool {
    let (Some(place), Some(others)) = (&event.record, &other.record) else { return false };
    let parent = |place: &RecordPlace| place.pointer.rfind('/').map_or(0, |at| at + 1);
    let beside = place.pointer != others.pointer && place.pointer[..parent(place)] == others.pointer[..parent(others)];
    let (said, more) = (event.multiline.as_str(), other.multiline.as_str());
    beside && said.len() < more.len() && more.contains(&event.text)
}

/// Whether the string at `pointer` is the name of a test in the reports of jest, vitest, mocha and pytest: it may mention any
/// error. Which field says what is the shape of a record, as it is for its message and level: a rule sees only the string.
fn names_a_test(record: &Record, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return false };
    let beside =
        |sibling: &str| record.strings.iter().any(|text| text.pointer.strip_prefix(parent).is_some_and(|rest| rest.strip_prefix('/') == Some(sibling)));
    match name {
        "fullName" | "fullTitle" | "nodeid" => true,
        "title" => beside("fullName") || beside("fullTitle"),
        _ => parent.ends_with("/ancestorTitles"),
    }
}

fn split(text: &str) -> Lines {
    text.trim_end_matches('\n').lines().take(MAX_TEXT_LINES).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::core::engine::{Engine, Limits};
    use crate::core::event::Timestamp;
    use crate::core::extract::Origin;
    use crate::core::pipeline::Stream;
    use crate::rules::RuleSet;

    /// Returns where in the record its errors are.
    fn found(line: &str) -> Vec<String> {
        let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
        let (mut stream, mut events) = (Stream::new(engine, Origin::default()), Vec::new());
        stream.push(line.as_bytes(), Timestamp(0), &mut events);
        stream.finish(Timestamp(0), &mut events);
        events.into_iter().map(|event| event.record.unwrap().pointer).collect()
    }

    #[test]
    fn what_a_test_is_called_is_no_error() {
        for (line, pointers) in [
            (r#"{"tests":[{"title":"TypeError: x is no function","fullTitle":"till TypeError: x is no function","err":{}}]}"#, &[][..]),
            (r#"{"tests":[{"nodeid":"a.py::test[ValueError: no till]","outcome":"passed"}]}"#, &[]),
            (r#"{"tests":[{"ancestorTitles":["Error: connect ECONNREFUSED 127.0.0.1:9"],"fullName":"Error: connect ECONNREFUSED"}]}"#, &[]),
            (r#"{"books":[{"title":"Error: connect ECONNREFUSED 127.0.0.1:9"}]}"#, &["/books/0/title"]),
        ] {
            assert_eq!(found(line), pointers, "{line}");
        }
    }

    #[test]
    fn a_message_and_its_stack_are_one_error() {
        const STACK: &str = r"TypeError: x is no function\n    at add (/srv/till.js:3:1)\n    at sum (/srv/till.js:9:1)";
        let record = |beside: &str| format!(r#"{{"err":{{"message":"TypeError: x is no function","stack":"{STACK}"}}{beside}}}"#);
        assert_eq!(found(&record("")), ["/err/stack"]);
        assert_eq!(found(&record(r#","other":{"message":"RangeError: y is too long"}"#)), ["/err/stack", "/other/message"]);
    }
}
