//! `siftd explain`: why a line is, or is not, an error. What decoding sees in it, which rules its
//! literals lead to and what they say, and the event that the whole text makes of it.

use std::fmt::Write;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::ExplainArgs;
use super::{Exit, Failure, out, setup};
use crate::core::confirm::{Confirm, Rejected};
use crate::core::decode::{Json, json, logfmt};
use crate::core::engine::Engine;
use crate::core::event::Event;
use crate::core::extract::Origin;
use crate::core::line::{Line, Place};
use crate::core::pipeline::Stream;
use crate::core::prefilter::Scratch;
use crate::core::signature::normalise;
use crate::core::visible::visible;
use crate::rules::Kind;
use crate::sinks::human::sanitise;
use crate::sinks::record::rfc3339;
use crate::sources::clock::now;
use crate::sources::input;

pub fn explain(args: &ExplainArgs) -> Result<Exit, Failure> {
    let setup = setup::load(&args.setup, None)?;
    let mut page = String::new();
    match &args.place {
        Some(place) => {
            let (path, line) = parse_place(place)?;
            let fault = |error: io::Error| Failure::new(format!("{}: {error}", path.display()));
            let text = line_of(&path, line).map_err(fault)?.ok_or_else(|| Failure::new(format!("{}: has no line {line}", path.display())))?;
            let events = events(&setup.engine, open(&path).map_err(fault)?).map_err(fault)?;
            explain_line(&setup.engine, place, &text, line, &events, &mut page);
        }
        None => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes)?;
            let events = events(&setup.engine, &bytes[..])?;
            for (text, line) in bytes.split(|&b| b == b'\n').zip(1..).filter(|(text, _)| !text.trim_ascii().is_empty()) {
                explain_line(&setup.engine, &format!("line {line}"), text, line, &events, &mut page);
            }
        }
    }
    out::print(&page)
}

fn parse_place(place: &str) -> Result<(PathBuf, u64), Failure> {
    let parsed = place.rsplit_once(':').and_then(|(path, line)| Some((PathBuf::from(path), line.parse().ok().filter(|&line| line > 0)?)));
    parsed.ok_or_else(|| Failure::new(format!("{place}: which line? write FILE:LINE, such as build.log:118")))
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    input::file(path, Arc::default()).map(|opened| opened.bytes)
}

fn line_of(path: &Path, line: u64) -> io::Result<Option<Vec<u8>>> {
    let mut lines = BufReader::new(open(path)?).split(b'\n');
    lines.nth(usize::try_from(line - 1).unwrap_or(usize::MAX)).transpose()
}

fn events(engine: &Arc<Engine>, mut bytes: impl Read) -> io::Result<Vec<Event>> {
    let (mut stream, mut events) = (Stream::new(engine.clone(), Origin::default()), Vec::new());
    loop {
        match input::fill(&mut bytes, stream.space())? {
            0 => break,
            count => stream.advance(count, now(), &mut events),
        }
    }
    stream.finish(now(), &mut events);
    Ok(events)
}

fn explain_line(engine: &Engine, name: &str, raw: &[u8], num: u64, events: &[Event], page: &mut String) {
    let text = visible(raw, None);
    let place = Place { num, ..Place::default() };
    let line = Line::new(place, &text, now());
    let _ = writeln!(page, "{}", sanitise(name));
    field(page, "text", &String::from_utf8_lossy(&text));
    prefix(&line, page);
    record(&text, page);
    hits(engine, &line, page);
    let covering: Vec<&Event> = events.iter().filter(|event| (event.line_num..=event.line_end).contains(&num)).collect();
    if covering.is_empty() {
        field(page, "event", "none: the line is no error");
    }
    covering.into_iter().for_each(|event| outcome(event, page));
    page.push('\n');
}

/// One field; its value is sanitised here and nowhere else.
fn field(page: &mut String, name: &str, value: &str) {
    let _ = writeln!(page, "  {name:<10} {}", sanitise(value));
}

fn prefix(line: &Line, page: &mut String) {
    let prefix = line.prefix();
    if let Some(time) = prefix.time {
        field(page, "time", &rfc3339(time));
    }
    if let Some(level) = prefix.level {
        field(page, "level", level.as_str());
    }
    if let Some(key) = line.key() {
        field(page, "writer", &String::from_utf8_lossy(key));
    }
    if prefix.message > 0 {
        field(page, "message", &String::from_utf8_lossy(line.message()));
    }
}

fn record(text: &[u8], page: &mut String) {
    match json(text, now()) {
        Some(Json::Envelope(envelope)) => field(page, "envelope", &String::from_utf8_lossy(&envelope.text)),
        Some(Json::Record(record)) => {
            let level = record.level.map_or("without a level", |level| level.as_str());
            let message = record.message.map_or(String::new(), |message| format!(", {}: {}", message.pointer, message.text));
            field(page, "record", &format!("JSON, {level}{message}"));
        }
        None => {
            if let Some(pairs) = logfmt(text, now()) {
                field(page, "record", &format!("logfmt, {}", pairs.level.map_or("without a level", |level| level.as_str())));
            }
        }
    }
}

fn hits(engine: &Engine, line: &Line, page: &mut String) {
    let (mut scratch, mut hits, mut candidates) = (Scratch::default(), Vec::new(), Vec::new());
    engine.candidates(line.text, &mut scratch, &mut hits, &mut candidates);
    if candidates.is_empty() {
        field(page, "hits", "none: no literal of any rule stands in the line");
    }
    let confirm = Confirm::new(engine, line, &candidates);
    for index in confirm.entries() {
        let entry = &engine.rules.entries[usize::from(index)];
        let at = candidates.iter().find(|candidate| candidate.entry == index).map_or(0..0, |c| c.at as usize..c.at as usize + usize::from(c.len));
        let literal = String::from_utf8_lossy(line.text.get(at.clone()).unwrap_or_default()).into_owned();
        let verdict = match (&entry.kind, confirm.verdict(index)) {
            (_, Ok(_)) => "holds".to_owned(),
            (Kind::Fact(_), Err(Rejected::Regex)) => "no level tag; what a record says is decided with its fields".to_owned(),
            (_, Err(rejected)) => why_not(rejected).to_owned(),
        };
        field(page, "hit", &format!("{} ({}) by {literal:?} at byte {}: {verdict}", entry.id, entry.kind.table(), at.start + 1));
    }
}

fn why_not(rejected: Rejected) -> &'static str {
    match rejected {
        Rejected::Level(_) => "no, the level says that it is no error",
        Rejected::Code => "no, the line shows source code",
        Rejected::Regex => "no, its regex does not match here",
        Rejected::Noise => "no, the line is noise",
        Rejected::Cancelled => "no, a known false positive covers it",
    }
}

fn outcome(event: &Event, page: &mut String) {
    let lines = if event.line_num == event.line_end { format!("line {}", event.line_num) } else { format!("lines {}-{}", event.line_num, event.line_end) };
    field(page, "event", &format!("{lines} by {}: {}", event.rule, event.text));
    field(page, "category", &format!("{}, severity {}, cause {}", event.category, event.severity, event.cause));
    field(page, "retry", &format!("{} ({}), remedy {}", event.retry.class, event.retry.reason, event.retry.remedy));
    let mut normalised = String::new();
    let message = event.exception.as_ref().map_or(event.text.as_str(), |exception| exception.message.as_str());
    normalise(message, &mut normalised);
    let kind = event.exception.as_ref().map_or(String::new(), |exception| format!("{}: ", exception.kind));
    field(page, "signature", &format!("{} of {kind}{normalised}", event.signature));
}
