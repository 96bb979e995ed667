//! How siftd learns that a file has changed: kernel notifications for the folders of followed files. Notifications
//! may be late, lost or missing (NFS): the periodic sweep is authoritative, this only makes it fast.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{EventKind, ModifyKind};
use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::delivery::Node;

/// Maximum paths to note between two calls; with more of them it is cheaper to look everywhere.
const MAX_PATHS: usize = 4096;

/// What has changed since the last call.
#[derive(Debug, Default)]
pub struct Changes {
    /// Files that were written.
    pub written: HashSet<PathBuf>,
    /// Names that were created, moved or removed.
    pub named: HashSet<PathBuf>,
    /// Notifications were lost: look everywhere.
    pub lost: bool,
    /// The kernel's queue overflowed: nothing is watched any more, so the folders must be named again.
    pub overflowed: bool,
    /// A new folder could not be watched: the message to log.
    limit: Option<String>,
    /// The caller was woken and has not asked yet.
    is_told: bool,
}

impl Changes {
    /// Notes an event. Returns `true` if the caller must be woken, which happens
    /// only once until the changes are taken, since the caller may be busy for long.
    fn note(&mut self, event: notify::Result<Event>) -> bool {
        match event {
            Ok(event) if !event.need_rescan() => match event.kind {
                EventKind::Access(_) => return false,
                _ if self.lost => {}
                EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any) => self.written.extend(event.paths),
                _ => self.named.extend(event.paths),
            },
            Ok(_) => (self.lost, self.overflowed) = (true, true),
            Err(error) => {
                self.lost = true;
                if limit_of(&error).is_some() {
                    self.limit.get_or_insert_with(|| advice(&error));
                }
            }
        }
        if self.lost || self.written.len() + self.named.len() > MAX_PATHS {
            *self = Self { lost: true, is_told: self.is_told, overflowed: self.overflowed, limit: self.limit.take(), ..Self::default() };
        }
        !std::mem::replace(&mut self.is_told, true)
    }
}

type Shared = Arc<Mutex<Changes>>;
type Make = Box<dyn Fn() -> notify::Result<RecommendedWatcher> + Send>;

/// A folder that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watched {
    /// Its path may lead to another folder by now, which the kernel does not report.
    node: Node,
    recursive: bool,
}

/// Watches folders.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    /// Creates another watcher like it.
    make: Option<Make>,
    folders: HashMap<PathBuf, Watched>,
    changes: Shared,
    /// Folders that could not be watched; each was logged once.
    refused: HashSet<PathBuf>,
    /// Some folders below watched ones are not watched, and it is unknown which: a limit was reached when they were created.
    is_partial: bool,
}

