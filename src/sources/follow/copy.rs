//! Whether a new file is a copy of one that is followed, as copytruncate makes them (PROTOCOLS, E 5): what
//! was read of the one is not read again in the other.

use std::fs::File;
use std::path::Path;

use super::{FileId, Followed, Follower};
use crate::core::event::Timestamp;
use crate::delivery::{Content, Mark, Node, Uid};
use crate::sources::reader::is_related;
use crate::sources::{content, open};

/// Content of fewer bytes does not prove that a file is one that was known by another name.
const MIN_COPY_BYTES: u64 = 256;

/// A copy is made empty and filled at once; who is empty for longer is a file of its own. A turn of the file that is copied
/// is waited for no longer, either.
const MAX_EMPTY_US: i64 = 60_000_000;

/// A new file that could be the beginning of a copy.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// Of which file.
    uid: Uid,
    /// In which generation.
    generation: u32,
    /// So many of its bytes were seen to be that one's.
    equal: u64,
    since: Timestamp,
}

/// What a new file is.
pub(super) enum Copy {
    /// A file of its own.
    No,
    /// So far it holds nothing else; to be asked again.
    Perhaps,
    /// So many of its first bytes were read.
    Yes(u64),
}

impl Follower {
    /// Whether a new file is a copy of one that is followed, or becomes one: as long as it is equal to the
    /// beginning of that one, nothing in it is new.
    pub(super) fn is_copy(&mut self, index: usize, path: &Path, (file, _, size): &(File, Node, u64), now: Timestamp) -> Copy {
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
            // Nothing is known of it yet, and its first turn reads what the copy holds.
            let is_under_way = live.mark.read == 0 && self.turns.is_running(id) && of_it.is_some_and(|held| is_young(&held));
            let found = if is_under_way { of_it.map(|held| held.equal) } else { self.copied(index, live, (file, *size), of_it) };
            if let Some(equal) = found {
                let since = of_it.map_or(now, |held| held.since);
                self.held.insert(path.to_owned(), Held { uid: live.uid, generation: live.mark.generation, equal, since });
                return Copy::Perhaps;
            }
        }
        Copy::No
    }

    /// Followed files of which this may be a copy by its name, that with the most similar one first.
    fn beside(&self, index: usize, path: &Path) -> Vec<FileId> {
        let is_beside = |file: &Followed| file.spec == index && file.retired.is_none() && file.path != path && is_related(&file.path, path);
        let mut beside: Vec<(usize, FileId)> =
            self.files.iter().filter(|(_, file)| is_beside(file)).map(|(id, file)| (file.path.as_os_str().len(), *id)).collect();
        beside.sort_unstable_by(|one, other| other.cmp(one));
        beside.into_iter().map(|(_, id)| id).collect()
    }

    /// How many bytes of a new file are those of a followed one, if it may be a copy of that under way.
    fn copied(&self, index: usize, live: &Followed, (file, size): (&File, u64), held: Option<Held>) -> Option<u64> {
        if size == 0 {
            return Some(0);
        }
        if live.mark.read == 0 && held.is_none() {
            return None;
        }
        let (other, _, length) = open::open(&live.path, &self.specs[index].trust(&live.path)).ok()?;
        if size <= length && content::is_prefix(file, &other, size).unwrap_or_default() {
            return Some(size);
        }
        let holds = |known: Content| size >= known.read && content::is_same(file, known).unwrap_or_default();
        let equal = held.map(|held| held.equal).filter(|equal| *equal > 0).or_else(|| holds(live.mark.content()).then_some(live.mark.read));
        // Cut, perhaps just now, and not read since: what is left of it comes first.
        let is_cut = other.metadata().ok()?.len() < live.mark.read || !content::is_same(&other, live.mark.content()).unwrap_or_default();
        equal.filter(|_| is_cut)
    }

    /// It was held as a copy under way, and what it was copied from has been cut since: how much of it was read.
    fn held_copy(&self, path: &Path, file: &File, size: u64) -> Option<u64> {
        let Held { uid, generation, equal, .. } = self.held.get(path)?;
        let live = self.files.values().find(|file| file.uid == *uid).map(|file| &file.mark);
        let mark = live.or_else(|| self.known.get(uid).map(|known| &known.mark)).filter(|mark| mark.generation > *generation)?;
        // Of the generation that was copied; what was written behind the copy is not in it.
        match mark.previous.filter(|old| mark.generation == generation + 1 && (1..=size).contains(&old.read)) {
            Some(old) if content::is_same(file, old).unwrap_or_default() => Some(old.read),
            // What was empty then proves nothing.
            _ if *equal == 0 => None,
            Some(_) => Some(*equal),
            None => Some(size),
        }
    }

    /// How much of a file was read as the former generation of another one. More than that proves nothing: what stands behind may
    /// be new. Where not even the names are like those of a copy, it must be all.
    fn old_copy(&self, index: usize, path: &Path, file: &File, size: u64) -> Option<u64> {
        let followed = self.files.values().filter(|file| file.spec == index && file.path != path).map(|file| &file.mark);
        let known = self.known.of_source(&self.specs[index].name).map(|known| &known.mark);
        let is_all = |mark: &Mark, old: &Content| mark.path.parent() == path.parent() && old.read >= MIN_COPY_BYTES && old.read == size;
        let old = followed.chain(known).filter_map(|mark| {
            let old = mark.previous.filter(|old| (1..=size).contains(&old.read))?;
            let is_near = is_related(&mark.path, path) || is_all(mark, &old);
            (is_near && content::is_same(file, old).unwrap_or_default()).then_some(old.read)
        });
        old.max()
    }
}
