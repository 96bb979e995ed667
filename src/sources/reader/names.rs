//! Names in a file's folder: which may be its rotated copies, and which one it has now.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::delivery::Node;

/// Whether `other` may be a rotated copy of `live`, by its name: `app.log` → `app.log.1`, `app-2026.log`. Called for many pairs.
#[must_use]
pub fn is_related(live: &Path, other: &Path) -> bool {
    let (live, other) = (live.as_os_str().as_encoded_bytes(), other.as_os_str().as_encoded_bytes());
    if other.len() <= live.len() {
        return false;
    }
    let name = memchr::memrchr(b'/', live).map_or(0, |slash| slash + 1);
    let stem = memchr::memrchr(b'.', &live[name..]).filter(|dot| *dot > 0).map_or(live.len(), |dot| name + dot);
    other.starts_with(&live[..stem]) && !other[stem..].contains(&b'/')
}

/// Returns where a file that had a name in `folder` is now, if it is still there.
#[must_use]
pub fn find_inode(folder: &Path, node: Node) -> Option<PathBuf> {
    use std::os::unix::fs::DirEntryExt;
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let born = |entry: &std::fs::DirEntry| entry.metadata().map_or(0, |meta| Node::of(&meta).born);
    let is_same = |entry: &std::fs::DirEntry| entry.ino() == node.ino && [0, born(entry)].contains(&node.born);
    let mut same = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()) && is_same(entry));
    same.next().map(|entry| entry.path())
}

/// Folders by inode, each listed once, to find many files.
#[derive(Default)]
pub struct Folders(HashMap<PathBuf, HashMap<u64, PathBuf>>);

impl Folders {
    /// Returns where a file that had a name in `folder` is now, if it is still there.
    #[must_use]
    pub fn find(&mut self, folder: &Path, node: Node) -> Option<PathBuf> {
        let listed = self.0.entry(folder.to_owned()).or_insert_with(|| by_inode(folder));
        let path = listed.get(&node.ino)?;
        path.symlink_metadata().is_ok_and(|meta| meta.is_file() && [0, Node::of(&meta).born].contains(&node.born)).then(|| path.clone())
    }
}

fn by_inode(folder: &Path) -> HashMap<u64, PathBuf> {
    use std::os::unix::fs::DirEntryExt;
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| (entry.ino(), entry.path())).collect()
}
