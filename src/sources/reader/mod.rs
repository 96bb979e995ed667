//! One file that is read, in turns: each goes on where the last one ended, sees whether the file is still
//! what was read (PROTOCOLS, E), and says how far it came. Between turns it keeps little; put to rest it
//! keeps nothing but its mark, from which it goes on. It opens and reads, and decides nothing about names.
//! `rewritten` is what happens when the content was replaced, `count` skips what is not to be read, and
//! `unfinished` is about the last line of a file that nobody ends.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::bytes::{Bytes, ReadAt};
use super::content::{Head, TAIL_BYTES, push_tail};
use super::open::Trust;
use crate::core::assemble::Facts;
use crate::core::engine::Engine;
use crate::core::event::{Event, Timestamp};
use crate::core::pipeline::{Counts, Stream, Workspace};
use crate::delivery::{Content, Label, Mark, Node, Notice, Print, Uid};

mod count;
mod hole;
mod names;
mod packed;
mod rewritten;
mod take_up;
mod unfinished;

use count::Counting;
use hole::pass;
pub use names::{Folders, find_inode, is_related};
use unfinished::Unfinished;

/// A file is with its reader for so many bytes, then the next one has its turn.
const TURN_BYTES: u64 = 1 << 20;
/// The same for so many events: where every line is an error they take many times the room of what was read.
const TURN_EVENTS: usize = 256;
/// Bytes of one read.
const READ_BYTES: usize = 128 << 10;
/// Counting lines is quick: such a turn is longer.
const COUNT_BYTES: u64 = 64 << 20;
/// A file that is rewritten more often within one turn is left for the next one.
const MAX_REWRITES: u32 = 2;

/// What a thread that reads has, whatever it reads.
pub struct Space {
    stream: Workspace,
    bytes: Vec<u8>,
}

impl Default for Space {
    fn default() -> Self {
        Self { stream: Workspace::default(), bytes: vec![0; READ_BYTES] }
    }
}

impl Space {
    /// The room of one stream.
    pub(super) fn room(&mut self) -> &mut Workspace {
        &mut self.stream
    }
}

/// What a turn came to.
#[derive(Debug, Default)]
pub struct Turn {
    /// Events, each with the generation of its stream.
    pub events: Vec<(u32, Event)>,
    /// What was lost.
    pub notices: Vec<Notice>,
    /// How far the file was read, if that has changed.
    pub mark: Option<Mark>,
    /// There is more to read.
    pub more: bool,
    /// When something open wants to be published.
    pub deadline: Option<Timestamp>,
    /// It has something open: a rest would take it up again.
    pub is_open: bool,
    /// Bytes that were read.
    pub bytes: u64,
    /// What the stream saw of them.
    pub counts: Counts,
    /// The file could not be found again.
    pub lost: bool,
    /// The file was rewritten.
    pub rewritten: bool,
    /// What went wrong.
    pub trouble: Option<String>,
    /// No name leads to the file any more.
    pub unlinked: bool,
    /// It was the last turn: everything is read and finished.
    pub finished: bool,
}

/// What a read came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Got {
    /// There may be more.
    More,
    /// There is nothing behind what was read.
    End,
    /// The file is not what was read.
    Other,
}

/// A file under way.
pub struct Reader {
    engine: Arc<Engine>,
    uid: Uid,
    path: PathBuf,
    trust: Trust,
    file: Option<Bytes>,
    /// Boxed: most files rest and have none.
    stream: Option<Box<Stream>>,
    counting: Option<Counting>,
    node: Node,
    generation: u32,
    start: u64,
    offset: u64,
    size: u64,
    safe: u64,
    facts: Facts,
    head: Head,
    tail: Vec<u8>,
    /// What was read of the generation before.
    previous: Option<Content>,
    /// The mark that is known outside.
    sent: Option<Mark>,
    unfinished: Unfinished,
}

impl Reader {
    /// A file that was never read, just opened; reading begins at `start`.
    #[must_use]
    pub fn new(engine: Arc<Engine>, uid: Uid, path: PathBuf, trust: Trust, (file, node, size): (File, Node, u64), start: u64) -> Self {
        let (stream, counting, head, tail, sent, previous, unfinished) = Default::default();
        let facts = Facts::plain(0);
        let file = Bytes::new(file, &path);
        // A compressed file is read whole or not at all; its size is known when it was read.
        let (size, start) = if file.is_packed() { (size.min(start), 0) } else { (size, start) };
        Self {
            engine,
            uid,
            path,
            trust,
            file: Some(file),
            stream,
            counting,
            node,
            generation: 0,
            start,
            offset: 0,
            size,
            safe: 0,
            facts,
            head,
            tail,
            previous,
            sent,
            unfinished,
        }
    }

