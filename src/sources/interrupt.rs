//! Treats SIGINT, SIGTERM and SIGHUP as the end of the input: whoever asks for the errors of an input that is still being written gets those
//! found so far. Readers wait for their input through this module; once everything is written, siftd ends as the signal would have ended it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags, poll};

/// A second signal this soon after the first is the same request: programs that signal a
/// process group often signal the process itself as well (GNU coreutils' `timeout` does).
const SAME_WISH: Duration = Duration::from_secs(1);

/// Waits for a signal.
pub struct Interrupt {
    /// The signal's number; 0: none.
    caught: Arc<AtomicI32>,
    /// Reaches its end with the first signal.
    woken: io::PipeReader,
}

impl Interrupt {
    /// Takes over the signals, except those that siftd was started to ignore. Must
    /// be called before any other thread begins, which would otherwise receive them.
    ///
    /// # Errors
    /// Those of the system.
    pub fn take() -> io::Result<Self> {
        let caught = Arc::new(AtomicI32::new(0));
        let (woken, wakes) = io::pipe()?;
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect();
        set.thread_block()?;
        let shared = caught.clone();
        std::thread::spawn(move || {
            // If all are ignored, it waits for ever.
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

    /// Returns the signal that has come, if any.
    #[must_use]
    pub fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// Waits until there is something to read, or the input ends; returns `false` if a signal has come and nothing can be read.
    ///
    /// # Errors
    /// Those of `poll`.
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

/// Ends siftd as the signal would have, so that the caller can see it.
pub fn end(signal: i32) -> ! {
    // It returns only if the signal cannot be sent.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal)
}

/// Whether siftd was started to ignore this signal, for example by `nohup`.
#[must_use]
pub fn is_ignored(signal: Signal) -> bool {
    ignored() & (1 << (signal as u32 - 1)) != 0
}

/// Returns the signals that siftd was started to ignore, one bit each.
#[must_use]
pub fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
