//! A worker of `scan`: takes the next input, reads it through its own stream, and
//! passes its output to `order`. It reports what it cannot read, and continues.

use std::io;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::identity;
use super::super::setup::over;
use super::super::unread::{bounded, unread};
use super::{Job, Tally};
use crate::core::event::Event;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::sinks::record::Envelope;
use crate::sources::clock::now;
use crate::sources::expand::{Input, Trouble};
use crate::sources::foreign::{self, Foreign};
use crate::sources::input::{self, Identity, Opened, Watched};

/// Bytes of the first read; each following read may take twice as many.
/// Errors at the start should not wait for those of a whole block.
const FIRST_BYTES: usize = 16 << 10;
/// Until the first output, at most this many bytes are examined in pieces. The first error
/// of a kind compiles the patterns that it needs, and must not wait for errors after it.
const BEGINNING: u64 = 512 << 10;
/// Length of the first piece; each following piece is twice as long.
const FIRST_PIECE: usize = 1 << 10;
/// Length of the longest piece.
const LONGEST_PIECE: usize = 8 << 10;
/// After a block with at least this many errors, the next block is half
/// as long: their records wait in memory for the end of the block.
const MANY_EVENTS: usize = 96;
/// Minimum length of a block.
const LEAST_BYTES: usize = 8 << 10;
/// Output is written once this much has been collected.
const FLUSH_BYTES: usize = 64 << 10;
/// Output waits at most this long.
const FLUSH_AFTER: Duration = Duration::from_millis(20);

/// Totals of what was read and found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Events that were printed.
    pub tally: Tally,
    /// Number of lines.
    pub lines: u64,
}

/// Reads inputs until none is left.
///
/// # Errors
/// The output cannot be written.
pub fn worker(job: &Job) -> io::Result<()> {
    let mut totals = Totals::default();
    loop {
        if job.interrupt.caught().is_some() {
            break;
        }
        let index = job.next.fetch_add(1, Ordering::Relaxed);
        let Some(input) = job.inputs.get(index) else { break };
        let rest = match open(job, input) {
            Ok(Some((opened, envelope))) => Reading::new(job, index, input, &opened, envelope).read(opened, &mut totals)?,
            Ok(None) => Vec::new(),
            Err(trouble) => {
                job.refuse(&trouble);
                Vec::new()
            }
        };
        job.written(job.order.finish(index, rest))?;
    }
    let mut all = job.totals.lock().unwrap_or_else(PoisonError::into_inner);
    all.tally.merge(totals.tally);
    all.lines += totals.lines;
    Ok(())
}

/// Opens an input; `None` if the input is left out.
fn open(job: &Job, input: &Input) -> Result<Option<(Opened, Envelope)>, Trouble> {
    let watched = Watched { read: job.progress.read.clone(), interrupt: Some(job.interrupt.clone()) };
    let (path, named) = match input {
        Input::Stdin => {
            let envelope = Envelope { host: job.host.clone(), name: "stdin".into(), kind: "stdin", ..Envelope::default() };
            let opened = input::stdin(watched).map_err(|error| Trouble::new(Path::new("stdin"), error))?;
            return Ok(Some((opened, envelope)));
        }
        Input::Named(path) => (path, true),
        Input::Found(path) => (path, false),
    };
    if is_own_output(job, path) {
        return if named { Err(Trouble::new(path, "is the output of this very scan")) } else { Ok(None) };
    }
    let opened = input::file(path, watched).map_err(|error| Trouble::new(path, error))?;
    let envelope = Envelope {
        host: job.host.clone(),
        name: "scan".into(),
        kind: "file",
        path: Some(path.display().to_string()),
        raw_path: raw(path),
        ..Envelope::default()
    };
    Ok(Some((opened, envelope)))
}

/// Returns the bytes of a name that is no text.
fn raw(path: &Path) -> Option<Vec<u8>> {
    path.to_str().is_none().then(|| path.as_os_str().as_encoded_bytes().to_vec())
}

fn is_own_output(job: &Job, path: &Path) -> bool {
    job.own_output.is_some_and(|own| Identity::at(path).is_ok_and(|identity| identity == own))
}

/// An input that is being read.
struct Reading<'a> {
    job: &'a Job,
    index: usize,
    envelope: Envelope,
    stream: Stream,
    events: Vec<Event>,
    out: Vec<u8>,
    /// The first block, which tells whether the input is a log at all, has not been judged.
    is_unseen: bool,
    /// Length of the next piece, in bytes.
    piece: usize,
    /// The input was named or is stdin; it was not found in a folder.
    is_named: bool,
    /// When output was last written; the first output never waits.
    flushed: Option<Instant>,
}

/// What became of a block.
enum Block {
    /// It was processed; so many bytes were asked for.
    Read { room: usize },
    /// There is none: the input has ended.
    Last,
    /// It begins an input that is no log.
    Foreign,
}

impl<'a> Reading<'a> {
    fn new(job: &'a Job, index: usize, input: &Input, opened: &Opened, envelope: Envelope) -> Self {
        let uid = match &envelope.path {
            Some(path) => identity::of_file(path, &opened.head, &job.run_id),
            None => identity::nonce(),
        };
        let stream = Stream::new(job.setup.engine.clone(), Origin { uid, generation: 0 });
        let stream = over(stream.with_documents(job.setup.config.limits.max_document_bytes), opened);
        let is_named = !matches!(input, Input::Found(_));
        Self { job, index, envelope, stream, events: Vec::new(), out: Vec::new(), is_unseen: true, piece: FIRST_PIECE, is_named, flushed: None }
    }

