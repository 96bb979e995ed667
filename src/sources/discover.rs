//! Which files a source currently includes: the matches of its globs, without what it excludes, compressed copies
//! that it does not name, and links that lead out of its folders. Looks only at names and metadata; opens nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use globset::GlobMatcher;

use super::expand::{base, depth, entries, is_glob, is_hidden, matcher, names_hidden};
use super::open::Trust;
use crate::delivery::is_output;

/// Where reading begins in files that exist when following begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At offset 0.
    Beginning,
    /// After the existing content.
    End,
}

/// What to follow under one source name. Paths are absolute inside.
#[derive(Debug)]
pub struct Spec {
    /// Name of the source.
    pub name: String,
    /// Where reading begins.
    pub start: Start,
    /// How long a replaced file is still read.
    pub rotate_wait: Duration,
    /// How long the position of a vanished file is kept.
    pub forget_after: Duration,
    /// Files named one by one.
    pub literals: Vec<PathBuf>,
    globs: Vec<Glob>,
    exclude: Vec<GlobMatcher>,
    links_into: Vec<PathBuf>,
    /// What siftd itself writes: state folders, and output files with their older generations.
    own: Vec<PathBuf>,
    /// Base folders of the names that the user wrote as absolute paths.
    rooted: Vec<PathBuf>,
    folder: PathBuf,
}

#[derive(Debug)]
struct Glob {
    base: PathBuf,
    depth: Option<usize>,
    matcher: GlobMatcher,
    /// Whether the glob names compressed files; otherwise it does not match them.
    packed: bool,
    /// Whether the glob writes the dot of hidden names; otherwise it does not match them.
    hidden: bool,
}

impl Spec {
    /// Creates a source that follows nothing yet.
    ///
    /// # Errors
    /// There is no current folder.
    pub fn new(name: impl Into<String>, start: Start, rotate_wait: Duration) -> Result<Self, String> {
        let folder = std::env::current_dir().map_err(|error| format!("the current folder is not known: {error}"))?;
        Ok(Self::within(folder, name.into(), start, rotate_wait))
    }

    fn within(folder: PathBuf, name: String, start: Start, rotate_wait: Duration) -> Self {
        Self {
            name,
            start,
            rotate_wait,
            forget_after: Duration::from_secs(30 * 86_400),
            literals: Vec::new(),
            globs: Vec::new(),
            exclude: Vec::new(),
            links_into: Vec::new(),
            own: Vec::new(),
            rooted: Vec::new(),
            folder,
        }
    }

    /// Returns the same source with nothing left to follow.
    #[must_use]
    pub fn without_files(&self) -> Self {
        Self { forget_after: self.forget_after, ..Self::within(self.folder.clone(), self.name.clone(), self.start, self.rotate_wait) }
    }

    /// Adds a file or a glob.
    ///
    /// # Errors
    /// It is not a valid glob.
    pub fn include(&mut self, name: &Path) -> Result<(), String> {
        let whole = absolute(name).map_err(|error| error.to_string())?;
        if name.is_absolute() {
            self.rooted.push(base(&whole));
        }
        if !is_glob(name) || name.exists() {
            self.literals.push(whole);
            return Ok(());
        }
        let base = base(&whole);
        let (packed, hidden) = (names_packed(name), names_hidden(&whole));
        self.globs.push(Glob { base, depth: depth(&whole), matcher: matcher(&whole)?, packed, hidden });
        Ok(())
    }

    /// Whether all files are named, none by a glob.
    #[must_use]
    pub fn globs_nothing(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether there is nothing to follow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.literals.is_empty() && self.globs.is_empty()
    }

    /// Excludes what a glob matches.
    ///
    /// # Errors
    /// It is not a valid glob.
    pub fn exclude(&mut self, name: &Path) -> Result<(), String> {
        let whole = absolute(name).map_err(|error| error.to_string())?;
        self.exclude.push(matcher(&whole)?);
        Ok(())
    }

    /// Lets links lead into a folder, which need not exist yet.
    pub fn follow_links_into(&mut self, folder: &Path) {
        self.links_into.push(folder.to_owned());
    }

    /// Returns the files that the globs match now.
    #[must_use]
    pub fn matches(&self) -> Vec<PathBuf> {
        self.look().0
    }

    /// Returns the files that the globs match now, and the folders that cannot be searched for more, with the reason.
    #[must_use]
    pub fn look(&self) -> (Vec<PathBuf>, Vec<(PathBuf, String)>) {
        let (mut found, mut closed) = (Vec::new(), Vec::new());
        for glob in &self.globs {
            for entry in entries(&glob.base, glob.depth) {
                match entry {
                    Ok(entry) if !entry.file_type().is_dir() && self.means(entry.path()) => found.push(entry.into_path()),
                    Ok(_) => {}
                    Err(error) => closed.extend(self.closed(glob, &error)),
                }
            }
        }
        (found, closed)
    }

    /// Returns the folder that the error is about, unless it is gone or nothing in it is meant.
    fn closed(&self, glob: &Glob, error: &walkdir::Error) -> Option<(PathBuf, String)> {
        let (folder, why) = (error.path()?, error.io_error()?);
        let is_hidden = !glob.hidden && is_hidden(folder, &glob.base);
        let is_excluded = || [folder, &folder.join("any")].iter().any(|path| self.exclude.iter().any(|glob| glob.is_match(path)));
        (why.kind() != ErrorKind::NotFound && !is_hidden && !is_excluded()).then(|| (folder.to_owned(), why.to_string()))
    }

