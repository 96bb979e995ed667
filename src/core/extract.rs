//! From a finished trace to the fields of an event: what the rows read, then redaction, category,
//! retry and signature, in this order. It decides nothing about which lines belong together.

use md5::{Digest, Md5};

use super::assemble::Context;
use super::classify::{self, Subject};
use super::engine::Engine;
use super::event::{Event, Exception, Frame, Link, Location, Retry, Timestamp};
use super::frames;
use super::line::{Line, Place};
use super::signature;
use super::trace::{OpenTrace, Outcome, Taken};
use crate::rules::{Entry, Family, Groups, Kind, Machine, Pattern, Row, Take};

/// A stated time that is further away than this from the time of reading is not believed.
const MAX_CLOCK_SKEW_US: u64 = 48 * 3600 * 1_000_000;

/// The stream that an event was found in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Identity of the stream.
    pub uid: [u8; 16],
    /// Rises whenever the content at offset 0 is replaced.
    pub generation: u32,
}

impl Origin {
    /// The id of an event (PROTOCOLS, B).
    #[must_use]
    pub fn id(&self, offset: u64, inner: u32) -> String {
        let mut hash = Md5::new();
        hash.update(b"siftd-id-1");
        hash.update(self.uid);
        hash.update(self.generation.to_be_bytes());
        hash.update(offset.to_be_bytes());
        hash.update(inner.to_be_bytes());
        hex(&hash.finalize())
    }
}

/// Lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
        }
    }
    out
}

/// What the rows of a trace read.
#[derive(Default)]
struct Said {
    text: String,
    links: Vec<Link>,
    frames: Vec<Frame>,
    location: Option<Location>,
}

/// The event that `trace` came to.
#[must_use]
pub fn event(engine: &Engine, origin: &Origin, trace: &OpenTrace, outcome: Outcome, idle: bool) -> Event {
    let entry = &engine.rules.entries[usize::from(outcome.entry)];
    let family = &engine.rules.families[usize::from(entry.family)];
    let lines = &trace.lines[..outcome.lines.min(trace.lines.len())];
    let said = match &entry.kind {
        Kind::Trace(machine) => read_trace(engine, family, machine, lines, trace.rows(outcome.entry)),
        Kind::Rule(regex) => read_line(regex, lines),
        Kind::Note(note) => read_line(&note.regex, lines),
        _ => Said { text: printable(lines[0].part()), ..Said::default() },
    };
    let mut event = build(engine, entry, family, said, lines.iter().map(|taken| printable(taken.part())).collect());
    event.observed_at = trace.opened_at;
    event.timestamp = credible(trace.time, trace.opened_at);
    event.key = trace.key.as_ref().map(|key| secretless(engine, &printable(key), &mut event.redactions));
    event.io = lines[0].place.io;
    event.line_num = lines[0].place.num;
    event.line_end = outcome.last_num.max(event.line_num);
    event.offset = lines[0].place.offset;
    event.inner = lines[0].place.inner;
    event.id = origin.id(event.offset, event.inner);
    event.closed_idle = idle;
    event.truncated = trace.dropped > 0 || lines.iter().any(|taken| taken.place.truncated);
    let head = (event.line_num, printable(&lines[0].text));
    event.context = numbered(engine, trace.context.iter().cloned().chain([head]).collect());
    event
}

/// An event without a trace: the lines of a record.
pub struct Plain<'a> {
    /// Entry that confirmed it.
    pub entry: u16,
    /// Its lines, the first of which names the error.
    pub lines: Vec<String>,
    /// Where it stands.
    pub place: &'a Place,
    /// The time that it states.
    pub time: Option<Timestamp>,
    /// When it was read.
    pub now: Timestamp,
}

/// The event of a record's own lines.
#[must_use]
pub fn plain(engine: &Engine, origin: &Origin, plain: &Plain) -> Event {
    let entry = &engine.rules.entries[usize::from(plain.entry)];
    let family = &engine.rules.families[usize::from(entry.family)];
    let text = plain.lines.first().cloned().unwrap_or_default();
    let mut event = build(engine, entry, family, Said { text, ..Said::default() }, plain.lines.clone());
    event.observed_at = plain.now;
    restart(engine, origin, &mut event, plain.place, plain.time);
    event
}

/// Puts an event at the beginning of a record.
pub fn restart(engine: &Engine, origin: &Origin, event: &mut Event, place: &Place, time: Option<Timestamp>) {
    event.timestamp = credible(time, event.observed_at);
    event.line_num = place.num;
    event.line_end = place.num;
    event.offset = place.offset;
    event.inner = place.inner;
    event.io = place.io;
    event.key = place.key.as_ref().map(|key| secretless(engine, key, &mut event.redactions));
    event.truncated |= place.truncated;
    event.id = origin.id(event.offset, event.inner);
}

/// The stated time if it is near the time of reading, else that.
#[must_use]
pub fn credible(stated: Option<Timestamp>, observed: Timestamp) -> Timestamp {
    match stated {
        Some(time) if time.0.abs_diff(observed.0) <= MAX_CLOCK_SKEW_US => time,
        _ => observed,
    }
}

