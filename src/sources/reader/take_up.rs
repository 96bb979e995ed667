//! A reader that begins, or continues after a rest: it opens its file under whatever name it has now, and creates a stream at the safe place.

use std::fs::File;
use std::io;
use std::path::Path;

use super::count::Counting;
use super::names::find_inode;
use super::{Reader, Space, Turn};
use crate::core::assemble::{Facts, Snapshot};
use crate::core::event::Timestamp;
use crate::core::extract::Origin;
use crate::core::pipeline::{BEFORE_BYTES, Stream};
use crate::sources::bytes::{Bytes, ReadAt};
use crate::sources::content::{self, HEAD_BYTES, Head, bytes_at, push_tail};
use crate::sources::open::{self, OpenFile, Trust};

impl Reader {
    /// Makes sure that there are a descriptor and an attached stream.
    pub(super) fn ready(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        if let Some(stream) = &mut self.stream {
            stream.attach(&mut space.stream);
        }
        if self.file.is_none() {
            let (file, size) = self.open_again()?;
            let file = Bytes::new(file, &self.path);
            let known = self.sent.clone().unwrap_or_default();
            let is_same = file.is_packed() || size >= known.read && content::is_same(&file, known.content())?;
            self.size = if file.is_packed() { self.size } else { size };
            self.file = Some(file);
            if !is_same {
                self.rewritten(space, now, turn)?;
            }
        }
        if self.is_done() {
            return Ok(());
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

    pub(super) fn open_again(&self) -> io::Result<(File, u64)> {
        if let Ok(OpenFile { file, node, size }) = open::open(&self.path, &self.trust)
            && node.is(&self.node)
        {
            return Ok((file, size));
        }
        let moved = find_inode(self.path.parent().unwrap_or(Path::new("/")), self.node).ok_or(io::ErrorKind::NotFound)?;
        let OpenFile { file, node, size } =
            open::open(&moved, &Trust::Matched { link: false, within: moved.parent().map(Path::to_owned).into_iter().collect() })?;
        if node.is(&self.node) { Ok((file, size)) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Resets everything to offset 0 of this generation.
    pub(super) fn begin(&mut self) {
        (self.offset, self.safe, self.facts) = (0, 0, Facts::plain(0));
        (self.head, self.stream, self.counting, self.unfinished) = Default::default();
        self.tail.clear();
    }

    /// Creates a stream at the safe place, from this file or from its copy.
    pub(super) fn take_up(&mut self, copy: Option<&dyn ReadAt>, space: &mut Space) -> io::Result<()> {
        let bytes = |offset, count: u64| match (copy, &self.file) {
            (Some(copy), _) => bytes_at(copy, offset, count as usize),
            (None, Some(file)) => bytes_at(file, offset, count as usize),
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        };
        let mut head = Head::default();
        head.push(&bytes(0, self.safe.min(HEAD_BYTES as u64))?);
        let count = BEFORE_BYTES.min(self.safe);
        let before = bytes(self.safe - count, count)?;
        self.head = head;
        self.tail.clear();
        push_tail(&mut self.tail, &before);
        self.offset = self.safe;
        let mut stream = self.stream_at_safe(&before);
        stream.attach(&mut space.stream);
        self.stream = Some(Box::new(stream));
        Ok(())
    }

    /// Creates a stream at the safe place, after `before`.
    pub(super) fn stream_at_safe(&self, before: &[u8]) -> Stream {
        let safe = Snapshot::new(self.safe, &self.facts, &self.engine);
        Stream::resume(self.engine.clone(), Origin { uid: self.uid, generation: self.generation }, safe, before)
    }
}
