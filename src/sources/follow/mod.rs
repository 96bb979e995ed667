//! All followed files: which ones exist, which file is which, and whose turn it is. The follower looks at names and metadata and
//! hands out readers as jobs. It does not run the jobs, and it has no clock: every step gets the time. It never waits for a reader, because
//! whoever has the reader may wait for room as long as a sink is away. `meet` examines new paths, with `copy`, `moved`, `passed`, `renewed`,
//! `packed` and `known`; `leave` handles files that lose their names or fall quiet; `turns` says who is next, `ask` answers queries.
//!
//! While a file is open, its descriptor is its identity. Of any other, its inode, its time of birth and hashes of what was read of it are known:
//! 1. A read begins a little before where the last one ended. If the bytes there are others, or the file is shorter, it was rewritten, and a new
//!    generation of it begins (`reader::rewritten`).
//! 2. A name that leads to another inode is a new file. The old one is read to its end, until it has been quiet for a while (`leave`).
//! 3. An unseen file with the inode and the beginning of a known one is that one. With other bytes, its inode was reused (`meet`).
//! 4. A file with the bytes of exactly one known file whose inode is gone was moved (`moved`); one with those of a file that is
//!    still there is its copy (`copy`), and a compressed one an older generation (`packed`).
//! 5. A known file is forgotten when it was not seen for `forget_after` (`leave`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::discover::Spec;
use super::reader::{Reader, Turn};
use crate::core::engine::Engine;
use crate::core::event::Timestamp;
use crate::delivery::{Label, Mark, Node, Notice, Uid};

mod ask;
mod copy;
mod evidence;
mod followed;
mod known;
mod leave;
mod levels;
mod meet;
mod moved;
mod outputs;
mod packed;
mod passed;
mod reconfigure;
mod renewed;
mod turns;

use copy::Held;
use followed::{Activity, Errands, Followed, Life, Names, ReaderOf};
pub use known::Known;
use known::KnownFiles;
pub use outputs::OwnOutputs;
use turns::Turns;

/// The message for a named file that does not exist yet, which is no fault.
const IS_MISSING: &str = "is not there; waiting for it";
/// The message for a folder named as a file.
pub const IS_FOLDER: &str = "is a folder: name its files, such as 'folder/*.log'";

/// Gives a file its identity in ids.
pub type IdOf = fn(&str, Node) -> Uid;
/// Number of a file while it is followed.
pub type FileId = u64;

/// A file that vanished with a part unread.
pub struct Lost {
    /// Identity of its stream.
    pub uid: Uid,
    /// Its label.
    pub label: Arc<Label>,
    /// The record to write.
    pub notice: Notice,
    /// The mark, with nothing left to read.
    pub mark: Mark,
}

/// A turn to take.
pub struct Job {
    /// The file.
    pub id: FileId,
    /// What its records say about the source.
    pub label: Arc<Label>,
    /// Identity of its stream.
    pub uid: Uid,
    /// The reader that takes the turn.
    pub reader: Arc<Mutex<Reader>>,
    /// Whether it is the file's last turn.
    pub last: bool,
}

/// All followed files.
pub struct Follower {
    engine: Arc<Engine>,
    id_of: IdOf,
    specs: Vec<Spec>,
    files: BTreeMap<FileId, Followed>,
    index: Index,
    known: KnownFiles,
    /// New files that may be the beginning of a copy.
    held: HashMap<PathBuf, Held>,
    turns: Turns,
    active: BTreeSet<FileId>,
    said: Said,
    own_outputs: OwnOutputs,
    lost: Vec<Lost>,
    start: Beginning,
    descriptors: Descriptors,
}

/// Finds followed files by what they are called, and numbers new ones.
#[derive(Default)]
struct Index {
    next_id: FileId,
    by_path: HashMap<PathBuf, FileId>,
    /// By device and inode.
    by_node: HashMap<(u64, u64), FileId>,
}

/// What was reported of paths, so that it is reported once.
#[derive(Default)]
struct Said {
    /// What is wrong with a path.
    troubles: BTreeMap<PathBuf, String>,
    /// What globs match but siftd does not open.
    passed_over: HashSet<PathBuf>,
}

/// What the first look for files, after a start or a reload, treats otherwise than later ones.
#[derive(Default)]
struct Beginning {
    /// Per source: whether it was never followed before.
    first: Vec<bool>,
    /// Whether the first look is over.
    begun: bool,
    /// When files of earlier runs that were not found are given up.
    give_up_at: Option<Timestamp>,
}

/// The open descriptors, of which there are not to be too many.
struct Descriptors {
    most: usize,
    open: usize,
    /// When quiet files were last closed.
    rested_at: Timestamp,
}

