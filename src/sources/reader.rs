//! One file that is read, in turns: each goes on where the last one ended, sees whether the file is still
//! what was read (PROTOCOLS, E), and says how far it came. Between turns it keeps little; put to rest it
//! keeps nothing but its mark, from which it goes on. It opens and reads, and decides nothing about names.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::{self, HEAD_BYTES, Head, bytes_at, push_tail};
use super::open::{self, Trust};
use crate::core::assemble::{Facts, Snapshot};
use crate::core::engine::Engine;
use crate::core::event::{Event, Timestamp};
use crate::core::extract::Origin;
use crate::core::pipeline::{BEFORE_BYTES, Stream, Workspace};
use crate::core::transcript::Memory;
use crate::delivery::{Content, Label, Mark, Node, Notice, Print, Uid, Why, derived_id};

/// A file is with its reader for so many bytes, then the next one has its turn.
const TURN_BYTES: u64 = 1 << 20;
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
    /// Bytes that were read.
    pub bytes: u64,
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

/// A file under way.
pub struct Reader {
    engine: Arc<Engine>,
    uid: Uid,
    path: PathBuf,
    trust: Trust,
    file: Option<File>,
    stream: Option<Stream>,
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
}

/// Lines before the start are counted, not read.
#[derive(Default)]
struct Counting {
    lines: u64,
    line_start: u64,
    /// What the file's head shows, if it is a transcript.
    transcript: Option<Memory>,
}

