//! One file, read in turns. Each turn continues where the last one ended, checks whether the file is still the one that was
//! read, and reports how far it got. Between turns the reader keeps little; at rest it keeps only its mark,
//! from which it continues. It opens and reads, and decides nothing about names. `read` does one turn's reading, `rewritten`
//! handles replaced content, `count` skips what is not to be read, and `unfinished` handles a last line without an end.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::bytes::Bytes;
use super::content::Head;
use super::open::{OpenFile, Trust};
use crate::core::assemble::Facts;
use crate::core::engine::Engine;
use crate::core::event::{Event, Timestamp};
use crate::core::patience::Patience;
use crate::core::pipeline::{Counts, Stream, Workspace};
use crate::delivery::{Content, Label, Mark, Node, Notice, Print, Uid};

mod count;
#[cfg(test)]
mod failing_tests;
mod hole;
mod names;
mod packed;
mod read;
mod renewed;
mod rewritten;
mod take_up;
mod unfinished;

use count::Counting;
pub use names::{Folders, find_inode, is_related};
pub use renewed::MIN_MOVED_BYTES;
use unfinished::Unfinished;

/// Bytes per read.
const READ_BYTES: usize = 128 << 10;

/// A thread's buffers, used for whatever it reads.
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
    /// Returns the working memory for one stream.
    pub(super) fn room(&mut self) -> &mut Workspace {
        &mut self.stream
    }
}

/// The result of a turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// Events, each with its stream's generation.
    pub events: Vec<(u32, Event)>,
    /// Losses to report.
    pub notices: Vec<Notice>,
    /// How far the file was read, if that has changed.
    pub mark: Option<Mark>,
    /// Whether there is more to read.
    pub more: bool,
    /// When something open is due to be published.
    pub deadline: Option<Timestamp>,
    /// Whether something is open: after a rest, it would be read again.
    pub is_open: bool,
    /// Number of bytes read.
    pub bytes: u64,
    /// What the stream counted in them.
    pub counts: Counts,
    /// The file could not be found again.
    pub lost: bool,
    /// The file was rewritten.
    pub rewritten: bool,
    /// What went wrong.
    pub trouble: Option<String>,
    /// Why the file is not read: it is not a log.
    pub left_out: Option<String>,
    /// No name leads to the file any more.
    pub unlinked: bool,
    /// This was the last turn: everything is read and finished.
    pub finished: bool,
}

/// A file being read.
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
    /// What was read of the previous generation.
    previous: Option<Content>,
    /// The mark last passed on.
    sent: Option<Mark>,
    unfinished: Unfinished,
}

impl Reader {
    /// Begins a file that was never read and has just been opened; reading begins at `start`.
    #[must_use]
    pub fn new(engine: Arc<Engine>, uid: Uid, path: PathBuf, trust: Trust, opened: OpenFile, start: u64) -> Self {
        let OpenFile { file, node, size } = opened;
        let facts = Facts::plain(0);
        let file = Bytes::new(file, &path);
        // A compressed file is read completely or not at all; its size is known once it was read.
        let (size, start) = if file.is_packed() { (size.min(start), 0) } else { (size, start) };
        Self {
            engine,
            uid,
            path,
            trust,
            file: Some(file),
            stream: None,
            counting: None,
            node,
            generation: 0,
            start,
            offset: 0,
            size,
            safe: 0,
            facts,
            head: Head::default(),
            tail: Vec::new(),
            previous: None,
            sent: None,
            unfinished: Unfinished::default(),
        }
    }

    /// Continues a file that was read up to `mark`.
    #[must_use]
    pub fn resume(engine: Arc<Engine>, uid: Uid, path: PathBuf, trust: Trust, mark: Mark) -> Self {
        let facts = serde_json::from_str(&mark.facts).ok().filter(Facts::is_known).unwrap_or_else(|| {
            tracing::warn!(
                "{}: what was open there cannot be read, or a newer siftd wrote it: its lines are counted anew",
                path.display().to_string().escape_debug()
            );
            Facts::plain(0)
        });
        let Mark { node, generation, start, read, safe, size, previous, .. } = mark;
        Self {
            engine,
            uid,
            path,
            trust,
            file: None,
            stream: None,
            counting: None,
            node,
            generation,
            start,
            offset: read,
            size,
            safe,
            facts,
            head: Head::default(),
            tail: Vec::new(),
            previous,
            sent: Some(mark),
            unfinished: Unfinished::default(),
        }
    }

