//! Signals as something to read: they are blocked, so that each waits until it is read and says whether a terminal or a
//! process sent it. What siftd starts must not inherit that: while it is started the mask is what it was before, and a
//! signal in this moment is caught by a handler, unless it was ignored, for then it must stay so (`nohup`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use nix::sys::signal::Signal as Name;
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::Signal;

use crate::sources::interrupt::ignored;

/// `si_code` of a signal that the kernel sent: for `exec`, a terminal.
const SI_KERNEL: i32 = 0x80;
/// Those that are handed on.
const HANDED_ON: [Name; 6] = [Name::SIGHUP, Name::SIGINT, Name::SIGQUIT, Name::SIGTERM, Name::SIGUSR1, Name::SIGUSR2];
/// The mask before any of this.
static BEFORE: OnceLock<SigSet> = OnceLock::new();

/// A signal that came.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// Which.
    pub signal: Signal,
    /// A terminal sent it, to all of its foreground group.
    pub from_terminal: bool,
    /// A key made it that the command has had: siftd has told its own group.
    pub from_key: bool,
}

/// The signals that siftd hands on.
pub struct Signals {
    waiting: SignalFd,
    /// One that came while something was started; 0 is none.
    caught: Arc<AtomicUsize>,
}

impl Signals {
    /// Blocks them for this thread and those that it starts later. With `stops`, also those that stop and continue.
    ///
    /// # Errors
    /// What the system says.
    pub fn take(stops: bool) -> io::Result<Self> {
        let caught = Arc::new(AtomicUsize::new(0));
        let ignored = ignored();
        let mut set = SigSet::empty();
        for signal in HANDED_ON {
            set.add(signal);
            if ignored & (1 << (signal as u32 - 1)) == 0 {
                signal_hook::flag::register_usize(signal as i32, caught.clone(), signal as usize)?;
            }
        }
        [Name::SIGWINCH, Name::SIGCHLD].into_iter().for_each(|signal| set.add(signal));
        if stops {
            [Name::SIGTSTP, Name::SIGCONT].into_iter().for_each(|signal| set.add(signal));
        }
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        BEFORE.get_or_init(|| before);
        Ok(Self { waiting: SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?, caught })
    }

    /// The next one that waits.
    ///
    /// # Errors
    /// What the system says.
    pub fn next(&self) -> io::Result<Option<Came>> {
        let caught = i32::try_from(self.caught.swap(0, Ordering::SeqCst)).unwrap_or_default();
        if let Some(signal) = Signal::from_named_raw(caught) {
            return Ok(Some(Came { signal, from_terminal: false, from_key: false }));
        }
        let Some(info) = self.waiting.read_signal()? else { return Ok(None) };
        let from_key = info.ssi_pid == std::process::id() && [Name::SIGINT as u32, Name::SIGQUIT as u32].contains(&info.ssi_signo);
        let signal = i32::try_from(info.ssi_signo).ok().and_then(Signal::from_named_raw);
        Ok(signal.map(|signal| Came { signal, from_terminal: info.ssi_code == SI_KERNEL, from_key }))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

/// Starts a process with the signal mask that siftd itself was started with. No thread may begin in there: it would keep
/// that mask, and take the signals that others wait for.
///
/// # Errors
/// Those of `start`, and what the system says.
pub fn as_before<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(before) = BEFORE.get() else { return start() };
    let ours = before.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let started = start();
    ours.thread_set_mask()?;
    started
}

/// The signals that end or stop a process and come to a whole group, but for those that this one was started to ignore.
pub fn not_ignored() -> impl Iterator<Item = i32> {
    let ignored = ignored();
    let all = HANDED_ON.into_iter().chain([Name::SIGTSTP, Name::SIGTTIN, Name::SIGTTOU]);
    all.map(|signal| signal as i32).filter(move |signal| ignored & (1 << (signal - 1)) == 0)
}
