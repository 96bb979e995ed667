//! What is known of files of earlier runs and of files that were dropped, in case they come back.

use std::collections::HashMap;

use crate::core::event::Timestamp;
use crate::delivery::{Label, Mark, Uid};

/// A file that was followed before.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its identity.
    pub uid: Uid,
    /// Its label.
    pub label: Label,
    /// How far it was read.
    pub mark: Mark,
    /// When its inode was last seen.
    pub seen: Timestamp,
}

/// All such files.
#[derive(Default)]
pub(super) struct KnownFiles {
    files: HashMap<Uid, Known>,
    by_inode: HashMap<u64, Vec<Uid>>,
}

impl KnownFiles {
    pub fn insert(&mut self, known: Known) {
        self.remove(&known.uid);
        self.by_inode.entry(known.mark.node.ino).or_default().push(known.uid);
        self.files.insert(known.uid, known);
    }

    pub fn remove(&mut self, uid: &Uid) -> Option<Known> {
        let known = self.files.remove(uid)?;
        let ino = known.mark.node.ino;
        if let Some(same) = self.by_inode.get_mut(&ino) {
            same.retain(|other| other != uid);
            if same.is_empty() {
                self.by_inode.remove(&ino);
            }
        }
        Some(known)
    }

    pub fn get(&self, uid: &Uid) -> Option<&Known> {
        self.files.get(uid)
    }

    /// Returns those of a source.
    pub fn of_source<'k>(&'k self, source: &'k str) -> impl Iterator<Item = &'k Known> {
        self.files.values().filter(move |known| known.label.source == source)
    }

    /// Returns those of a source that had this inode.
    pub fn with_inode<'k>(&'k self, source: &'k str, ino: u64) -> impl Iterator<Item = &'k Known> {
        let same = self.by_inode.get(&ino).into_iter().flatten().filter_map(|uid| self.files.get(uid));
        same.filter(move |known| known.label.source == source)
    }

    pub fn all(&self) -> impl Iterator<Item = &Known> {
        self.files.values()
    }
}
