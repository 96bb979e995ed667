//! Who says that a file has changed: the kernel's notices for the folders of what is followed. Notices
//! may be late, lost or missing (NFS): a sweep by time is the truth, this only makes it fast.

use std::collections::{HashMap, HashSet};
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

/// Paths that changed since they were last taken.
type Changed = Arc<Mutex<HashSet<PathBuf>>>;

/// Watches folders.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: HashMap<PathBuf, bool>,
    changed: Changed,
}

impl Watch {
    /// `wake` is called, from another thread, when something has changed.
    pub fn new(wake: impl Fn() + Send + 'static) -> Self {
        let changed = Changed::default();
        let noted = changed.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            if !event.kind.is_access() {
                lock(&noted).extend(event.paths);
                wake();
            }
        });
        let watcher = watcher.inspect_err(|error| tracing::warn!("no notices of changes: {error}; looking every 250 ms")).ok();
        Self { watcher, folders: HashMap::new(), changed }
    }

    /// Watches a folder, if it is there; asking again is cheap.
    pub fn folder(&mut self, folder: &Path, recursive: bool) {
        let exists = folder.is_dir();
        if self.folders.contains_key(folder) {
            if !exists {
                self.folders.remove(folder);
            }
            return;
        }
        let Some(watcher) = &mut self.watcher else { return };
        let mode = if recursive { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        if exists && watcher.watch(folder, mode).inspect_err(|error| tracing::debug!("{}: no notices: {error}", folder.display())).is_ok() {
            self.folders.insert(folder.to_owned(), recursive);
        }
    }

    /// Whether changes in the folder of a file are noticed.
    #[must_use]
    pub fn sees(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        above.next().is_some_and(|parent| self.folders.contains_key(parent)) || above.any(|folder| self.folders.get(folder) == Some(&true))
    }

    /// What has changed since the last call.
    #[must_use]
    pub fn take(&self) -> HashSet<PathBuf> {
        take(&mut *lock(&self.changed))
    }
}

fn lock(changed: &Changed) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
    changed.lock().unwrap_or_else(PoisonError::into_inner)
}
