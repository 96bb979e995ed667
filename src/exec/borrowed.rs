//! Keys where the command shares siftd's group: it reads the real terminal itself, and only a pseudo-terminal that a program
//! listens to, having taken it out of line mode (`less` on stderr), needs them from here. Meanwhile the terminal has the
//! modes of that one.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pty_process::blocking::Pty;
use rustix::termios::{self, OptionalActions, OutputModes, Termios};

use super::keys::{End, KEYS};
use super::waiting;

/// Between two looks at whether a program listens to a pseudo-terminal; no event tells of it.
const LOOK: Duration = Duration::from_millis(30);

/// Keys of a terminal that is shared, for a pseudo-terminal in it. The terminal has its own modes again when this is dropped.
pub struct Borrowed(Arc<Mutex<Loan>>);

struct Loan {
    tty: File,
    /// The terminal's own modes, while it has those of the pseudo-terminal.
    before: Option<Termios>,
    ended: bool,
}

impl Borrowed {
    /// Watches `pty` until `stop` ends. While a program listens to it, the terminal has its modes and its keys go there.
    ///
    /// # Errors
    /// What the system says.
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
                        // It hung up.
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
    /// Gives the terminal the modes of a pseudo-terminal that is listened to, or its own ones back.
    fn follow(&mut self, wanted: Option<Termios>) -> io::Result<()> {
        if self.ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match (wanted, &self.before) {
            (Some(wanted), None) => {
                let before = termios::tcgetattr(&self.tty)?;
                // Whether output is worked on at all is decided here, not there.
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

/// Whether `stop` has ended after a moment; no key is taken from whoever reads the terminal.
fn sleep(stop: &OwnedFd) -> io::Result<[bool; 2]> {
    waiting::readable([stop.as_fd()], Some(LOOK)).map(|[stopped]| [stopped, false])
}
