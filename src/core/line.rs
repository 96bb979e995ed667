//! One line as the core sees it: its place in the stream, and its visible text.

use std::cell::{Cell, OnceCell, RefCell};

use super::confirm::Known;
use super::decode::{self, Prefix};
use super::engine::Candidate;
use super::event::{Io, Level, Sender, Spot, Timestamp};
use super::leadin;
use super::writer::Writer;
use crate::rules::Signs;

/// Maximum number of machines that a line remembers; any further ones are asked again.
const MAX_STARTS: usize = 64;
/// Number of machines that most lines remember.
const TYPICAL_STARTS: usize = 12;

/// Where a line came from, apart from its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// 1-based number of the line in its stream, counting `\n`.
    pub num: u64,
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Index among the decoded inner lines of a record; 0 in plain text.
    pub inner: u32,
    /// Output that an envelope (CRI, docker) names.
    pub io: Option<Io>,
    /// Writer that an envelope names.
    pub key: Option<String>,
    /// Time that an envelope states.
    pub time: Option<Timestamp>,
    /// Level that an envelope states.
    pub level: Option<Level>,
    /// Who sent it, if an envelope says so.
    pub sender: Option<Box<Sender>>,
    /// Whether the line was cut to the limit.
    pub truncated: bool,
}

impl Place {
    /// Returns what identifies the line within its stream.
    #[must_use]
    pub fn spot(&self) -> Spot {
        Spot { offset: self.offset, inner: self.inner }
    }

    /// Returns where the line stands among those of its stream.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { num: self.num, inner: self.inner }
    }
}

/// Where a line stands among those of its stream: lines are ordered by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// 1-based number of the line.
    pub num: u64,
    /// Index among the decoded inner lines of a record; 0 in plain text.
    pub inner: u32,
}

impl Position {
    /// Before every line.
    pub const BEFORE_ALL: Self = Self { num: 0, inner: 0 };
    /// After every line.
    pub const AFTER_ALL: Self = Self { num: u64::MAX, inner: u32::MAX };
}

/// Whether a trace has opened on a line and come to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tried {
    /// Not yet.
    #[default]
    No,
    /// Yes, a weak trace of the region that the line is in: no other trace may open.
    InRegion,
    /// Yes, as part of the record before it: it may still begin something of its own.
    UnderRecord,
    /// Yes, as a quoted line: it may still begin something as it stands.
    Quoted,
    /// Yes, and no region absorbed it: none does so later.
    InVain,
}

impl Tried {
    /// Whether a trace may open on the line.
    #[must_use]
    pub fn may_begin(self) -> bool {
        matches!(self, Self::No | Self::UnderRecord | Self::Quoted)
    }

    /// Whether a region may absorb the line.
    #[must_use]
    pub fn may_be_absorbed(self) -> bool {
        matches!(self, Self::No | Self::InRegion)
    }
}

/// What is known about a line that a trace has taken, in case the trace gives it back.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Length of its text in bytes. A long line is not kept whole, and what is known holds only for the whole line.
    bytes: usize,
    known: Known,
    prefix: Option<Prefix>,
    starts: Vec<(u16, usize, Option<u16>)>,
    candidates: Vec<Candidate>,
}

/// A line: its place and its visible text (envelope, escapes, overwritten parts and the blanks at its end removed).
pub struct Line<'a> {
    /// Its place.
    pub place: Place,
    /// Visible text.
    pub text: &'a [u8],
    /// Whether a trace has opened on it already.
    pub tried: Tried,
    /// How often traces have given it back.
    pub rereads: u8,
    /// What is known about it.
    pub known: Known,
    now: Timestamp,
    signs: OnceCell<Signs>,
    prefix: Cell<Option<Prefix>>,
    /// The length of what marks its body as another program's.
    mark: OnceCell<Option<usize>>,
    writer: OnceCell<Writer>,
    /// The machines that were asked whether they begin here: entry, offset in the text, row.
    starts: RefCell<Vec<(u16, usize, Option<u16>)>>,
}

