//! Signals as something to read: they are blocked, not handled, so that what was ignored stays ignored for the
//! command too (`nohup`), and each says whether a terminal or a process sent it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::SigSet;
use nix::sys::signal::Signal as Name;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::Signal;

/// `si_code` of a signal that the kernel sent: for `exec`, a terminal.
const SI_KERNEL: i32 = 0x80;

/// A signal that came.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// Which.
    pub signal: Signal,
    /// A terminal sent it, to all of its foreground group.
    pub from_terminal: bool,
}

/// The signals that siftd hands on.
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks them for this thread and those that it starts later. With `stops`, also those that stop and continue.
    ///
    /// # Errors
    /// What the system says.
    pub fn take(stops: bool) -> io::Result<Self> {
        let mut set = SigSet::empty();
        let always = [Name::SIGHUP, Name::SIGINT, Name::SIGQUIT, Name::SIGTERM, Name::SIGUSR1, Name::SIGUSR2, Name::SIGWINCH, Name::SIGCHLD];
        always.into_iter().for_each(|signal| set.add(signal));
        if stops {
            [Name::SIGTSTP, Name::SIGCONT].into_iter().for_each(|signal| set.add(signal));
        }
        set.thread_block()?;
        Ok(Self(SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// The next one that waits.
    ///
    /// # Errors
    /// What the system says.
    pub fn next(&self) -> io::Result<Option<Came>> {
        let Some(info) = self.0.read_signal()? else { return Ok(None) };
        let signal = i32::try_from(info.ssi_signo).ok().and_then(Signal::from_named_raw);
        Ok(signal.map(|signal| Came { signal, from_terminal: info.ssi_code == SI_KERNEL }))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