impl Follower {
    /// Follows nothing yet. `known` are the files of earlier runs; `first` says which sources were never followed.
    #[must_use]
    pub fn new(engine: Arc<Engine>, id_of: IdOf, specs: Vec<Spec>, known: Vec<Known>, first: impl Fn(&str) -> bool) -> Self {
        let first = specs.iter().map(|spec| first(&spec.name)).collect();
        let mut files = KnownFiles::default();
        known.into_iter().for_each(|known| files.insert(known));
        Self {
            engine,
            id_of,
            specs,
            files: BTreeMap::new(),
            index: Index::default(),
            known: files,
            held: HashMap::new(),
            turns: Turns::default(),
            active: BTreeSet::new(),
            said: Said::default(),
            own_outputs: OwnOutputs::default(),
            lost: Vec::new(),
            start: Beginning { first, ..Beginning::default() },
            descriptors: Descriptors { most: 256, open: 0, rested_at: Timestamp(0) },
        }
    }

    /// Excludes files that must never be read.
    #[must_use]
    pub fn without(mut self, own_outputs: OwnOutputs) -> Self {
        self.own_outputs = own_outputs;
        self
    }

    /// Limits the number of open descriptors.
    #[must_use]
    pub fn with_descriptors(mut self, most: usize) -> Self {
        self.descriptors.most = most;
        self
    }