    /// Sets the file's new name.
    pub fn rename(&mut self, path: PathBuf, trust: Trust) {
        (self.path, self.trust) = (path, trust);
    }

    /// Applies other rules, from the last place at which nothing was open; events
    /// found again have the same ids. Returns `true` if the descriptor was given back.
    pub fn set_rules(&mut self, engine: &Arc<Engine>) -> bool {
        let is_other = !Arc::ptr_eq(&self.engine, engine);
        if is_other {
            self.engine = engine.clone();
            self.rest();
        }
        is_other
    }

    /// Whether the reader holds a descriptor.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Reads for one turn.
    pub fn turn(&mut self, space: &mut Space, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        self.guarded(space, now, &mut turn, |reader, space, turn| {
            reader.read(space, now, turn)?;
            reader.look_ahead(space, now, turn)
        });
        self.end(now, &mut turn);
        turn
    }

    /// Reads the rest of a file that will not grow any more, and finishes what is open. If the rest
    /// cannot be read now, it may be readable later: until then, what is open is only published.
    pub fn finish(&mut self, space: &mut Space, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        self.guarded(space, now, &mut turn, |reader, space, turn| reader.read(space, now, turn));
        self.end(now, &mut turn);
        if turn.trouble.is_some() {
            self.publish(&mut turn);
            self.put_mark(&mut turn);
        } else if !turn.more {
            self.finish_stream(now, &mut turn);
            self.put_mark(&mut turn);
            (turn.deadline, turn.finished) = (None, true);
        }
        turn
    }

    /// Publishes what is open, as a long pause would, since there may be no later chance. Finishes nothing.
    pub fn pause(&mut self, space: &mut Space, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        if self.file.is_some() && self.stream.is_some() {
            self.unfinished.hurry(self.engine.limits.trace_idle_us);
            self.guarded(space, now, &mut turn, |reader, space, turn| reader.look_ahead(space, now, turn));
        }
        self.publish(&mut turn);
        self.put_mark(&mut turn);
        turn
    }

    fn publish(&mut self, turn: &mut Turn) {
        if let Some(stream) = &mut self.stream {
            let mut events = Vec::new();
            stream.pause(Patience::Long, &mut events);
            self.facts.owe(stream.deadline().is_some());
            self.keep(events, turn);
        }
    }

    /// Gives back descriptor and memory; the next turn begins at the safe place.
    pub fn rest(&mut self) {
        (self.file, self.stream, self.counting, self.head) = Default::default();
        self.tail = Vec::new();
    }

    /// Runs a step with the stream attached to its working memory.
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

    /// Publishes what is due, and records how far the turn got.
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
            self.facts.owe(turn.is_open);
        }
        self.keep(events, turn);
        if let Some((file, meta)) = self.file.as_ref().and_then(|file| Some((file, file.file().metadata().ok()?))) {
            if !file.is_packed() {
                // What is no log is not read, so nothing is left of it, and nothing is lost with it.
                self.size = if turn.left_out.is_some() { self.offset } else { meta.len() };
            }
            turn.unlinked = meta.nlink() == 0;
        }
        // What was due when the file could not be found is an event like any other.
        let is_here = !turn.lost && self.file.is_some();
        if is_here || !turn.events.is_empty() {
            self.put_mark(turn);
        }
    }

    /// Events never go without a mark: it says which of them may be found again.
    fn put_mark(&mut self, turn: &mut Turn) {
        let mark = self.mark();
        if self.sent.as_ref() != Some(&mark) || !turn.events.is_empty() {
            self.sent = Some(mark.clone());
            turn.mark = Some(mark);
        }
    }

    /// Returns how far the file was read.
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

/// Returns the label of what is read from a file.
#[must_use]
pub fn label(source: &str, shown: String) -> Arc<Label> {
    Arc::new(Label { source: source.to_owned(), kind: "file", path: shown, ..Label::default() })
}
