//! Waits until a descriptor is ready or a time has come; all waiting in `exec` is done here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until one of `fds` is readable or closed, or `timeout` has passed. Returns which of them are ready.
///
/// # Errors
/// The error of `poll`.
pub fn readable<const N: usize>(fds: [BorrowedFd; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    ready(fds.map(|fd| (fd, PollFlags::IN)), timeout)
}

/// Waits until `fd` is writable or `end` is closed. Returns whether `fd` is ready.
///
/// # Errors
/// The error of `poll`.
pub fn writable(fd: BorrowedFd, end: BorrowedFd) -> io::Result<bool> {
    ready([(fd, PollFlags::OUT), (end, PollFlags::IN)], None).map(|[fd, _]| fd)
}

/// Whether the other side of a pipe or a socket is closed; what was written may still wait.
///
/// # Errors
/// The error of `poll`.
pub fn has_hung_up(fd: impl AsFd) -> io::Result<bool> {
    let closed = PollFlags::HUP | PollFlags::RDHUP;
    let mut polled = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::RDHUP)];
    poll(&mut polled, Some(&Timespec::default()))?;
    Ok(polled[0].revents().intersects(closed))
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