impl Reader {
    /// A file that was never read, just opened; reading begins at `start`.
    #[must_use]
    pub fn new(engine: Arc<Engine>, uid: Uid, path: PathBuf, trust: Trust, (file, node, size): (File, Node, u64), start: u64) -> Self {
        let (stream, counting, head, tail, sent, previous) = Default::default();
        let facts = Facts::plain(0);
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
        }
    }

    /// A file that was read before, up to `mark`.
    #[must_use]
    pub fn resume(engine: Arc<Engine>, uid: Uid, path: PathBuf, trust: Trust, mark: Mark) -> Self {
        let facts = serde_json::from_str(&mark.facts).ok().filter(Facts::is_known).unwrap_or_else(|| Facts::plain(0));
        let (file, stream, counting, head, tail) = Default::default();
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
        }
    }

    /// Its name has changed.
    pub fn rename(&mut self, path: PathBuf, trust: Trust) {
        (self.path, self.trust) = (path, trust);
    }

    /// Whether it holds a descriptor.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Reads for one turn. The stream stands between two reads afterwards.
    pub fn turn(&mut self, space: &mut Space, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        self.guarded(space, now, &mut turn, |reader, space, turn| reader.read(space, now, turn));
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
    pub fn pause(&mut self) -> Turn {
        let mut turn = Turn::default();
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
        (self.file, self.stream, self.counting) = Default::default();
    }

    /// Runs a step with the stream in its room.
    fn guarded(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn, step: impl FnOnce(&mut Self, &mut Space, &mut Turn) -> io::Result<()>) {
        let done = self.ready(space, now, turn).and_then(|()| step(self, space, turn));
        if let Some(stream) = &mut self.stream {
            stream.detach(&mut space.stream);
        }
        if let Err(error) = done {
            match error.kind() {
                io::ErrorKind::NotFound => turn.lost = true,
                _ => turn.trouble = Some(error.to_string()),
            }
        }
    }

    /// A descriptor and a stream that has room.
    fn ready(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        if let Some(stream) = &mut self.stream {
            stream.attach(&mut space.stream);
        }
        if self.file.is_none() {
            let (file, size) = self.open_again()?;
            self.size = size;
            let known = self.sent.clone().unwrap_or_default();
            if size < known.read || !content::is_same(&file, known.content())? {
                self.file = Some(file);
                self.rewritten(space, now, turn)?;
            } else {
                self.file = Some(file);
            }
        }
        if self.stream.is_none() && self.counting.is_none() {
            if self.safe == 0 && self.start > 0 {
                self.begin();
                self.counting = Some(Counting::default());
            } else {
                self.take_up(None, space)?;
            }
        }
        Ok(())
    }

    fn open_again(&self) -> io::Result<(File, u64)> {
        if let Ok((file, node, size)) = open::open(&self.path, &self.trust)
            && node.is(&self.node)
        {
            return Ok((file, size));
        }
        let moved = find_inode(self.path.parent().unwrap_or(Path::new("/")), self.node).ok_or(io::ErrorKind::NotFound)?;
        let (file, node, size) = open::open(&moved, &Trust::Matched { link: false, within: moved.parent().map(Path::to_owned).into_iter().collect() })?;
        if node.is(&self.node) { Ok((file, size)) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Everything at offset 0 of this generation.
    fn begin(&mut self) {
        (self.offset, self.safe, self.facts) = (0, 0, Facts::plain(0));
        (self.head, self.stream, self.counting) = Default::default();
        self.tail.clear();
    }

    /// A stream at the safe place, from this file or from its copy.
    fn take_up(&mut self, copy: Option<&File>, space: &mut Space) -> io::Result<()> {
        let Some(file) = copy.or(self.file.as_ref()) else { return Err(io::ErrorKind::NotFound.into()) };
        let count = BEFORE_BYTES.min(self.safe);
        let before = bytes_at(file, self.safe - count, count as usize)?;
        let mut head = Head::default();
        head.push(&bytes_at(file, 0, self.safe.min(HEAD_BYTES as u64) as usize)?);
        self.head = head;
        self.tail.clear();
        push_tail(&mut self.tail, &before);
        self.offset = self.safe;
        let safe = Snapshot::new(self.safe, &self.facts, &self.engine);
        let mut stream = Stream::resume(self.engine.clone(), Origin { uid: self.uid, generation: self.generation }, safe, &before);
        stream.attach(&mut space.stream);
        self.stream = Some(stream);
        Ok(())
    }

    fn read(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        let mut rewrites = 0;
        loop {
            let most = if self.counting.is_some() { COUNT_BYTES } else { TURN_BYTES };
            if turn.bytes >= most {
                turn.more = true;
                return Ok(());
            }
            let Some(file) = &self.file else { return Ok(()) };
            let overlap = self.tail.len();
            let got = match file.read_at(&mut space.bytes, self.offset - overlap as u64) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got?,
            };
            if got < overlap || space.bytes[..overlap] != self.tail {
                rewrites += 1;
                if rewrites > MAX_REWRITES {
                    turn.more = true;
                    return Ok(());
                }
                self.rewritten(space, now, turn)?;
                self.take_up(None, space)?;
                continue;
            }
            if got == overlap {
                return Ok(());
            }
            let bytes = std::mem::take(&mut space.bytes);
            let fed = self.feed(&bytes[overlap..got], space, now, turn);
            space.bytes = bytes;
            fed?;
        }
    }

    /// The next bytes of the file.
    fn feed(&mut self, bytes: &[u8], space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        turn.bytes += bytes.len() as u64;
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

    fn count(&mut self, bytes: &[u8], space: &mut Space) -> io::Result<()> {
        let Some(counting) = &mut self.counting else { return Ok(()) };
        let before = bytes.len().min((self.start - self.offset) as usize);
        let part = &bytes[..before];
        if self.offset == 0 {
            counting.transcript = Memory::of_head(self.engine.limits.mode, part);
        }
        counting.lines += memchr::memchr_iter(b'\n', part).count() as u64;
        if let Some(last) = memchr::memrchr(b'\n', part) {
            counting.line_start = self.offset + last as u64 + 1;
        }
        self.head.push(part);
        self.offset += before as u64;
        push_tail(&mut self.tail, part);
        if self.offset == self.start {
            // The line that stands half before the start is read whole.
            let facts = Facts::plain(counting.lines).with_transcript(counting.transcript.take());
            (self.safe, self.start, self.facts) = (counting.line_start, counting.line_start, facts);
            self.counting = None;
            self.take_up(None, space)?;
        }
        Ok(())
    }

    /// Bytes into the stream; NULs at the beginning of a line are a hole and left out.
    fn pass(&mut self, mut bytes: &[u8], now: Timestamp, turn: &mut Turn) {
        let mut events = Vec::new();
        let Some(stream) = &mut self.stream else { return };
        let has_nul = memchr::memchr(0, bytes).is_some();
        while !bytes.is_empty() {
            if bytes[0] == 0 && stream.is_between_lines() {
                let hole = bytes.iter().take_while(|byte| **byte == 0).count();
                stream.skip(hole as u64);
                bytes = &bytes[hole..];
                continue;
            }
            let line = if has_nul { memchr::memmem::find(bytes, b"\n\0").map_or(bytes.len(), |at| at + 1) } else { bytes.len() };
            stream.push(&bytes[..line], now, &mut events);
            bytes = &bytes[line..];
        }
        self.keep(events, turn);
    }

    /// A hole is skipped without reading it, where the file system knows how.
    fn skip_hole(&mut self) {
        let (Some(file), Some(stream)) = (&self.file, &mut self.stream) else { return };
        if !stream.is_between_lines() {
            return;
        }
        let data = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(self.offset)).unwrap_or(self.offset);
        if data > self.offset {
            tracing::debug!("{}: a hole of {} bytes is left out", self.path.display(), data - self.offset);
            stream.skip(data - self.offset);
            let zeros = [0; HEAD_BYTES];
            self.head.push(&zeros[..(data - self.offset).min(HEAD_BYTES as u64) as usize]);
            self.offset = data;
        }
    }

    fn keep(&self, events: Vec<Event>, turn: &mut Turn) {
        let (generation, start) = (self.generation, self.start);
        turn.events.extend(events.into_iter().filter(|event| event.offset >= start).map(|event| (generation, event)));
    }

    /// The content at offset 0 was replaced: what is left of the old one is looked for in a copy.
    fn rewritten(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        let old = self.mark();
        let is_counting = self.counting.take().is_some();
        if !is_counting {
            match self.find_copy(&old) {
                Some(copy) => self.read_copy(&copy, space, now, turn)?,
                None if old.read > 0 || old.size > 0 => {
                    // At least what was there when it was last looked at.
                    let bytes = old.size.checked_sub(old.read).filter(|unread| *unread > 0);
                    let id = derived_id("gap", &[&self.uid, &self.generation.to_be_bytes(), &old.read.to_be_bytes()]);
                    turn.notices.push(Notice::Gap { id, why: Why::TruncatedFile, bytes, events: None, from: now, to: now });
                }
                None => {}
            }
        }
        tracing::info!("{}: was rewritten; reading it from its beginning", self.path.display().to_string().escape_debug());
        if let Some(stream) = &mut self.stream {
            stream.detach(&mut space.stream);
        }
        self.finish_stream(now, turn);
        turn.rewritten = true;
        self.previous = Some(old.content());
        self.generation += 1;
        self.start = 0;
        self.begin();
        Ok(())
    }

    fn read_copy(&mut self, copy: &File, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        if self.stream.is_none() {
            self.take_up(Some(copy), space)?;
        }
        let mut bytes = std::mem::take(&mut space.bytes);
        loop {
            let got = content::read_at(copy, &mut bytes, self.offset)?;
            if got == 0 {
                break;
            }
            self.pass(&bytes[..got], now, turn);
            self.offset += got as u64;
        }
        space.bytes = bytes;
        Ok(())
    }

    /// A file beside this one that holds what was read, and perhaps more.
    fn find_copy(&self, mark: &Mark) -> Option<File> {
        if mark.read == 0 {
            return None;
        }
        let folder = self.path.parent()?;
        let mut found: Option<(File, i64)> = None;
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            if !is_related(&self.path, &entry.path()) {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_file() || meta.ino() == self.node.ino || meta.len() < mark.read || found.as_ref().is_some_and(|(_, newest)| *newest > meta.mtime()) {
                continue;
            }
            let within = folder.canonicalize().into_iter().collect();
            let Ok((file, ..)) = open::open(&entry.path(), &Trust::Matched { link: false, within }) else { continue };
            if content::is_same(&file, mark.content()).is_ok_and(|same| same) {
                found = Some((file, meta.mtime()));
            }
        }
        found.map(|(file, _)| file)
    }

    fn finish_stream(&mut self, now: Timestamp, turn: &mut Turn) {
        let mut events = Vec::new();
        if let Some(mut stream) = self.stream.take() {
            stream.finish(now, &mut events);
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
            turn.deadline = stream.deadline();
            if stream.safe().offset != self.safe {
                (self.safe, self.facts) = stream.facts();
            }
        }
        self.keep(events, turn);
        if let Some(meta) = self.file.as_ref().and_then(|file| file.metadata().ok()) {
            self.size = meta.len();
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

/// Whether `other` could be a rotated copy of `live`, by its name: `app.log` → `app.log.1`, `app-2026.log`.
/// It is asked of many pairs.
#[must_use]
pub fn is_related(live: &Path, other: &Path) -> bool {
    let (live, other) = (live.as_os_str().as_encoded_bytes(), other.as_os_str().as_encoded_bytes());
    if other.len() <= live.len() {
        return false;
    }
    let name = memchr::memrchr(b'/', live).map_or(0, |slash| slash + 1);
    let stem = memchr::memrchr(b'.', &live[name..]).filter(|dot| *dot > 0).map_or(live.len(), |dot| name + dot);
    other.starts_with(&live[..stem]) && !other[stem..].contains(&b'/')
}

/// Where a file that had a name in `folder` is now, if it is still there.
#[must_use]
pub fn find_inode(folder: &Path, node: Node) -> Option<PathBuf> {
    use std::os::unix::fs::DirEntryExt;
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let born = |entry: &std::fs::DirEntry| entry.metadata().map_or(0, |meta| open::node(&meta).born);
    let is_same = |entry: &std::fs::DirEntry| entry.ino() == node.ino && [0, born(entry)].contains(&node.born);
    let mut same = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()) && is_same(entry));
    same.next().map(|entry| entry.path())
}

/// A label for what is read from a file.
#[must_use]
pub fn label(source: &str, shown: String) -> Arc<Label> {
    Arc::new(Label { source: source.to_owned(), kind: "file", path: shown })
}
