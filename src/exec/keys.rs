//! Keys on their way to the command. It has a pseudo-terminal for each output, and programs read keys from the one on
//! stdout (`vim`) or from the one on stderr (`less`, `more`): the one that a program has taken out of line mode is
//! where it listens. In a session of its own the command gets all keys through siftd; where it shares siftd's
//! group it reads the real terminal itself, and only a pseudo-terminal that it listens to needs them from here.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pty_process::blocking::Pty;
use rustix::process::{Signal, getpgrp, getpid, kill_process, kill_process_group};
use rustix::termios::{self, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios};

use super::waiting;

/// Between two looks at whether a program listens to a pseudo-terminal; no event tells of it.
const LOOK: Duration = Duration::from_millis(30);
/// Keys that are read at once.
const KEYS: usize = 4096;

/// Hands keys to the command until `stop` ends: to `main`, which has its stdin, or to `other`.
///
/// # Errors
/// What the system says.
pub fn hand_over(main: &Pty, other: Option<&Pty>, stop: Arc<OwnedFd>) -> io::Result<()> {
    let mut main = End::new(main)?;
    let mut other = other.map(End::new).transpose()?;
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    std::thread::spawn(move || {
        let mut typed = [0; KEYS];
        while let Ok([ready, stopped]) = waiting::readable([stdin.as_fd(), stop.as_fd()], None) {
            if stopped {
                break;
            }
            let pressed = match ready.then(|| stdin.read(&mut typed)) {
                None => Ok(()),
                Some(Ok(count @ 1..)) => press(&mut main, other.as_mut(), &typed[..count], &stop),
                Some(_) => break,
            };
            if pressed.is_err() {
                break;
            }
        }
    });
    Ok(())
}

/// Keys for the pseudo-terminal that listens. Those that make signals are for the session's, whose group they reach; but
/// that group is not siftd's, in which a script may wait that a terminal would have told, too.
fn press(main: &mut End, other: Option<&mut End>, typed: &[u8], stop: &OwnedFd) -> io::Result<()> {
    for signal in main.signals(typed) {
        match signal {
            Signal::TSTP => kill_process(getpid(), signal)?,
            _ => kill_process_group(getpgrp(), signal)?,
        }
    }
    let Some((other, modes)) = other.and_then(|other| other.listens().map(|modes| (other, modes))).filter(|_| main.listens().is_none()) else {
        return main.write(typed, stop);
    };
    let is_signal = |key: &u8| {
        let keys = [SpecialCodeIndex::VINTR, SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP].map(|index| modes.special_codes[index]);
        modes.local_modes.contains(LocalModes::ISIG) && keys.contains(key)
    };
    for part in typed.chunk_by(|a, b| is_signal(a) == is_signal(b)) {
        if part.first().is_some_and(is_signal) { main.write(part, stop)? } else { other.write(part, stop)? }
    }
    Ok(())
}

/// siftd's end of a pseudo-terminal.
struct End(File);

impl End {
    fn new(pty: &Pty) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(pty, true)?;
        Ok(Self(File::from(pty.as_fd().try_clone_to_owned()?)))
    }

    /// Its modes, if a program has taken it out of line mode.
    fn listens(&self) -> Option<Termios> {
        termios::tcgetattr(&self.0).ok().filter(|modes| !modes.local_modes.contains(LocalModes::ICANON))
    }

    /// The signals that keys make, where they are not merely read.
    fn signals(&self, typed: &[u8]) -> Vec<Signal> {
        let Ok(modes) = termios::tcgetattr(&self.0) else { return Vec::new() };
        let made = [(SpecialCodeIndex::VINTR, Signal::INT), (SpecialCodeIndex::VQUIT, Signal::QUIT), (SpecialCodeIndex::VSUSP, Signal::TSTP)];
        let made = made.into_iter().filter(|(index, _)| modes.local_modes.contains(LocalModes::ISIG) && typed.contains(&modes.special_codes[*index]));
        made.map(|(_, signal)| signal).collect()
    }

    fn write(&mut self, mut typed: &[u8], stop: &OwnedFd) -> io::Result<()> {
        while !typed.is_empty() {
            match self.0.write(typed) {
                Ok(count) => typed = &typed[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !waiting::writable(self.0.as_fd(), stop.as_fd())? {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

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
