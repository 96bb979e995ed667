//! All files that are followed: which there are, which is which (PROTOCOLS, E), and whose turn it is. It
//! looks at names and metadata and hands out readers as jobs; who runs the jobs is not its business, nor
//! does it know a clock: every step gets the time. A file that lost its name is read until it has been
//! quiet for `rotate_wait`; a quiet file is put to rest and costs no descriptor and no memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::content;
use super::discover::{Spec, Start, is_packed};
use super::open::{self, Seen, look};
use super::reader::{self, Reader, Turn, find_inode, is_related};
use crate::core::engine::Engine;
use crate::core::event::Timestamp;
use crate::delivery::{Content, Label, Mark, Node, Notice, Uid, Why, derived_id};

/// A file that was written in the last minute is looked at in every sweep.
const RECENT_US: i64 = 60_000_000;
/// A file that is quiet for so long is put to rest.
const REST_US: i64 = 10_000_000;
/// A rotated file that never falls quiet and has no name any more is let go after so many `rotate_wait`.
const MAX_WAITS: i64 = 10;
/// Content of fewer bytes does not prove that a file is one that was known by another inode.
const MIN_MOVED_BYTES: u64 = 256;

/// Gives a file its identity in ids.
pub type IdOf = fn(&str, Node) -> Uid;
/// Files that siftd itself writes.
pub type OwnOutputs = Arc<Mutex<HashSet<(u64, u64)>>>;
/// Number of a file while it is followed.
pub type FileId = u64;

/// A file that was followed before.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its identity.
    pub uid: Uid,
    /// What it was called.
    pub label: Label,
    /// How far it was read.
    pub mark: Mark,
}

/// A turn that is to be taken.
pub struct Job {
    /// Whose.
    pub id: FileId,
    /// What its records say.
    pub label: Arc<Label>,
    /// Identity of its stream.
    pub uid: Uid,
    /// Who takes it.
    pub reader: Arc<Mutex<Reader>>,
    /// It is the last one.
    pub last: bool,
}

/// Everything under way.
pub struct Follower {
    engine: Arc<Engine>,
    id_of: IdOf,
    specs: Vec<Spec>,
    /// Sources that were never followed before.
    first: Vec<bool>,
    files: BTreeMap<FileId, Followed>,
    next_id: FileId,
    by_path: HashMap<PathBuf, FileId>,
    by_node: HashMap<(u64, u64), FileId>,
    known: HashMap<Uid, Known>,
    /// New files that could be the beginning of a copy: of which file, in which generation.
    held: HashMap<PathBuf, (Uid, u32)>,
    ready: VecDeque<FileId>,
    timers: BTreeSet<(Timestamp, FileId)>,
    active: BTreeSet<FileId>,
    troubles: BTreeMap<PathBuf, String>,
    own_outputs: OwnOutputs,
    lost: Vec<(Uid, Arc<Label>, Notice)>,
    begun: bool,
    max_open: usize,
    open: usize,
    rested_at: Timestamp,
}

struct Followed {
    spec: usize,
    path: PathBuf,
    label: Arc<Label>,
    uid: Uid,
    node: Node,
    reader: Arc<Mutex<Reader>>,
    mark: Mark,
    changed_at: Timestamp,
    /// When the file system says that it was written, as of the last look.
    written: i128,
    /// Since when no name of its source leads to it.
    retired: Option<Timestamp>,
    state: State,
    timer: Option<Timestamp>,
    is_open: bool,
    is_last: bool,
    /// It was not read to its end since it was met.
    is_new: bool,
}

/// Where a file stands between its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Queued,
    Running,
    /// And it has changed since.
    Again,
}