/// What the status lines that this trace claims are about: group `key` of the head, or `name`.
#[must_use]
pub fn key(engine: &Engine, trace: &OpenTrace, outcome: Outcome) -> Option<Vec<u8>> {
    let entry = &engine.rules.entries[usize::from(outcome.entry)];
    match &entry.kind {
        Kind::Rule(regex) => regex.key(trace.lines[0].part()),
        Kind::Trace(machine) => trace
            .lines
            .iter()
            .zip(trace.rows(outcome.entry))
            .take(outcome.lines)
            .find_map(|(taken, row)| machine.rows.get(usize::from(*row)).and_then(|row| row.regex.key(taken.part()))),
        _ => None,
    }
}

/// The lines around a record, as context.
#[must_use]
pub fn context_lines(cx: &Context, line: &Line) -> Vec<String> {
    let mut context = cx.back.context(cx.engine.limits.context_a_side(), line.place.num, line);
    context.push((line.place.num, printable(line.text)));
    numbered(cx.engine, context)
}

/// Lines that follow each other as `40: text`, without secrets.
#[must_use]
pub fn numbered(engine: &Engine, lines: Vec<(u64, String)>) -> Vec<String> {
    let (nums, texts): (Vec<u64>, Vec<String>) = lines.into_iter().unzip();
    let texts = clean(engine, texts, &mut 0);
    nums.iter().zip(texts).map(|(num, text)| format!("{num}: {text}")).collect()
}

/// A text without secrets.
#[must_use]
pub fn secretless(engine: &Engine, text: &str, count: &mut u32) -> String {
    engine.redactor.redact(text, count).into_owned()
}

/// Lines without secrets.
#[must_use]
pub fn clean(engine: &Engine, mut lines: Vec<String>, count: &mut u32) -> Vec<String> {
    engine.redactor.redact_lines(&mut lines, count);
    lines
}

/// The text of a line; invalid UTF-8 is replaced. The check for valid text is many times faster.
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn build(engine: &Engine, entry: &Entry, family: &Family, mut said: Said, lines: Vec<String>) -> Event {
    let mut redactions = 0;
    let whole = lines.join("\n");
    // The usual error holds no secret: one pass over all of it says so.
    let (multiline, whole) = if engine.redactor.touches(whole.as_bytes()) {
        let multiline = clean(engine, lines, &mut redactions);
        said.redact(engine);
        let whole = multiline.join("\n");
        (multiline, whole)
    } else {
        (lines, whole)
    };
    let outermost = said.links.first().cloned().unwrap_or_default();
    let language = entry.fault.language.clone().or_else(|| family.language.clone());
    let verdict = classify::classify(&Subject {
        text: &said.text,
        kind: Some(outermost.kind.as_str()).filter(|kind| !kind.is_empty()),
        message: Some(outermost.message.as_str()).filter(|message| !message.is_empty()),
        whole: &whole,
        language: language.as_deref(),
        rule_category: entry.fault.category,
        is_test_rule: family.test,
        exit_code: None,
        status: None,
        timed_out: false,
    });
    let message = if outermost.kind.is_empty() { said.text.as_str() } else { outermost.message.as_str() };
    let (strict, loose) = signature::signature(language.as_deref(), &outermost.kind, &said.links, message, &said.frames);
    let severity = engine.limits.severity_override(&entry.id, verdict.category).or(entry.fault.severity).unwrap_or(verdict.severity);
    let mut retry = verdict.retry;
    if let Some(class) = entry.fault.retry {
        retry = Retry { class, reason: "rule".to_owned(), remedy: crate::core::retry::remedy(class, verdict.cause), reset_at: retry.reset_at };
    }
    Event {
        id: String::new(),
        timestamp: Timestamp::default(),
        observed_at: Timestamp::default(),
        key: None,
        io: None,
        line_num: 0,
        line_end: 0,
        record: None,
        offset: 0,
        inner: 0,
        category: verdict.category,
        severity,
        cause: entry.fault.cause.unwrap_or(verdict.cause),
        signature: strict,
        signature_loose: loose,
        rule: entry.id.clone(),
        language,
        location: said.place(),
        exception: said.take_exception(engine.limits.max_stack_depth),
        text: said.text,
        context: Vec::new(),
        multiline,
        retry,
        closed_idle: false,
        hint: entry.fault.hint.clone(),
        truncated: false,
        redactions,
    }
}

impl Said {
    fn push_frame(&mut self, family: &Family, mut frame: Frame) {
        // Go and Rust put function and place on lines of their own.
        if frame.function.is_empty() && self.frames.last().is_some_and(|last| last.file.is_empty()) {
            frame.function = self.frames.pop().map(|last| last.function).unwrap_or_default();
        }
        frame.in_app = !family.library.owns(&frame.function, &frame.file);
        self.frames.push(frame);
    }

