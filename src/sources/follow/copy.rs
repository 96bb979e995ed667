//! Whether a new file is a copy of a followed one, as copytruncate makes
//! them: what was read of the original is not read again in the copy.

use std::fs::File;
use std::path::Path;

use super::moved::Stranger;
use super::{FileId, Followed, Follower};
use crate::core::event::Timestamp;
use crate::delivery::{Content, Mark, Uid};
use crate::sources::content;
use crate::sources::open::{self, OpenFile};
use crate::sources::reader::is_related;

/// Minimum bytes of content that prove that a file was known by another name.
const MIN_COPY_BYTES: u64 = 256;

/// A copy is created empty and filled at once; a file that stays empty for longer is
/// a file of its own. A turn of the original is not waited for any longer, either.
const MAX_EMPTY_US: i64 = 60_000_000;

/// A new file that may be the beginning of a copy.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// The file it may be a copy of.
    uid: Uid,
    /// The generation of that file.
    generation: u32,
    /// The number of first bytes seen to be equal to that file's.
    equal: u64,
    since: Timestamp,
}

/// The result of checking whether a new file is a copy.
enum Copy {
    /// A file of its own.
    No,
    /// So far it is equal to the beginning of another file; check again.
    Perhaps,
    /// A copy, of which this many first bytes were read.
    Yes(u64),
}

impl Follower {
    /// Returns the new file, unless it is, or may be, a copy of a followed one.
    pub(super) fn unless_copy(&mut self, stranger: Stranger, now: Timestamp) -> Option<Stranger> {
        let node = stranger.opened.node;
        if self.index.by_node.contains_key(&(node.dev, node.ino)) {
            return Some(stranger);
        }
        match self.judge_copy(stranger.spec, &stranger.path, &stranger.opened, now) {
            Copy::No => return Some(stranger),
            Copy::Perhaps => {}
            Copy::Yes(start) => self.begin(stranger, start, now),
        }
        None
    }

    /// Checks whether a new file is a copy of a followed one, or is becoming one: while it is equal to the beginning of that file, it holds nothing new.
    fn judge_copy(&mut self, index: usize, path: &Path, opened: &OpenFile, now: Timestamp) -> Copy {
        let OpenFile { file, size, .. } = opened;
        let is_young = |held: &Held| now.0 - held.since.0 < MAX_EMPTY_US;
        if *size == 0
            && let Some(held) = self.held.get(path)
        {
            if is_young(held) {
                return Copy::Perhaps;
            }
            self.held.remove(path);
            return Copy::No;
        }
        if let Some(read) = self.held_copy(path, file, *size).or_else(|| self.old_copy(index, path, file, *size)) {
            self.held.remove(path);
            return Copy::Yes(read);
        }
        let held = self.held.remove(path);
        for id in self.beside(index, path) {
            let Some(live) = self.files.get(&id) else { continue };
            let of_it = held.filter(|held| held.uid == live.uid);
            // Nothing is known of the original yet; its first turn, or its first one since it was cut, may read what the copy holds.
            let is_under_way = live.mark.read == 0 && self.turns.is_running(id) && of_it.is_none_or(|held| is_young(&held));
            let found = if is_under_way { Some(of_it.map_or(0, |held| held.equal)) } else { self.copied(index, live, opened, of_it) };
            if let Some(equal) = found {
                let since = of_it.map_or(now, |held| held.since);
                self.held.insert(path.to_owned(), Held { uid: live.uid, generation: live.mark.generation, equal, since });
                return Copy::Perhaps;
            }
        }
        Copy::No
    }

    /// Returns the followed files that this may be a copy of, judging by its name; the most similar name first.
    fn beside(&self, index: usize, path: &Path) -> Vec<FileId> {
        let is_named = |file: &Followed| is_related(&file.names.path, path) || is_related(&file.names.met_as, path);
        let is_beside = |file: &Followed| file.spec == index && file.life.retired.is_none() && file.names.path != path && is_named(file);
        let mut beside: Vec<(usize, FileId)> =
            self.files.iter().filter(|(_, file)| is_beside(file)).map(|(id, file)| (file.names.path.as_os_str().len(), *id)).collect();
        beside.sort_unstable_by(|one, other| other.cmp(one));
        beside.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns how many bytes of a new file are equal to a followed one's, if it may be an unfinished copy of that.
    fn copied(&self, index: usize, live: &Followed, opened: &OpenFile, held: Option<Held>) -> Option<u64> {
        let (file, size) = (&opened.file, opened.size);
        if size == 0 {
            return Some(0);
        }
        // Files that are there at a start are all met before their first turns; none is held for another one's.
        let is_unread = live.mark.read == 0;
        if is_unread && held.is_none() && !self.start.begun {
            return None;
        }
        let OpenFile { file: other, size: length, .. } = open::open(&live.names.path, &self.specs[index].trust(&live.names.path)).ok()?;
        if size <= length && content::is_prefix(file, &other, size).unwrap_or_default() {
            // If the original is cut before anything of it is read, the copy is all that is left, so it proves nothing yet.
            return Some(if is_unread { 0 } else { size });
        }
        let holds = |known: Content| size >= known.read && content::is_same(file, known).unwrap_or_default();
        let equal = held.map(|held| held.equal).filter(|equal| *equal > 0).or_else(|| holds(live.mark.content()).then_some(live.mark.read));
        // The original was cut, perhaps just now, and not read since: what is left of it comes first.
        let is_cut = other.metadata().ok()?.len() < live.mark.read || !content::is_same(&other, live.mark.content()).unwrap_or_default();
        equal.filter(|_| is_cut)
    }

    /// Returns how much of a held copy was read, if its original has been cut since.
    fn held_copy(&self, path: &Path, file: &File, size: u64) -> Option<u64> {
        let Held { uid, generation, equal, .. } = self.held.get(path)?;
        let live = self.files.values().find(|file| file.uid == *uid).map(|file| &file.mark);
        let mark = live.or_else(|| self.known.get(uid).map(|known| &known.mark)).filter(|mark| mark.generation > *generation)?;
        // The copy is of the earlier generation; it lacks what was written after it was made.
        match mark.previous.filter(|old| mark.generation == generation + 1 && (1..=size).contains(&old.read)) {
            Some(old) if content::is_same(file, old).unwrap_or_default() => Some(old.read),
            // If nothing was equal then, it proves nothing.
            _ if *equal == 0 => None,
            Some(_) => Some(*equal),
            None => Some(size),
        }
    }

    /// Returns how much of a file was read as the previous generation of another one. A larger file proves no more than
    /// that: its later bytes may be new. If not even the names are those of a copy, all of it must have been read.
    fn old_copy(&self, index: usize, path: &Path, file: &File, size: u64) -> Option<u64> {
        let followed = self.files.values().filter(|file| file.spec == index && file.names.path != path).map(|file| (&file.mark, &file.names.met_as));
        let known = self.known.of_source(&self.specs[index].name).map(|known| (&known.mark, &known.mark.path));
        let is_all = |mark: &Mark, old: &Content| mark.path.parent() == path.parent() && old.read >= MIN_COPY_BYTES && old.read == size;
        let old = followed.chain(known).filter_map(|(mark, met_as)| {
            let old = mark.previous.filter(|old| (1..=size).contains(&old.read))?;
            let is_near = is_related(&mark.path, path) || is_related(met_as, path) || is_all(mark, &old);
            (is_near && content::is_same(file, old).unwrap_or_default()).then_some(old.read)
        });
        old.max()
    }
}