impl Watch {
    /// Calls `wake`, from another thread, when something has changed; not again before [`take`](Self::take).
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        let none = Self::none();
        let (noted, wake) = (none.changes.clone(), Arc::new(wake));
        let make = move || {
            let (noted, wake) = (noted.clone(), wake.clone());
            notify::recommended_watcher(move |event| {
                if lock(&noted).note(event) {
                    wake();
                }
            })
        };
        let watcher = make().inspect_err(|error| tracing::warn!("{}", advice(error))).ok();
        Self { watcher, make: Some(Box::new(make)), ..none }
    }

    /// Watches nothing: every change is found by looking.
    #[must_use]
    pub fn none() -> Self {
        let (watcher, make, is_partial) = (None, None, false);
        Self { watcher, make, folders: HashMap::new(), changes: Shared::default(), refused: HashSet::new(), is_partial }
    }

    /// Watches a folder, if it exists; repeated calls are cheap. Returns `true` if it is newly watched.
    pub fn folder(&mut self, folder: &Path, recursive: bool) -> bool {
        let there = folder.metadata().ok().filter(Metadata::is_dir).map(|meta| Watched { node: Node::of(&meta), recursive });
        // If two patterns name it, one of them may want less.
        let is_watched = |there: Watched| self.folders.get(folder).is_some_and(|known| known.node == there.node && known.recursive >= recursive);
        if there.is_some_and(is_watched) {
            return false;
        }
        let Some(watcher) = &mut self.watcher else { return false };
        if self.folders.remove(folder).is_some() {
            // A folder that was moved away would keep reporting under this name; for a removed one, watching has already ended.
            let _ = watcher.unwatch(folder);
        }
        let Some(watched) = there else { return false };
        let mode = if recursive { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        match watcher.watch(folder, mode) {
            Ok(()) => {
                self.folders.insert(folder.to_owned(), watched);
                self.refused.remove(folder);
                true
            }
            Err(error) => {
                if self.refused.insert(folder.to_owned()) {
                    tracing::warn!("{}: {}", folder.display(), advice(&error));
                }
                false
            }
        }
    }

    /// Whether changes in the folder of a file are noticed.
    #[must_use]
    pub fn sees(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        above.next().is_some_and(|parent| self.folders.contains_key(parent))
            || !self.is_partial && above.any(|folder| self.folders.get(folder).is_some_and(|watched| watched.recursive))
    }

    /// Whether there may be new folders that are not watched.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Takes what has changed since the last call.
    #[must_use]
    pub fn take(&mut self) -> Changes {
        let changes = std::mem::take(&mut *lock(&self.changes));
        if let Some(said) = &changes.limit
            && !std::mem::replace(&mut self.is_partial, true)
        {
            tracing::warn!("{said}");
        }
        if changes.overflowed {
            self.begin_anew();
        }
        changes
    }

    /// Drops all watches: nobody knows which folders were created, moved or removed while notifications were lost.
    fn begin_anew(&mut self) {
        // If no second watcher is available, the old one is given the folders again.
        if let Some(Ok(watcher)) = self.make.as_ref().map(|make| make()) {
            self.watcher = Some(watcher);
        }
        self.folders.clear();
    }
}

/// Says what to do when the kernel gives no notifications; files are followed all the same, only later.
#[must_use]
pub fn advice(error: &notify::Error) -> String {
    let go_on = "until then files are looked at every second, thousands of them every few seconds";
    match limit_of(error) {
        Some(name) => {
            let now = std::fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).unwrap_or_default();
            let more = now.trim().parse::<u64>().unwrap_or(8192).max(128).saturating_mul(4);
            format!("the kernel's limit of inotify is reached ({name} = {}): raise it with `sysctl {name}={more}` and restart siftd; {go_on}", now.trim())
        }
        None => {
            let why = match &error.kind {
                ErrorKind::Io(error) => io::Error::to_string(error),
                _ => error.to_string(),
            };
            format!("no notices of changes ({why}); {go_on}")
        }
    }
}

/// Returns the kernel limit that an error is about.
fn limit_of(error: &notify::Error) -> Option<&'static str> {
    match &error.kind {
        ErrorKind::MaxFilesWatch => Some("fs.inotify.max_user_watches"),
        ErrorKind::Io(error) => match error.raw_os_error() {
            Some(libc::ENOSPC) => Some("fs.inotify.max_user_watches"),
            Some(libc::EMFILE) => Some("fs.inotify.max_user_instances"),
            _ => None,
        },
        _ => None,
    }
}

