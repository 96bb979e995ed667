//! Files that leave: renamed, deleted, replaced, or only quiet. A file that lost its name is read until it
//! has been quiet for `rotate_wait`; a quiet file gives back its descriptor and memory.

use std::sync::Arc;
use std::time::Duration;

use super::evidence::find_anywhere;
use super::{FileId, Followed, Follower, Known, Lost};
use crate::core::assemble::Facts;
use crate::core::event::Timestamp;
use crate::delivery::{Label, Mark, Missed, Notice, Uid, Why, derived_id};
use crate::sources::discover::is_packed;
use crate::sources::open::look;

/// A file written within this time is checked in every sweep.
const RECENT_US: i64 = 60_000_000;
/// A file that is quiet for this long is put to rest.
pub(super) const REST_US: i64 = 10_000_000;
/// A rotated file that never falls quiet and has no name any more is dropped after this many times `rotate_wait`.
const MAX_WAITS: i64 = 10;
/// How long files of a source that is no longer configured stay known: a month is long.
const FORGET_UNCONFIGURED: Duration = Duration::from_secs(30 * 86_400);

impl Follower {
    pub(super) fn look_at(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        if file.life.retired.is_some() {
            return self.turns.queue(id);
        }
        match look(&file.names.path) {
            Some(seen) if seen.node == file.node => {
                // If it was rewritten at the same length, only its time shows that.
                let is_written = std::mem::replace(&mut file.activity.written, seen.written) != seen.written;
                // For a compressed file, `mark.size` is its size when it was read.
                let is_packed = is_packed(&file.names.path);
                let known = if is_packed { file.mark.size } else { file.mark.read };
                file.activity.seen_size = if is_packed || file.life.is_left_out { 0 } else { seen.size };
                if is_written || seen.size != known {
                    self.turns.queue(id);
                } else if now.0 - file.activity.changed_at.0 > RECENT_US {
                    self.active.remove(&id);
                }
            }
            _ => self.retire(id, now),
        }
    }

    pub(super) fn check_name(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get(&id) else { return };
        if file.life.retired.is_none() && look(&file.names.path).is_none_or(|seen| seen.node != file.node) {
            self.retire(id, now);
        }
    }

    /// Retires a file whose name now leads to another file, or to none.
    pub(super) fn retire(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.life.retired = Some(now);
        file.activity.changed_at = now;
        let (index, path) = (file.spec, file.names.path.clone());
        self.active.insert(id);
        self.index.by_path.remove(&path);
        self.turns.queue(id);
        if path.exists() {
            self.meet(index, &path, now, None);
        } else if self.specs[index].is_literal(&path) {
            self.trouble(index, &path, "has vanished; waiting for it to come back");
        }
    }

    pub(super) fn end_retired(&mut self, now: Timestamp) {
        let mut over = Vec::new();
        // A retired file stays active.
        for (id, file) in self.active.iter().filter_map(|id| Some((id, self.files.get(id)?))) {
            let Some(since) = file.life.retired.filter(|_| !file.life.is_last) else { continue };
            let wait = self.specs[file.spec].rotate_wait.as_micros() as i64;
            let is_quiet = now.0 - file.activity.changed_at.0 >= wait;
            if is_quiet || now.0 - since.0 >= wait.saturating_mul(MAX_WAITS) {
                over.push(*id);
            }
        }
        for id in over {
            if let Some(file) = self.files.get_mut(&id) {
                file.life.is_last = true;
            }
            self.turns.queue(id);
        }
    }

    /// Retries a file that could not be read in its last turn, until its time is over. Then the rest of it is lost.
    pub(super) fn try_again(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let wait = self.specs[file.spec].rotate_wait.as_micros() as i64;
        let since = *file.life.retired.get_or_insert(now);
        if now.0 - since.0 < wait.saturating_mul(MAX_WAITS) {
            return self.turns.set_timer(id, Some(Timestamp(now.0.saturating_add(wait))));
        }
        let found = find_anywhere(&file.mark).and_then(|path| look(&path));
        file.mark.size = found.map_or(file.mark.size, |seen| seen.size.max(file.mark.size));
        self.lose(id, now);
    }

    /// Drops a file that could not be opened again; its unread part is lost, unless it was compressed.
    pub(super) fn lose(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.mark.size = file.mark.size.max(file.activity.seen_size);
        let (index, uid, path) = (file.spec, file.uid, file.names.path.clone());
        self.drop_file(id, now);
        self.lose_rest(uid, now);
        if path.exists() {
            self.meet(index, &path, now, None);
        } else if self.specs[index].is_literal(&path) {
            self.trouble(index, &path, "has vanished; waiting for it to come back");
        }
    }

