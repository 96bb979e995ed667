//! Compressed files that a source includes by name. A compressed file that holds what was read
//! of another file is an older generation of that file. If the other file is gone, its unread rest is read from
//! here; nothing else is read again. A compressed file that holds nothing known is read once, from its beginning.
//! One that no source includes is read only if it may hold such a rest of a file that was rotated from beside it.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::evidence::{Heads, find_anywhere, trust_beside};
use super::leave::is_settled;
use super::moved::Stranger;
use super::{Follower, Known};
use crate::core::event::Timestamp;
use crate::delivery::{Content, Mark, Node};
use crate::sources::bytes::{Bytes, ReadAt};
use crate::sources::content::{is_prefix, is_same};
use crate::sources::discover::{Start, is_packed};
use crate::sources::open::{self, OpenFile, Seen, look};
use crate::sources::reader::{Folders, is_related};

/// Minimum bytes of content that prove that a file is another one's older generation, unless they are all its content.
const MIN_PROOF_BYTES: u64 = 256;
/// Bytes to unpack at once.
const STEP_BYTES: usize = 64 << 10;

/// What a compressed file holds.
enum Holds {
    Nothing,
    /// What was read of a file that is gone.
    Rest(Box<Known>),
    /// What was read of a file that exists, or existed.
    Old,
}

