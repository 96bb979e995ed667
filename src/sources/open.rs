//! Opens what an untrusted program may have left: never blocks on a FIFO, opens no device,
//! follows no link out of the source's folders, and checks the descriptor, not the name.

use std::fmt::{self, Display};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::delivery::Node;

/// How far a name may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// A person named the file explicitly: links are followed.
    Named,
    /// A glob matched the file. A link as its last part is followed if `link`; whatever
    /// the path, the opened file must lie in one of these folders, which are real paths.
    Matched {
        /// Whether the last part may be a link.
        link: bool,
        /// Where the file must lie.
        within: Vec<PathBuf>,
    },
}

/// The error for something that exists but is not opened: a glob may match it unintentionally.
#[derive(Debug)]
struct Refused(String);

impl std::error::Error for Refused {}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::other(Refused(why.into()))
}

/// Whether [`open`] refused what is there: it is not a regular file, or lies elsewhere.
#[must_use]
pub fn is_refused(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Refused>())
}

/// A regular file that was opened for reading, as it was then.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// Which file it is.
    pub node: Node,
    /// Its size.
    pub size: u64,
}

/// Opens a regular file for reading.
///
/// # Errors
/// It does not exist, may not be read, is not a regular file, or lies elsewhere.
pub fn open(path: &Path, trust: &Trust) -> io::Result<OpenFile> {
    let no_links = if matches!(trust, Trust::Matched { link: false, .. }) { libc::O_NOFOLLOW } else { 0 };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | no_links).open(path)?;
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !meta.is_file() {
        let is_pipe = meta.file_type().is_fifo();
        return Err(refused(if is_pipe { "is no regular file but a named pipe, which is read as stdin: siftd run < PIPE" } else { "is no regular file" }));
    }
    if let Trust::Matched { within, .. } = trust
        && let Some(real) = real_path(&file)
        && !within.iter().any(|folder| real.starts_with(folder))
    {
        return Err(refused(format!("leads to {}, out of the folders of its source (follow_links_into)", real.display())));
    }
    Ok(OpenFile { file, node: Node::of(&meta), size: meta.len() })
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which file.
    pub node: Node,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub written: i128,
}

/// Returns what a path leads to, if anything.
#[must_use]
pub fn look(path: &Path) -> Option<Seen> {
    let meta = std::fs::metadata(path).ok()?;
    let written = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    Some(Seen { node: Node::of(&meta), size: meta.len(), written })
}

/// Returns where an open file lies, so that a folder switched on the way is noticed. Unknown without /proc.
fn real_path(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    // Unlinked meanwhile: its former place says nothing.
    if link.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") { None } else { Some(link) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn is_not_led_astray() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let logs = home.join("logs");
        std::fs::create_dir(&logs).unwrap();
        std::fs::create_dir(home.join("secret")).unwrap();
        std::fs::write(home.join("secret/x.log"), "shadow").unwrap();
        std::fs::write(logs.join("a.log"), "fine").unwrap();
        symlink("../secret/x.log", logs.join("link.log")).unwrap();
        symlink("../secret", logs.join("sub")).unwrap();
        symlink("a.log", logs.join("near.log")).unwrap();
        let matched = |link| Trust::Matched { link, within: vec![logs.clone()] };
        assert!(open(&logs.join("a.log"), &matched(false)).is_ok());
        assert!(open(&logs.join("near.log"), &matched(true)).is_ok());
        for name in ["link.log", "near.log", "sub/x.log"] {
            assert!(open(&logs.join(name), &matched(false)).is_err(), "{name}");
        }
        for name in ["link.log", "sub/x.log"] {
            assert!(open(&logs.join(name), &matched(true)).unwrap_err().to_string().contains("out of the folders"), "{name}");
            assert!(open(&logs.join(name), &Trust::Named).is_ok(), "{name}");
        }
        assert_eq!(open(&home, &Trust::Named).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert!(open(Path::new("/dev/null"), &Trust::Named).is_err());
    }

    #[test]
    fn a_fifo_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo.log");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(open(&path, &Trust::Named).unwrap_err().to_string().contains("no regular file"));
    }
}
