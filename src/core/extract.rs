//! Turns a finished trace into the fields of an event: what the rows read, then redaction,
//! category, retry and signature, in this order. It does not decide which lines belong together.

use md5::{Digest, Md5};

use super::assemble::Context;
use super::classify::{self, Subject, Verdict};
use super::engine::Engine;
use super::event::{Event, Exception, Frame, Frames, Hex, Lines, Link, Location, Retry, Sender, Timestamp};
use super::keywords::{Keywords, Seen};
use super::line::{Line, Place};
use super::redact::{ContextKey, KeyBlock};
use super::signature::{self, Fault};
use super::text::printable;
use super::trace::{OpenTrace, Outcome};
use crate::rules::{Entry, Family, Kind};

mod reading;
use reading::{read_line, read_trace};

/// A stated time further than this from the time of reading is not believed.
const MAX_CLOCK_SKEW_US: u64 = 48 * 3600 * 1_000_000;

/// Room for the context after most errors, in bytes.
const CONTEXT_ROOM: usize = 400;
/// Room for the frames of most errors, and for their names, in bytes.
const FRAMES_ROOM: (usize, usize) = (12, 640);

/// The stream that an event was found in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Identity of the stream.
    pub uid: [u8; 16],
    /// Incremented whenever the content at offset 0 is replaced.
    pub generation: u32,
}

