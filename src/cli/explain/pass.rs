//! One pass over a text: the lines that are asked for, what is open after each, and what the stream makes of them. It
//! ends when no later line can change that.

use std::io::{self, Read};
use std::ops::RangeInclusive;

use crate::cli::setup::Setup;
use crate::core::event::Event;
use crate::core::extract::Origin;
use crate::core::frame::Buffer;
use crate::core::margin::Margin;
use crate::core::pipeline::Stream;
use crate::core::redact::KeyBlock;
use crate::core::text::printable;
use crate::core::transcript::{Account, Document, Format};
use crate::core::visible::visible;
use crate::rules::RuleSet;
use crate::sources::clock::now;
use crate::sources::input;

/// Bytes of one read.
const BLOCK_BYTES: usize = 128 << 10;

/// A line that is asked for.
pub(super) struct Asked {
    pub(super) num: u64,
    pub(super) text: Vec<u8>,
    /// Whether it is part of a private key.
    pub(super) is_key: bool,
}

/// The ids of what is open after a line.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) regions: Vec<String>,
    pub(super) traces: Vec<String>,
}

/// What the stream makes of the lines that are asked for.
pub(super) struct Made {
    pub(super) events: Vec<Event>,
    /// Those of the records of a transcript, in the order of their lines.
    pub(super) accounts: Vec<Account>,
    pub(super) format: Option<Format>,
    pub(super) is_document: bool,
    /// The blanks before every line.
    pub(super) margin: Margin,
    opened: Vec<(u64, Opened)>,
}

impl Made {
    /// Returns what is open after a line.
    pub(super) fn opened(&self, num: u64) -> Option<&Opened> {
        self.opened.binary_search_by_key(&num, |(at, _)| *at).ok().map(|at| &self.opened[at].1)
    }

    /// Returns the account of the record, or of the step, that the line belongs to.
    pub(super) fn account(&self, num: u64) -> Option<&Account> {
        let later = self.accounts.partition_point(|account| account.first <= num);
        // In Markdown, the first account is that of all lines.
        let nearest = self.accounts[..later].last().into_iter().chain(self.accounts.first());
        nearest.into_iter().find(|account| account.holds(num))
    }
}

/// A pass under way.
pub(super) struct Pass<'a> {
    rules: &'a RuleSet,
    asked: &'a RangeInclusive<u64>,
    texts: Texts<'a>,
    stream: Stream,
    made: Made,
}

impl<'a> Pass<'a> {
    /// Prepares to read a text that begins with `head`, of up to `MAX_HEAD_BYTES`, as `scan` would.
    pub(super) fn new(setup: &'a Setup, asked: &'a RangeInclusive<u64>, head: &[u8]) -> Self {
        let (engine, max_bytes) = (&setup.engine, setup.config.limits.max_document_bytes);
        let stream = || Stream::new(engine.clone(), Origin::default()).of_finished();
        let is_document = Document::may_begin(head) && {
            let mut probe = stream().with_documents(max_bytes);
            probe.push(head, now(), &mut Vec::new());
            probe.finish(now(), &mut Vec::new());
            probe.is_document()
        };
        // A stream that reads documents holds text back while it does not know: what is open after a line would be missing.
        let mut stream = if is_document { stream().with_documents(max_bytes) } else { stream() };
        stream.begins_with(head, now());
        let made = Made { events: Vec::new(), accounts: Vec::new(), format: None, is_document, opened: Vec::new(), margin: stream.margin() };
        Self { rules: &engine.rules, asked, texts: Texts::new(asked, engine.limits.max_line_bytes), stream: stream.with_accounts(), made }
    }

