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
    /// A pipe or a socket, with what waited in it if its writers had ended: only then it shows whether somebody has read from it.
    Pipe(Option<u64>),
}

impl Input {
    /// Inspects stdin, before the first run.
    pub fn look() -> Self {
        match fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile | FileType::BlockDevice) => seek(io::stdin(), SeekFrom::Current(0)).map_or(Self::Same, Self::File),
            Ok(FileType::Fifo | FileType::Socket) => Self::Pipe(left()),
            _ => Self::Same,
        }
    }

    /// Makes stdin ready for one more run; returns why that cannot be, if it cannot.
    pub fn again(&self) -> Result<(), &'static str> {
        match self {
            Self::Same => Ok(()),
            Self::File(from) => seek(io::stdin(), SeekFrom::Start(*from)).map(drop).map_err(|_| "its stdin cannot be read from the same place again"),
            Self::Pipe(Some(waited)) if left() == Some(*waited) => Ok(()),
            Self::Pipe(_) => Err("its stdin is a pipe, of which it may have read something that does not come again; use a file, or < /dev/null"),
        }
    }
}

/// Returns how many bytes wait in a pipe to which nobody writes any more.
fn left() -> Option<u64> {
    let has_ended = waiting::has_hung_up(io::stdin()).unwrap_or_default();
    ioctl_fionread(io::stdin()).ok().filter(|_| has_ended)
}