impl Origin {
    /// Returns the id of an event: a hash of its place in the stream, so that whoever reads it again gives it the same one.
    #[must_use]
    pub fn id(&self, offset: u64, inner: u32) -> Hex {
        let parts: [&[u8]; 5] = [b"siftd-id-1", &self.uid, &self.generation.to_be_bytes(), &offset.to_be_bytes(), &inner.to_be_bytes()];
        let (mut all, mut end) = ([0; 64], 0);
        for part in parts {
            all[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        Hex::new(Md5::digest(&all[..end]).into())
    }
}

/// What the rows of a trace read.
#[derive(Default)]
struct Said {
    text: String,
    links: Vec<Link>,
    frames: Frames,
    location: Option<Location>,
    /// The name of the test that failed.
    test: Option<String>,
}

/// Where and when an event begins: what is known of it apart from what its lines say.
struct Beginning {
    place: Place,
    line_end: u64,
    id: Hex,
    timestamp: Timestamp,
    observed_at: Timestamp,
    /// The place's key and sender, without secrets.
    key: Option<String>,
    sender: Option<Box<Sender>>,
    /// How many secrets were taken out of those.
    redactions: u32,
}

impl Beginning {
    /// `time`: what the line states; `now`: when it was read; `key`: what identifies its writer.
    fn new(engine: &Engine, origin: &Origin, place: &Place, (time, now): (Option<Timestamp>, Timestamp), key: Option<&str>) -> Self {
        let mut redactions = 0;
        Self {
            line_end: place.num,
            id: origin.id(place.offset, place.inner),
            timestamp: credible(time, now),
            observed_at: now,
            key: key.map(|key| secretless(engine, key, &mut redactions)),
            sender: place.sender.as_ref().map(|sender| known(engine, sender, &mut redactions)),
            place: place.clone(),
            redactions,
        }
    }
}

/// Builds the event that `trace` came to; `idle`: a pause ended it.
#[must_use]
pub fn event(engine: &Engine, origin: &Origin, trace: &OpenTrace, outcome: Outcome, idle: bool) -> Event {
    let entry = &engine.rules.entries[usize::from(outcome.entry)];
    let family = &engine.rules.families[usize::from(entry.family)];
    let count = outcome.lines.min(trace.lines.len());
    let head = trace.lines.get(0);
    let mut said = match &entry.kind {
        Kind::Trace(machine) => read_trace(engine, family, machine, trace, outcome),
        Kind::Rule(regex) => read_line(regex, head.part, trace.setting.heading.as_deref()),
        Kind::Note(note) => read_line(&note.regex, trace.lines.get(trace.lead).part, None),
        _ => Said { text: printable(head.part).into_owned(), ..Said::default() },
    };
    if family.test {
        said.test = key(engine, trace, outcome).map(|name| printable(&name).into_owned());
    }
    let key = trace.key.as_ref().map(|key| printable(key));
    let mut beginning = Beginning::new(engine, origin, head.place, (trace.time, trace.opened_at), key.as_deref());
    beginning.line_end = outcome.last_num.max(head.place.num);
    beginning.place.truncated = trace.gap.dropped > 0 || trace.is_cut_off || trace.lines.first(count).any(|taken| taken.place.truncated);
    let (mut event, is_clean) = match trace.setting.key {
        None => build(engine, entry, said, Lines::of_bytes(trace.lines.first(count).map(|taken| taken.part)), beginning),
        Some(_) => {
            let lines = Lines::of_bytes(std::iter::once(KeyBlock::TOKEN.as_bytes()));
            build(engine, entry, Said { text: KeyBlock::TOKEN.to_owned(), ..Said::default() }, lines, beginning)
        }
    };
    event.closed_idle = idle;
    event.context = trace.setting.context.with_room(head.text.len() + CONTEXT_ROOM);
    // Most errors and the lines before them are clean: then the head, one of the error's lines, is not checked again.
    let is_read = is_clean && head.part.len() == head.text.len() && !engine.redactor.touches(event.context.as_str().as_bytes());
    event.context.push_numbered(event.line_num, head.text);
    let key = trace.setting.key.map_or(ContextKey::Before(KeyBlock::default()), ContextKey::Within);
    if trace.setting.key.is_some() || !is_read {
        engine.redactor.redact_context(key, &mut event.context);
    }
    event.redactions += u32::from(trace.setting.key.is_some());
    event
}

/// An event without a trace: the lines of a record.
pub struct Plain<'a> {
    /// Entry that confirmed it.
    pub entry: u16,
    /// Its lines, the first of which names the error.
    pub lines: Lines,
    /// Its place in the stream.
    pub place: &'a Place,
    /// The time that it states.
    pub time: Option<Timestamp>,
    /// When it was read.
    pub now: Timestamp,
}

/// Builds the event of a record's own lines.
#[must_use]
pub fn plain(engine: &Engine, origin: &Origin, plain: &Plain) -> Event {
    let entry = &engine.rules.entries[usize::from(plain.entry)];
    let text = plain.lines.iter().next().unwrap_or_default().to_owned();
    let beginning = Beginning::new(engine, origin, plain.place, (plain.time, plain.now), plain.place.key.as_deref());
    build(engine, entry, Said { text, ..Said::default() }, plain.lines.clone(), beginning).0
}

/// Moves an event to the beginning of a record.
pub fn restart(engine: &Engine, origin: &Origin, event: &mut Event, place: &Place, time: Option<Timestamp>) {
    let beginning = Beginning::new(engine, origin, place, (time, event.observed_at), place.key.as_deref());
    (event.id, event.timestamp) = (beginning.id, beginning.timestamp);
    (event.line_num, event.line_end) = (place.num, beginning.line_end);
    (event.offset, event.inner) = (place.offset, place.inner);
    (event.io, event.sender, event.key) = (place.io, beginning.sender, beginning.key);
    event.truncated |= place.truncated;
    event.redactions += beginning.redactions;
}

/// Returns the stated time if it is near the time of reading, else the time of reading.
#[must_use]
pub fn credible(stated: Option<Timestamp>, observed: Timestamp) -> Timestamp {
    match stated {
        Some(time) if time.0.abs_diff(observed.0) <= MAX_CLOCK_SKEW_US => time,
        _ => observed,
    }
}

/// Returns what the status lines that this trace claims are about: group `key` of the head, or `name`.
#[must_use]
pub fn key(engine: &Engine, trace: &OpenTrace, outcome: Outcome) -> Option<Vec<u8>> {
    let entry = &engine.rules.entries[usize::from(outcome.entry)];
    match &entry.kind {
        Kind::Rule(regex) => regex.key(trace.lines.get(0).part),
        Kind::Trace(machine) => {
            let rows = trace.lines.first(outcome.lines).zip(trace.rows(outcome.entry));
            rows.filter_map(|(taken, row)| Some((taken, machine.rows.get(usize::from(*row))?))).find_map(|(taken, row)| row.regex.key(taken.part))
        }
        _ => None,
    }
}

/// Returns a record's context: the lines before it and the record itself.
#[must_use]
pub fn context_lines(cx: &Context, line: &Line) -> Lines {
    let mut context = cx.back.context(cx.engine.limits.context_a_side(), line.place.num, line);
    context.push_numbered(line.place.num, line.text);
    cx.engine.redactor.redact_context(ContextKey::Before(KeyBlock::default()), &mut context);
    context
}

/// Returns the text without secrets.
#[must_use]
pub fn secretless(engine: &Engine, text: &str, count: &mut u32) -> String {
    engine.redactor.redact(text, count).into_owned()
}

/// Returns the sender without secrets.
fn known(engine: &Engine, sender: &Sender, count: &mut u32) -> Box<Sender> {
    let mut clean = |text: &str| secretless(engine, &printable(text.as_bytes()), count);
    Box::new(Sender { host: clean(&sender.host), app: clean(&sender.app) })
}

/// Returns the lines without secrets.
#[must_use]
pub fn clean(engine: &Engine, lines: Lines, count: &mut u32) -> Lines {
    let seen = Keywords::builtin().seek(lines.as_str());
    engine.redactor.redact_event(&lines, &seen.touched, count).unwrap_or(lines)
}

/// Builds the event. Also returns whether nothing in its lines looks like a secret.
fn build(engine: &Engine, entry: &Entry, mut said: Said, mut lines: Lines, beginning: Beginning) -> (Event, bool) {
    let mut redactions = beginning.redactions;
    let seen = Keywords::builtin().seek(lines.as_str());
    let mut is_current = true;
    if let Some(clean) = engine.redactor.redact_event(&lines, &seen.touched, &mut redactions) {
        (lines, is_current) = (clean, false);
        said.redact(engine);
    } else if let Some(place) = &mut said.location {
        // A line above the event may have named the file.
        place.file = secretless(engine, &place.file, &mut redactions);
    }
    let verdict = judged(engine, entry, &said, (&lines, Some(&seen).filter(|_| is_current)));
    let outermost = said.outermost();
    let language = entry.labels.language.clone();
    let message = if outermost.kind.is_empty() { said.text.as_str() } else { outermost.message.as_str() };
    let fault = Fault { language: language.as_deref(), test: said.test.as_deref(), kind: &outermost.kind, message };
    let (strict, loose) = signature::signature(&fault, &said.links, &said.frames);
    let severity = engine.limits.severity_override(&entry.id, verdict.category).or(entry.fault.severity).unwrap_or(verdict.severity);
    let mut retry = verdict.retry;
    if let Some(class) = entry.fault.retry {
        retry = Retry { class, reason: crate::core::retry::RULE.into(), remedy: crate::core::retry::remedy(class, verdict.cause), reset_at: retry.reset_at };
    }
    let event = Event {
        id: beginning.id,
        timestamp: beginning.timestamp,
        observed_at: beginning.observed_at,
        key: beginning.key,
        io: beginning.place.io,
        sender: beginning.sender,
        line_num: beginning.place.num,
        line_end: beginning.line_end,
        record: None,
        offset: beginning.place.offset,
        inner: beginning.place.inner,
        category: verdict.category,
        severity,
        cause: entry.fault.cause.unwrap_or(verdict.cause),
        signature: strict,
        signature_loose: loose,
        rule: entry.labels.rule.clone(),
        language,
        location: said.take_place(),
        exception: said.take_exception(engine.limits.max_stack_depth),
        text: said.text,
        context: Lines::default(),
        multiline: lines,
        retry,
        call: None,
        closed_idle: false,
        on_trial: false,
        is_status: matches!(entry.kind, Kind::Note(_)),
        hint: entry.labels.hint.clone(),
        truncated: beginning.place.truncated,
        redactions,
    };
    (event, seen.touched.is_empty())
}

/// Classifies what the event says; `seen`: the keywords of its lines, if they are known.
fn judged(engine: &Engine, entry: &Entry, said: &Said, (lines, seen): (&Lines, Option<&Seen>)) -> Verdict {
    let outermost = said.outermost();
    classify::classify(&Subject {
        text: &said.text,
        kind: Some(outermost.kind.as_str()).filter(|kind| !kind.is_empty()),
        message: Some(outermost.message.as_str()).filter(|message| !message.is_empty()),
        causes: said.links.get(1..).unwrap_or_default(),
        whole: lines.as_str(),
        language: entry.labels.language.as_deref(),
        rule_category: entry.fault.category,
        is_test_rule: engine.rules.families[usize::from(entry.family)].test,
        exit_code: None,
        status: None,
        timed_out: false,
        has_frames: !said.frames.is_empty(),
        seen,
    })
}

impl Said {
    /// Returns the outermost fault of the chain.
    fn outermost(&self) -> &Link {
        self.links.first().unwrap_or(const { &Link { kind: String::new(), message: String::new() } })
    }

