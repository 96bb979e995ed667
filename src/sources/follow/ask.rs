//! How it stands: questions about all files that are followed; nothing changes here.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Follower;
use crate::delivery::{Label, Mark, Uid};
use crate::sources::discover::Spec;

impl Follower {
    /// The streams whose files are there.
    #[must_use]
    pub fn present(&self) -> Vec<Uid> {
        self.files.values().map(|file| file.uid).collect()
    }

    /// The streams whose files are there; with each whose name a younger file took, that one: it speaks for both.
    pub fn voices(&self) -> impl Iterator<Item = (Uid, Option<(Uid, Arc<Label>)>)> {
        self.files.iter().map(|(id, file)| {
            let heir = self.by_path.get(&file.met_as).filter(|heir| *heir > id).and_then(|heir| self.files.get(heir));
            (file.uid, heir.map(|heir| (heir.uid, heir.label.clone())))
        })
    }

    /// Whether some file could not be followed to the end.
    #[must_use]
    pub fn is_troubled(&self) -> bool {
        !self.troubles.is_empty()
    }

    /// What is wrong, by path.
    #[must_use]
    pub fn troubles(&self) -> &BTreeMap<PathBuf, String> {
        &self.troubles
    }

    /// What globs match and is not opened.
    #[must_use]
    pub fn passed_over(&self) -> &HashSet<PathBuf> {
        &self.passed_over
    }

    /// Whether there is nothing to wait for: no file, and none can appear.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.files.is_empty() && !self.specs.iter().any(Spec::can_grow)
    }

    /// Files with a turn to take or under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.turns.is_busy()
    }

    /// How many descriptors they hold.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.open
    }

    /// How many files were active lately.
    #[must_use]
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// How many files are followed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What is followed: name of the source, path, how far it was read, and its size.
    pub fn list(&self) -> impl Iterator<Item = (&Label, &Path, &Mark, bool)> {
        self.files.values().map(|file| (&*file.label, file.path.as_path(), &file.mark, file.retired.is_some()))
    }

    /// What is known of all files, those of earlier runs included.
    pub fn all_marks(&self) -> impl Iterator<Item = (Uid, Arc<Label>, Mark)> {
        self.marks().chain(self.known.all().map(|known| (known.uid, Arc::new(known.label.clone()), known.mark.clone())))
    }

    /// What is known of all files before the first turn.
    pub fn marks(&self) -> impl Iterator<Item = (Uid, Arc<Label>, Mark)> {
        self.files.values().map(|file| (file.uid, file.label.clone(), file.mark.clone()))
    }
}
