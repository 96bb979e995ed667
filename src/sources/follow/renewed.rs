//! A followed file whose name leads to a younger one that holds all of it (PROTOCOLS, E 4, for files under way).

use std::fs::File;
use std::path::Path;

use super::{Followed, Follower, lock};
use crate::core::event::Timestamp;
use crate::delivery::Node;

impl Follower {
    /// Whether a new file under this name goes on from the one that had it; then that one is followed in it.
    pub(super) fn renew(&mut self, index: usize, path: &Path, (new, node, size): &(File, Node, u64), now: Timestamp) -> bool {
        let has_lost_it = |file: &Followed| file.spec == index && file.path == path && file.retired.is_some() && !file.is_last;
        let goes_on = |file: &Followed| has_lost_it(file) && lock(&file.reader).goes_on_in(new, *size);
        // One that has lost its name stays active.
        let found = self.active.iter().copied().find(|id| self.files.get(id).is_some_and(goes_on));
        let Some((id, file)) = found.and_then(|id| Some((id, self.files.get_mut(&id)?))) else { return false };
        lock(&file.reader).renew(*node);
        self.open -= usize::from(std::mem::take(&mut file.is_open));
        self.by_node.remove(&(file.node.dev, file.node.ino));
        self.by_node.insert((node.dev, node.ino), id);
        self.by_path.insert(path.to_owned(), id);
        (file.node, file.mark.node, file.retired, file.written, file.changed_at) = (*node, *node, None, 0, now);
        self.turns.queue(id);
        true
    }
}
