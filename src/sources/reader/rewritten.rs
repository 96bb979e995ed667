//! The content at offset 0 was replaced: the rest of the old content is read from
//! a copy, if there is one; then a new generation begins.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use super::names::is_related;
use super::{Reader, Space, Turn};
use crate::core::event::Timestamp;
use crate::delivery::{Mark, Missed, Notice, Why, derived_id};
use crate::sources::bytes::ReadAt;
use crate::sources::content::{self, push_tail};
use crate::sources::open::{self, OpenFile, Trust};

impl Reader {
    /// Handles content that was replaced: looks for the rest of the old content in a copy.
    pub(super) fn rewritten(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        let copy = if self.counting.is_none() { self.find_copy(&self.mark()) } else { None };
        self.replaced(copy.as_ref(), space, now, turn)
    }

    /// As [`rewritten`](Self::rewritten), with the copy that was found.
    pub(super) fn replaced(&mut self, copy: Option<&impl ReadAt>, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        let mut old = self.mark();
        let is_counting = self.counting.take().is_some();
        if !is_counting {
            match copy {
                Some(copy) => {
                    let read = self.read_copy(copy, space, now, turn);
                    if read.is_err() && (self.stream.is_none() || self.offset == 0) {
                        // This turn cannot tell what was read, so the next one must compare the file with the mark as well.
                        if let Some(stream) = &mut self.stream {
                            stream.detach(&mut space.stream);
                        }
                        self.rest();
                    }
                    read?;
                    // The copy may also be met by its name: all of it was read.
                    old = self.mark();
                }
                None if old.read > 0 || old.size > 0 => {
                    // At least what the file held at the last check.
                    let missed = old.size.checked_sub(old.read).filter(|unread| *unread > 0).map_or(Missed::Unknown, Missed::Bytes);
                    let id = derived_id("gap", &[&self.uid, &self.generation.to_be_bytes(), &old.read.to_be_bytes()]);
                    turn.notices.push(Notice::Gap { id, why: Why::TruncatedFile, missed, from: now, to: now });
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

    fn read_copy(&mut self, copy: &impl ReadAt, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        if self.stream.is_none() {
            self.take_up(Some(copy), space)?;
        }
        loop {
            let got = content::read_at(copy, &mut space.bytes, self.offset)?;
            if got == 0 {
                return Ok(());
            }
            let bytes = &space.bytes[..got];
            self.pass(bytes, now, turn);
            self.head.push(bytes);
            push_tail(&mut self.tail, bytes);
            self.offset += got as u64;
        }
    }

    /// Returns a related file in the folder that holds what was read, and perhaps more.
    fn find_copy(&self, mark: &Mark) -> Option<File> {
        if mark.read == 0 {
            return None;
        }
        let folder = self.path.parent()?;
        // Since its last mark it may have been renamed, after its copy got a name like that of then.
        let former = self.sent.as_ref().map(|sent| &sent.path).filter(|former| **former != self.path);
        let mut found: Option<(File, i64)> = None;
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let path = entry.path();
            if !is_related(&self.path, &path) && !former.is_some_and(|former| is_related(former, &path)) {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_file() || meta.ino() == self.node.ino || meta.len() < mark.read || found.as_ref().is_some_and(|(_, newest)| *newest > meta.mtime()) {
                continue;
            }
            let within = folder.canonicalize().into_iter().collect();
            let Ok(OpenFile { file, .. }) = open::open(&entry.path(), &Trust::Matched { link: false, within }) else { continue };
            if content::is_same(&file, mark.content()).is_ok_and(|same| same) {
                found = Some((file, meta.mtime()));
            }
        }
        found.map(|(file, _)| file)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::engine::{Engine, Limits};
    use crate::rules::RuleSet;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000);

    /// The buffer is the thread's: it then reads other files with it, compressed ones included.
    #[test]
    fn a_copy_that_cannot_be_read_leaves_the_thread_its_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, "all is well\n".repeat(9)).unwrap();
        let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
        let opened = open::open(&path, &Trust::Named).unwrap();
        let mut reader = Reader::new(engine, [7; 16], path, Trust::Named, opened, 0);
        let (mut space, mut turn) = (Space::default(), Turn::default());
        let room = space.bytes.len();
        assert!(reader.turn(&mut space, NOW).trouble.is_none());
        // A folder can be opened, but not read.
        let broken = File::open(folder.path()).unwrap();
        assert!(reader.read_copy(&broken, &mut space, NOW, &mut turn).is_err());
        assert_eq!((space.bytes.len(), turn.bytes), (room, 0));
    }
}
