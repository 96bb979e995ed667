//! SIGINT, SIGTERM and SIGHUP as an end of what is read: who asks for the errors of an input that is still being written gets those
//! that are there by then. Readers wait for their input through this; whoever has written all lets the signal do its work.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags, poll};

/// A second signal so soon after the first is the same wish: who ends a process group often signals the process itself as
/// well (`timeout` of the GNU coreutils does).
const SAME_WISH: Duration = Duration::from_secs(1);

/// Waits for a signal.
pub struct Interrupt {
    /// Its number; 0 is none.
    caught: Arc<AtomicI32>,
    /// Ends with the first signal.
    woken: io::PipeReader,
}

impl Interrupt {
    /// Takes the signals, but for those that siftd was started to ignore. Before any other thread begins; it would not
    /// leave them to this one.
    ///
    /// # Errors
    /// What the system says.
    pub fn take() -> io::Result<Self> {
        let caught = Arc::new(AtomicI32::new(0));
        let (woken, wakes) = io::pipe()?;
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect();
        set.thread_block()?;
        let shared = caught.clone();
        std::thread::spawn(move || {
            // Without any, it waits for ever.
            let Ok(first) = set.wait() else { return };
            let since = Instant::now();
            shared.store(first as i32, Ordering::Relaxed);
            drop(wakes);
            loop {
                match set.wait() {
                    Ok(_) if since.elapsed() < SAME_WISH => {}
                    Ok(again) => end(again as i32),
                    Err(_) => return,
                }
            }
        });
        Ok(Self { caught, woken })
    }

    /// The signal that has come.
    #[must_use]
    pub fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// Waits until there is something to read, or its end; false when a signal has come and there is nothing.
    ///
    /// # Errors
    /// What `poll` says.
    pub fn readable(&self, input: BorrowedFd) -> io::Result<bool> {
        let mut both = [PollFd::from_borrowed_fd(input, PollFlags::IN), PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN)];
        loop {
            match poll(&mut both, None) {
                Ok(_) => return Ok(!both[0].revents().is_empty()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Ends siftd as the signal would have done: who called it sees that.
pub fn end(signal: i32) -> ! {
    // It returns only where the signal cannot be sent.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal)
}

/// Whether siftd was started to ignore this signal, as `nohup` has it.
#[must_use]
pub fn is_ignored(signal: Signal) -> bool {
    ignored() & (1 << (signal as u32 - 1)) != 0
}

/// The signals that siftd was started to ignore, a bit for each.
#[must_use]
pub fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