impl Follower {
    /// Follows nothing yet. `known` are the files of earlier runs, `first` says which sources had none.
    #[must_use]
    pub fn new(engine: Arc<Engine>, id_of: IdOf, specs: Vec<Spec>, known: Vec<Known>, first: impl Fn(&str) -> bool) -> Self {
        let first = specs.iter().map(|spec| first(&spec.name)).collect();
        let known = known.into_iter().map(|known| (known.uid, known)).collect();
        Self {
            engine,
            id_of,
            specs,
            first,
            known,
            files: BTreeMap::new(),
            next_id: 0,
            by_path: HashMap::new(),
            by_node: HashMap::new(),
            held: HashMap::new(),
            ready: VecDeque::new(),
            timers: BTreeSet::new(),
            active: BTreeSet::new(),
            troubles: BTreeMap::new(),
            own_outputs: OwnOutputs::default(),
            lost: Vec::new(),
            begun: false,
            max_open: 256,
            open: 0,
            rested_at: Timestamp(0),
        }
    }

    /// Files that are never read.
    #[must_use]
    pub fn without(mut self, own_outputs: OwnOutputs) -> Self {
        self.own_outputs = own_outputs;
        self
    }

    /// At most so many descriptors.
    #[must_use]
    pub fn with_descriptors(mut self, most: usize) -> Self {
        self.max_open = most;
        self
    }