    /// Returns the sources.
    #[must_use]
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }

    /// Looks for new files, and for names that lead elsewhere.
    pub fn discover(&mut self, now: Timestamp) {
        let mut strangers = Vec::new();
        let before = if self.start.begun { HashSet::new() } else { self.known.all().map(|known| known.uid).collect() };
        self.said.passed_over.retain(|path| path.symlink_metadata().map_or_else(|error| error.kind() != ErrorKind::NotFound, |_| true));
        for index in 0..self.specs.len() {
            let spec = &self.specs[index];
            let (matched, closed) = spec.look();
            for path in spec.literals.iter().cloned().chain(matched).collect::<Vec<_>>() {
                if !self.index.by_path.contains_key(&path) {
                    self.meet(index, &path, now, Some(&mut strangers));
                }
            }
            closed.into_iter().for_each(|(folder, why)| self.pass_over(index, folder, &why));
        }
        if !self.start.begun {
            self.look_for_rotated(now);
        }
        // Only now are the originals of all copies followed, in whatever order the names were met.
        let strangers = strangers.into_iter().filter_map(|stranger| self.unless_copy(stranger, now)).collect();
        self.settle_strangers(strangers, now);
        if !self.start.begun {
            self.look_for_packed(now);
            self.look_for_passed(&before, now);
            let longest = self.specs.iter().map(|spec| spec.rotate_wait).max().unwrap_or_default();
            self.start.give_up_at = Some(Timestamp(now.0.saturating_add(2 * longest.as_micros() as i64)));
        }
        self.start.begun = true;
        if self.start.give_up_at.take_if(|at| *at <= now).is_some() {
            self.give_up(now);
        }
    }

    /// Checks the paths that changed: a known file is read, a new one met. `names`: names may lead elsewhere now, too.
    pub fn changed(&mut self, paths: &HashSet<PathBuf>, names: bool, now: Timestamp) {
        for path in paths {
            match self.index.by_path.get(path).copied() {
                Some(id) => {
                    if names {
                        self.check_name(id, now);
                    }
                    self.turns.queue(id);
                }
                None => {
                    if let Some(index) = self.specs.iter().position(|spec| spec.means(path)) {
                        self.meet(index, path, now, None);
                    }
                }
            }
        }
    }

    /// Checks files that may have changed: the recently active ones, and those that `unwatched` selects.
    pub fn sweep(&mut self, unwatched: Option<&dyn Fn(&Path) -> bool>, now: Timestamp) {
        let mut ids: Vec<FileId> = self.active.iter().copied().collect();
        if let Some(unwatched) = unwatched {
            ids.extend(self.files.iter().filter(|(id, file)| !self.active.contains(id) && unwatched(&file.names.path)).map(|(id, _)| *id));
        }
        for id in ids {
            self.look_at(id, now);
        }
        for path in self.held.keys().cloned().collect::<Vec<_>>() {
            if let Some(index) = self.specs.iter().position(|spec| spec.means(&path)) {
                self.meet(index, &path, now, None);
            }
        }
        self.end_retired(now);
        if now.0 - self.descriptors.rested_at.0 >= leave::REST_US / 10 || self.descriptors.open > self.descriptors.most {
            self.descriptors.rested_at = now;
            self.put_to_rest(now);
        }
    }

    /// Gives a turn to each file whose deadline has passed.
    pub fn due(&mut self, now: Timestamp) {
        self.turns.due(now);
    }

    /// Returns the next deadline.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.turns.deadline()
    }

    /// Returns the next turn to take, if any.
    pub fn next_job(&mut self) -> Option<Job> {
        let id = self.turns.begin()?;
        self.tell_name(id);
        self.change(id);
        let file = self.files.get(&id)?;
        Some(Job { id, label: file.names.label.clone(), uid: file.uid, reader: file.reader.shared.clone(), last: file.life.is_last })
    }

    /// Returns the identity and label of a file.
    #[must_use]
    pub fn name_of(&self, id: FileId) -> Option<(Uid, &Arc<Label>)> {
        self.files.get(&id).map(|file| (file.uid, &file.names.label))
    }

    /// Ends a turn. `rest_until` asks for a pause until the file's next turn.
    pub fn done(&mut self, id: FileId, turn: &Turn, rest_until: Option<Timestamp>, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let awaited = std::mem::take(&mut file.errands.is_awaited).then(|| file.names.path.clone());
        self.goes_on(id, turn, rest_until, now);
        if let Some(path) = awaited {
            self.changed(&HashSet::from([path]), false, now);
        }
    }

    fn goes_on(&mut self, id: FileId, turn: &Turn, rest_until: Option<Timestamp>, now: Timestamp) {
        let again = self.turns.end(id) | turn.more;
        self.note(id, turn, now);
        if turn.unlinked && self.files.get(&id).is_some_and(|file| file.life.retired.is_none()) {
            self.retire(id, now);
        } else if turn.lost {
            self.lose(id, now);
            return;
        }
        let Some(file) = self.files.get(&id) else { return };
        if turn.finished {
            self.drop_file(id, now);
            return;
        }
        if file.life.is_last {
            return if turn.trouble.is_some() { self.try_again(id, now) } else { self.turns.queue(id) };
        }
        let timer = match (again, rest_until) {
            (true, None) => return self.turns.queue(id),
            (true, Some(until)) => Some(turn.deadline.map_or(until, |at| at.min(until))),
            (false, _) => turn.deadline,
        };
        self.turns.set_timer(id, timer);
        // With many files, one that has nothing to do makes room; it can wait for its last line without a descriptor.
        if self.descriptors.open > self.descriptors.most && !again && !turn.is_open {
            self.put_one_to_rest(id);
        }
    }

    /// Notes what a turn says of its file.
    fn note(&mut self, id: FileId, turn: &Turn, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        if turn.bytes > 0 || turn.rewritten {
            file.activity.changed_at = now;
            // Content that existed when the file was met is not activity.
            if !file.activity.is_new {
                self.active.insert(id);
            }
        }
        file.activity.is_new &= turn.more;
        if !turn.lost && turn.trouble.is_none() {
            file.activity.seen_size = 0;
        }
        if let Some(mark) = &turn.mark {
            file.mark.clone_from(mark);
        }
        if !file.reader.is_open && !turn.lost {
            file.reader.is_open = true;
            self.descriptors.open += 1;
        }
        let was_left_out = std::mem::replace(&mut file.life.is_left_out, turn.left_out.is_some());
        let (spec, path) = (file.spec, file.names.path.clone());
        let is_named = self.specs[spec].is_literal(&path);
        match (&turn.trouble, &turn.left_out) {
            (Some(why), _) => self.trouble(spec, &path, why.split(" (os error").next().unwrap_or_default()),
            (None, Some(why)) if is_named => self.trouble(spec, &path, why),
            // It is not a fault if a glob matches files that are not logs.
            (None, Some(why)) if !was_left_out => self.warn(spec, &path, why),
            (None, Some(_)) => {}
            (None, None) => self.said_no_more(&path),
        }
    }

    /// Gives every file a turn.
    pub fn queue_all(&mut self) {
        for id in self.files.keys().copied().collect::<Vec<_>>() {
            self.turns.queue(id);
        }
    }

    /// Returns the last turns of all files.
    pub fn all(&mut self) -> Vec<Job> {
        self.files.keys().copied().collect::<Vec<_>>().into_iter().for_each(|id| self.tell_name(id));
        let job =
            |(id, file): (&FileId, &Followed)| Job { id: *id, label: file.names.label.clone(), uid: file.uid, reader: file.reader.shared.clone(), last: true };
        self.files.iter().map(job).collect()
    }

    /// Takes the files that vanished with a part unread.
    pub fn take_lost(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.lost)
    }

    /// Clears what was reported about a path.
    fn said_no_more(&mut self, path: &Path) {
        self.said.troubles.remove(path);
        self.said.passed_over.remove(path);
    }

    /// Reports once what is wrong with a path.
    fn trouble(&mut self, index: usize, path: &Path, why: &str) {
        if self.said.troubles.get(path).is_none_or(|known| known != why) {
            self.warn(index, path, why);
            self.said.troubles.insert(path.to_owned(), why.to_owned());
        }
    }

    fn warn(&self, index: usize, path: &Path, why: &str) {
        tracing::warn!("{}: {why}", self.specs[index].shown(path).escape_debug());
    }
}

/// Locks a reader for a turn. No reader is left half-done by a panic: panics end the process.
pub fn lock(reader: &Mutex<Reader>) -> std::sync::MutexGuard<'_, Reader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}
