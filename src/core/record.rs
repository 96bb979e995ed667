//! Structured lines: JSON and logfmt. A level field decides alone; without one, every string
//! of the record is read as lines of its own, by the same machines as the lines of a stream.

use super::assemble::{Assembler, Context};
use super::decode::{self, Json, Record, Text};
use super::engine::Candidate;
use super::event::{Event, Lines, Location, RecordPlace};
use super::extract::{self, Plain};
use super::line::{Line, Place};
use super::lookback::LookBack;
use super::structured;
use crate::rules::{FactKind, Kind};
use crate::words::Level;

/// Maximum nesting depth of records inside strings of records.
const MAX_DEPTH: u8 = 3;
/// Maximum number of events of one record.
const MAX_EVENTS: usize = 4;
/// Maximum number of events of a record that the others are compared with, for repetitions.
const MAX_COMPARED: usize = 64;
/// Maximum number of inner lines of one record.
const MAX_INNER_LINES: usize = 2000;

/// A structured line.
pub enum Structured {
    /// A JSON object.
    Json(Box<Record>),
    /// `key=value` pairs with a level: the level and the range of the message.
    Logfmt(Level, Option<(usize, usize)>),
}

/// Decodes the line if it is structured. Only called for candidate lines.
#[must_use]
pub fn decode(line: &Line, candidates: &[Candidate]) -> Option<Structured> {
    if candidates.is_empty() {
        return None;
    }
    let body = line.body().trim_ascii();
    if body.first() == Some(&b'{') {
        return match decode::json(body, line.now())? {
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
    let message = pairs.message.or(pairs.error).map(|(start, end)| (start + from, end + from));
    Some(Structured::Logfmt(pairs.level?, message))
}

/// Whether the line is a log record with a structure of its own:
/// a JSON object with a level or a time, or logfmt with a level.
#[must_use]
pub fn is_one(line: &Line) -> bool {
    let body = line.body().trim_ascii();
    match body.first() {
        Some(b'{') => matches!(decode::json(body, line.now()), Some(Json::Record(record)) if record.level.is_some() || record.time.is_some()),
        _ => has_level_pair(body),
    }
}

/// Whether the line contains a `level=` of logfmt: a cheap test before parsing it.
fn has_level_pair(body: &[u8]) -> bool {
    const KEYS: [&[u8]; 5] = [b"level", b"lvl", b"severity", b"levelname", b"severity_text"];
    let ends_with = |text: &[u8], key: &[u8]| text.len().checked_sub(key.len()).is_some_and(|from| text[from..].eq_ignore_ascii_case(key));
    memchr::memchr_iter(b'=', body).any(|at| KEYS.iter().any(|key| ends_with(&body[..at], key)))
}

/// Publishes the events of a structured line.
pub fn events(outer: &mut Assembler, cx: &Context, line: &Line, structured: Structured, candidates: &[Candidate], out: &mut Vec<Event>) {
    match structured {
        Structured::Logfmt(level, message) if level >= Level::Error || (level == Level::Warn && has_fact(cx, candidates, FactKind::Warning)) => {
            let kind = if level == Level::Warn { FactKind::Warning } else { FactKind::Level };
            let (from, to) = message.unwrap_or((0, line.text.len()));
            let text = String::from_utf8_lossy(&line.text[from..to]).into_owned();
            let plain = Plain { entry: fact(cx, candidates, kind), lines: Lines::new(text), place: &line.place, time: line.place.time, now: line.now() };
            let mut event = extract::plain(cx.engine, cx.origin, &plain);
            event.multiline = extract::clean(cx.engine, Lines::of_bytes(std::iter::once(line.text)), &mut event.redactions);
            push(outer, cx, line, event, out);
        }
        Structured::Logfmt(..) => {}
        Structured::Json(record) => json_events(outer, cx, line, &record, candidates, out),
    }
}

fn json_events(outer: &mut Assembler, cx: &Context, line: &Line, record: &Record, candidates: &[Candidate], out: &mut Vec<Event>) {
    let flagged = has_fact(cx, candidates, FactKind::Flag);
    match record.level {
        Some(level) if level >= Level::Error => leveled(outer, cx, line, record, fact(cx, candidates, FactKind::Level), out),
        Some(Level::Warn) if has_fact(cx, candidates, FactKind::Warning) => warned(outer, cx, line, record, candidates, out),
        Some(_) => {}
        None if flagged => leveled(outer, cx, line, record, fact(cx, candidates, FactKind::Flag), out),
        None => match structured::by_code(cx.engine, record, candidates).or_else(|| structured::by_shape(cx.engine, line.body().trim_ascii(), candidates)) {
            Some(entry) => leveled(outer, cx, line, record, entry, out),
            None => unleveled(outer, cx, line, record, out),
        },
    }
}

/// Whether a literal leads to an entry of the fact `wanted`.
fn has_fact(cx: &Context, candidates: &[Candidate], wanted: FactKind) -> bool {
    candidates.iter().any(|c| matches!(&cx.engine.rules.entries[usize::from(c.entry)].kind, Kind::Fact(kind) if *kind == wanted))
}

/// Handles a record that states that it is a warning: its message is the event, whatever errors it quotes.
fn warned(outer: &mut Assembler, cx: &Context, line: &Line, record: &Record, candidates: &[Candidate], out: &mut Vec<Event>) {
    let said = record.message.as_ref().or(record.strings.first());
    let lines = said.map(|said| split(&said.text)).unwrap_or_default();
    let entry = fact(cx, candidates, FactKind::Warning);
    let mut event =
        extract::plain(cx.engine, cx.origin, &Plain { entry, lines: headed(record, &lines), place: &line.place, time: record.time, now: line.now() });
    event.record = said.map(|said| RecordPlace { pointer: said.pointer.clone(), line: 1 });
    push(outer, cx, line, event, out);
}

/// Returns the entry of a fact: the one that a literal led to, or the first of its kind.
fn fact(cx: &Context, candidates: &[Candidate], wanted: FactKind) -> u16 {
    let is = |entry: u16| matches!(&cx.engine.rules.entries[usize::from(entry)].kind, Kind::Fact(kind) if *kind == wanted);
    candidates.iter().map(|c| c.entry).find(|&entry| is(entry)).or_else(|| cx.engine.rules.fact(wanted)).unwrap_or_default()
}

/// Handles a record that states that it is an error: one event, whose details come from its stack.
fn leveled(outer: &mut Assembler, cx: &Context, line: &Line, record: &Record, entry: u16, out: &mut Vec<Event>) {
    let said = record.message.as_ref().or(record.stack.as_ref()).or_else(|| telling(record)).or(record.strings.first());
    let mut lines: Lines = said.map(|said| split(&said.text)).unwrap_or_default();
    if let (Some(stack), Some(_)) = (&record.stack, &record.message) {
        lines.append(&split(&stack.text));
    }
    let mut inner = Vec::new();
    if let Some(text) = record.stack.as_ref().or(said) {
        nested(cx, line, text, 0, &mut inner);
    }
    let mut event = match inner.into_iter().next() {
        Some(event) => event,
        None => extract::plain(cx.engine, cx.origin, &Plain { entry, lines: headed(record, &lines), place: &line.place, time: record.time, now: line.now() }),
    };
    extract::restart(cx.engine, cx.origin, &mut event, &line.place, record.time);
    event.record = said.map(|said| RecordPlace { pointer: said.pointer.clone(), line: 1 });
    if !lines.is_empty() {
        event.multiline = extract::clean(cx.engine, lines, &mut event.redactions);
    }
    structured::restate(cx.engine, record, &mut event);
    if let (None, Some((file, line, column))) = (&event.location, &record.finding) {
        let file = extract::secretless(cx.engine, file, &mut event.redactions);
        event.location = Some(Location { file, line: *line, column: *column });
    }
    push(outer, cx, line, event, out);
}

/// Returns what the first finding of a report says.
fn telling(record: &Record) -> Option<&Text> {
    let says = |text: &&Text| matches!(text.pointer.rsplit('/').next(), Some("message" | "summary" | "text" | "Text" | "title"));
    record.strings.iter().find(says)
}

/// Returns the message, headed by the type that a field of the record names.
fn headed(record: &Record, lines: &Lines) -> Lines {
    match (structured::name(record), lines.iter().next()) {
        (Some(kind), Some(first)) if !first.contains(kind) => Lines::new(format!("{kind}: {}", lines.as_str())),
        _ => lines.clone(),
    }
}

/// Handles a record without a level: a string counts if a rule hits inside it.
fn unleveled(outer: &mut Assembler, cx: &Context, line: &Line, record: &Record, out: &mut Vec<Event>) {
    let mut base = 0;
    let mut found = Vec::new();
    for text in record.message.iter().chain(&record.stack).chain(&record.strings) {
        if names_a_test(record, &text.pointer) {
            continue;
        }
        let before = found.len();
        nested(cx, line, text, base, &mut found);
        for event in &mut found[before..] {
            event.record = Some(RecordPlace { pointer: text.pointer.clone(), line: event.inner - base + 1 });
            event.timestamp = extract::credible(record.time, event.observed_at);
        }
        base += text.text.lines().count() as u32;
    }
    if !found.is_empty() && cx.engine.is_noisy_record(line.body().trim_ascii()) {
        return;
    }
    let compared = &found[..found.len().min(MAX_COMPARED)];
    let restated: Vec<bool> = found.iter().map(|event| compared.iter().any(|other| restates(other, event))).collect();
    let mut seen = Vec::new();
    for (event, restated) in found.into_iter().zip(restated) {
        if !restated && seen.len() < MAX_EVENTS && !seen.contains(&event.signature) {
            seen.push(event.signature);
            push(outer, cx, line, event, out);
        }
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

/// Whether the string at `pointer` is the name of a test in the reports
/// of jest, vitest, mocha and pytest: it may mention any error.
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

fn push(outer: &mut Assembler, cx: &Context, line: &Line, mut event: Event, out: &mut Vec<Event>) {
    event.context = extract::context_lines(cx, line);
    if let Some(place) = &mut event.record {
        let plain = place.pointer.replace("~1", "/").replace("~0", "~");
        let clean = extract::secretless(cx.engine, &plain, &mut event.redactions);
        if clean != plain {
            place.pointer = clean;
        }
    }
    let entries = &cx.engine.rules.entries;
    let entry = entries.position(&event.rule).map(|entry| &entries[usize::from(entry)]);
    outer.state(cx, line, event, entry, out);
}

/// Reads a string of the record as lines of a stream of its own.
fn nested(cx: &Context, line: &Line, text: &Text, base: u32, out: &mut Vec<Event>) {
    if cx.depth >= MAX_DEPTH {
        return;
    }
    let mut inner = Assembler::default();
    let inner_cx = Context { engine: cx.engine, origin: cx.origin, back: LookBack::default(), depth: cx.depth + 1 };
    let mut candidates = Vec::new();
    for (number, text) in text.text.lines().take(MAX_INNER_LINES).enumerate() {
        let visible = super::visible::visible(text.as_bytes(), None);
        let work = inner.work();
        cx.engine.candidates(&visible, &mut work.scratch, &mut work.hits, &mut candidates);
        let place = Place { inner: base + number as u32, ..line.place.clone() };
        inner.line(&inner_cx, &Line::new(place, &visible, line.now()), &candidates, out);
    }
    inner.finish(&inner_cx, line.now(), out);
}

fn split(text: &str) -> Lines {
    text.lines().take(MAX_INNER_LINES).collect()
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
        let engine = Arc::new(Engine::new(RuleSet::builtin(), Limits::default()));
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