impl<'a> Line<'a> {
    /// Creates a line whose prefix is not decoded yet. It loses the blanks at its end: consoles
    /// pad lines, and editors trim them, so no two lines that differ in nothing else mean different things.
    #[must_use]
    pub fn new(place: Place, text: &'a [u8], now: Timestamp) -> Self {
        let text = without_end(text);
        Self {
            place,
            text,
            tried: Tried::No,
            rereads: 0,
            known: Known::default(),
            now,
            signs: OnceCell::new(),
            prefix: Cell::new(None),
            mark: OnceCell::new(),
            writer: OnceCell::new(),
            starts: RefCell::new(Vec::new()),
        }
    }

    /// Creates a line that was looked at before, if `memory` is of this
    /// text. Also returns the entries that its literals then lead to.
    #[must_use]
    pub fn remembered(place: Place, text: &'a [u8], now: Timestamp, memory: Option<Memory>) -> (Self, Option<Vec<Candidate>>) {
        let line = Self::new(place, text, now);
        match memory.filter(|memory| memory.bytes == text.len()) {
            Some(Memory { known, prefix, starts, candidates, .. }) => {
                (Self { known, prefix: Cell::new(prefix), starts: RefCell::new(starts), ..line }, Some(candidates))
            }
            None => (line, None),
        }
    }

    /// Returns what is known about the line; its literals lead to `candidates`.
    #[must_use]
    pub fn memory(&self, candidates: &[Candidate]) -> Memory {
        let (known, prefix, starts) = (self.known.clone(), self.prefix.get(), self.starts.borrow().clone());
        Memory { bytes: self.text.len(), known, prefix, starts, candidates: candidates.to_vec() }
    }

    /// Time of reading.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the signs in the text.
    #[must_use]
    pub fn signs(&self) -> Signs {
        *self.signs.get_or_init(|| Signs::of(self.text))
    }

    /// Whether the line is a record with a time, a level, and the name of the logger, thread or program that wrote it. (A
    /// build tool's `[INFO] ` names none, whatever stamp its CI system puts before it.)
    #[must_use]
    pub fn is_of_a_logger(&self) -> bool {
        let prefix = self.prefix();
        prefix.time.is_some() && prefix.levels > 0 && decode::has_name(&self.text[..prefix.message])
    }

    /// Returns time stamp, level and writer; decoded once, at the first call.
    #[must_use]
    pub fn prefix(&self) -> Prefix {
        if let Some(known) = self.prefix.get() {
            return known;
        }
        let mut prefix = decode::prefix(self.text, self.now);
        if prefix.level.is_none() && self.place.level.is_some() {
            (prefix.level, prefix.shaped) = (self.place.level, true);
        }
        self.prefix.set(Some(prefix));
        prefix
    }

    /// Returns the row with which the machine of `entry` begins at
    /// offset `from` of the text; `ask` finds it if it is not known.
    pub fn start(&self, entry: u16, from: usize, ask: impl FnOnce() -> Option<u16>) -> Option<u16> {
        let known = self.starts.borrow().iter().find(|(other, at, _)| (*other, *at) == (entry, from)).map(|(.., row)| *row);
        known.unwrap_or_else(|| {
            let row = ask();
            let mut starts = self.starts.borrow_mut();
            if starts.len() < MAX_STARTS {
                if starts.is_empty() {
                    starts.reserve(TYPICAL_STARTS);
                }
                starts.push((entry, from, row));
            }
            row
        })
    }

    /// Whether the line has a time stamp or a level of its own, and so begins a log record.
    #[must_use]
    pub fn is_stamped(&self) -> bool {
        self.prefix().is_stamped()
    }