    /// Reads the rest of a file that is gone from a compressed file, or reports its loss.
    fn lose_rest(&mut self, uid: Uid, now: Timestamp) {
        let unread = |known: &&Known| !is_settled(&known.mark);
        let Some(known) = self.known.get(&uid).filter(unread).cloned() else { return };
        if let Some(folder) = known.mark.path.parent().filter(|_| !is_packed(&known.mark.path) && find_anywhere(&known.mark).is_none()) {
            self.look_for_packed_of(folder, std::slice::from_ref(&known), now);
        }
        if self.known.get(&uid).is_some() {
            self.give_up_one(known, now);
        }
    }

    pub(super) fn drop_file(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.remove(&id) else { return };
        self.descriptors.open -= usize::from(file.reader.is_open);
        self.active.remove(&id);
        self.turns.remove(id);
        if self.index.by_path.get(&file.names.path) == Some(&id) {
            self.index.by_path.remove(&file.names.path);
        }
        self.index.by_node.remove(&(file.node.dev, file.node.ino));
        // If it comes back, it continues from here.
        self.known.insert(Known { uid: file.uid, label: (*file.names.label).clone(), mark: file.mark, seen: now });
    }

    /// Forgets files that were last seen longer ago than their source's `forget_after`, and
    /// returns their streams. A file whose loss is not reported yet stays known.
    pub fn forget(&mut self, now: Timestamp) -> Vec<Uid> {
        let forget_after = |source: &str| self.specs.iter().find(|spec| spec.name == source).map_or(FORGET_UNCONFIGURED, |spec| spec.forget_after);
        let is_old = |known: &&Known| i128::from(now.0) - i128::from(known.seen.0) > forget_after(&known.label.source).as_micros() as i128;
        let is_settled = |known: &&Known| self.start.give_up_at.is_none() || is_settled(&known.mark);
        let old: Vec<Uid> = self.known.all().filter(is_old).filter(is_settled).map(|known| known.uid).collect();
        old.iter().for_each(|uid| drop(self.known.remove(uid)));
        old
    }

    /// Puts a file to rest that has no turn and waits for nothing.
    pub(super) fn put_one_to_rest(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id).filter(|file| file.reader.is_open && file.life.retired.is_none())
            && let Ok(mut reader) = file.reader.shared.try_lock()
        {
            reader.rest();
            file.reader.is_open = false;
            self.descriptors.open -= 1;
        }
    }

    /// Gives back descriptors and memory of quiet files; if descriptors run short, the quietest files give them back earlier.
    pub(super) fn put_to_rest(&mut self, now: Timestamp) {
        let can_rest = |id: FileId, file: &Followed| file.reader.is_open && file.life.retired.is_none() && self.turns.is_idle(id);
        let quiet = self.files.iter().filter(|(id, file)| can_rest(**id, file));
        let mut quiet: Vec<(Timestamp, FileId)> = quiet.map(|(id, file)| (file.activity.changed_at, *id)).collect();
        quiet.sort_unstable();
        for (changed_at, id) in quiet {
            if now.0 - changed_at.0 < REST_US && self.descriptors.open <= self.descriptors.most {
                break;
            }
            self.put_one_to_rest(id);
        }
    }
}

/// Returns the facts if what was read of the file still waits, to be read again after a restart; `None` otherwise.
fn owing(mark: &Mark) -> Option<Facts> {
    serde_json::from_str(&mark.facts).ok().filter(Facts::is_owing)
}

/// Whether the whole file was read and reported.
pub(super) fn is_settled(mark: &Mark) -> bool {
    mark.size <= mark.read && owing(mark).is_none()
}

/// Returns the loss to report for a file that cannot be found any more; the file then counts as read.
pub(super) fn lost(uid: Uid, label: &Arc<Label>, mark: &mut Mark, now: Timestamp) -> Option<Lost> {
    let owing = owing(mark);
    let missed = match mark.size.saturating_sub(mark.read) {
        0 => owing.as_ref().map(|_| Missed::Unknown)?,
        unread => Missed::Bytes(unread),
    };
    let parts: [&[u8]; 3] = [&uid, &mark.generation.to_be_bytes(), &mark.read.to_be_bytes()];
    let notice = Notice::Gap { id: derived_id("gap", &parts), why: Why::RotatedAway, missed, from: now, to: now };
    mark.size = mark.read;
    if let Some(mut facts) = owing {
        facts.owe(false);
        mark.facts = serde_json::to_string(&facts).unwrap_or_default();
    }
    Some(Lost { uid, label: label.clone(), notice, mark: mark.clone() })
}
