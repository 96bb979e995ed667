//! `siftd explain`: why a line is, or is not, an error. Shows how the line is decoded, which
//! rules its literals lead to and what they decide, and the event that the whole text makes
//! of it; of a transcript's record, who speaks in it and what became of each result. The line is
//! judged as it stands; it is shown without secrets, as events are.

use std::ffi::OsStr;
use std::fmt::Write;
use std::io::{self, Read};
use std::ops::{Range, RangeInclusive};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::args::ExplainArgs;
use super::setup::Setup;
use super::{Exit, Failure, out, setup, stdin};
use crate::core::confirm::{Confirm, Rejected};
use crate::core::decode::{Json, json, logfmt};
use crate::core::engine::{Candidate, Engine};
use crate::core::envelope::unwrap;
use crate::core::event::Event;
use crate::core::line::{Line, Place};
use crate::core::pipeline::MAX_HEAD_BYTES;
use crate::core::redact::{KeyBlock, clean};
use crate::core::signature::normalise;
use crate::core::transcript::Account;
use crate::core::visible::visible;
use crate::rules::{Cancel, Kind};
use crate::sinks::human::sanitise;
use crate::sinks::record::rfc3339;
use crate::sources::clock::now;
use crate::sources::expand::Trouble;

mod file;
mod pass;
mod transcript;
use file::{open, say_if_foreign};
use pass::{Asked, Made, Opened, Pass};

/// Maximum number of bytes read from stdin: each line of it produces a page.
const MAX_STDIN_BYTES: u64 = 1 << 20;
/// Maximum number of lines of a file.
const MAX_LINES: u64 = 1000;

pub fn explain(args: &ExplainArgs) -> Result<Exit, Failure> {
    let place = args.place.as_deref().filter(|place| *place != "-");
    if let Some(flag) = place.map(OsStr::to_string_lossy).filter(|place| place.starts_with('-') && !place.starts_with("-:")) {
        return Err(Failure::new(format!("unexpected argument '{flag}': for a file of that name write ./{flag} (siftd explain --help)")));
    }
    let place = place.map(parse_place).transpose()?;
    let of_stdin = place.as_ref().filter(|(path, _)| path.as_os_str() == "-").map(|(_, lines)| lines);
    if place.is_none() || of_stdin.is_some() {
        stdin::needed("explain", "name a line of a file as FILE:LINE, or pipe lines in", "explain")?;
    }
    let setup = setup::load(&args.setup, setup::Reading { mode: args.mode, ..setup::Reading::default() })?;
    let page = match &place {
        Some((path, lines)) if of_stdin.is_none() => of_file(&setup, path, lines)?,
        _ => of_stdin_lines(&setup, of_stdin)?,
    };
    out::print(&page)
}

fn of_file(setup: &Setup, path: &Path, lines: &RangeInclusive<u64>) -> Result<String, Failure> {
    let mut page = String::new();
    let fault = |error: io::Error| {
        let Trouble { path, why } = Trouble::new(path, error);
        Failure::new(format!("{path}: {why}"))
    };
    let (head, mut rest) = open(path).map_err(fault)?;
    say_if_foreign(path, &head);
    let (asked, made) = Pass::new(setup, lines, &head).read(head.chain(&mut rest)).map_err(fault)?;
    if asked.is_empty() {
        // Requested lines before the damage are shown.
        return Err(rest.damage.map_or_else(|| Failure::new(format!("{}: has no line {}", path.display(), lines.start())), fault));
    }
    for line in &asked {
        explain_line(&setup.engine, &format!("{}:{}", path.display(), line.num), &Found::new(line, &made), &mut page);
    }
    Ok(page)
}