    fn redact(&mut self, engine: &Engine) {
        let mut strings: Vec<&mut String> = vec![&mut self.text];
        strings.extend(self.links.iter_mut().flat_map(|link| [&mut link.kind, &mut link.message]));
        strings.extend(self.frames.iter_mut().flat_map(|frame| [&mut frame.function, &mut frame.file]));
        strings.extend(self.location.iter_mut().map(|place| &mut place.file));
        for string in strings {
            if let std::borrow::Cow::Owned(clean) = engine.redactor.redact(string, &mut 0) {
                *string = clean;
            }
        }
    }

    fn take_exception(&mut self, max_frames: usize) -> Option<Exception> {
        let outermost = self.links.first()?.clone();
        if outermost.kind.is_empty() && self.frames.is_empty() {
            return None;
        }
        let chain = if self.links.len() > 1 { std::mem::take(&mut self.links) } else { Vec::new() };
        let mut frames = std::mem::take(&mut self.frames);
        frames.truncate(max_frames);
        Some(Exception { kind: outermost.kind, message: outermost.message, chain, frames })
    }

    /// Where an editor should jump to: what the trace says, else the first frame of the program.
    fn place(&self) -> Option<Location> {
        let named = |frame: &&Frame| !frame.file.is_empty() && frame.line > 0;
        self.location.clone().or_else(|| {
            let frame = self.frames.iter().filter(named).find(|frame| frame.in_app).or_else(|| self.frames.iter().find(named))?;
            Some(Location { file: frame.file.clone(), line: frame.line, column: frame.column })
        })
    }
}

fn read_line(regex: &Pattern, lines: &[Taken]) -> Said {
    let part = lines[0].part();
    let mut said = Said { text: printable(part).trim().to_owned(), ..Said::default() };
    if regex.has_groups()
        && let Some(groups) = regex.groups(part)
    {
        said.location = location(&groups);
        if groups.name("type").is_some() {
            said.links.push(link(&groups));
        }
    }
    said
}

fn read_trace(engine: &Engine, family: &Family, machine: &Machine, lines: &[Taken], rows: &[u16]) -> Said {
    let mut said = Said::default();
    let mut named: Option<usize> = None;
    for (index, (taken, row)) in lines.iter().zip(rows).enumerate() {
        let Some(row) = machine.rows.get(usize::from(*row)) else { continue };
        if row.take == Take::Text || (row.take == Take::Exception && (machine.crash_last || said.links.is_empty())) {
            named = if row.take == Take::Text || machine.crash_last { Some(index) } else { named.or(Some(index)) };
        }
        read_row(engine, family, machine, row, taken, &mut said);
    }
    if machine.crash_last {
        said.links.reverse();
        said.frames.reverse();
    }
    let head = rows.iter().position(|row| usize::from(*row) < machine.rows.len()).unwrap_or(0);
    said.text = printable(lines[named.unwrap_or(head).min(lines.len() - 1)].part()).trim().to_owned();
    said
}

fn read_row(engine: &Engine, family: &Family, machine: &Machine, row: &Row, taken: &Taken, said: &mut Said) {
    match row.take {
        Take::Nothing | Take::Text => {}
        Take::Message => {
            if let Some(link) = said.links.last_mut() {
                if !link.message.is_empty() {
                    link.message.push('\n');
                }
                link.message.push_str(printable(taken.part()).trim());
            }
        }
        // Of a long stack only the frames at the crash are wanted.
        Take::Frame if said.frames.len() >= engine.limits.max_stack_depth && !machine.crash_last => {}
        Take::Frame if row.shape.is_some() => {
            let frame = row.shape.map(|shape| frames::read(shape, taken.part())).unwrap_or_default();
            said.push_frame(family, frame);
        }
        Take::Frame | Take::Location | Take::Exception => {
            if let Some(groups) = row.regex.groups(taken.part()) {
                read_groups(family, row.take, &groups, said);
            }
        }
    }
}

fn read_groups(family: &Family, take: Take, groups: &Groups, said: &mut Said) {
    match take {
        Take::Frame => {
            let mut frame = Frame { function: text(groups, "function"), file: text(groups, "file"), ..Frame::default() };
            frame.line = number(groups, "line");
            frame.column = number(groups, "column");
            said.push_frame(family, frame);
        }
        Take::Location => said.location = said.location.take().or_else(|| location(groups)),
        _ => {
            said.links.push(link(groups));
            if said.location.is_none() {
                said.location = location(groups);
            }
        }
    }
}

fn link(groups: &Groups) -> Link {
    Link { kind: text(groups, "type"), message: text(groups, "message").trim().to_owned() }
}

fn location(groups: &Groups) -> Option<Location> {
    groups.name("file")?;
    Some(Location { file: text(groups, "file"), line: number(groups, "line"), column: number(groups, "column") })
}

fn text(groups: &Groups, name: &str) -> String {
    groups.name(name).map(printable).unwrap_or_default()
}

fn number(groups: &Groups, name: &str) -> u32 {
    groups.name(name).and_then(|m| std::str::from_utf8(m).ok()?.parse().ok()).unwrap_or_default()
}
