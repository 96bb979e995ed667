//! Files that are not known by their inode: moved here from elsewhere, rotated while siftd did not look, or new.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::evidence::{Heads, find_anywhere, trust_beside};
use super::leave::{is_settled, lost};
use super::meet::Begun;
use super::{FileId, Follower, Known, lock};
use crate::core::event::Timestamp;
use crate::delivery::{Mark, Node, Uid};
use crate::sources::bytes::Bytes;
use crate::sources::content;
use crate::sources::discover::{Start, is_packed};
use crate::sources::open::{self, OpenFile, Seen, look};
use crate::sources::reader::{Folders, MIN_MOVED_BYTES, Reader};

/// A file that is not known by its inode.
pub(super) struct Stranger {
    pub spec: usize,
    pub path: PathBuf,
    pub opened: OpenFile,
}

impl Follower {
    /// Resolves files that are not known by their inode: moved here from elsewhere, or new.
    pub(super) fn settle_strangers(&mut self, strangers: Vec<Stranger>, now: Timestamp) {
        let mut matches: Vec<(usize, Uid)> = Vec::new();
        for (number, stranger) in strangers.iter().enumerate() {
            let source = &self.specs[stranger.spec].name;
            let OpenFile { file, size, .. } = &stranger.opened;
            let mut heads = Heads::default();
            for row in self.known.of_source(source).filter(|row| row.mark.read >= MIN_MOVED_BYTES && row.mark.read <= *size) {
                // Many files may be known and gone: search the folder last.
                let is_same = heads.begin_with(file, &row.mark.head) && content::is_same(file, row.mark.content()).unwrap_or_default();
                if is_same && find_anywhere(&row.mark).is_none() {
                    matches.push((number, row.uid));
                }
            }
        }
        for (number, stranger) in strangers.into_iter().enumerate() {
            let mut own = matches.iter().filter(|(other, _)| *other == number);
            let row = own.next().filter(|(_, uid)| own.next().is_none() && matches.iter().filter(|(_, other)| other == uid).count() == 1);
            if let Some(&id) = self.index.by_node.get(&(stranger.opened.node.dev, stranger.opened.node.ino)) {
                self.met_again(id, stranger.spec, &stranger.path, now);
                continue;
            }
            match row.and_then(|(_, uid)| self.known.get(uid).cloned()) {
                Some(row) => self.resume(stranger.spec, &stranger.path, row, stranger.opened.node, now),
                None => {
                    let at_end = !self.start.begun && self.start.first[stranger.spec] && self.specs[stranger.spec].start == Start::End;
                    let start = if at_end { stranger.opened.size } else { 0 };
                    self.begin(stranger, start, now);
                }
            }
        }
    }

    /// Reads the rest of files that lost their names while siftd did not look.
    pub(super) fn look_for_rotated(&mut self, now: Timestamp) {
        let mut folders = Folders::default();
        for row in self.known.all().cloned().collect::<Vec<_>>() {
            let Some(index) = self.specs.iter().position(|spec| spec.name == row.label.source) else { continue };
            let Some(path) = folders.find(row.mark.path.parent().unwrap_or(Path::new("/")), row.mark.node) else { continue };
            let Some(Seen { node, size, .. }) = look(&path) else { continue };
            if !(Node { dev: node.dev, ..row.mark.node }).is(&node) {
                continue;
            }
            if self.index.by_node.contains_key(&(node.dev, node.ino)) || !self.may_go_on(&row.mark, &path, size) {
                continue;
            }
            let is_same = |opened: OpenFile| content::is_same(&Bytes::new(opened.file, &path), row.mark.content()).unwrap_or_default();
            if !open::open(&path, &trust_beside(&path)).is_ok_and(is_same) {
                continue;
            }
            self.resume_beside(index, &path, row, node, now);
        }
    }

    /// Whether there may be more to read under a name that no source includes; of a compressed file until it was read to its end.
    fn may_go_on(&self, mark: &Mark, path: &Path, size: u64) -> bool {
        if is_packed(path) { mark.size != size && !self.specs.iter().any(|spec| spec.means(path)) } else { size >= mark.read }
    }

    /// Continues a known file to its end under a name that no source includes. Its mark keeps the old name,
    /// so that later starts still know whose older generation it is; but a compressed file is known by its own.
    pub(super) fn resume_beside(&mut self, index: usize, path: &Path, row: Known, node: Node, now: Timestamp) {
        self.known.remove(&row.uid);
        let met_as = row.mark.path.clone();
        let known_as = if is_packed(path) { path.to_owned() } else { met_as.clone() };
        // A compressed file has a size only once it was read to its end.
        let size = if is_packed(path) { 0 } else { row.mark.size };
        let mark = Mark { node, path: known_as, size, ..row.mark };
        let reader = Reader::resume(self.engine.clone(), row.uid, path.to_owned(), trust_beside(path), mark.clone());
        let id = self.add(index, path, Begun { label: Arc::new(row.label), uid: row.uid, mark, reader }, now);
        self.outlive(id, met_as, now);
    }

    /// Reads a file to its end that had the name `met_as` and now has one outside its source.
    pub(super) fn outlive(&mut self, id: FileId, met_as: PathBuf, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        if !is_packed(&file.names.path) {
            lock(&file.reader.shared).rename(met_as.clone(), trust_beside(&file.names.path));
            file.mark.path.clone_from(&met_as);
        }
        (file.life.retired, file.names.met_as) = (Some(now), met_as);
        self.index.by_path.remove(&file.names.path);
        self.active.insert(id);
    }

    /// Gives up files of earlier runs that did not turn up: their unread parts are lost.
    pub(super) fn give_up(&mut self, now: Timestamp) {
        let mut folders = Folders::default();
        let is_unread = |known: &&Known| !is_settled(&known.mark) && !is_packed(&known.mark.path);
        for known in self.known.all().filter(is_unread).cloned().collect::<Vec<_>>() {
            let is_followed = self.specs.iter().any(|spec| spec.name == known.label.source);
            if is_followed && folders.find(known.mark.path.parent().unwrap_or(Path::new("/")), known.mark.node).is_none() {
                self.give_up_one(known, now);
            }
        }
    }

    /// Reports what is lost of a file that is gone.
    pub(super) fn give_up_one(&mut self, mut known: Known, now: Timestamp) {
        self.lost.extend(lost(known.uid, &Arc::new(known.label.clone()), &mut known.mark, now));
        self.known.insert(known);
    }
}