fn lock(changes: &Mutex<Changes>) -> std::sync::MutexGuard<'_, Changes> {
    changes.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &str) -> notify::Result<Event> {
        Ok(Event::new(EventKind::Modify(ModifyKind::Any)).add_path(path.into()))
    }

    #[test]
    fn one_wake_until_the_changes_are_taken_and_so_many_paths_at_most() {
        let changes = Shared::default();
        let mut watch = Watch { changes: changes.clone(), ..Watch::none() };
        let flood = |count: usize| (0..count).filter(|n| lock(&changes).note(written(&format!("/logs/{n}.log")))).count();
        assert_eq!(flood(MAX_PATHS), 1);
        let taken = watch.take();
        assert_eq!((taken.written.len(), taken.lost), (MAX_PATHS, false));
        assert_eq!(flood(10 * MAX_PATHS), 1, "it wakes anew, and once");
        assert!(lock(&changes).written.is_empty(), "what is looked for everywhere needs no list");
        assert!(watch.take().lost && !watch.take().lost);
    }

    #[test]
    fn a_limit_that_is_reached_later_leaves_folders_unseen() {
        let changes = Shared::default();
        let folders = HashMap::from([("/logs".into(), Watched { node: Node::default(), recursive: true })]);
        let mut watch = Watch { changes: changes.clone(), folders, ..Watch::none() };
        assert!(watch.sees(Path::new("/logs/new/a.log")) && !watch.is_partial());
        assert!(lock(&changes).note(Err(notify::Error::new(ErrorKind::MaxFilesWatch))));
        // A flood after it does not hide it.
        let woken = (0..=MAX_PATHS).filter(|n| lock(&changes).note(written(&format!("/logs/{n}.log")))).count();
        assert_eq!(woken, 0, "it was told already");
        assert!(watch.take().lost && watch.is_partial());
        assert!(watch.sees(Path::new("/logs/a.log")), "the folder itself is watched");
        assert!(!watch.sees(Path::new("/logs/new/a.log")));
    }

    #[test]
    fn folders_are_watched_anew_after_notices_were_lost() {
        let folder = tempfile::tempdir().unwrap();
        let (told, hears) = std::sync::mpsc::channel();
        let mut watch = Watch::new(move || told.send(()).unwrap_or_default());
        assert!(watch.folder(folder.path(), true) && !watch.folder(folder.path(), true));
        let rescan = || Ok(Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan));
        lock(&watch.changes).note(rescan());
        // A flood after it does not hide it.
        let woken = (0..=MAX_PATHS).filter(|n| lock(&watch.changes).note(written(&format!("/logs/{n}.log")))).count();
        assert_eq!(woken, 0, "it was told already");
        let taken = watch.take();
        assert!(taken.lost && taken.overflowed && !watch.sees(&folder.path().join("a.log")));
        assert!(watch.folder(folder.path(), true) && watch.sees(&folder.path().join("new/a.log")));
        assert!(!watch.take().overflowed, "once");
        std::fs::create_dir(folder.path().join("new")).unwrap();
        hears.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        assert!(watch.take().named.contains(&folder.path().join("new")), "the new watcher says it");
    }

    #[test]
    fn a_folder_in_the_place_of_another_is_watched_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let (told, hears) = std::sync::mpsc::channel();
        let mut watch = Watch::new(move || told.send(()).unwrap_or_default());
        std::fs::create_dir(&logs).unwrap();
        assert!(watch.folder(&logs, true) && !watch.folder(&logs, true));
        for moves in [true, false] {
            // Between two checks. As long as the old one is open, its inode is not reused.
            let _old = std::fs::File::open(&logs).unwrap();
            if moves {
                std::fs::rename(&logs, folder.path().join("old")).unwrap();
            } else {
                std::fs::remove_dir_all(&logs).unwrap();
            }
            std::fs::create_dir(&logs).unwrap();
            assert!(watch.folder(&logs, true) && !watch.folder(&logs, true) && !watch.folder(&logs, false), "{moves}");
            hears.try_iter().for_each(drop);
            drop(watch.take());
            std::fs::write(logs.join("a.log"), "").unwrap();
            let mut named = HashSet::new();
            while !named.contains(&logs.join("a.log")) {
                hears.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
                named.extend(watch.take().named);
            }
        }
        std::fs::remove_dir_all(&logs).unwrap();
        assert!(!watch.folder(&logs, true) && !watch.sees(&logs.join("a.log")));
    }

    #[test]
    fn reading_a_file_wakes_nobody() {
        let mut changes = Changes::default();
        assert!(!changes.note(Ok(Event::new(EventKind::Access(notify::event::AccessKind::Read)))));
        assert!(changes.note(Err(notify::Error::generic("odd"))) && changes.lost);
    }

    #[test]
    fn a_limit_is_named_with_its_sysctl() {
        for (error, name) in [(libc::ENOSPC, "max_user_watches"), (libc::EMFILE, "max_user_instances")] {
            let said = advice(&notify::Error::io(io::Error::from_raw_os_error(error)));
            assert!(said.contains(&format!("sysctl fs.inotify.{name}=")) && said.contains("every second"), "{said}");
        }
        assert!(advice(&notify::Error::new(ErrorKind::MaxFilesWatch)).contains("sysctl fs.inotify.max_user_watches="));
        assert!(!advice(&notify::Error::generic("odd")).contains("sysctl"));
    }
}
