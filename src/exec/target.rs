//! Where a verdict, records or a digest go: a file, stdout, or a descriptor that the caller has opened.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// Folders whose files are this process's own descriptors, by number.
const DESCRIPTORS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What was in it goes.
    Replace,
    /// What was in it stays.
    Append,
}

/// Where something goes. A descriptor that the caller has opened is taken when this is found, a file is opened only when
/// something is run.
pub enum Target {
    /// `fd:N`
    Taken(File),
    /// `FILE`, or `-` for stdout.
    Named(PathBuf),
}

impl Target {
    /// What a flag names. To be asked before siftd opens anything of its own, which might have got the number N.
    ///
    /// # Errors
    /// The caller has opened no such descriptor, or not for writing.
    pub fn find(name: &Path) -> io::Result<Self> {
        if let Some(number) = name.to_str().and_then(|text| text.strip_prefix("fd:")) {
            let number: i32 = number.parse().map_err(|_| io::Error::other("write fd:N with the number of an open descriptor"))?;
            return inherited(number).map(Self::Taken);
        }
        if name.parent().is_some_and(|folder| DESCRIPTORS.iter().any(|descriptors| folder == Path::new(descriptors))) {
            // Opened later, as any file; but then a number that is free now may be one of siftd's own.
            name.symlink_metadata()?;
        }
        Ok(Self::Named(name.to_owned()))
    }

    /// What several flags name.
    ///
    /// # Errors
    /// As [`find`](Self::find), with the flag and what it names.
    pub fn find_all<const N: usize>(named: [(&'static str, Option<&Path>); N]) -> Result<[Option<Self>; N], (&'static str, PathBuf, io::Error)> {
        let find = |(flag, name): (&'static str, Option<&Path>)| {
            let found = name.map(|name| Self::find(name).map_err(|error| (flag, name.to_owned(), error)));
            found.transpose()
        };
        // First none is kept: a duplicate has a number, too, which another flag may name.
        named.into_iter().try_for_each(|named| find(named).map(drop))?;
        let mut found = [const { None }; N];
        for (found, named) in found.iter_mut().zip(named) {
            *found = find(named)?;
        }
        Ok(found)
    }

    /// Opens it.
    ///
    /// # Errors
    /// It cannot be written.
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
        options.open(name)
    }
}

/// A descriptor that siftd was started with, a socket too; what is written goes where its position stands.
fn inherited(number: i32) -> io::Result<File> {
    let file = match duplicate(number) {
        Ok(file) => File::from(file),
        Err(Errno::BADF) => return Err(Errno::BADF.into()),
        // A sandbox or an old kernel does not allow it. Opened anew, it has a position of its own: at the end is where
        // nothing is lost.
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
    // This one has got the first number that was free.
    if own.as_raw_fd() == number {
        return Err(Errno::BADF);
    }
    pidfd_getfd(own, number, PidfdGetfdFlags::empty())
}
