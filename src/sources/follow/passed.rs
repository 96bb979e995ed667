//! Generations that came and went while siftd did not look: a log rotated twice leaves one between the file that
//! was read and the file that has its name now. No source need include the name it has by then.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Follower;
use super::evidence::trust_beside;
use super::moved::Stranger;
use crate::core::event::Timestamp;
use crate::delivery::{Node, Uid, is_generation};
use crate::sources::content;
use crate::sources::discover::is_packed;
use crate::sources::open::{self, OpenFile, Seen, look};

/// Minimum digits of a date.
const DATE_DIGITS: usize = 8;
/// Maximum length of the part of a name that states the generation.
const MAX_GENERATION_BYTES: usize = 24;

/// A name that now means another file.
struct Renamed {
    spec: usize,
    /// When the last file known to have had the name was last written, in nanoseconds since 1970.
    since: i128,
}

/// Renamed names by folder.
type Names = BTreeMap<PathBuf, HashMap<OsString, Renamed>>;

impl Follower {
    /// Reads files that had the name of a followed file after the last one known to
    /// have had it, and have lost it since. `before` are the files of earlier runs.
    pub(super) fn look_for_passed(&mut self, before: &HashSet<Uid>, now: Timestamp) {
        for (folder, renamed) in self.renamed(before) {
            let mut passed = Vec::new();
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let called = entry.file_name();
                if let Some((name, of)) = newer_names(called.as_encoded_bytes()).find_map(|name| renamed.get_key_value(OsStr::from_bytes(&name))) {
                    passed.extend(self.passed(of, &entry.path()).map(|written| (written, entry.path(), folder.join(name), of.spec)));
                }
            }
            passed.sort_unstable();
            for (_, other, path, spec) in passed {
                self.read_passed(&path, spec, other, now);
            }
        }
    }

    fn renamed(&self, before: &HashSet<Uid>) -> Names {
        let mut renamed = Names::new();
        let mut add = |path: &Path, spec: usize, since: i128| {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
            // A file that still has its name was not rotated.
            let holder = self.index.by_path.get(path).and_then(|id| self.files.get(id));
            if holder.is_none_or(|file| !before.contains(&file.uid)) {
                let of = renamed.entry(folder.to_owned()).or_default().entry(name.to_owned()).or_insert(Renamed { spec, since });
                of.since = of.since.max(since);
            }
        };
        for file in self.files.values().filter(|file| file.life.retired.is_some()) {
            if let Some(Seen { written, .. }) = look(&file.names.path) {
                add(&file.names.met_as, file.spec, written);
            }
        }
        // What was last written while siftd still followed a file that is gone by now, it knew then: the file
        // itself under another name, or a copy of an earlier content, of which its mark says nothing any more.
        for row in self.known.all().filter(|row| before.contains(&row.uid)) {
            let (Some(folder), Some(name)) = (row.mark.path.parent(), row.mark.path.file_name()) else { continue };
            if let Some(of) = renamed.get_mut(folder).and_then(|names| names.get_mut(name)) {
                of.since = of.since.max(i128::from(row.seen.0) * 1000);
            }
        }
        renamed
    }

    /// Returns when `other` was last written, if it had the name in between.
    fn passed(&self, of: &Renamed, other: &Path) -> Option<i128> {
        if is_packed(other) || self.specs.iter().any(|spec| spec.means(other) || spec.is_own(other)) {
            return None;
        }
        let Seen { node, written, .. } = look(other)?;
        (written > of.since && !self.knows(&node) && !self.is_own(&node)).then_some(written)
    }

    /// Whether the file is followed, or was.
    pub(super) fn knows(&self, node: &Node) -> bool {
        let is_same = |old: &Node| (Node { dev: node.dev, ..*old }).is(node);
        self.index.by_node.contains_key(&(node.dev, node.ino)) || self.known.all().any(|row| row.mark.node.ino == node.ino && is_same(&row.mark.node))
    }

    /// Whether a file begins with all that was read of another one: it was copied or moved from that.
    fn holds_read(&self, spec: usize, opened: &OpenFile) -> bool {
        let followed = self.files.values().filter(|file| file.spec == spec).map(|file| &file.mark);
        let marks = followed.chain(self.known.of_source(&self.specs[spec].name).map(|known| &known.mark));
        let mut read = marks.flat_map(|mark| [Some(mark.content()), mark.previous]).flatten().filter(|old| old.read > 0 && old.read <= opened.size);
        read.any(|old| content::is_same(&opened.file, old).unwrap_or_default())
    }

    fn read_passed(&mut self, path: &Path, spec: usize, other: PathBuf, now: Timestamp) {
        let opened = match open::open(&other, &trust_beside(&other)) {
            Ok(opened) => opened,
            Err(error) => return self.warn(spec, &other, &format!("was rotated away while siftd did not run, and cannot be read: {error}")),
        };
        // It may be a copy of the file that has the name now.
        let is_copy_of = |now: OpenFile| opened.size <= now.size && content::is_prefix(&opened.file, &now.file, opened.size).unwrap_or_default();
        if self.holds_read(spec, &opened) || open::open(path, &self.specs[spec].trust(path)).is_ok_and(is_copy_of) {
            return;
        }
        self.settle_strangers(vec![Stranger { spec, path: other.clone(), opened }], now);
        if let Some(&id) = self.index.by_path.get(&other) {
            self.outlive(id, path.to_owned(), now);
        }
    }
}

/// Returns the names of which this file may be an older generation: `app.log` for `app.log.1` and `app.log-20261126`.
/// Before the extension there must be a date (`app-2026-11-26.log`), because `app-2.log` may be another program's.
fn newer_names(called: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let dot = memchr::memrchr(b'.', called).unwrap_or(called.len());
    let (stem, extension) = called.split_at(dot);
    let is_date = |part: &[u8]| part.iter().filter(|byte| byte.is_ascii_digit()).count() >= DATE_DIGITS;
    let dated = generations(stem).filter(move |at| is_date(&stem[*at..])).map(move |at| [&stem[..at], extension].concat());
    generations(called).map(|at| called[..at].to_vec()).chain(dated)
}

/// Returns where the part of a name that states the generation may begin.
fn generations(name: &[u8]) -> impl Iterator<Item = usize> {
    (1..name.len()).rev().take(MAX_GENERATION_BYTES).filter(|at| is_generation(&name[*at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_known_by_a_number_or_a_date() {
        let is_of = |name: &str, other: &str| newer_names(other.as_bytes()).any(|newer| newer == name.as_bytes());
        assert!(["app.log.1", "app.log-20261126", "app-2026-11-26.log", "app.20261126.log"].iter().all(|other| is_of("app.log", other)));
        let others = ["app.log", "app.log.bak", "app-2.log", "app2.log", "b.log.1", "app.log.", "", ".1"];
        assert!(!others.iter().any(|other| is_of("app.log", other)));
        assert!(is_of("syslog", "syslog.1") && is_of("syslog", "syslog-2026-11-26"));
    }
}
