//! The command's stdin: whether one more run finds there what the run before it found. Nothing of it is ever read or kept here.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::ioctl_fionread;

use super::waiting;

/// What the command's stdin is.
pub enum Input {
    /// A terminal, a device or nothing: each run finds the same.
    Same,
    /// A file, with the place at which it is read.
    File(u64),
    /// A pipe or a socket, how it stood, and what notices reads from it.
    Pipe(Standing, Option<Reads>),
}

/// How a pipe stands. If it stands the same as before and has no writer any more, nobody has read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Bytes that wait in it; `None` if that cannot be told.
    waiting: Option<u64>,
    /// Whether nobody writes to it any more.
    has_ended: bool,
}

/// Notices reads from stdin. A pipe that is open and empty, as many programs give it to those that they start and never
/// use it, stands the same after its writer wrote and the command read just that. The kernel queues an event for each
/// `read` of at least one byte, however short the bytes stayed (a poll would miss one in ten); only `recv` goes unseen.
pub struct Reads(OwnedFd);

impl Reads {
    /// Begins to watch; `None` if the system refuses it.
    fn watch() -> Option<Self> {
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        inotify::add_watch(&events, "/proc/self/fd/0", WatchFlags::ACCESS).ok()?;
        Some(Self(events))
    }

    /// Whether there was none.
    fn none(&self) -> bool {
        waiting::readable([self.0.as_fd()], Some(Duration::ZERO)).is_ok_and(|[ready]| !ready)
    }
}

impl Input {
    /// Inspects stdin, before the first run.
    pub fn look() -> Self {
        match fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile | FileType::BlockDevice) => seek(io::stdin(), SeekFrom::Current(0)).map_or(Self::Same, Self::File),
            Ok(FileType::Fifo | FileType::Socket) => Self::Pipe(standing(), Reads::watch()),
            _ => Self::Same,
        }
    }

    /// Makes stdin ready for one more run; returns why that cannot be, if it cannot.
    pub fn again(&self) -> Result<(), &'static str> {
        match self {
            Self::Same => Ok(()),
            Self::File(from) => seek(io::stdin(), SeekFrom::Start(*from)).map(drop).map_err(|_| "its stdin cannot be read from the same place again"),
            Self::Pipe(before, reads) if before.is_unread(reads.as_ref()) => Ok(()),
            Self::Pipe(..) => Err("its stdin is a pipe, of which it may have read something that does not come again; use a file, or < /dev/null"),
        }
    }
}

impl Standing {
    /// Whether the pipe stands as it did, and nothing was read from it in between.
    fn is_unread(&self, reads: Option<&Reads>) -> bool {
        // Without a writer, what was read would be missing.
        self.waiting.is_some() && *self == standing() && reads.map_or(self.has_ended, Reads::none)
    }
}

fn standing() -> Standing {
    let has_ended = waiting::has_hung_up(io::stdin()).unwrap_or_default();
    Standing { waiting: ioctl_fionread(io::stdin()).ok(), has_ended }
}
