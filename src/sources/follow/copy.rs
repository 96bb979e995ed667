//! Whether a new file is a copy of one that is followed, as copytruncate makes them (PROTOCOLS, E 5): what
//! was read of the one is not read again in the other.

use std::fs::File;
use std::path::Path;

use super::Follower;
use crate::delivery::{Content, Mark, Node};
use crate::sources::reader::is_related;
use crate::sources::{content, open};

/// Content of fewer bytes does not prove that a file is one that was known by another name.
const MIN_COPY_BYTES: u64 = 256;

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
    pub(super) fn is_copy(&mut self, index: usize, path: &Path, (file, _, size): &(File, Node, u64)) -> Copy {
        if let Some(read) = self.held_copy(path, file, *size).or_else(|| self.old_copy(index, path, file, *size)) {
            self.held.remove(path);
            return Copy::Yes(read);
        }
        let mut beside = Vec::new();
        for (id, live) in &self.files {
            if live.spec == index && live.path != path && is_related(&live.path, path) && live.mark.read > 0 {
                beside.push(*id);
            }
        }
        for id in beside {
            let Some(live) = self.files.get(&id) else { continue };
            let holds = |known: Content| *size >= known.read && content::is_same(file, known).unwrap_or_default();
            let is_held = self.held.get(path).is_some_and(|held| held.0 == live.uid);
            if live.retired.is_some() {
                continue;
            }
            let Ok((other, _, length)) = open::open(&live.path, &self.specs[index].trust(&live.path)) else { continue };
            let is_cut = length < live.mark.read || !content::is_same(&other, live.mark.content()).unwrap_or_default();
            let is_prefix = || *size > 0 && *size <= length && content::is_prefix(file, &other, *size).unwrap_or_default();
            // Cut, and not read since: what is left of it comes first.
            if if is_cut { is_held || holds(live.mark.content()) } else { is_prefix() } {
                let place = (live.uid, live.mark.generation);
                self.held.insert(path.to_owned(), place);
                return Copy::Perhaps;
            }
        }
        self.held.remove(path);
        Copy::No
    }
    /// It was held as a copy under way, and what it was copied from has been cut since: how much of it was read.
    fn held_copy(&self, path: &Path, file: &File, size: u64) -> Option<u64> {
        let (uid, generation) = self.held.get(path)?;
        let live = self.files.values().find(|file| file.uid == *uid).map(|file| &file.mark);
        let mark = live.or_else(|| self.known.get(uid).map(|known| &known.mark)).filter(|mark| mark.generation > *generation)?;
        // Of the generation that was copied; what was written behind the copy is not in it.
        let old = mark.previous.filter(|old| mark.generation == generation + 1 && old.read < size);
        let is_same = |old: &Content| content::is_same(file, *old).unwrap_or_default();
        Some(old.filter(is_same).map_or(size, |old| old.read))
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