    /// Reads the whole input; returns the output that has not been written.
    fn read(mut self, mut opened: Opened, totals: &mut Totals) -> io::Result<Vec<u8>> {
        let mut wanted = FIRST_BYTES;
        loop {
            if !opened.live && self.job.interrupt.caught().is_some() {
                break;
            }
            let room = match self.block(&mut opened, wanted, totals)? {
                Block::Read { room } => room,
                Block::Last => break,
                Block::Foreign => return Ok(Vec::new()),
            };
            wanted = if self.events.len() < MANY_EVENTS { wanted.saturating_mul(2) } else { LEAST_BYTES.max(room / 2) };
            self.print(totals)?;
            self.job.progress.step();
            if self.out.len() >= FLUSH_BYTES || opened.live || self.flushed.is_none_or(|flushed| flushed.elapsed() > FLUSH_AFTER) {
                self.flush()?;
            }
        }
        self.end(totals)?;
        Ok(self.out)
    }

    /// Reads the next block, of at most `wanted` bytes, and processes it.
    fn block(&mut self, opened: &mut Opened, wanted: usize, totals: &mut Totals) -> io::Result<Block> {
        let is_beginning = self.flushed.is_none() && self.stream.counts().bytes < BEGINNING;
        let space = self.stream.space();
        let room = space.len().min(wanted);
        let space = &mut space[..room];
        let read = if opened.live { input::retried(&mut opened.bytes, &mut *space) } else { input::fill(&mut opened.bytes, &mut *space) };
        match read {
            Ok(0) => {
                // An empty input is read, too.
                self.job.written(self.job.order.begin())?;
                return Ok(Block::Last);
            }
            Ok(count) if is_beginning => {
                let block = space[..count].to_vec();
                let is_whole = if opened.live { opened.is_whole(count) } else { count < room };
                if std::mem::take(&mut self.is_unseen) {
                    if !self.accepts(&block, is_whole, opened.live) {
                        return Ok(Block::Foreign);
                    }
                    self.job.written(self.job.order.begin())?;
                }
                self.begin(&block, opened.live, totals)?;
            }
            Ok(count) => self.stream.advance(count, now(), &mut self.events),
            Err(error) => {
                self.job.trouble(&Trouble::new(self.name(), format!("reading ended early: {error}")));
                return Ok(Block::Last);
            }
        }
        Ok(Block::Read { room })
    }

    /// Ends the stream, and says what of it could not be read.
    fn end(&mut self, totals: &mut Totals) -> io::Result<()> {
        self.stream.finish(now(), &mut self.events);
        self.print(totals)?;
        totals.lines += self.stream.counts().lines;
        unread(&self.stream).for_each(|why| self.job.trouble(&Trouble::new(self.name(), why)));
        bounded(&self.stream).for_each(|why| self.job.tell(&Trouble::new(self.name(), why)));
        Ok(())
    }

    /// What the input is called in messages.
    fn name(&self) -> &Path {
        Path::new(self.envelope.path.as_deref().unwrap_or("stdin"))
    }

    /// Whether an input that begins with this block is a log. Of a finished one, the stream then knows how it begins.
    fn accepts(&mut self, block: &[u8], is_whole: bool, is_live: bool) -> bool {
        if let Some(foreign) = foreign::judge(block, is_whole).filter(|foreign| !self.job.reads.contains(foreign)) {
            self.leave_out(foreign);
            return false;
        }
        if !is_live {
            self.stream.begins_with(block, now());
        }
        true
    }

    /// Processes a block of the beginning in pieces. An error's context may be in a later
    /// piece of the block; what follows a block of a pipe may never come.
    fn begin(&mut self, block: &[u8], is_live: bool, totals: &mut Totals) -> io::Result<()> {
        let mut rest = block;
        while !rest.is_empty() {
            let (piece, next) = rest.split_at(self.piece.min(rest.len()));
            self.stream.wait_for_context(!is_live || !next.is_empty());
            self.stream.push(piece, now(), &mut self.events);
            self.print(totals)?;
            self.flush()?;
            (rest, self.piece) = (next, LONGEST_PIECE.min(2 * self.piece));
        }
        Ok(())
    }

    /// Skips an input that is no log. That is a fault only if the input was named, not if it was found in a folder.
    fn leave_out(&self, foreign: Foreign) {
        let trouble = Trouble::new(self.name(), foreign.advice(self.envelope.path.as_deref().map(Path::new)));
        match self.is_named {
            true => self.job.refuse(&trouble),
            false => self.job.leave_out(&trouble),
        }
    }

    fn print(&mut self, totals: &mut Totals) -> io::Result<()> {
        let (job, events) = (self.job, std::mem::take(&mut self.events));
        let taken = job.known.records(&self.envelope, &events);
        let (body, statuses) = taken.as_ref().map_or((&[][..], &[][..]), |(body, statuses)| (body, statuses));
        let mut lines = body.split_inclusive(|&byte| byte == b'\n');
        for (index, event) in events.iter().enumerate() {
            let line = lines.next();
            if job.printer.shows(event) && job.known.shows(event, statuses.get(index).copied().flatten()) {
                totals.tally.add(event.severity);
                job.count(event.severity);
                job.printer.print(&mut self.out, &self.envelope, event, line);
                // The buffer keeps the size that it once had.
                if self.out.len() >= FLUSH_BYTES {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.flushed = Some(Instant::now());
        let written = self.job.order.write(self.index, &mut self.out);
        if written.is_err() {
            // Nobody reads it any more.
            self.out.clear();
        }
        self.job.written(written)
    }
}