    /// Reads the text as far as needed.
    pub(super) fn read(mut self, mut bytes: impl Read) -> io::Result<(Vec<Asked>, Made)> {
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            let count = input::fill(&mut bytes, &mut block)?;
            if count == 0 {
                break;
            }
            self.texts.feed(&block[..count]);
            self.feed(&block[..count]);
            self.keep();
            if self.texts.lines >= *self.asked.end() && self.stream.settled_lines() >= *self.asked.end() {
                return Ok(self.done());
            }
        }
        self.texts.finish();
        self.stream.end_line(now(), &mut self.made.events);
        self.look();
        self.stream.finish(now(), &mut self.made.events);
        self.keep();
        Ok(self.done())
    }

    fn done(mut self) -> (Vec<Asked>, Made) {
        self.made.format = self.stream.format();
        (self.texts.found, self.made)
    }

    /// Passes bytes to the stream; those of the lines that are asked for line by line.
    fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(self.piece(bytes));
            self.stream.push(piece, now(), &mut self.made.events);
            self.look();
            bytes = rest;
        }
    }

    /// Returns how many bytes end before the next line that is asked for, or with it.
    fn piece(&self, bytes: &[u8]) -> usize {
        let lines = self.stream.counts().lines;
        if lines >= *self.asked.end() || self.made.is_document {
            return bytes.len();
        }
        // In UTF-16, such bytes may be part of a letter. Then a piece only has fewer lines.
        let newlines = (self.asked.start() - 1).saturating_sub(lines).max(1);
        memchr::memchr_iter(b'\n', bytes).nth(newlines as usize - 1).map_or(bytes.len(), |at| at + 1)
    }

    /// Notes what is open if the last line is one that is asked for.
    fn look(&mut self) {
        let num = self.stream.counts().lines;
        if self.made.is_document || !self.asked.contains(&num) || self.made.opened.last().is_some_and(|(last, _)| *last == num) {
            return;
        }
        let (regions, traces) = self.stream.opened();
        let ids = |entries: Vec<u16>| entries.iter().map(|&entry| self.rules.entries[usize::from(entry)].id.clone()).collect();
        self.made.opened.push((num, Opened { regions: ids(regions), traces: ids(traces) }));
    }

    /// Keeps what concerns the lines that are asked for.
    fn keep(&mut self) {
        let asked = |first: u64, last: u64| first <= *self.asked.end() && last >= *self.asked.start();
        let accounts = self.stream.take_accounts().into_iter().filter(|account| asked(account.first, account.last));
        self.made.accounts.extend(accounts);
        let made = &mut self.made;
        let is_in_record = |num| made.accounts.iter().any(|account| account.has_steps() && account.holds(num));
        made.events.retain(|event| asked(event.line_num, event.line_end) || is_in_record(event.line_num));
    }
}

/// The lines that are asked for, framed as a stream frames them.
struct Texts<'a> {
    asked: &'a RangeInclusive<u64>,
    buffer: Buffer,
    /// Number of lines so far.
    lines: u64,
    key: KeyBlock,
    found: Vec<Asked>,
}

impl<'a> Texts<'a> {
    fn new(asked: &'a RangeInclusive<u64>, max_line_bytes: usize) -> Self {
        Self { asked, buffer: Buffer::new(max_line_bytes), lines: 0, key: KeyBlock::default(), found: Vec::new() }
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.lines < *self.asked.end() {
            let space = self.buffer.space();
            let count = bytes.len().min(space.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.buffer.filled(count);
            while let Some(framed) = self.buffer.next_lines() {
                self.lines(framed.from, framed.to);
                self.buffer.done(&framed);
            }
            bytes = &bytes[count..];
        }
    }

    fn finish(&mut self) {
        if let Some(framed) = self.buffer.last_line() {
            self.lines(framed.from, framed.to);
        }
    }

    fn lines(&mut self, from: usize, to: usize) {
        let bytes = std::mem::take(&mut self.buffer.bytes);
        let block = &bytes[from..to];
        let newlines = memchr::memchr_iter(b'\n', block).count() as u64;
        if self.lines + newlines < *self.asked.start() && !self.may_hold_key(block) {
            self.lines += newlines;
        } else {
            block.split_inclusive(|byte| *byte == b'\n').for_each(|line| self.line(line.strip_suffix(b"\n").unwrap_or(line)));
        }
        self.buffer.bytes = bytes;
    }

    /// Whether a line of the block may be part of a private key. Escape sequences may hide its words.
    fn may_hold_key(&self, block: &[u8]) -> bool {
        self.key.is_open() || memchr::memmem::find(block, b"PRIVATE KEY").is_some() || memchr::memchr2(b'\x1b', b'\\', block).is_some()
    }

    fn line(&mut self, raw: &[u8]) {
        self.lines += 1;
        let text = visible(raw, None);
        let is_key = self.key.takes(&printable(&text));
        if self.asked.contains(&self.lines) {
            self.found.push(Asked { num: self.lines, text: raw.to_vec(), is_key });
        }
    }
}
