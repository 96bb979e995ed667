//! One file that grows: opened without being led astray, read to its end, and asked what became of it.
//! Steps when it is told to; it never waits, and knows neither lines nor streams.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::input::Identity;

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many bytes.
    Bytes(usize),
    /// Nothing new.
    Idle,
    /// The file is shorter than what was read: it begins again at 0.
    Truncated,
}

/// A file under way.
#[derive(Debug)]
pub struct Tail {
    file: File,
    identity: Identity,
    offset: u64,
}

impl Tail {
    /// Opens a regular file at its beginning. A FIFO does not block; a link as the last part of the path
    /// is followed only if `links`.
    ///
    /// # Errors
    /// It is not there, may not be read, or is no regular file.
    pub fn open(path: &Path, links: bool) -> io::Result<Self> {
        let no_links = if links { 0 } else { libc::O_NOFOLLOW };
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | no_links).open(path)?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if !meta.is_file() {
            return Err(io::Error::other("is no regular file"));
        }
        Ok(Self { identity: Identity::of(&file)?, file, offset: 0 })
    }

    /// Which file it is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// When it was made, in nanoseconds since 1970, where the file system knows.
    #[must_use]
    pub fn born(&self) -> u128 {
        let born = self.file.metadata().and_then(|meta| meta.created()).ok();
        born.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).map_or(0, |since| since.as_nanos())
    }

    /// Its size in bytes.
    ///
    /// # Errors
    /// What `fstat` says.
    pub fn size(&self) -> io::Result<u64> {
        self.file.metadata().map(|meta| meta.len())
    }

    /// Reads on.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(&mut self, space: &mut [u8]) -> io::Result<Step> {
        let count = match self.file.read_at(space, self.offset) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Step::Bytes(0)),
            count => count?,
        };
        self.offset += count as u64;
        if count > 0 {
            return Ok(Step::Bytes(count));
        }
        if self.size()? < self.offset {
            self.offset = 0;
            return Ok(Step::Truncated);
        }
        Ok(Step::Idle)
    }

    /// Whether `path` no longer leads to this file.
    #[must_use]
    pub fn is_replaced(&self, path: &Path) -> bool {
        Identity::at(path).map_or(true, |identity| identity != self.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn tells_growth_truncation_and_replacement_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        fs::write(&path, "one\n").unwrap();
        let (mut tail, mut space) = (Tail::open(&path, false).unwrap(), [0; 64]);
        assert_eq!(tail.read(&mut space).unwrap(), Step::Bytes(4));
        assert_eq!(tail.read(&mut space).unwrap(), Step::Idle);
        fs::write(&path, "2\n").unwrap();
        assert_eq!(tail.read(&mut space).unwrap(), Step::Truncated);
        assert_eq!(tail.read(&mut space).unwrap(), Step::Bytes(2));
        assert!(!tail.is_replaced(&path));
        fs::rename(&path, dir.path().join("a.log.1")).unwrap();
        assert!(tail.is_replaced(&path));
        fs::write(&path, "three\n").unwrap();
        assert!(tail.is_replaced(&path));
        assert_eq!(tail.read(&mut space).unwrap(), Step::Idle);
    }

    #[test]
    fn is_not_led_astray() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join("link")).unwrap();
        assert!(Tail::open(&dir.path().join("link"), false).is_err());
        assert_eq!(Tail::open(dir.path(), false).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert!(Tail::open(Path::new("/dev/null"), true).is_err());
    }
}
