//! Sleeping until a descriptor has something or a time has come: the one form of waiting in `exec`.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until one of `fds` can be read or has ended, or `timeout` has passed; says which ones.
///
/// # Errors
/// What `poll` says.
pub fn readable<const N: usize>(fds: [BorrowedFd; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    ready(fds.map(|fd| (fd, PollFlags::IN)), timeout)
}

/// Waits until `fd` takes bytes, or `end` has ended; says whether it was `fd`.
///
/// # Errors
/// What `poll` says.
pub fn writable(fd: BorrowedFd, end: BorrowedFd) -> io::Result<bool> {
    ready([(fd, PollFlags::OUT), (end, PollFlags::IN)], None).map(|[fd, _]| fd)
}

fn ready<const N: usize>(fds: [(BorrowedFd, PollFlags); N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    let mut polled = fds.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags));
    let timeout = timeout.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) });
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.map(|fd| !fd.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}
