//! All files that are followed: finds them, reads what is new into a stream for each, and notices
//! rotation, truncation and loss. It is stepped by its owner, who sleeps and writes; events go out
//! through `Emit`. A file that was replaced is read until it has been quiet for `rotate_wait`.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock::now;
use super::discover::{Spec, Start, is_packed};
use super::file::{Step, Tail};
use super::input::Identity;
use crate::core::engine::Engine;
use crate::core::event::{Event, Timestamp};
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;

/// A file is with its reader for so many bytes, then the next one has its turn.
const TURN_BYTES: usize = 1 << 20;
/// A file that was written in the last minute is looked at in every sweep.
const RECENT: Duration = Duration::from_secs(60);

/// Takes the events of one stream.
pub type Emit<'a> = &'a mut dyn FnMut(&Label, &mut Vec<Event>) -> io::Result<()>;
/// Gives a file its identity in ids: name of the source, device, inode, birth.
pub type Uid = fn(&str, Identity, u128) -> [u8; 16];

/// What a stream is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Name of its source.
    pub source: String,
    /// Its path, as the user would write it.
    pub path: String,
}

/// Everything under way.
pub struct Follower {
    engine: Arc<Engine>,
    uid: Uid,
    specs: Vec<Spec>,
    files: Vec<Followed>,
    live: HashSet<PathBuf>,
    troubles: BTreeMap<PathBuf, String>,
    own_outputs: Vec<Identity>,
    begun: bool,
}

struct Followed {
    spec: usize,
    path: PathBuf,
    label: Label,
    tail: Tail,
    stream: Stream,
    uid: [u8; 16],
    generation: u32,
    /// Events before this offset were there before following began.
    muted_to: u64,
    changed_at: Instant,
    retired: bool,
}

impl Follower {
    /// Follows nothing yet. Files of `own_outputs` are never read.
    #[must_use]
    pub fn new(engine: Arc<Engine>, uid: Uid, specs: Vec<Spec>, own_outputs: Vec<Identity>) -> Self {
        Self { engine, uid, specs, files: Vec::new(), live: HashSet::new(), troubles: BTreeMap::new(), own_outputs, begun: false }
    }