/// Explains the lines that are asked for, or each one that is not blank.
fn of_stdin_lines(setup: &Setup, asked: Option<&RangeInclusive<u64>>) -> Result<String, Failure> {
    let (mut page, mut bytes) = (String::new(), Vec::new());
    io::stdin().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(Failure::new("explain: more than 1 MiB on stdin; keep it in a file and ask for one line: siftd explain FILE:LINE"));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(Failure::new("explain: nothing on stdin; name a line of a file (siftd explain FILE:LINE), or pipe lines in"));
    }
    let (lines, made) = Pass::new(setup, asked.unwrap_or(&(1..=u64::MAX)), &bytes[..bytes.len().min(MAX_HEAD_BYTES)]).read(&bytes[..])?;
    for line in lines.iter().filter(|line| asked.is_some() || !line.text.trim_ascii().is_empty()) {
        explain_line(&setup.engine, &format!("line {}", line.num), &Found::new(line, &made), &mut page);
    }
    match asked.filter(|_| page.is_empty()) {
        Some(lines) => Err(Failure::new(format!("stdin: has no line {}", lines.start()))),
        None => Ok(page),
    }
}

/// Parses `FILE:LINE` or `FILE:18-20`, also followed by a column or a colon, as compilers and `grep -n` write it.
fn parse_place(place: &OsStr) -> Result<(PathBuf, RangeInclusive<u64>), Failure> {
    let shown = place.display();
    let parsed = split(place).map(|(path, lines)| match split(path) {
        // A file may really be named `a.log:18`.
        Some((inner, first)) if !Path::new(path).exists() => (PathBuf::from(inner), first),
        _ => (PathBuf::from(path), lines),
    });
    let (path, lines) = parsed.ok_or_else(|| Failure::new(format!("{shown}: which line? write FILE:LINE, such as build.log:118")))?;
    if lines.is_empty() || lines.end() - lines.start() >= MAX_LINES {
        return Err(Failure::new(format!("{shown}: write the lines as FILE:FIRST-LAST, at most {MAX_LINES} of them")));
    }
    Ok((path, lines))
}

/// Splits the numbers off the end; a name is bytes, and need not be text.
fn split(place: &OsStr) -> Option<(&OsStr, RangeInclusive<u64>)> {
    let bytes = place.as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b':')? + 1;
    let colon = memchr::memrchr(b':', &bytes[..end])?;
    let lines = numbers(str::from_utf8(&bytes[colon + 1..end]).ok()?)?;
    Some((OsStr::from_bytes(&bytes[..colon]), lines))
}

/// Parses the number of a line, or the first and last of a range.
fn numbers(text: &str) -> Option<RangeInclusive<u64>> {
    let number = |text: &str| text.parse().ok().filter(|&line: &u64| line > 0);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(number(first)?..=number(last)?)
}

/// A line, and what the whole text makes of it.
struct Found<'a> {
    line: &'a Asked,
    /// The account of the record that the line belongs to.
    account: Option<&'a Account>,
    made: &'a Made,
}

impl<'a> Found<'a> {
    fn new(line: &'a Asked, made: &'a Made) -> Self {
        Self { line, account: made.account(line.num), made }
    }

    /// Returns the events that the line belongs to, or its record.
    fn covering(&self) -> impl Iterator<Item = &Event> {
        let num = self.line.num;
        let is_in_record = |event: &Event| self.account.is_some_and(|account| account.has_steps() && account.holds(event.line_num));
        self.made.events.iter().filter(move |event| event.covers(num) || is_in_record(event))
    }

    fn opened(&self) -> &Opened {
        const NOTHING: &Opened = &Opened { regions: Vec::new(), traces: Vec::new() };
        self.made.opened(self.line.num).unwrap_or(NOTHING)
    }
}

fn explain_line(engine: &Engine, name: &str, found: &Found, page: &mut String) {
    let text = found.made.margin.cut_off(visible(&found.line.text, None));
    let place = Place { num: found.line.num, ..Place::default() };
    let line = Line::new(place, &text, now());
    if !page.is_empty() {
        page.push('\n');
    }
    let _ = writeln!(page, "{}", sanitise(name));
    let shown = if found.line.is_key { KeyBlock::TOKEN.into() } else { String::from_utf8_lossy(&text) };
    field(page, "text", &shown);
    match (found.made.format, found.account) {
        (Some(format), Some(account)) => transcript::record(format, account, page),
        (Some(format), None) if found.made.is_document => transcript::between(format, page),
        _ => of_text(engine, &line, found, page),
    }
    if found.covering().next().is_none() {
        field(page, "event", "none: the line is no error");
    }
    found.covering().for_each(|event| outcome(event, page));
}

