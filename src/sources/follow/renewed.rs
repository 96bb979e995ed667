//! A followed file whose name now leads to a younger file that holds all of it: the file was moved here, or written anew, while it was followed.

use std::path::Path;

use super::{Activity, FileId, Followed, Follower};
use crate::core::event::Timestamp;
use crate::sources::open::OpenFile;
use crate::sources::reader::find_inode;

/// Whether a new file continues the one that had its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GoesOn {
    No,
    /// The old file is in a turn: the new one is met again after that turn.
    Perhaps,
    Yes,
}

impl Follower {
    /// Checks whether a new file under this name continues the file that had it; if so, that file is followed in the new one.
    pub(super) fn renew(&mut self, index: usize, path: &Path, opened: &OpenFile, now: Timestamp) -> GoesOn {
        let has_lost_it = |file: &Followed| file.spec == index && file.names.path == path && file.life.retired.is_some() && !file.life.is_last;
        // A file that has lost its name stays active.
        let lost = self.active.iter().copied().filter(|id| self.files.get(id).is_some_and(has_lost_it)).collect::<Vec<_>>();
        let found = lost.into_iter().map(|id| (id, self.goes_on_in(id, opened))).find(|(_, goes_on)| *goes_on != GoesOn::No);
        let Some((id, goes_on)) = found else { return GoesOn::No };
        let Some(file) = self.files.get_mut(&id) else { return GoesOn::No };
        if goes_on == GoesOn::Perhaps {
            file.errands.is_awaited = true;
            return goes_on;
        }
        let node = opened.node;
        self.descriptors.open -= usize::from(std::mem::take(&mut file.reader.is_open));
        self.index.by_node.remove(&(file.node.dev, file.node.ino));
        self.index.by_node.insert((node.dev, node.ino), id);
        self.index.by_path.insert(path.to_owned(), id);
        (file.node, file.mark.node, file.life.retired) = (node, node, None);
        file.activity = Activity { changed_at: now, written: 0, seen_size: 0, ..file.activity };
        self.turns.queue(id);
        goes_on
    }

    /// Checks whether one file continues in another; if so, its reader continues there.
    fn goes_on_in(&self, id: FileId, new: &OpenFile) -> GoesOn {
        let Some(file) = self.files.get(&id) else { return GoesOn::No };
        match file.reader.shared.try_lock() {
            Ok(reader) if !reader.goes_on_in(&new.file, new.size) => GoesOn::No,
            Ok(mut reader) => {
                reader.renew(new.node);
                GoesOn::Yes
            }
            // A file that was only renamed is not continued, nor is a file in a shorter one. The new
            // file is then followed at once, because it may lose its name before the turn is over.
            Err(_) => {
                let has_name = || file.names.path.parent().is_some_and(|folder| find_inode(folder, file.node).is_some());
                if file.mark.size < new.size && !has_name() { GoesOn::Perhaps } else { GoesOn::No }
            }
        }
    }
}
