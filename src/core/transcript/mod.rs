//! Transcripts of coding agents: what the agent, the user, the tools and the API said, one record at
//! a time. A format is recognised in the first lines of a stream; from then on every record is read.
//!
//! One module for each format turns records into [`Said`]; only `judge` turns that into events,
//! through the same machines that read a plain log. The speaker decides what is evidence: a
//! flagged result, a command with an exit code other than 0, a fault of the API, and a failed run are, and so is
//! what a command prints whose exit code says nothing. What the agent says, the user pastes, and a tool shows is not.

use std::sync::Arc;

use serde_json::Value;

use super::envelope;
use super::event::{Event, Timestamp};
use super::line::Place;

mod account;
mod aider;
mod asked;
mod claude;
mod claude_task;
mod cline;
mod codex;
mod command;
mod copilot;
mod cursor;
mod document;
mod format;
mod gemini;
mod json;
mod judge;
mod markdown;
mod memory;
mod messages;
mod opencode;
mod openhands;
mod phrases;
mod pi;
mod shell;
mod specstory;
mod step;
mod swe;

pub use account::{Account, Fate, Made, Ruling, Speaker};
pub use document::{Document, Found};
pub use format::Format;
pub use judge::Scene;
pub use memory::Memory;
pub use step::{Flag, Said, Step, Who};

use account::Accounts;
use judge::Outcome;
use markdown::Markdown;

/// A transcript must be recognised within this many lines from the beginning of a stream.
const HEAD_LINES: u64 = 64;
/// A longer line in the head is not tried as a first record.
const MAX_HEAD_RECORD_BYTES: usize = 256 << 10;

/// How a stream is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// As a transcript if its first lines are one, else as text.
    #[default]
    Auto,
    /// As a transcript from the first such record on, wherever it stands.
    Records,
    /// Always as text.
    Text,
}

/// The transcript state of one stream.
#[derive(Default)]
pub struct Transcript {
    mode: Mode,
    seen_lines: u64,
    memory: Option<Memory>,
    markdown: Option<Markdown>,
    accounts: Accounts,
    /// Records that are too long to be read.
    unread: u64,
    /// Lines of steps of which not all was asked.
    unasked: u64,
}

/// What a line turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A record, or a part of the transcript.
    Record,
    /// Another program's line among the records.
    Foreign,
}

impl Transcript {
    /// Returns the state of a stream that begins.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Continues a stream after its first `lines` lines.
    #[must_use]
    pub fn resume(mode: Mode, lines: u64, memory: Option<&Memory>) -> Self {
        let memory = memory.cloned();
        let markdown = memory.as_ref().and_then(|known| Markdown::of(known.format()));
        Self { mode, seen_lines: lines, memory, markdown, ..Self::default() }
    }

    /// Looks for the first record among whole lines. Returns where it
    /// begins, or 0 once a record was found. `None`: all of it is text.
    pub fn begins(&mut self, lines: &[u8]) -> Option<usize> {
        if self.memory.is_some() {
            return Some(0);
        }
        let mut at = 0;
        while self.is_undecided() && at < lines.len() {
            let end = memchr::memchr(b'\n', &lines[at..]).map_or(lines.len(), |length| at + length);
            if let Some(format) = recognise(&lines[at..end]) {
                self.start(format);
                return Some(at);
            }
            self.seen_lines += 1;
            at = end + 1;
        }
        None
    }

    fn is_undecided(&self) -> bool {
        match self.mode {
            Mode::Auto => self.seen_lines < HEAD_LINES,
            Mode::Records => true,
            Mode::Text => false,
        }
    }

    fn start(&mut self, format: Format) {
        self.markdown = Markdown::of(format);
        self.memory = Some(Memory::new(format));
        if self.markdown.is_some() {
            self.accounts.add((self.seen_lines + 1, u64::MAX), || Made::Words(Speaker::Someone));
        }
    }

    /// Returns a reader if a document, which is one value over all lines, begins
    /// with `head`; its elements then come through [`element`](Self::element).
    pub fn begins_document(&mut self, head: &[u8]) -> Option<Document> {
        let (document, format) = Document::begins(head).filter(|_| self.mode != Mode::Text)?;
        self.start(format);
        Some(document)
    }