impl Follower {
    pub(super) fn meet_packed(&mut self, index: usize, path: &Path, now: Timestamp) {
        let spec = &self.specs[index];
        let opened = match open::open(path, &spec.trust(path)) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => return self.said_no_more(path),
            Err(error) => return self.cannot_open(index, path, &error),
        };
        // It may still be being written: half of it proves nothing.
        let wait = spec.rotate_wait.as_nanos() as i128;
        let age = look(path).map_or(0, |seen| i128::from(now.0) * 1000 - seen.written);
        if self.is_own(&opened.node) || (0..wait).contains(&age) {
            return;
        }
        if let Some(&id) = self.index.by_node.get(&(opened.node.dev, opened.node.ino)) {
            return self.met_again(id, index, path, now);
        }
        let OpenFile { file, node, size } = opened;
        let same = self.known.with_inode(&spec.name, node.ino).find(|known| (Node { dev: node.dev, ..known.mark.node }).is(&node)).cloned();
        if let Some(row) = same {
            return self.resume(index, path, row, node, now);
        }
        let bytes = Bytes::new(file, path);
        let holds = self.holds(index, path, &bytes);
        let file = match open::open(path, &self.specs[index].trust(path)) {
            Ok(again) if again.node == node => again.file,
            _ => return,
        };
        let is_first = !self.start.begun && self.start.first[index] && self.specs[index].start == Start::End;
        let stranger = Stranger { spec: index, path: path.to_owned(), opened: OpenFile { file, node, size } };
        match holds {
            Holds::Rest(mut row) => {
                row.mark.size = 0;
                self.resume(index, path, *row, node, now);
            }
            // Begin at its end: then it is known by its inode, and not examined again.
            Holds::Old => self.begin(stranger, size, now),
            Holds::Nothing => self.begin(stranger, if is_first { size } else { 0 }, now),
        }
    }

    /// Reads the rest of files that were rotated and compressed while siftd did not look.
    pub(super) fn look_for_packed(&mut self, now: Timestamp) {
        let mut folders = Folders::default();
        let mut gone: BTreeMap<PathBuf, Vec<Known>> = BTreeMap::new();
        for row in self.known.all().filter(|row| row.mark.read > 0 && !is_packed(&row.mark.path)) {
            let Some(folder) = row.mark.path.parent() else { continue };
            if folders.find(folder, row.mark.node).is_none() {
                gone.entry(folder.to_owned()).or_default().push(row.clone());
            }
        }
        for (folder, rows) in gone {
            self.look_for_packed_of(&folder, &rows, now);
        }
    }

    /// The same for `rows`, files that are gone from this folder. Their programs remove a file only when it is compressed.
    pub(super) fn look_for_packed_of(&mut self, folder: &Path, rows: &[Known], now: Timestamp) {
        let mut packed = Vec::new();
        for path in folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| is_packed(path)) {
            let Some(seen) = look(&path) else { continue };
            if rows.iter().any(|row| may_hold_rest(row, &path, &seen)) && !self.specs.iter().any(|spec| spec.means(&path) || spec.is_own(&path)) {
                let is_earlier = !rows.iter().any(|row| is_related(&row.mark.path, &path) && is_later(row, &seen));
                packed.push((is_earlier, seen.written, path));
            }
        }
        // The first one that goes on where a file was left is its rest; one from before may merely begin as it does.
        packed.sort_unstable();
        for (_, _, path) in packed {
            self.read_packed_rest(&path, rows, now);
        }
    }

    fn read_packed_rest(&mut self, path: &Path, rows: &[Known], now: Timestamp) {
        let is_source_of = |name: &str| rows.iter().any(|row| row.label.source == name);
        for index in (0..self.specs.len()).filter(|index| is_source_of(&self.specs[*index].name)).collect::<Vec<_>>() {
            let OpenFile { file, node, .. } = match open::open(path, &trust_beside(path)) {
                Ok(opened) => opened,
                Err(error) => return self.warn(index, path, &format!("may hold what was rotated away unread, and cannot be read: {error}")),
            };
            if self.is_own(&node) || self.knows(&node) {
                return;
            }
            if let Holds::Rest(row) = self.holds(index, path, &Bytes::new(file, path))
                && look(path).is_some_and(|seen| may_hold_rest(&row, path, &seen))
            {
                self.resume_beside(index, path, *row, node, now);
            }
        }
    }

    fn holds(&self, index: usize, path: &Path, bytes: &Bytes) -> Holds {
        let mut heads = Heads::default();
        let mut has = |known: Content| known.read > 0 && heads.begin_with(bytes, &known.head) && is_same(bytes, known).unwrap_or_default();
        let is_all = |known: Content| bytes.read_at(&mut [0], known.read).is_ok_and(|count| count == 0);
        // If the name belongs to another log, it may be a file that only begins with the same bytes.
        let is_proof = |mark: &Mark, known: Content| known.read >= MIN_PROOF_BYTES && is_related_name(&mark.path, path) || is_all(known);
        let source = &self.specs[index].name;
        let live = self.files.values().filter(|file| file.spec == index).map(|file| &file.mark);
        let cut = live.clone().chain(self.known.of_source(source).map(|known| &known.mark)).filter_map(|mark| Some((mark, mark.previous?)));
        if cut.chain(live.clone().map(|mark| (mark, mark.content()))).any(|(mark, known)| has(known) && is_proof(mark, known)) {
            return Holds::Old;
        }
        let (mut firsts, length) = (Heads::default(), OnceCell::new());
        let mut grown = live.filter(|live| firsts.begin_with(bytes, &live.head) || firsts.end_before(bytes, live.head.len));
        if grown.any(|live| self.is_beginning(index, bytes, live, *length.get_or_init(|| length_of(bytes)))) {
            return Holds::Old;
        }
        let newest = self.known.of_source(source).filter(|known| has(known.mark.content())).max_by_key(|known| known.mark.read);
        match newest {
            Some(row) if find_anywhere(&row.mark).is_none() => Holds::Rest(Box::new(row.clone())),
            Some(row) if is_proof(&row.mark, row.mark.content()) => Holds::Old,
            _ => Holds::Nothing,
        }
    }

    /// Whether its whole content, `length` bytes, is the beginning of a file that was read and has grown since.
    fn is_beginning(&self, index: usize, bytes: &Bytes, live: &Mark, length: Option<u64>) -> bool {
        let Some(length) = length.filter(|length| (MIN_PROOF_BYTES..=live.read).contains(length)) else { return false };
        let opened = open::open(&live.path, &self.specs[index].trust(&live.path)).ok().filter(|opened| opened.node.is(&live.node));
        opened.is_some_and(|opened| is_prefix(&opened.file, bytes, length).unwrap_or_default())
    }
}

/// Whether a compressed file, which nobody included, may hold what was not read of this one.
fn may_hold_rest(row: &Known, path: &Path, packed: &Seen) -> bool {
    is_related(&row.mark.path, path) && (!is_settled(&row.mark) || is_later(row, packed))
}

/// Whether a compressed file was last written after this one was last seen; otherwise it holds nothing
/// new. In whole seconds, as some programs keep no more of the time of what they compress.
fn is_later(row: &Known, packed: &Seen) -> bool {
    packed.written.div_euclid(1_000_000_000) >= i128::from(row.seen.0.div_euclid(1_000_000))
}

/// Whether, by its name alone, a file may be another one's older generation, even in another folder.
fn is_related_name(live: &Path, other: &Path) -> bool {
    live.file_name().zip(other.file_name()).is_some_and(|(live, other)| is_related(Path::new(live), Path::new(other)))
}

/// Returns the length of a compressed file's content; `None` if it is damaged.
fn length_of(bytes: &Bytes) -> Option<u64> {
    let (mut space, mut length) = (vec![0; STEP_BYTES], 0);
    loop {
        match bytes.read_at(&mut space, length).ok()? {
            0 => return Some(length),
            count => length += count as u64,
        }
    }
}