    /// The sources.
    #[must_use]
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }

    /// Looks for files that are new under their names.
    pub fn discover(&mut self) {
        for index in 0..self.specs.len() {
            let spec = &self.specs[index];
            for path in spec.literals.iter().cloned().chain(spec.matches()).collect::<Vec<_>>() {
                self.meet(index, &path);
            }
        }
        self.begun = true;
    }

    /// Looks at the paths that changed: a known file is read, a new one met.
    ///
    /// # Errors
    /// `emit`'s.
    pub fn changed(&mut self, paths: &HashSet<PathBuf>, emit: Emit) -> io::Result<()> {
        self.read_where(emit, |file| paths.contains(&file.path))?;
        for path in paths.iter().filter(|path| !self.live.contains(*path)).cloned().collect::<Vec<_>>() {
            if let Some(index) = self.specs.iter().position(|spec| spec.means(&path)) {
                self.meet(index, &path);
            }
        }
        self.read_where(emit, |file| paths.contains(&file.path))
    }

    /// Reads files that may have changed: all, or those that are active or that nobody watches.
    ///
    /// # Errors
    /// `emit`'s.
    pub fn sweep(&mut self, all: bool, watched: impl Fn(&Path) -> bool, emit: Emit) -> io::Result<()> {
        self.read_where(emit, |file| all || file.retired || file.changed_at.elapsed() < RECENT || !watched(&file.path))?;
        self.close_retired(emit)
    }

    /// When something open wants to be published.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.files.iter().filter_map(|file| file.stream.deadline()).min()
    }

    /// Publishes what has been quiet for too long.
    ///
    /// # Errors
    /// `emit`'s.
    pub fn tick(&mut self, emit: Emit) -> io::Result<()> {
        let mut events = Vec::new();
        for file in self.files.iter_mut().filter(|file| file.stream.deadline().is_some_and(|at| at <= now())) {
            file.stream.tick(now(), &mut events);
            file.emit(&mut events, emit)?;
        }
        Ok(())
    }

    /// Reads what is there until nothing is new or `until` has come, then ends every stream.
    ///
    /// # Errors
    /// `emit`'s.
    pub fn drain(&mut self, until: Instant, emit: Emit) -> io::Result<()> {
        self.discover();
        while self.read_turns(emit, |_| true)? && Instant::now() < until {}
        for file in &mut self.files {
            file.finish(emit)?;
        }
        self.files.clear();
        Ok(())
    }

    /// Whether some file could not be followed to the end.
    #[must_use]
    pub fn is_troubled(&self) -> bool {
        !self.troubles.is_empty()
    }

    /// Whether there is nothing to wait for: no file, and none can appear.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.files.is_empty() && !self.specs.iter().any(Spec::can_grow)
    }

    fn meet(&mut self, index: usize, path: &Path) {
        if self.live.contains(path) {
            return;
        }
        let spec = &self.specs[index];
        if is_packed(path) {
            return self.trouble(index, path, "is packed: read it with siftd scan");
        }
        match Tail::open(path, spec.allows_link(path)) {
            Ok(tail) => self.accept(index, path, tail),
            // A file that a glob matched may be gone again; a literal one is waited for.
            Err(error) if error.kind() == ErrorKind::NotFound && !spec.is_literal(path) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !self.troubles.contains_key(path) {
                    self.trouble(index, path, "is not there; waiting for it");
                }
            }
            Err(error) if error.kind() == ErrorKind::IsADirectory => self.trouble(index, path, "is a folder: name its files, such as 'folder/*.log'"),
            Err(error) => self.trouble(index, path, error.to_string().split(" (os error").next().unwrap_or_default()),
        }
    }

    fn accept(&mut self, index: usize, path: &Path, tail: Tail) {
        let spec = &self.specs[index];
        if self.own_outputs.contains(&tail.identity()) {
            if spec.is_literal(path) {
                self.trouble(index, path, "is siftd's own output");
            }
            return;
        }
        if let Some(known) = self.files.iter_mut().find(|file| file.tail.identity() == tail.identity()) {
            // The same file under a new name goes on; under a second name it is one stream.
            if known.retired {
                known.retired = false;
                known.label.path = spec.shown(path);
                known.path = path.to_owned();
                self.live.insert(path.to_owned());
            }
            return;
        }
        let muted_to = if self.begun || spec.start == Start::Beginning { 0 } else { tail.size().unwrap_or_default() };
        let uid = (self.uid)(&spec.name, tail.identity(), tail.born());
        let label = Label { source: spec.name.clone(), path: spec.shown(path) };
        let stream = Stream::new(self.engine.clone(), Origin { uid, generation: 0 });
        let file =
            Followed { spec: index, path: path.to_owned(), label, tail, stream, uid, generation: 0, muted_to, changed_at: Instant::now(), retired: false };
        self.files.push(file);
        self.live.insert(path.to_owned());
        self.troubles.remove(path);
    }

    /// Says once what is wrong with a path.
    fn trouble(&mut self, index: usize, path: &Path, why: &str) {
        if self.troubles.get(path).is_none_or(|known| known != why) {
            tracing::warn!("{}: {why}", self.specs[index].shown(path).escape_debug());
            self.troubles.insert(path.to_owned(), why.to_owned());
        }
    }

    fn read_where(&mut self, emit: Emit, wanted: impl Fn(&Followed) -> bool) -> io::Result<()> {
        while self.read_turns(emit, &wanted)? {}
        Ok(())
    }

    /// One turn for each wanted file; whether one has more.
    fn read_turns(&mut self, emit: Emit, wanted: impl Fn(&Followed) -> bool) -> io::Result<bool> {
        let mut more = false;
        let mut replaced = Vec::new();
        for (at, file) in self.files.iter_mut().enumerate().filter(|(_, file)| wanted(file)) {
            if file.turn(&self.engine, emit)? {
                more = true;
            } else if !file.retired && file.tail.is_replaced(&file.path) {
                // What was written between the last read and the rename.
                more |= file.turn(&self.engine, emit)?;
                replaced.push(at);
            }
        }
        for at in replaced {
            self.retire(at);
        }
        Ok(more)
    }

    /// The name of a file now means another one, or nothing.
    fn retire(&mut self, at: usize) {
        let file = &mut self.files[at];
        file.retired = true;
        file.changed_at = Instant::now();
        let (index, path) = (file.spec, file.path.clone());
        self.live.remove(&path);
        if path.exists() {
            self.meet(index, &path);
        } else if self.specs[index].is_literal(&path) {
            self.trouble(index, &path, "has vanished; waiting for it to come back");
        }
    }

    fn close_retired(&mut self, emit: Emit) -> io::Result<()> {
        for file in self.files.iter_mut().filter(|file| file.retired) {
            if file.changed_at.elapsed() >= self.specs[file.spec].rotate_wait {
                file.finish(emit)?;
            }
        }
        let specs = &self.specs;
        self.files.retain(|file| !file.retired || file.changed_at.elapsed() < specs[file.spec].rotate_wait);
        Ok(())
    }
}

impl Followed {
    /// Reads for one turn; whether there is more.
    fn turn(&mut self, engine: &Arc<Engine>, emit: Emit) -> io::Result<bool> {
        let (mut count, mut events) = (0, Vec::new());
        while count < TURN_BYTES {
            match self.tail.read(self.stream.space()) {
                Ok(Step::Bytes(more)) => {
                    self.stream.advance(more, now(), &mut events);
                    count += more;
                }
                Ok(Step::Idle) => break,
                Ok(Step::Truncated) => {
                    tracing::info!("{}: was truncated; reading it from its beginning", self.label.path.escape_debug());
                    self.finish(emit)?;
                    self.generation += 1;
                    self.muted_to = 0;
                    self.stream = Stream::new(engine.clone(), Origin { uid: self.uid, generation: self.generation });
                }
                Err(error) => {
                    tracing::warn!("{}: {error}", self.label.path.escape_debug());
                    break;
                }
            }
            self.emit(&mut events, emit)?;
        }
        if count > 0 {
            self.changed_at = Instant::now();
        }
        Ok(count >= TURN_BYTES)
    }

    fn finish(&mut self, emit: Emit) -> io::Result<()> {
        let mut events = Vec::new();
        self.stream.finish(now(), &mut events);
        self.emit(&mut events, emit)
    }

    fn emit(&self, events: &mut Vec<Event>, emit: Emit) -> io::Result<()> {
        events.retain(|event| event.offset >= self.muted_to);
        if events.is_empty() { Ok(()) } else { emit(&self.label, events) }
    }
}
