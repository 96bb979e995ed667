//! Signals that are read instead of handled: they are blocked, so each one stays pending until it is read,
//! and it tells whether a terminal or a process sent it. Processes that siftd starts must not inherit the
//! blocked mask, so the original mask is restored while one is started. A handler catches a signal that
//! arrives in that moment, unless the signal was ignored: then it must stay ignored (`nohup`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use nix::sys::signal::Signal as Name;
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::Signal;

use crate::sources::interrupt::ignored;

/// `si_code` of a signal that the kernel sent; in `exec` that means a terminal.
const SI_KERNEL: i32 = 0x80;
/// The signals that are passed on to the command.
const HANDED_ON: [Name; 6] = [Name::SIGHUP, Name::SIGINT, Name::SIGQUIT, Name::SIGTERM, Name::SIGUSR1, Name::SIGUSR2];
/// The signal mask before siftd blocked anything.
static BEFORE: OnceLock<SigSet> = OnceLock::new();

/// A signal that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// Which signal.
    pub signal: Signal,
    /// A terminal sent it to the whole foreground group.
    pub from_terminal: bool,
    /// siftd sent it to its own group for a key that the command received, too.
    pub from_key: bool,
}

/// The signals that siftd passes on to the command.
pub struct Signals {
    waiting: SignalFd,
    /// Which signals arrived while a process was being started: several may, as when a terminal is closed.
    caught: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Signals {
    /// Blocks the signals in this thread and in those it starts later. With `stops`, this includes SIGTSTP and SIGCONT.
    ///
    /// # Errors
    /// The system's error.
    pub fn take(stops: bool) -> io::Result<Self> {
        let mut caught = Vec::new();
        let ignored = ignored();
        let mut set = SigSet::empty();
        for signal in HANDED_ON {
            set.add(signal);
            if ignored & (1 << (signal as u32 - 1)) == 0 {
                let came = Arc::new(AtomicBool::new(false));
                signal_hook::flag::register(signal as i32, came.clone())?;
                caught.extend(Signal::from_named_raw(signal as i32).map(|signal| (signal, came)));
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

    /// Returns the next pending signal.
    ///
    /// # Errors
    /// The system's error.
    pub fn next(&self) -> io::Result<Option<Came>> {
        if let Some((signal, _)) = self.caught.iter().find(|(_, came)| came.swap(false, Ordering::SeqCst)) {
            return Ok(Some(Came { signal: *signal, from_terminal: false, from_key: false }));
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

/// Starts a process with the signal mask that siftd itself was started with. `start` must
/// not start a thread: it would keep that mask and take signals that others wait for.
///
/// # Errors
/// Errors of `start` and of the system.
pub fn as_before<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(before) = BEFORE.get() else { return start() };
    let ours = before.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let started = start();
    ours.thread_set_mask()?;
    started
}

/// The signals that end or stop a process and go to a whole group, except those that siftd was started to ignore.
pub fn not_ignored() -> impl Iterator<Item = i32> {
    let ignored = ignored();
    let all = HANDED_ON.into_iter().chain([Name::SIGTSTP, Name::SIGTTIN, Name::SIGTTOU]);
    all.map(|signal| signal as i32).filter(move |signal| ignored & (1 << (signal - 1)) == 0)
}
