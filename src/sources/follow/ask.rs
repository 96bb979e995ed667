//! Queries about all followed files; nothing changes here.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Follower, IS_MISSING};
use crate::delivery::{Label, Mark, Uid};
use crate::sources::discover::Spec;

impl Follower {
    /// Returns the streams whose files exist.
    #[must_use]
    pub fn present(&self) -> Vec<Uid> {
        self.files.values().map(|file| file.uid).collect()
    }

    /// Returns the streams whose files exist, each with the file that took its name, if any: that file speaks for both. Of two files
    /// that both have a name only the younger one can do so, or they might speak for each other. One that has none speaks for nobody;
    /// after a restart it may have been met later than the younger one.
    pub fn voices(&self) -> impl Iterator<Item = (Uid, Option<(Uid, Arc<Label>)>)> {
        self.files.iter().map(|(id, file)| {
            let heir = self
                .index
                .by_path
                .get(&file.names.met_as)
                .filter(|heir| *heir > id || *heir != id && file.life.retired.is_some())
                .and_then(|heir| self.files.get(heir));
            (file.uid, heir.map(|heir| (heir.uid, heir.names.label.clone())))
        })
    }

    /// Whether some file could not be followed to the end.
    #[must_use]
    pub fn is_troubled(&self) -> bool {
        !self.said.troubles.is_empty()
    }

    /// Whether anything is wrong with a file that is there; one that is missing may still come.
    #[must_use]
    pub fn is_hindered(&self) -> bool {
        self.said.troubles.values().any(|why| why != IS_MISSING)
    }

    /// Returns what is wrong, by path.
    #[must_use]
    pub fn troubles(&self) -> &BTreeMap<PathBuf, String> {
        &self.said.troubles
    }

    /// Returns what globs match but siftd does not open.
    #[must_use]
    pub fn passed_over(&self) -> &HashSet<PathBuf> {
        &self.said.passed_over
    }

    /// Whether there is nothing to wait for: no file exists, and none can appear.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.files.is_empty() && !self.specs.iter().any(Spec::can_grow)
    }

    /// Whether files have a turn waiting or in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.turns.is_busy()
    }

    /// Returns the number of open descriptors.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.descriptors.open
    }

    /// Returns the number of recently active files.
    #[must_use]
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Returns the number of followed files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether no file is followed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Lists the followed files: label, path, mark, and whether the file has lost its name.
    pub fn list(&self) -> impl Iterator<Item = (&Label, &Path, &Mark, bool)> {
        self.files.values().map(|file| (&*file.names.label, file.names.path.as_path(), &file.mark, file.life.retired.is_some()))
    }

    /// Returns what is known of all files, including those of earlier runs.
    pub fn all_marks(&self) -> impl Iterator<Item = (Uid, Arc<Label>, Mark)> {
        self.marks().chain(self.known.all().map(|known| (known.uid, Arc::new(known.label.clone()), known.mark.clone())))
    }

    /// Returns what is known of all followed files, before their first turn.
    pub fn marks(&self) -> impl Iterator<Item = (Uid, Arc<Label>, Mark)> {
        self.files.values().map(|file| (file.uid, file.names.label.clone(), file.mark.clone()))
    }
}
