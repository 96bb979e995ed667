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
    /// What it holds was read.
    Yes,
}

impl Follower {
    /// Whether a new file is a copy of one that is followed, or becomes one: as long as it is equal to the
    /// beginning of that one, nothing in it is new.
    pub(super) fn is_copy(&mut self, index: usize, path: &Path, (file, _, size): &(File, Node, u64)) -> Copy {
        // It was held as a copy under way, and what it was copied from has been cut since.
        if let Some((uid, generation)) = self.held.get(path).copied() {
            let live = self.files.values().find(|file| file.uid == uid).map(|file| &file.mark);
            if live.or_else(|| self.known.get(&uid).map(|known| &known.mark)).is_some_and(|mark| mark.generation > generation) {
                self.held.remove(path);
                return Copy::Yes;
            }
        }
        let source = &self.specs[index].name;
        let followed = self.files.values().filter(|file| file.spec == index && file.path != path).map(|file| &file.mark);
        let known = self.known.of_source(source).map(|known| &known.mark);
        let holds_old = |mark: &Mark| {
            // Much equal content is proof enough, whatever both are called by now.
            let is_near = |old: &Content| mark.path.parent() == path.parent() && old.read >= MIN_COPY_BYTES || is_related(&mark.path, path);
            let old = mark.previous.filter(|old| old.read > 0 && *size >= old.read && is_near(old));
            old.is_some_and(|old| content::is_same(file, old).unwrap_or_default())
        };
        if followed.chain(known).any(holds_old) {
            self.held.remove(path);
            return Copy::Yes;
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
}