    /// A file that was read before, up to `mark`.
    #[must_use]
    pub fn resume(engine: Arc<Engine>, uid: Uid, path: PathBuf, trust: Trust, mark: Mark) -> Self {
        let facts = serde_json::from_str(&mark.facts).ok().filter(Facts::is_known).unwrap_or_else(|| Facts::plain(0));
        let (file, stream, counting, head, tail, unfinished) = Default::default();
        let Mark { node, generation, start, read, safe, size, previous, .. } = mark;
        Self {
            engine,
            uid,
            path,
            trust,
            file,
            stream,
            counting,
            node,
            generation,
            start,
            offset: read,
            size,
            safe,
            facts,
            head,
            tail,
            previous,
            sent: Some(mark),
            unfinished,
        }
    }

    /// Its name has changed.
    pub fn rename(&mut self, path: PathBuf, trust: Trust) {
        (self.path, self.trust) = (path, trust);
    }

    /// Goes on by other rules, from the last place at which nothing was open; events that are found again have
    /// the same ids. True: it gave back its descriptor.
    pub fn set_rules(&mut self, engine: &Arc<Engine>) -> bool {
        let is_other = !Arc::ptr_eq(&self.engine, engine);
        if is_other {
            self.engine = engine.clone();
            self.rest();
        }
        is_other
    }

    /// Whether it holds a descriptor.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Reads for one turn. The stream stands between two reads afterwards.
    pub fn turn(&mut self, space: &mut Space, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        self.guarded(space, now, &mut turn, |reader, space, turn| {
            reader.read(space, now, turn)?;
            reader.look_ahead(space, now, turn)
        });
        self.end(now, &mut turn);
        turn
    }

    /// The file will not grow any more: reads the rest, and finishes what is open.
    pub fn finish(&mut self, space: &mut Space, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        self.guarded(space, now, &mut turn, |reader, space, turn| reader.read(space, now, turn));
        self.end(now, &mut turn);
        if !turn.more {
            self.finish_stream(now, &mut turn);
            self.put_mark(&mut turn);
            (turn.deadline, turn.finished) = (None, true);
        }
        turn
    }

    /// Publishes what is open as a pause would; nothing is finished.
    pub fn pause(&mut self, space: &mut Space, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        if self.file.is_some() && self.stream.is_some() {
            self.unfinished.hurry(self.engine.limits.trace_idle_us);
            self.guarded(space, now, &mut turn, |reader, space, turn| reader.look_ahead(space, now, turn));
        }
        if let Some(stream) = &mut self.stream {
            let mut events = Vec::new();
            stream.pause(&mut events);
            self.keep(events, &mut turn);
        }
        self.put_mark(&mut turn);
        turn
    }

    /// Gives back descriptor and memory; the next turn begins at the safe place.
    pub fn rest(&mut self) {
        (self.file, self.stream, self.counting, self.head) = Default::default();
        self.tail = Vec::new();
    }

    /// Runs a step with the stream in its room.
    fn guarded(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn, step: impl FnOnce(&mut Self, &mut Space, &mut Turn) -> io::Result<()>) {
        let done = self.ready(space, now, turn).and_then(|()| step(self, space, turn));
        if let Some(stream) = &mut self.stream {
            turn.counts += stream.news();
            stream.detach(&mut space.stream);
        }
        if let Err(error) = done {
            match error.kind() {
                io::ErrorKind::NotFound => turn.lost = true,
                _ => turn.trouble = Some(error.to_string()),
            }
        }
    }