    /// The sources.
    #[must_use]
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }

    /// Looks for files that are new under their names, and for names that lead elsewhere.
    pub fn discover(&mut self, now: Timestamp) {
        let mut strangers = Vec::new();
        for index in 0..self.specs.len() {
            let spec = &self.specs[index];
            for path in spec.literals.iter().cloned().chain(spec.matches()).collect::<Vec<_>>() {
                if !self.by_path.contains_key(&path) {
                    self.meet(index, &path, now, Some(&mut strangers));
                }
            }
        }
        if !self.begun {
            self.look_for_rotated(now);
        }
        self.settle_strangers(strangers, now);
        self.begun = true;
    }

    /// Looks at the paths that changed: a known file is read, a new one met. `names`: names, too, may lead
    /// elsewhere now.
    pub fn changed(&mut self, paths: &HashSet<PathBuf>, names: bool, now: Timestamp) {
        for path in paths {
            match self.by_path.get(path).copied() {
                Some(id) => {
                    if names {
                        self.check_name(id, now);
                    }
                    self.queue(id);
                }
                None => {
                    if let Some(index) = self.specs.iter().position(|spec| spec.means(path)) {
                        self.meet(index, path, now, None);
                    }
                }
            }
        }
    }

    /// Looks at files that may have changed: those that were active lately, and those that `unwatched` names.
    pub fn sweep(&mut self, unwatched: Option<&dyn Fn(&Path) -> bool>, now: Timestamp) {
        let mut ids: Vec<FileId> = self.active.iter().copied().collect();
        if let Some(unwatched) = unwatched {
            ids.extend(self.files.iter().filter(|(id, file)| !self.active.contains(id) && unwatched(&file.path)).map(|(id, _)| *id));
        }
        for id in ids {
            self.look_at(id, now);
        }
        for (path, _) in self.held.clone() {
            if let Some(index) = self.specs.iter().position(|spec| spec.means(&path)) {
                self.meet(index, &path, now, None);
            }
        }
        self.end_retired(now);
        if now.0 - self.rested_at.0 >= REST_US / 10 || self.open > self.max_open {
            self.rested_at = now;
            self.put_to_rest(now);
        }
    }

    /// Files whose deadline has come get a turn.
    pub fn due(&mut self, now: Timestamp) {
        while let Some(&(at, id)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, id));
            if let Some(file) = self.files.get_mut(&id) {
                file.timer = None;
            }
            self.queue(id);
        }
    }

    /// When the next deadline is.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The next turn to take, if any.
    pub fn next_job(&mut self) -> Option<Job> {
        let id = self.ready.pop_front()?;
        let file = self.files.get_mut(&id)?;
        file.state = State::Running;
        Some(Job { id, label: file.label.clone(), uid: file.uid, reader: file.reader.clone(), last: file.is_last })
    }

    /// A turn was taken. `resting` asks for a pause until the file's next one.
    pub fn done(&mut self, id: FileId, turn: &Turn, rest_until: Option<Timestamp>, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let again = file.state == State::Again || turn.more;
        file.state = State::Idle;
        if turn.bytes > 0 || turn.rewritten {
            file.changed_at = now;
            // What was there when it was met is no activity.
            if !file.is_new {
                self.active.insert(id);
            }
        }
        file.is_new &= turn.more;
        if let Some(mark) = &turn.mark {
            file.mark.clone_from(mark);
        }
        if !file.is_open && !turn.lost {
            file.is_open = true;
            self.open += 1;
        }
        if let Some(why) = &turn.trouble {
            let (spec, path) = (file.spec, file.path.clone());
            self.trouble(spec, &path, why.split(" (os error").next().unwrap_or_default());
        } else {
            let path = file.path.clone();
            self.troubles.remove(&path);
        }
        let Some(file) = self.files.get_mut(&id) else { return };
        if turn.unlinked && file.retired.is_none() {
            self.retire(id, now);
        } else if turn.lost {
            self.lose(id, now);
            return;
        }
        let Some(file) = self.files.get_mut(&id) else { return };
        if turn.finished {
            self.drop_file(id);
            return;
        }
        if file.is_last {
            return self.queue(id);
        }
        let timer = match (again, rest_until) {
            (true, None) => return self.queue(id),
            (true, Some(until)) => Some(turn.deadline.map_or(until, |at| at.min(until))),
            (false, _) => turn.deadline,
        };
        self.set_timer(id, timer);
    }

    /// Every file gets a turn.
    pub fn queue_all(&mut self) {
        for id in self.files.keys().copied().collect::<Vec<_>>() {
            self.queue(id);
        }
    }

    /// All files, to end them.
    pub fn all(&mut self) -> Vec<Job> {
        let job = |(id, file): (&FileId, &Followed)| Job { id: *id, label: file.label.clone(), uid: file.uid, reader: file.reader.clone(), last: true };
        self.files.iter().map(job).collect()
    }

    /// What vanished unread.
    pub fn take_lost(&mut self) -> Vec<(Uid, Arc<Label>, Notice)> {
        std::mem::take(&mut self.lost)
    }

    /// The streams whose files are there.
    #[must_use]
    pub fn present(&self) -> Vec<Uid> {
        self.files.values().map(|file| file.uid).collect()
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

    /// Whether there is nothing to wait for: no file, and none can appear.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.files.is_empty() && !self.specs.iter().any(Spec::can_grow)
    }

    /// Files with a turn to take or under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.files.values().any(|file| file.state != State::Idle)
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

    /// What is known of all files before the first turn.
    pub fn marks(&self) -> impl Iterator<Item = (Uid, Arc<Label>, Mark)> {
        self.files.values().map(|file| (file.uid, file.label.clone(), file.mark.clone()))
    }

    fn queue(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id) else { return };
        match file.state {
            State::Idle => {
                file.state = State::Queued;
                self.ready.push_back(id);
            }
            State::Running => file.state = State::Again,
            State::Queued | State::Again => {}
        }
    }

    fn set_timer(&mut self, id: FileId, at: Option<Timestamp>) {
        let Some(file) = self.files.get_mut(&id) else { return };
        if let Some(old) = file.timer.take() {
            self.timers.remove(&(old, id));
        }
        if let Some(at) = at {
            file.timer = Some(at);
            self.timers.insert((at, id));
        }
    }

    fn meet(&mut self, index: usize, path: &Path, now: Timestamp, strangers: Option<&mut Vec<Stranger>>) {
        let spec = &self.specs[index];
        if is_packed(path) {
            return self.trouble(index, path, "is packed: read it with siftd scan");
        }
        match open::open(path, &spec.trust(path)) {
            Ok(opened) => self.accept(index, path, opened, now, strangers),
            // A file that a glob matched may be gone again; a literal one is waited for.
            Err(error) if error.kind() == ErrorKind::NotFound && !spec.is_literal(path) => {
                self.held.remove(path);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !self.troubles.contains_key(path) {
                    self.trouble(index, path, "is not there; waiting for it");
                }
            }
            Err(error) if error.kind() == ErrorKind::IsADirectory => self.trouble(index, path, "is a folder: name its files, such as 'folder/*.log'"),
            Err(error) => self.trouble(index, path, error.to_string().split(" (os error").next().unwrap_or_default()),
        }
    }

    fn accept(&mut self, index: usize, path: &Path, opened: (File, Node, u64), now: Timestamp, strangers: Option<&mut Vec<Stranger>>) {
        let key = (opened.1.dev, opened.1.ino);
        if self.own_outputs.lock().unwrap_or_else(PoisonError::into_inner).contains(&key) {
            if self.specs[index].is_literal(path) {
                self.trouble(index, path, "is siftd's own output");
            }
            return;
        }
        if let Some(&id) = self.by_node.get(&key) {
            if self.files.get(&id).is_some_and(|file| file.node.is(&opened.1)) {
                return self.met_again(id, index, path, now);
            }
            // What was put to rest is gone, and its inode has been handed out again.
            self.lose(id, now);
            if self.by_node.contains_key(&key) {
                return;
            }
        }
        let source = &self.specs[index].name;
        let same_inode = |known: &&Known| known.label.source == *source && known.mark.node.ino == opened.1.ino;
        // The newest of those that had this inode is the one that had it last.
        let row = self.known.values().filter(same_inode).max_by_key(|known| (known.mark.node.born == opened.1.born, known.mark.generation)).cloned();
        if let Some(row) = row {
            let (old, new) = (row.mark.node, opened.1);
            // Another birth is another file in the same inode, whatever it holds.
            let may_be_same = Node { dev: new.dev, ..old }.is(&new);
            let is_same = may_be_same && opened.2 >= row.mark.read && content::is_same(&opened.0, row.mark.content()).unwrap_or_default();
            let was_rewritten = old.dev == new.dev && old.born == new.born;
            if is_same || was_rewritten {
                return self.resume(index, path, row, opened.1, now);
            }
        }
        match self.is_copy(index, path, &opened) {
            Copy::No => {}
            Copy::Perhaps => return,
            Copy::Yes => {
                let start = opened.2;
                return self.begin(Stranger { spec: index, path: path.to_owned(), opened }, start, now);
            }
        }
        let stranger = Stranger { spec: index, path: path.to_owned(), opened };
        match strangers {
            Some(strangers) => strangers.push(stranger),
            None => self.settle_strangers(vec![stranger], now),
        }
    }

    /// The same file under a new name goes on; under a second name it is one stream.
    fn met_again(&mut self, id: FileId, index: usize, path: &Path, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let has_name = file.retired.is_none() && look(&file.path).is_some_and(|seen| seen.node == file.node);
        if has_name || file.spec != index || file.is_last {
            return;
        }
        let old = std::mem::replace(&mut file.path, path.to_owned());
        file.retired = None;
        file.label = reader::label(&self.specs[index].name, self.specs[index].shown(path));
        lock(&file.reader).rename(path.to_owned(), self.specs[index].trust(path));
        if self.by_path.get(&old) == Some(&id) {
            self.by_path.remove(&old);
        }
        self.by_path.insert(path.to_owned(), id);
        self.troubles.remove(path);
        self.queue(id);
        // Its old name may lead to its successor.
        if self.specs[index].means(&old) && old.exists() && !self.by_path.contains_key(&old) {
            self.meet(index, &old, now, None);
        }
    }

    /// Whether a new file is a copy of one that is followed, or becomes one: as long as it is equal to the
    /// beginning of that one, nothing in it is new.
    fn is_copy(&mut self, index: usize, path: &Path, (file, _, size): &(File, Node, u64)) -> Copy {
        // It was held as a copy under way, and what it was copied from has been cut since.
        if let Some((uid, generation)) = self.held.get(path).copied() {
            let live = self.files.values().find(|file| file.uid == uid).map(|file| &file.mark);
            if live.or_else(|| self.known.get(&uid).map(|known| &known.mark)).is_some_and(|mark| mark.generation > generation) {
                self.held.remove(path);
                return Copy::Yes;
            }
        }
        let source = &self.specs[index].name;
        let followed = self.files.values().filter(|file| file.spec == index && file.path != path).map(|file| &file.mark);
        let known = self.known.values().filter(|known| known.label.source == *source).map(|known| &known.mark);
        let holds_old = |mark: &Mark| {
            // Much equal content is proof enough, whatever both are called by now.
            let is_near = |old: &Content| mark.path.parent() == path.parent() && old.read >= MIN_MOVED_BYTES || is_related(&mark.path, path);
            let old = mark.previous.filter(|old| old.read > 0 && *size >= old.read && is_near(old));
            old.is_some_and(|old| content::is_same(file, old).unwrap_or_default())
        };
        if followed.chain(known).any(holds_old) {
            self.held.remove(path);
            return Copy::Yes;
        }
        let mut beside = Vec::new();
        for (id, live) in &self.files {
            if live.spec == index && live.path != path && is_related(&live.path, path) && live.mark.read > 0 {
                beside.push(*id);
            }
        }
        for id in beside {
            let Some(live) = self.files.get(&id) else { continue };
            let holds = |known: Content| *size >= known.read && content::is_same(file, known).unwrap_or_default();
            let is_held = self.held.get(path).is_some_and(|held| held.0 == live.uid);
            if live.retired.is_some() {
                continue;
            }
            let Ok((other, _, length)) = open::open(&live.path, &self.specs[index].trust(&live.path)) else { continue };
            let is_cut = length < live.mark.read || !content::is_same(&other, live.mark.content()).unwrap_or_default();
            let is_prefix = || *size > 0 && *size <= length && content::is_prefix(file, &other, *size).unwrap_or_default();
            // Cut, and not read since: what is left of it comes first.
            if if is_cut { is_held || holds(live.mark.content()) } else { is_prefix() } {
                let place = (live.uid, live.mark.generation);
                self.held.insert(path.to_owned(), place);
                return Copy::Perhaps;
            }
        }
        self.held.remove(path);
        Copy::No
    }

    fn resume(&mut self, index: usize, path: &Path, row: Known, node: Node, now: Timestamp) {
        self.known.remove(&row.uid);
        let spec = &self.specs[index];
        let mark = Mark { node, path: path.to_owned(), ..row.mark };
        let label = reader::label(&spec.name, spec.shown(path));
        let reader = Reader::resume(self.engine.clone(), row.uid, path.to_owned(), spec.trust(path), mark.clone());
        self.add(index, path, (label, row.uid, mark), reader, now);
    }

    fn add(&mut self, spec: usize, path: &Path, (label, uid, mark): (Arc<Label>, Uid, Mark), reader: Reader, now: Timestamp) -> FileId {
        let id = self.next_id;
        self.next_id += 1;
        self.by_node.insert((mark.node.dev, mark.node.ino), id);
        self.by_path.insert(path.to_owned(), id);
        self.troubles.remove(path);
        let is_open = reader.is_open();
        self.open += usize::from(is_open);
        let file = Followed {
            spec,
            path: path.to_owned(),
            label,
            uid,
            node: mark.node,
            reader: Arc::new(Mutex::new(reader)),
            mark,
            written: 0,
            changed_at: now,
            retired: None,
            state: State::Idle,
            timer: None,
            is_open,
            is_last: false,
            is_new: true,
        };
        self.files.insert(id, file);
        self.queue(id);
        id
    }

    /// Files that nobody knows by their inode: moved here from elsewhere, or new.
    fn settle_strangers(&mut self, strangers: Vec<Stranger>, now: Timestamp) {
        let mut matches: Vec<(usize, Uid)> = Vec::new();
        for (number, stranger) in strangers.iter().enumerate() {
            let source = &self.specs[stranger.spec].name;
            let (file, _, size) = &stranger.opened;
            for row in self.known.values().filter(|row| row.label.source == *source && row.mark.read >= MIN_MOVED_BYTES && row.mark.read <= *size) {
                let is_gone = find_inode(row.mark.path.parent().unwrap_or(Path::new("/")), row.mark.node).is_none();
                if is_gone && content::is_same(file, row.mark.content()).unwrap_or_default() {
                    matches.push((number, row.uid));
                }
            }
        }
        for (number, stranger) in strangers.into_iter().enumerate() {
            let mut own = matches.iter().filter(|(other, _)| *other == number);
            let row = own.next().filter(|(_, uid)| own.next().is_none() && matches.iter().filter(|(_, other)| other == uid).count() == 1);
            if let Some(&id) = self.by_node.get(&(stranger.opened.1.dev, stranger.opened.1.ino)) {
                self.met_again(id, stranger.spec, &stranger.path, now);
                continue;
            }
            match row.and_then(|(_, uid)| self.known.get(uid).cloned()) {
                Some(row) => self.resume(stranger.spec, &stranger.path, row, stranger.opened.1, now),
                None => {
                    let at_end = !self.begun && self.first[stranger.spec] && self.specs[stranger.spec].start == Start::End;
                    let start = if at_end { stranger.opened.2 } else { 0 };
                    self.begin(stranger, start, now);
                }
            }
        }
    }

    /// A file that was never read; reading begins at `start`.
    fn begin(&mut self, stranger: Stranger, start: u64, now: Timestamp) {
        let Stranger { spec: index, path, opened } = stranger;
        let spec = &self.specs[index];
        let node = opened.1;
        let mut uid = (self.id_of)(&spec.name, node);
        // Without a birth time an inode that was used before has the same identity.
        while self.known.contains_key(&uid) || self.files.values().any(|file| file.uid == uid) {
            let next = derived_id("uid", &[&uid]);
            uid = Mark::default().tail.hash;
            uid.copy_from_slice(&next.as_bytes()[..16]);
        }
        let label = reader::label(&spec.name, spec.shown(&path));
        let reader = Reader::new(self.engine.clone(), uid, path.clone(), spec.trust(&path), opened, start);
        let mark = reader.mark();
        self.add(index, &path, (label, uid, mark), reader, now);
    }

    /// Files that lost their names while nobody looked: what is left of them is read.
    fn look_for_rotated(&mut self, now: Timestamp) {
        for row in self.known.values().cloned().collect::<Vec<_>>() {
            let Some(index) = self.specs.iter().position(|spec| spec.name == row.label.source) else { continue };
            let Some(path) = find_inode(row.mark.path.parent().unwrap_or(Path::new("/")), row.mark.node) else { continue };
            let Some(Seen { node, size, .. }) = look(&path) else { continue };
            if !(Node { dev: node.dev, ..row.mark.node }).is(&node) {
                continue;
            }
            if self.by_node.contains_key(&(node.dev, node.ino)) || size < row.mark.read {
                continue;
            }
            let trust = open::Trust::Matched { link: false, within: path.parent().and_then(|folder| folder.canonicalize().ok()).into_iter().collect() };
            let is_same = open::open(&path, &trust).is_ok_and(|(file, ..)| content::is_same(&file, row.mark.content()).unwrap_or_default());
            if !is_same {
                continue;
            }
            self.known.remove(&row.uid);
            let mark = Mark { node, path: path.clone(), ..row.mark };
            let reader = Reader::resume(self.engine.clone(), row.uid, path.clone(), trust, mark.clone());
            let id = self.add(index, &path, (Arc::new(row.label), row.uid, mark), reader, now);
            // Its name is not one of the source's.
            self.by_path.remove(&path);
            self.active.insert(id);
            if let Some(file) = self.files.get_mut(&id) {
                file.retired = Some(now);
            }
        }
    }

    fn look_at(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        if file.retired.is_some() {
            return self.queue(id);
        }
        match look(&file.path) {
            Some(seen) if seen.node == file.node => {
                // Rewritten with as many bytes: only its time says so.
                let is_written = std::mem::replace(&mut file.written, seen.written) != seen.written;
                if is_written || seen.size != file.mark.read {
                    self.queue(id);
                } else if now.0 - file.changed_at.0 > RECENT_US {
                    self.active.remove(&id);
                }
            }
            _ => self.retire(id, now),
        }
    }

    fn check_name(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get(&id) else { return };
        if file.retired.is_none() && look(&file.path).is_none_or(|seen| seen.node != file.node) {
            self.retire(id, now);
        }
    }

    /// The name of a file now means another one, or nothing.
    fn retire(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.retired = Some(now);
        file.changed_at = now;
        let (index, path) = (file.spec, file.path.clone());
        self.active.insert(id);
        self.by_path.remove(&path);
        self.queue(id);
        if path.exists() {
            self.meet(index, &path, now, None);
        } else if self.specs[index].is_literal(&path) {
            self.trouble(index, &path, "has vanished; waiting for it to come back");
        }
    }

    fn end_retired(&mut self, now: Timestamp) {
        let mut over = Vec::new();
        // One that is retired stays active.
        for (id, file) in self.active.iter().filter_map(|id| Some((id, self.files.get(id)?))) {
            let Some(since) = file.retired.filter(|_| !file.is_last) else { continue };
            let wait = self.specs[file.spec].rotate_wait.as_micros() as i64;
            let is_quiet = now.0 - file.changed_at.0 >= wait;
            if is_quiet || now.0 - since.0 >= wait.saturating_mul(MAX_WAITS) {
                over.push(*id);
            }
        }
        for id in over {
            if let Some(file) = self.files.get_mut(&id) {
                file.is_last = true;
            }
            self.queue(id);
        }
    }

    /// It could not be opened again: what was not read is lost.
    fn lose(&mut self, id: FileId, now: Timestamp) {
        let Some(file) = self.files.get(&id) else { return };
        let (index, path) = (file.spec, file.path.clone());
        let unread = file.mark.size.saturating_sub(file.mark.read);
        if unread > 0 {
            let parts: [&[u8]; 3] = [&file.uid, &file.mark.generation.to_be_bytes(), &file.mark.read.to_be_bytes()];
            let notice = Notice::Gap { id: derived_id("gap", &parts), why: Why::RotatedAway, bytes: Some(unread), events: None, from: now, to: now };
            self.lost.push((file.uid, file.label.clone(), notice));
        }
        self.drop_file(id);
        if path.exists() {
            self.meet(index, &path, now, None);
        } else if self.specs[index].is_literal(&path) {
            self.trouble(index, &path, "has vanished; waiting for it to come back");
        }
    }

    fn drop_file(&mut self, id: FileId) {
        let Some(file) = self.files.remove(&id) else { return };
        self.open -= usize::from(file.is_open);
        self.active.remove(&id);
        if let Some(at) = file.timer {
            self.timers.remove(&(at, id));
        }
        if self.by_path.get(&file.path) == Some(&id) {
            self.by_path.remove(&file.path);
        }
        self.by_node.remove(&(file.node.dev, file.node.ino));
        // Should it come back, it goes on.
        self.known.insert(file.uid, Known { uid: file.uid, label: (*file.label).clone(), mark: file.mark });
    }

    /// Descriptors and memory of quiet files are given back; of the quietest ones also earlier, where
    /// descriptors run short.
    fn put_to_rest(&mut self, now: Timestamp) {
        let can_rest = |file: &Followed| file.is_open && file.state == State::Idle && file.timer.is_none() && file.retired.is_none();
        let mut quiet: Vec<(Timestamp, FileId)> = self.files.iter().filter(|(_, file)| can_rest(file)).map(|(id, file)| (file.changed_at, *id)).collect();
        quiet.sort_unstable();
        for (changed_at, id) in quiet {
            if now.0 - changed_at.0 < REST_US && self.open <= self.max_open {
                break;
            }
            if let Some(file) = self.files.get_mut(&id) {
                lock(&file.reader).rest();
                file.is_open = false;
                self.open -= 1;
            }
        }
    }

    /// Says once what is wrong with a path.
    fn trouble(&mut self, index: usize, path: &Path, why: &str) {
        if self.troubles.get(path).is_none_or(|known| known != why) {
            tracing::warn!("{}: {why}", self.specs[index].shown(path).escape_debug());
            self.troubles.insert(path.to_owned(), why.to_owned());
        }
    }
}

/// Whether a new file is a copy of one that is followed.
enum Copy {
    No,
    /// So far it holds nothing else; to be asked again.
    Perhaps,
    /// What it holds was read.
    Yes,
}

/// A file that is not known by its inode.
struct Stranger {
    spec: usize,
    path: PathBuf,
    opened: (File, Node, u64),
}

/// A reader is never left half-done by a panic: panics end the process.
pub fn lock(reader: &Mutex<Reader>) -> std::sync::MutexGuard<'_, Reader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}