    /// Returns the globs that match no file now, as the user would write them.
    #[must_use]
    pub fn unmatched(&self) -> Vec<String> {
        let is_met = |glob: &Glob| entries(&glob.base, glob.depth).flatten().any(|entry| !entry.file_type().is_dir() && glob.matcher.is_match(entry.path()));
        let globs = self.globs.iter().filter(|glob| !is_met(glob));
        globs.map(|glob| self.shown(Path::new(glob.matcher.glob().glob()))).collect()
    }

    /// Excludes what siftd itself writes: the state files in a folder, which may hold logs as well, or an output file with its older generations.
    ///
    /// # Errors
    /// The current folder is not known.
    pub fn leave_out_own(&mut self, name: &Path) -> Result<(), String> {
        let whole = absolute(name).map_err(|error| error.to_string())?;
        self.own.extend(whole.canonicalize().ok().filter(|real| *real != whole));
        self.own.push(whole);
        Ok(())
    }

    /// Returns siftd's own files and folders that globs would match.
    #[must_use]
    pub fn own_matched(&self) -> Vec<&Path> {
        let is_meant = |own: &&PathBuf| self.matches_glob(own) || self.matches_glob(&own.join("siftd.db"));
        self.own.iter().filter(is_meant).map(PathBuf::as_path).collect()
    }

    fn matches_glob(&self, path: &Path) -> bool {
        let may_be = |glob: &Glob| (glob.packed || !is_packed(path)) && (glob.hidden || !is_hidden(path, &glob.base));
        let is_meant = |glob: &Glob| may_be(glob) && glob.matcher.is_match(path);
        self.globs.iter().any(is_meant) && !self.exclude.iter().any(|glob| glob.is_match(path))
    }

    /// Whether the source follows this path.
    #[must_use]
    pub fn means(&self, path: &Path) -> bool {
        if self.is_literal(path) {
            return true;
        }
        self.matches_glob(path) && !self.is_own(path)
    }

    /// Whether siftd itself writes this path, judging by its name.
    #[must_use]
    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| is_own(own, path))
    }

    /// Whether the file was named explicitly.
    #[must_use]
    pub fn is_literal(&self, path: &Path) -> bool {
        self.literals.iter().any(|literal| literal == path)
    }

    /// Returns how far a path may lead: a named file anywhere, a file matched by a glob only into the source's folders.
    #[must_use]
    pub fn trust(&self, path: &Path) -> Trust {
        if self.is_literal(path) {
            return Trust::Named;
        }
        let folders = self.globs.iter().map(|glob| &glob.base).chain(&self.links_into);
        Trust::Matched { link: true, within: folders.filter_map(|folder| folder.canonicalize().ok()).collect() }
    }

    /// Returns the folders whose changes concern the source, and whether their subfolders do, too.
    pub fn folders(&self) -> impl Iterator<Item = (&Path, bool)> {
        let literals = self.literals.iter().filter_map(|path| path.parent()).map(|folder| (folder, false));
        literals.chain(self.globs.iter().map(|glob| (glob.base.as_path(), glob.depth != Some(1))))
    }

    /// Whether a file could still appear: where a folder, a named pipe or a device is, none does.
    #[must_use]
    pub fn can_grow(&self) -> bool {
        let is_taken = |path: &PathBuf| path.metadata().is_ok_and(|meta| !meta.is_file());
        !self.globs.is_empty() || !self.literals.iter().all(is_taken)
    }

    /// Returns a path as the user would write it.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        let rooted = self.rooted.iter().any(|base| path.starts_with(base));
        let shown = if rooted { path } else { path.strip_prefix(&self.folder).unwrap_or(path) };
        if shown.as_os_str().is_empty() { ".".to_owned() } else { shown.display().to_string() }
    }
}

/// Whether a glob names compressed files, as `*.log.gz` and `*.{gz,zst}` do.
fn names_packed(glob: &Path) -> bool {
    let last = glob.file_name().map_or(&b""[..], |name| name.as_encoded_bytes());
    [&b"gz"[..], b"zst"].iter().any(|end| memchr::memmem::find(last, end).is_some())
}

/// Whether siftd writes `path`; `own` is a state folder or an output. Compares bytes, because every scan checks every file.
fn is_own(own: &Path, path: &Path) -> bool {
    let rest = path.as_os_str().as_encoded_bytes().strip_prefix(own.as_os_str().as_encoded_bytes());
    rest.is_some_and(|rest| is_state(rest) || is_output(rest))
}

/// Whether the part of a path after the state folder is one of the state's files: the database, the files beside it, those set aside, lock, socket.
fn is_state(rest: &[u8]) -> bool {
    let Some(name) = rest.strip_prefix(b"/") else { return false };
    (name.starts_with(b"siftd.db") && !name.contains(&b'/')) || [&b"lock"[..], b"status.sock"].contains(&name)
}

/// Whether a name is that of a compressed, rotated copy, which never grows.
#[must_use]
pub fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "gz" || end == "zst")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_may_stand_beside_the_state() {
        let is_own = |name: &str| is_own(Path::new("/state"), Path::new(name));
        assert!(["/state/siftd.db", "/state/siftd.db-wal", "/state/lock", "/state/status.sock"].into_iter().all(is_own));
        assert!(!["/state/app.log", "/state/lock/a", "/state/siftd.db/a", "/logs/siftd.db"].into_iter().any(is_own));
    }

    #[test]
    fn an_older_output_is_known_by_its_number_or_date() {
        let is_own = |name: &str| is_own(Path::new("/logs/all"), Path::new(name));
        assert!(["/logs/all", "/logs/all.1", "/logs/all.12.gz", "/logs/all-20261122", "/logs/all-2026-11-22.zst"].into_iter().all(is_own));
        assert!(!["/logs/all.", "/logs/all.log", "/logs/all-2.log", "/logs/all1", "/logs/b.1", "/logs/all.1/x"].into_iter().any(is_own));
    }
}