    /// Reads one line of a transcript.
    pub fn line(&mut self, scene: &Scene<'_, '_>, line: &[u8], out: &mut Vec<Event>) -> Read {
        let Some(memory) = &mut self.memory else { return Read::Foreign };
        let num = scene.place.num;
        if let Some(markdown) = &mut self.markdown {
            let mut said = Vec::new();
            markdown.line(line, scene.place, &mut said);
            let mut outcome = Outcome { events: out, rulings: self.accounts.rulings(), unasked: 0 };
            judge::judge(scene, memory, said, &mut outcome);
            self.unasked += outcome.unasked;
            self.accounts.add_steps(outcome.rulings);
            return Read::Record;
        }
        let line = trimmed(line);
        if line.is_empty() {
            return Read::Record;
        }
        let line = if line[0] == b'{' { Some(line) } else { object(line, scene.now) };
        let Some(line) = line else { return Read::Foreign };
        let Some(record) = json::parse(line) else {
            // A broken record is not evidence: there is no telling who speaks in it.
            let is_cut = scene.place.truncated;
            self.unread += u64::from(is_cut);
            self.accounts.add((num, num), || if is_cut { Made::TooLong } else { Made::Broken });
            return Read::Record;
        };
        let mut outcome = Outcome { events: out, rulings: self.accounts.rulings(), unasked: 0 };
        let is_known = read_record(scene, memory, &record, &mut outcome);
        // A record without a type belongs to another program.
        if !is_known && record.get("type").is_none() {
            return Read::Foreign;
        }
        self.unasked += outcome.unasked;
        self.accounts.add((num, num), || Made::of(&record, is_known.then_some(outcome.rulings)));
        Read::Record
    }

    /// Reads one element of a document.
    pub fn element(&mut self, scene: &Scene<'_, '_>, element: &Found, out: &mut Vec<Event>) {
        if element.bytes.is_empty() {
            self.unread += 1;
            self.accounts.add((element.num, element.last), || Made::TooLong);
            return;
        }
        let (Some(memory), Some(record)) = (&mut self.memory, json::parse(&element.bytes)) else { return };
        let mut outcome = Outcome { events: out, rulings: self.accounts.rulings(), unasked: 0 };
        let is_known = read_record(scene, memory, &record, &mut outcome);
        self.unasked += outcome.unasked;
        self.accounts.add((element.num, element.last), || Made::of(&record, is_known.then_some(outcome.rulings)));
    }

    /// Returns how many records were too long to be read.
    #[must_use]
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Returns how many lines of steps were not asked in full.
    #[must_use]
    pub fn unasked(&self) -> u64 {
        self.unasked
    }

    /// Ends the transcript.
    pub fn finish(&mut self, scene: &Scene<'_, '_>, out: &mut Vec<Event>) {
        if let (Some(memory), Some(markdown)) = (&mut self.memory, &mut self.markdown) {
            let mut said = Vec::new();
            markdown.finish(&mut said);
            let mut outcome = Outcome { events: out, rulings: self.accounts.rulings(), unasked: 0 };
            judge::judge(scene, memory, said, &mut outcome);
            self.unasked += outcome.unasked;
            self.accounts.add_steps(outcome.rulings);
        }
    }

    /// From now on keeps an account of each record; for `explain`.
    pub fn keep_accounts(&mut self) {
        self.accounts.keep();
    }

    /// Returns the accounts since the last call.
    pub fn take_accounts(&mut self) -> Vec<Account> {
        self.accounts.take()
    }

    /// Returns the format in which the transcript began; `None` for text.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.memory.as_ref().map(Memory::format)
    }

    /// Returns what must be known to continue here; `None` for text.
    #[must_use]
    pub fn memory(&self) -> Option<Arc<Memory>> {
        self.memory.as_ref().map(|memory| Arc::new(memory.clone()))
    }

    /// Whether nothing is open that a resume would lose.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.markdown.as_ref().is_none_or(Markdown::is_between)
    }
}

/// Reads a record; returns whether a format knows it.
fn read_record(scene: &Scene<'_, '_>, memory: &mut Memory, record: &Value, outcome: &mut Outcome<'_>) -> bool {
    let mut said = Vec::new();
    let known = memory.format().read(record, &mut said) || Format::JSON.iter().any(|other| other.knows(record) && other.read(record, &mut said));
    let place = Place { time: json::time(record, scene.now).or(scene.place.time), ..scene.place.clone() };
    if known {
        judge::judge(&Scene { place: &place, ..*scene }, memory, said, outcome);
    }
    known
}

/// Returns the format that a line of the head shows.
fn recognise(line: &[u8]) -> Option<Format> {
    let line = trimmed(line);
    if line.len() > MAX_HEAD_RECORD_BYTES {
        return None;
    }
    if matches!(line.first()?, b'#' | b'<') {
        return Markdown::recognise(line);
    }
    let record = json::parse(object(line, Timestamp::default())?)?;
    Format::JSON.into_iter().find(|format| format.knows(&record))
}

/// The record of a line, which may stand behind what its transport put before it.
fn object(line: &[u8], now: Timestamp) -> Option<&[u8]> {
    line.ends_with(b"}").then_some(&line[envelope::object(line, now)?..])
}

/// Removes surrounding white space and a byte order mark.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

#[cfg(test)]
mod tests;
