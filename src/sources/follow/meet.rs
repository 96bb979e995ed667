//! A new path: which file it leads to, and whether that file is known.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::moved::Stranger;
use super::renewed::GoesOn;
use super::{Activity, Errands, FileId, Followed, Follower, IS_FOLDER, IS_MISSING, Known, Life, Names, ReaderOf};
use crate::core::event::Timestamp;
use crate::delivery::{Label, Mark, Node, Uid, derived_id};
use crate::sources::content;
use crate::sources::discover::is_packed;
use crate::sources::open::{self, OpenFile, look};
use crate::sources::reader::{self, Reader};

/// A file that is followed from now on, with its stream.
pub(super) struct Begun {
    pub label: Arc<Label>,
    pub uid: Uid,
    pub mark: Mark,
    pub reader: Reader,
}

impl Follower {
    pub(super) fn meet(&mut self, index: usize, path: &Path, now: Timestamp, strangers: Option<&mut Vec<Stranger>>) {
        let spec = &self.specs[index];
        if is_packed(path) {
            return self.meet_packed(index, path, now);
        }
        match open::open(path, &spec.trust(path)) {
            Ok(opened) => self.accept(index, path, opened, now, strangers),
            // A file matched by a glob may be gone again, and a folder it matches is not a file; a file named explicitly is waited for.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) && !spec.is_literal(path) => {
                self.held.remove(path);
                self.said_no_more(path);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !self.said.troubles.contains_key(path) {
                    self.trouble(index, path, IS_MISSING);
                }
            }
            Err(error) if error.kind() == ErrorKind::IsADirectory => self.trouble(index, path, IS_FOLDER),
            Err(error) => self.cannot_open(index, path, &error),
        }
    }

    /// Reports a file that cannot be opened: an error if it was named, but not if a glob merely matched it.
    pub(super) fn cannot_open(&mut self, index: usize, path: &Path, error: &io::Error) {
        let said = error.to_string();
        let why = said.split(" (os error").next().unwrap_or_default();
        if self.specs[index].is_literal(path) || !open::is_refused(error) {
            return self.trouble(index, path, why);
        }
        self.said.troubles.remove(path);
        self.pass_over(index, path.to_owned(), why);
    }

    /// Says once that what a glob matched, or a folder on its way, is passed over.
    pub(super) fn pass_over(&mut self, index: usize, path: PathBuf, why: &str) {
        if !self.said.passed_over.contains(&path) {
            self.warn(index, &path, &format!("{}, and is passed over", why.split(" (os error").next().unwrap_or_default()));
            self.said.passed_over.insert(path);
        }
    }

    /// Whether siftd itself writes a file.
    pub(super) fn is_own(&self, node: &Node) -> bool {
        self.own_outputs.contains(node)
    }

    pub(super) fn accept(&mut self, index: usize, path: &Path, opened: OpenFile, now: Timestamp, strangers: Option<&mut Vec<Stranger>>) {
        let key = (opened.node.dev, opened.node.ino);
        if self.is_own(&opened.node) {
            if self.specs[index].is_literal(path) {
                self.trouble(index, path, "is siftd's own output");
            }
            return;
        }
        if let Some(&id) = self.index.by_node.get(&key) {
            if self.files.get(&id).is_some_and(|file| file.node.is(&opened.node)) {
                return self.met_again(id, index, path, now);
            }
            // The resting file is gone, and its inode has been reused.
            self.lose(id, now);
            if self.index.by_node.contains_key(&key) {
                return;
            }
        }
        if let Some(row) = self.known_in_inode(index, &opened) {
            return self.resume(index, path, row, opened.node, now);
        }
        match self.renew(index, path, &opened, now) {
            GoesOn::Yes | GoesOn::Perhaps => return,
            GoesOn::No => {}
        }
        let stranger = Stranger { spec: index, path: path.to_owned(), opened };
        match strangers {
            Some(strangers) => strangers.push(stranger),
            None => {
                let own = self.unless_copy(stranger, now);
                self.settle_strangers(own.into_iter().collect(), now);
            }
        }
    }

    /// Returns what is known of the file by its inode: it is the same file, or was rewritten in place.
    fn known_in_inode(&self, index: usize, opened: &OpenFile) -> Option<Known> {
        let OpenFile { file, node: new, size } = opened;
        let same_inode = self.known.with_inode(&self.specs[index].name, new.ino);
        // Of the files that had this inode, the newest had it last.
        let row = same_inode.max_by_key(|known| (known.mark.node.born == new.born, known.mark.generation))?;
        let old = row.mark.node;
        // Another birth time means another file in the same inode, whatever it holds.
        let may_be_same = Node { dev: new.dev, ..old }.is(new);
        let is_same = || may_be_same && *size >= row.mark.read && content::is_same(file, row.mark.content()).unwrap_or_default();
        let was_rewritten = old.dev == new.dev && old.born == new.born;
        (was_rewritten || is_same()).then(|| row.clone())
    }

    /// Continues a known file under a new name; under a second name it stays one stream.
    pub(super) fn met_again(&mut self, id: FileId, index: usize, path: &Path, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let has_name = file.life.retired.is_none() && look(&file.names.path).is_some_and(|seen| seen.node == file.node);
        if has_name || file.spec != index || file.life.is_last {
            return;
        }
        let old = std::mem::replace(&mut file.names.path, path.to_owned());
        tracing::info!("{}: is {} now, and goes on", self.specs[index].shown(&old).escape_debug(), self.specs[index].shown(path).escape_debug());
        file.life.retired = None;
        file.names.label = reader::label(&self.specs[index].name, self.specs[index].shown(path));
        file.errands.is_renamed = true;
        self.tell_name(id);
        if self.index.by_path.get(&old) == Some(&id) {
            self.index.by_path.remove(&old);
        }
        self.index.by_path.insert(path.to_owned(), id);
        self.said_no_more(path);
        self.turns.queue(id);
        // Its old name may lead to its successor.
        if self.specs[index].means(&old) && old.exists() && !self.index.by_path.contains_key(&old) {
            self.meet(index, &old, now, None);
        }
    }

    /// Tells a reader the name of its file; a reader in a turn is told before the next one.
    pub(super) fn tell_name(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id).filter(|file| file.errands.is_renamed) else { return };
        if let Ok(mut reader) = file.reader.shared.try_lock() {
            reader.rename(file.names.path.clone(), self.specs[file.spec].trust(&file.names.path));
            file.errands.is_renamed = false;
        }
    }

    pub(super) fn resume(&mut self, index: usize, path: &Path, row: Known, node: Node, now: Timestamp) {
        self.known.remove(&row.uid);
        let spec = &self.specs[index];
        // Until its first turn, the mark keeps the name that the file had in this folder: a copy made before it was renamed is called like that.
        let is_beside = row.mark.path.parent() == path.parent() && !is_packed(path);
        let met_as = if is_beside { row.mark.path.clone() } else { path.to_owned() };
        let mark = Mark { node, path: met_as.clone(), ..row.mark };
        let label = reader::label(&spec.name, spec.shown(path));
        let reader = Reader::resume(self.engine.clone(), row.uid, path.to_owned(), spec.trust(path), mark.clone());
        let id = self.add(index, path, Begun { label, uid: row.uid, mark, reader }, now);
        if let Some(file) = self.files.get_mut(&id) {
            file.names.met_as = met_as;
        }
    }

    /// Begins a file that was never read, at `start`.
    pub(super) fn begin(&mut self, stranger: Stranger, start: u64, now: Timestamp) {
        let Stranger { spec: index, path, opened } = stranger;
        let spec = &self.specs[index];
        let node = opened.node;
        let mut uid = (self.id_of)(&spec.name, node);
        // Without a birth time, a reused inode would get the same identity.
        while self.known.get(&uid).is_some() || self.files.values().any(|file| file.uid == uid) {
            let next = derived_id("uid", &[&uid]);
            uid = Uid::default();
            uid.copy_from_slice(&next.as_bytes()[..16]);
        }
        let label = reader::label(&spec.name, spec.shown(&path));
        let reader = Reader::new(self.engine.clone(), uid, path.clone(), spec.trust(&path), opened, start);
        let mark = reader.mark();
        self.add(index, &path, Begun { label, uid, mark, reader }, now);
    }

    pub(super) fn add(&mut self, spec: usize, path: &Path, begun: Begun, now: Timestamp) -> FileId {
        let Begun { label, uid, mark, reader } = begun;
        let id = self.index.next_id;
        self.index.next_id += 1;
        self.index.by_node.insert((mark.node.dev, mark.node.ino), id);
        self.index.by_path.insert(path.to_owned(), id);
        self.said_no_more(path);
        let counted = if mark.start > mark.read { ", what is before is only counted" } else { "" };
        tracing::info!("{}: is followed from byte {}{counted}", self.specs[spec].shown(path).escape_debug(), mark.read.max(mark.start));
        let is_open = reader.is_open();
        self.descriptors.open += usize::from(is_open);
        let file = Followed {
            spec,
            names: Names { path: path.to_owned(), met_as: path.to_owned(), label },
            uid,
            node: mark.node,
            reader: ReaderOf { shared: Arc::new(Mutex::new(reader)), is_open },
            mark,
            activity: Activity { changed_at: now, written: 0, seen_size: 0, is_new: true },
            life: Life::default(),
            errands: Errands::default(),
        };
        self.files.insert(id, file);
        self.turns.queue(id);
        id
    }
}