    fn push_frame(&mut self, family: &Family, frame: Frame) {
        // Go and Rust print function and place on separate lines.
        match self.frames.last().filter(|last| frame.function.is_empty() && last.file.is_empty()) {
            Some(last) => {
                let in_app = !family.library.owns(last.function, frame.file);
                self.frames.complete(Frame { in_app, ..frame });
            }
            None => {
                if self.frames.is_empty() {
                    self.frames = Frames::with_room(FRAMES_ROOM.0, FRAMES_ROOM.1);
                }
                self.frames.push(Frame { in_app: !family.library.owns(frame.function, frame.file), ..frame });
            }
        }
    }

    fn redact(&mut self, engine: &Engine) {
        let clean = |text: &str| engine.redactor.redact(text, &mut 0).into_owned();
        self.text = clean(&self.text);
        self.test = self.test.as_deref().map(clean);
        for link in &mut self.links {
            (link.kind, link.message) = (clean(&link.kind), clean(&link.message));
        }
        if let Some(place) = &mut self.location {
            place.file = clean(&place.file);
        }
        let mut frames = Frames::default();
        self.frames.iter().for_each(|frame| frames.push(Frame { function: &clean(frame.function), file: &clean(frame.file), ..frame }));
        self.frames = frames;
    }

    fn take_exception(&mut self, max_frames: usize) -> Option<Exception> {
        let outermost = self.links.first()?;
        if outermost.kind.is_empty() && self.frames.is_empty() {
            return None;
        }
        let (outermost, chain) =
            if self.links.len() > 1 { (outermost.clone(), std::mem::take(&mut self.links)) } else { (self.links.swap_remove(0), Vec::new()) };
        let mut frames = std::mem::take(&mut self.frames);
        frames.truncate(max_frames);
        Some(Exception { kind: outermost.kind, message: outermost.message, chain, frames })
    }

    /// Returns where an editor should jump to: the place that the trace
    /// states, else the first frame of the program, else any frame.
    fn take_place(&mut self) -> Option<Location> {
        let named = |frame: &Frame| !frame.file.is_empty() && frame.line > 0;
        let mut place = self.location.take();
        if let Some(place) = place.as_mut().filter(|place| place.column == 0) {
            // A place stated before the head has no column, but its frame does.
            let same = |frame: &Frame| frame.line == place.line && frame.file == place.file;
            place.column = self.frames.iter().find(same).map_or(0, |frame| frame.column);
        }
        place.or_else(|| {
            let frame = self.frames.iter().filter(named).find(|frame| frame.in_app).or_else(|| self.frames.iter().find(named))?;
            Some(Location { file: frame.file.to_owned(), line: frame.line, column: frame.column })
        })
    }
}
