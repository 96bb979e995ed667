//! Where a verdict, records or a digest go: a file, stdout, or a descriptor that the caller has opened.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What was in it goes.
    Replace,
    /// What was in it stays.
    Append,
}

/// Opens `FILE`, `-` for stdout, or `fd:N`.
///
/// # Errors
/// It cannot be written.
pub fn open(name: &Path, mode: Mode) -> io::Result<File> {
    let text = name.to_str().unwrap_or_default();
    if text == "-" {
        return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    }
    if let Some(number) = text.strip_prefix("fd:") {
        let number: i32 = number.parse().map_err(|_| io::Error::other("write fd:N with the number of an open descriptor"))?;
        return inherited(number);
    }
    let mut options = OpenOptions::new();
    options.create(true);
    match mode {
        Mode::Replace => options.write(true).truncate(true),
        Mode::Append => options.append(true),
    };
    options.open(name)
}

/// A descriptor that siftd was started with, a socket too; what is written goes where its position stands.
fn inherited(number: i32) -> io::Result<File> {
    let own = pidfd_open(getpid(), PidfdFlags::empty());
    let file = match own.and_then(|own| pidfd_getfd(own, number, PidfdGetfdFlags::empty())) {
        Ok(file) => File::from(file),
        Err(Errno::BADF) => return Err(Errno::BADF.into()),
        // A sandbox or an old kernel does not allow it. Opened anew, it has a position of its own: at the end is where
        // nothing is lost.
        Err(_) => OpenOptions::new().append(true).open(format!("/proc/self/fd/{number}"))?,
    };
    if fcntl_getfl(&file)? & OFlags::RWMODE == OFlags::RDONLY {
        return Err(io::Error::other("is open for reading only"));
    }
    Ok(file)
}
