//! Keys for a command that shares siftd's process group. The command reads the real terminal itself.
//! Only a pseudo-terminal that a program has switched out of line mode to read keys (`less` on
//! stderr) needs them from here. Meanwhile the real terminal has the modes of that pseudo-terminal.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pty_process::blocking::Pty;
use rustix::termios::{self, OptionalActions, OutputModes, Termios};

use super::keys::{End, KEYS};
use super::waiting;

/// Interval between checks whether a program reads from a pseudo-terminal; no event announces it.
const LOOK: Duration = Duration::from_millis(30);

/// Lends the keys of a shared terminal to a pseudo-terminal. Dropping it restores the terminal's own modes.
pub struct Borrowed(Arc<Mutex<Loan>>);

struct Loan {
    tty: File,
    /// The terminal's own modes, while it has those of the pseudo-terminal.
    before: Option<Termios>,
    ended: bool,
}

impl Borrowed {
    /// Watches `pty` until `stop` is closed. While a program reads from `pty`, the terminal has its modes and keys go to it.
    ///
    /// # Errors
    /// The system's error.
    pub fn watch(pty: &Pty, stop: Arc<OwnedFd>) -> io::Result<Self> {
        let mut end = End::new(pty)?;
        let tty = File::open("/dev/tty")?;
        let mut keys = tty.try_clone()?;
        let loan = Arc::new(Mutex::new(Loan { tty, before: None, ended: false }));
        let shared = loan.clone();
        std::thread::spawn(move || {
            let mut typed = [0; KEYS];
            loop {
                let listens = end.listens();
                let is_open = listens.is_some();
                if lock(&shared).follow(listens).is_err() {
                    break;
                }
                let waited = if is_open { waiting::readable([stop.as_fd(), keys.as_fd()], Some(LOOK)) } else { sleep(&stop) };
                let pressed = match waited {
                    Ok([false, true]) => match keys.read(&mut typed) {
                        // The terminal hung up.
                        Ok(0) => break,
                        count => count.and_then(|count| end.write(&typed[..count], &stop)),
                    },
                    Ok([false, false]) => Ok(()),
                    _ => break,
                };
                if pressed.is_err() {
                    break;
                }
            }
        });
        Ok(Self(loan))
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let mut loan = lock(&self.0);
        // There is nobody left to tell.
        let _ = loan.follow(None);
        loan.ended = true;
    }
}

impl Loan {
    /// Gives the terminal the modes of a pseudo-terminal that is being read, or restores its own.
    fn follow(&mut self, wanted: Option<Termios>) -> io::Result<()> {
        if self.ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match (wanted, &self.before) {
            (Some(wanted), None) => {
                let before = termios::tcgetattr(&self.tty)?;
                // Whether output is processed at all is the real terminal's setting.
                let worked_on = before.output_modes & OutputModes::OPOST;
                let mut modes = before.clone();
                modes.input_modes = wanted.input_modes;
                modes.output_modes = wanted.output_modes | worked_on;
                modes.local_modes = wanted.local_modes;
                modes.special_codes = wanted.special_codes;
                termios::tcsetattr(&self.tty, OptionalActions::Now, &modes)?;
                self.before = Some(before);
            }
            (None, Some(before)) => {
                termios::tcsetattr(&self.tty, OptionalActions::Now, before)?;
                self.before = None;
            }
            _ => {}
        }
        Ok(())
    }
}

fn lock(loan: &Mutex<Loan>) -> MutexGuard<'_, Loan> {
    loan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps for a moment and returns whether `stop` was closed. No key is taken from the program that reads the terminal.
fn sleep(stop: &OwnedFd) -> io::Result<[bool; 2]> {
    waiting::readable([stop.as_fd()], Some(LOOK)).map(|[stopped]| [stopped, false])
}