/// Explains a line that is no part of a transcript.
fn of_text(engine: &Engine, line: &Line, found: &Found, page: &mut String) {
    let mut place = line.place.clone();
    let wrapped = unwrap(&found.line.text, now(), &mut place).filter(|_| !found.line.is_key);
    let text = wrapped.as_ref().map(|(text, _)| visible(text, None));
    if !found.line.is_key {
        prefix(line, page);
        match &text {
            // That of a container runtime stands behind a prefix, and is the message.
            Some(text) if line.message().ends_with(text) => {}
            Some(text) => field(page, "envelope", &String::from_utf8_lossy(text)),
            None => record(line.text, page),
        }
    }
    match &text {
        Some(text) => hits(engine, (&Line::new(place, text, now()), " of what it wraps"), found, page),
        None => hits(engine, (line, ""), found, page),
    }
    joined(found, page);
}

/// Writes one field; only here is its value redacted and sanitised.
fn field(page: &mut String, name: &str, value: &str) {
    let _ = writeln!(page, "  {name:<10} {}", sanitise(&clean(value)));
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
        field(page, "message", &message(line, prefix.message));
    }
}

/// Returns the message without secrets. Some are recognised only by the text before
/// the message, such as a `password: ` that was taken for the name of a writer.
fn message(line: &Line, at: usize) -> String {
    let [whole, before, message] = [line.text, &line.text[..at], line.message()].map(String::from_utf8_lossy);
    let all = clean(&whole);
    all.strip_prefix(&*before).map_or_else(|| clean(&message).into_owned(), str::to_owned)
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

/// Writes the open regions around the line, and the trace that it continues.
fn joined(found: &Found, page: &mut String) {
    for region in &found.opened().regions {
        field(page, "region", &format!("{region} is open"));
    }
    for event in found.covering().filter(|event| event.line_num < event.line_end) {
        let (at, of) = (found.line.num - event.line_num + 1, event.line_end - event.line_num + 1);
        field(page, "joined", &format!("{}, as line {at} of {of}", event.rule));
    }
    let known = |id: &&String| !found.covering().any(|event| *event.rule == ***id);
    if found.covering().next().is_none()
        && let Some(trace) = found.opened().traces.iter().find(known)
    {
        field(page, "joined", &format!("{trace}, on trial: the lines after it did not make it an error"));
    }
}

/// Writes the rules that the line's literals lead to; `of`: which text their places count in, if it is not the line's own.
fn hits(engine: &Engine, (line, of): (&Line, &str), found: &Found, page: &mut String) {
    let candidates = engine.candidates_of(line.text);
    if candidates.is_empty() {
        field(page, "hits", "none: no literal of any rule stands in the line");
    }
    let confirm = Confirm::new(engine, line, &candidates);
    let unasked = unasked(engine, line, &candidates).filter(|_| found.covering().next().is_none());
    for index in confirm.entries() {
        let entry = &engine.rules.entries[usize::from(index)];
        let at = candidates.iter().find(|candidate| candidate.entry == index).map_or(0..0, |c| c.at as usize..c.at as usize + usize::from(c.len));
        let literal = String::from_utf8_lossy(line.text.get(at.clone()).unwrap_or_default()).into_owned();
        let verdict = match (&entry.kind, confirm.verdict(index)) {
            (_, Ok(_)) if unasked.is_some_and(|first| index >= first) => {
                "would hold, but was not asked: the line leads to more rules than are asked of one line".to_owned()
            }
            (kind, Ok(_)) => holds(&entry.id, kind, found),
            (Kind::Fact(_), Err(Rejected::Regex)) => "no level tag; what a record says is decided with its fields".to_owned(),
            (_, Err(Rejected::Cancelled)) => covering_cancel(engine, line, &at),
            (_, Err(Rejected::Noise)) => noise_of(engine, line),
            (_, Err(rejected)) => why_not(rejected).to_owned(),
        };
        field(page, "hit", &format!("{} ({}) by {literal:?} at byte {}{of}: {verdict}", entry.id, entry.kind.table().as_str(), at.start + 1));
    }
}

/// Returns the first entry that is not asked because the line has used up its questions.
fn unasked(engine: &Engine, line: &Line, candidates: &[Candidate]) -> Option<u16> {
    let mut confirm = Confirm::new(engine, line, candidates);
    let _ = (confirm.border(), confirm.noise_block(), confirm.region(), confirm.starts(), confirm.note(), confirm.rule());
    confirm.unasked()
}

/// Describes what became of an entry that matches the line.
fn holds(id: &str, kind: &Kind, found: &Found) -> String {
    let covering: Vec<&Event> = found.covering().collect();
    if covering.iter().any(|event| *event.rule == *id) || !matches!(kind, Kind::Trace(_) | Kind::Rule(_) | Kind::Fact(_) | Kind::Note(_)) {
        return "holds".to_owned();
    }
    match (covering.first(), kind) {
        (Some(event), _) => format!("would hold, but {} has the line", event.rule),
        (None, Kind::Trace(machine)) if machine.needs_frame => "could begin here, but no frame follows".to_owned(),
        (None, Kind::Trace(_)) => "could begin here, but the lines after it do not make it an error".to_owned(),
        (None, Kind::Note(_)) => "holds, but an error before it explains it".to_owned(),
        (None, _) => "holds, but the region, block or trace around it owns the line".to_owned(),
    }
}

/// Names the false positive that covers the literal at `at`.
fn covering_cancel(engine: &Engine, line: &Line, at: &Range<usize>) -> String {
    let covers = |cancel: &Cancel, body: &[u8]| {
        let base = line.text.len() - body.len();
        cancel.regex.regex().find_iter(body).any(|found| found.start() + base <= at.start && at.end <= found.end() + base)
    };
    let cancel = engine.rules.cancels.iter().find(|cancel| line.bodies().any(|body| covers(cancel, body)));
    match cancel {
        Some(cancel) => format!("no, {} covers it: {}", cancel.id, cancel.reason.as_deref().unwrap_or("a known false positive")),
        None => why_not(Rejected::Cancelled).to_owned(),
    }
}

/// Names the entry that makes the line noise.
fn noise_of(engine: &Engine, line: &Line) -> String {
    let noise = engine.rules.noise.iter().map(|&index| &engine.rules.entries[usize::from(index)]).find_map(|entry| match &entry.kind {
        Kind::Noise { regex, reason, .. } if line.bodies().any(|body| regex.is_match(body)) || (entry.whole && regex.is_match(line.text)) => {
            Some((&entry.id, reason))
        }
        _ => None,
    });
    match noise {
        Some((id, reason)) => format!("no, {id} makes the line noise: {reason}"),
        None => why_not(Rejected::Noise).to_owned(),
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
    let flavour = event.call.as_ref().and_then(|call| call.flavour).map_or_else(String::new, |flavour| format!(" ({flavour})"));
    field(page, "category", &format!("{}, severity {}{flavour}, cause {}", event.category, event.severity, event.cause));
    field(page, "retry", &format!("{} ({}), remedy {}", event.retry.class, event.retry.reason, event.retry.remedy));
    let mut normalised = String::new();
    let message = event.exception.as_ref().map_or(event.text.as_str(), |exception| exception.message.as_str());
    normalise(message, &mut normalised);
    let kind = event.exception.as_ref().map_or(String::new(), |exception| format!("{}: ", exception.kind));
    field(page, "signature", &format!("{} of {kind}{normalised}", event.signature));
}
