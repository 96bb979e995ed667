//! Where a verdict, records or a digest are written: a file, stdout, or a descriptor that the caller has opened.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::pump;

/// Folders that list this process's own descriptors by number.
const DESCRIPTORS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

/// How an existing file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Its content is discarded.
    Replace,
    /// Its content is kept. An unfinished last line, such as a killed program leaves, is ended first.
    Append,
}

/// An open destination, and the name that messages call it by.
pub struct Named {
    /// It.
    pub file: File,
    /// The name that the user gave it.
    pub name: PathBuf,
}

impl Named {
    /// Writes all bytes.
    ///
    /// # Errors
    /// They could not be written; the message has the name.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        pump::write_all(&mut self.file, bytes).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.name.display())))
    }
}

/// A destination for output. A descriptor that the caller has opened is duplicated
/// at once, a named pipe is opened at once; a file is opened only when something is run.
pub enum Target {
    /// `fd:N`, or a named pipe.
    Taken(File),
    /// `FILE`, or `-` for stdout.
    Named(PathBuf),
}

impl Target {
    /// Returns the target that a flag names. Must be called before siftd opens anything, since that might get the number N.
    ///
    /// # Errors
    /// The caller has opened no such descriptor, or not for writing.
    pub fn find(name: &Path) -> io::Result<Self> {
        if let Some(number) = name.to_str().and_then(|text| text.strip_prefix("fd:")) {
            let number: i32 = number.parse().map_err(|_| io::Error::other("write fd:N with the number of an open descriptor"))?;
            return inherited(number).map(Self::Taken);
        }
        if name.parent().is_some_and(|folder| DESCRIPTORS.iter().any(|descriptors| folder == Path::new(descriptors))) {
            // It is opened later, like any file; by then, siftd itself may have opened a number that is free now.
            name.symlink_metadata()?;
        }
        Ok(Self::Named(name.to_owned()))
    }

    /// Finds the targets of several flags.
    ///
    /// # Errors
    /// As for [`find`](Self::find), with the flag and the name that failed; or a named pipe cannot be opened.
    pub fn find_all<const N: usize>(named: [(&'static str, Option<&Path>); N]) -> Result<[Option<Self>; N], (&'static str, PathBuf, io::Error)> {
        let find = |(flag, name): (&'static str, Option<&Path>)| {
            let found = name.map(|name| Self::find(name).map_err(|error| (flag, name.to_owned(), error)));
            found.transpose()
        };
        // The first pass keeps no duplicate: its number might be one that another flag names.
        named.into_iter().try_for_each(|named| find(named).map(drop))?;
        let mut found = [const { None }; N];
        for (found, named) in found.iter_mut().zip(named) {
            *found = find(named)?;
        }
        for (found, (flag, name)) in found.iter_mut().zip(named) {
            let met = found.take().map(Self::met).transpose();
            *found = met.map_err(|error| (flag, name.unwrap_or(Path::new("")).to_owned(), error))?;
        }
        Ok(found)
    }

    /// Opens a named pipe, which waits for its reader. Later, siftd passes signals on to a command, and none would end the wait.
    fn met(self) -> io::Result<Self> {
        match self {
            Self::Named(name) if name.metadata().is_ok_and(|meta| meta.file_type().is_fifo()) => OpenOptions::new().write(true).open(name).map(Self::Taken),
            other => Ok(other),
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// The target cannot be written.
    pub fn open(self, mode: Mode) -> io::Result<File> {
        let name = match self {
            Self::Taken(file) => return Ok(file),
            Self::Named(name) if name == Path::new("-") => return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            Self::Named(name) => name,
        };
        let mut options = OpenOptions::new();
        options.create(true);
        match mode {
            Mode::Replace => options.write(true).truncate(true),
            Mode::Append => options.append(true),
        };
        let file = options.open(&name)?;
        if mode == Mode::Append {
            end_line(&file, &name)?;
        }
        Ok(file)
    }
}

/// Ends the last line of a file that does not end with a newline, so that the first record does not continue it.
fn end_line(mut file: &File, name: &Path) -> io::Result<()> {
    // Anything but a regular file has a length of 0.
    let size = file.metadata()?.len();
    let mut last = [b'\n'];
    if size > 0 && File::open(name).and_then(|file| file.read_exact_at(&mut last, size - 1)).is_ok() && last[0] != b'\n' {
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// Duplicates a descriptor that siftd was started with, which may be a socket. Writes continue at its position.
fn inherited(number: i32) -> io::Result<File> {
    let file = match duplicate(number) {
        Ok(file) => File::from(file),
        Err(Errno::BADF) => return Err(Errno::BADF.into()),
        // A sandbox or an old kernel does not allow it. A descriptor that is
        // opened anew has a position of its own; appending loses nothing.
        Err(_) => OpenOptions::new().append(true).open(format!("/proc/self/fd/{number}")).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Errno::BADF.into(),
            _ => error,
        })?,
    };
    if fcntl_getfl(&file)? & OFlags::RWMODE == OFlags::RDONLY {
        return Err(io::Error::other("is open for reading only"));
    }
    Ok(file)
}

fn duplicate(number: i32) -> Result<OwnedFd, Errno> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    // The pidfd itself got the lowest free number.
    if own.as_raw_fd() == number {
        return Err(Errno::BADF);
    }
    pidfd_getfd(own, number, PidfdGetfdFlags::empty())
}
