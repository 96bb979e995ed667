//! The command's stdin: whether one more run finds there what the run before it found. Nothing of it is ever read or kept here.

use std::io;

use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::ioctl_fionread;

use super::waiting;

/// What the command's stdin is.
pub enum Input {
    /// A terminal, a device or nothing: each run finds the same.
    Same,
    /// A file, with the place at which it is read.
    File(u64),
    /// A pipe or a socket, and how it stood.
    Pipe(Standing),
}

/// How a pipe stands. If it stands the same as before, nobody has read from it, unless a writer that is still there wrote
/// just that in between: a pipe that is open and empty is what many programs give those that they start, and never use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Bytes that wait in it; `None` if that cannot be told.
    waiting: Option<u64>,
    /// Whether nobody writes to it any more.
    has_ended: bool,
}

impl Input {
    /// Inspects stdin, before the first run.
    pub fn look() -> Self {
        match fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile | FileType::BlockDevice) => seek(io::stdin(), SeekFrom::Current(0)).map_or(Self::Same, Self::File),
            Ok(FileType::Fifo | FileType::Socket) => Self::Pipe(standing()),
            _ => Self::Same,
        }
    }

    /// Makes stdin ready for one more run; returns why that cannot be, if it cannot.
    pub fn again(&self) -> Result<(), &'static str> {
        match self {
            Self::Same => Ok(()),
            Self::File(from) => seek(io::stdin(), SeekFrom::Start(*from)).map(drop).map_err(|_| "its stdin cannot be read from the same place again"),
            Self::Pipe(before) if before.waiting.is_some() && *before == standing() => Ok(()),
            Self::Pipe(_) => Err("its stdin is a pipe, of which it may have read something that does not come again; use a file, or < /dev/null"),
        }
    }
}

fn standing() -> Standing {
    let has_ended = waiting::has_hung_up(io::stdin()).unwrap_or_default();
    Standing { waiting: ioctl_fionread(io::stdin()).ok(), has_ended }
}