    /// Returns the text after time stamp and writer. A level word that is part of the message stays.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        &self.text[self.prefix().body.min(self.text.len())..]
    }

    /// Returns the body with the second of two blanks that follow the time, which may be its own; `None` if there are not two.
    #[must_use]
    pub fn padded(&self) -> Option<&'a [u8]> {
        let prefix = self.prefix();
        self.text.get(prefix.body.checked_sub(1)?..).filter(|text| prefix.padded && text.first() == Some(&b' '))
    }

    /// Returns the text after the level tag as well.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        &self.text[self.prefix().message.min(self.text.len())..]
    }

    /// Returns the text after a writer's name in brackets (`[web] `), which
    /// only the head of a trace shows to be one; `None` if there is none.
    #[must_use]
    pub fn after_writer(&self) -> Option<&'a [u8]> {
        let body = self.body();
        leadin::writer(body).map(|length| &body[length..])
    }

    /// Returns the text in the body after what marks it as printed by another program: a writer's
    /// name in brackets, `remote: `, `    default: `; `None` if nothing does.
    #[must_use]
    pub fn marked(&self) -> Option<&'a [u8]> {
        let body = self.body();
        self.mark.get_or_init(|| leadin::mark(body)).map(|length| &body[length..])
    }

    /// Returns what may be noise or a false positive: the body, and what is marked in it. Noise is noise, whoever passes it on.
    pub fn bodies(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        std::iter::once(self.body()).chain(self.marked())
    }

    /// Returns the offsets at which the text may begin if something precedes the whole line:
    /// a quote mark or, in a record with a level, words that the logger puts before each message.
    pub fn inner_starts(&self) -> impl Iterator<Item = usize> {
        let prefix = self.prefix();
        let quote = if prefix.levels == 0 { leadin::quote(self.body()).map(|length| prefix.body + length) } else { None };
        let names = (prefix.levels > 0).then(|| leadin::word_starts(self.text, prefix.message));
        quote.into_iter().chain(names.into_iter().flatten())
    }

    /// Returns the writer within the stream: an envelope's key, or one that precedes the text.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        if let Some(key) = &self.place.key {
            return Some(key.as_bytes());
        }
        self.prefix().key.map(|(from, to)| &self.text[from..to])
    }

    /// Returns who wrote the line: the stream's [key](Self::key), or the name in brackets before the text.
    #[must_use]
    pub fn writer(&self) -> Writer {
        *self.writer.get_or_init(|| self.writer_before(View::AfterWriter))
    }

    /// Returns the writer if it is one of several services whose outputs are merged (`web-1  | `, `[web] `, `web:build: `): only such
    /// a one speaks of itself alone. A program in a system's log, and a step of a build, may report what another one did.
    #[must_use]
    pub fn service(&self) -> Writer {
        let is_service = |(from, to): (usize, usize)| {
            let (name, after) = (&self.text[from..to], self.text[to..].trim_ascii_start());
            let is_task = || after.starts_with(b": ") && !name.ends_with(b"]") && name.iter().any(|byte| matches!(byte, b':' | b'/' | b'@'));
            after.starts_with(b"|") || after.starts_with(b"exited with code ") || is_task()
        };
        if self.place.key.is_none() && self.prefix().key.is_some_and(|key| !is_service(key)) {
            return Writer::default();
        }
        self.writer()
    }

    /// Returns who wrote what `view` shows. A name in brackets that it shows is part of the text.
    #[must_use]
    pub fn writer_before(&self, view: View) -> Writer {
        let inner = || leadin::name(self.body()).filter(|_| view == View::AfterWriter);
        self.key().or_else(|| self.outer_name()).or_else(inner).map_or_else(Writer::default, Writer::named)
    }

    /// Returns the writer's name in brackets that stands before the time stamp.
    #[must_use]
    pub fn outer_name(&self) -> Option<&'a [u8]> {
        leadin::name(self.text).filter(|name| name.len() <= self.prefix().body)
    }

    /// Whether the line holds only white space.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.text.iter().all(u8::is_ascii_whitespace)
    }
}

fn without_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
    &text[..end]
}

/// The part of a line that the machines are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The whole visible text.
    Text,
    /// The text after time stamp and writer.
    Body,
    /// The same with the second of two blanks that follow the time: it may be the text's own.
    Padded,
    /// The text after the level tag as well.
    Message,
    /// The text after a writer's name in brackets.
    AfterWriter,
    /// From this offset on, after what precedes each line: a quote mark, a logger's stamp.
    Quoted(usize),
}

impl View {
    /// Returns the part of `line` that this view shows.
    #[must_use]
    pub fn of<'a>(self, line: &Line<'a>) -> &'a [u8] {
        match self {
            Self::Text => line.text,
            Self::Body => line.body(),
            Self::Padded => line.padded().unwrap_or_else(|| line.body()),
            Self::Message => line.message(),
            Self::AfterWriter => line.after_writer().unwrap_or_else(|| line.body()),
            Self::Quoted(from) => line.text.get(from..).unwrap_or_default(),
        }
    }

    /// Returns the view for a line that has a prefix of its own.
    #[must_use]
    pub fn at_least_body(self) -> Self {
        if self == Self::Message { self } else { Self::Body }
    }
}