    fn read(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        let mut rewrites = 0;
        while !self.is_done() {
            let most = if self.counting.is_some() { COUNT_BYTES } else { TURN_BYTES };
            if turn.bytes >= most || turn.events.len() >= TURN_EVENTS {
                turn.more = true;
                return Ok(());
            }
            let got = match self.read_some(space, now, turn) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got?,
            };
            if got == Got::End {
                return Ok(());
            }
            if got == Got::Other {
                rewrites += 1;
                if rewrites > MAX_REWRITES {
                    turn.more = true;
                    return Ok(());
                }
                self.rewritten(space, now, turn)?;
                self.take_up(None, space)?;
            }
        }
        Ok(())
    }

    /// One read.
    fn read_some(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<Got> {
        if let (Some(Bytes::Plain(_)), Some(_), None) = (&self.file, &self.stream, &self.counting) {
            return self.read_straight(now, turn);
        }
        let Some(file) = &self.file else { return Ok(Got::End) };
        let overlap = self.tail.len();
        let got = match file.read_at(&mut space.bytes, self.offset - overlap as u64) {
            Err(error) if file.is_packed() && error.kind() != io::ErrorKind::Interrupted => {
                return self.end_packed(Some(&error), space, now, turn).map(|()| Got::End);
            }
            got => got?,
        };
        if got < overlap || space.bytes[..overlap] != self.tail {
            return Ok(Got::Other);
        }
        if got == overlap {
            if file.is_packed() {
                self.end_packed(None, space, now, turn)?;
            }
            return Ok(Got::End);
        }
        let bytes = std::mem::take(&mut space.bytes);
        let fed = self.feed(&bytes[overlap..got], space, now, turn);
        space.bytes = bytes;
        fed.map(|()| Got::More)
    }

    /// One read, straight into the stream's room; what was read before is compared beside it.
    fn read_straight(&mut self, now: Timestamp, turn: &mut Turn) -> io::Result<Got> {
        let (Some(Bytes::Plain(file)), Some(stream)) = (&self.file, &mut self.stream) else { return Ok(Got::End) };
        let overlap = self.tail.len();
        let mut seam = [0; TAIL_BYTES];
        let room = stream.space();
        let mut slices = [IoSliceMut::new(&mut seam[..overlap]), IoSliceMut::new(room)];
        let got = rustix::io::preadv(file, &mut slices, self.offset - overlap as u64)?;
        if got < overlap || seam[..overlap] != self.tail {
            return Ok(Got::Other);
        }
        let count = got - overlap;
        if count == 0 {
            return Ok(Got::End);
        }
        let bytes = &room[..count];
        turn.bytes += count as u64;
        self.head.push(bytes);
        push_tail(&mut self.tail, bytes);
        let mut events = Vec::new();
        if memchr::memchr(0, bytes).is_some() {
            let bytes = bytes.to_vec();
            pass(stream, &bytes, now, &mut events);
        } else {
            stream.advance(count, now, &mut events);
        }
        self.offset += count as u64;
        self.unfinished.read_to(self.offset, now);
        self.keep(events, turn);
        if self.tail.iter().all(|byte| *byte == 0) {
            self.skip_hole();
        }
        Ok(Got::More)
    }

    /// The next bytes of the file.
    fn feed(&mut self, bytes: &[u8], space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        turn.bytes += bytes.len() as u64;
        self.unfinished.read_to(self.offset + bytes.len() as u64, now);
        if self.counting.is_some() {
            if self.offset == 0 && (bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff])) {
                // UTF-16 has no newline byte to count: it is read, and what comes of it left out.
                self.begin();
                self.take_up(None, space)?;
            } else {
                return self.count(bytes, space);
            }
        }
        self.pass(bytes, now, turn);
        self.head.push(bytes);
        self.offset += bytes.len() as u64;
        push_tail(&mut self.tail, bytes);
        if self.tail.iter().all(|byte| *byte == 0) {
            self.skip_hole();
        }
        Ok(())
    }

    /// Bytes into the stream.
    fn pass(&mut self, bytes: &[u8], now: Timestamp, turn: &mut Turn) {
        let mut events = Vec::new();
        if let Some(stream) = &mut self.stream {
            pass(stream, bytes, now, &mut events);
        }
        self.keep(events, turn);
    }

    fn keep(&self, events: Vec<Event>, turn: &mut Turn) {
        let (generation, start) = (self.generation, self.start);
        turn.events.extend(events.into_iter().filter(|event| event.offset >= start).map(|event| (generation, event)));
    }

    fn finish_stream(&mut self, now: Timestamp, turn: &mut Turn) {
        let mut events = Vec::new();
        if let Some(mut stream) = self.stream.take() {
            stream.finish(now, &mut events);
            turn.counts += stream.news();
        }
        self.keep(events, turn);
    }

    /// What is due, and how far it came.
    fn end(&mut self, now: Timestamp, turn: &mut Turn) {
        let mut events = Vec::new();
        if let Some(stream) = &mut self.stream {
            if stream.deadline().is_some_and(|at| at <= now) {
                stream.tick(now, &mut events);
            }
            let line = if stream.has_partial() { self.unfinished.deadline(self.offset, self.engine.limits.trace_idle_us) } else { None };
            turn.is_open = stream.deadline().is_some();
            turn.deadline = stream.deadline().into_iter().chain(line).min();
            if stream.safe().offset != self.safe {
                (self.safe, self.facts) = stream.facts();
            }
        }
        self.keep(events, turn);
        if let Some((file, meta)) = self.file.as_ref().and_then(|file| Some((file, file.file().metadata().ok()?))) {
            if !file.is_packed() {
                self.size = meta.len();
            }
            turn.unlinked = meta.nlink() == 0;
        }
        if turn.lost || self.file.is_none() {
            return;
        }
        self.put_mark(turn);
    }

    /// Events never go without a mark: it says which of them could be found again.
    fn put_mark(&mut self, turn: &mut Turn) {
        let mark = self.mark();
        if self.sent.as_ref() != Some(&mark) || !turn.events.is_empty() {
            self.sent = Some(mark.clone());
            turn.mark = Some(mark);
        }
    }

    /// How far it is.
    #[must_use]
    pub fn mark(&self) -> Mark {
        if let (None, None, Some(sent)) = (&self.stream, &self.counting, &self.sent)
            && sent.generation == self.generation
        {
            return sent.clone();
        }
        Mark {
            node: self.node,
            path: self.path.clone(),
            generation: self.generation,
            start: self.start,
            read: self.offset,
            safe: self.safe,
            facts: serde_json::to_string(&self.facts).unwrap_or_default(),
            head: self.head.print(),
            tail: Print::of(&self.tail),
            size: self.size,
            previous: self.previous,
        }
    }
}

/// A label for what is read from a file.
#[must_use]
pub fn label(source: &str, shown: String) -> Arc<Label> {
    Arc::new(Label { source: source.to_owned(), kind: "file", path: shown, ..Label::default() })
}
