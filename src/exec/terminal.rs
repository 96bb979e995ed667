//! Terminals: which of the three streams is one, the pseudo-terminals that stand in for them, and raw mode for as long
//! as a command has the keyboard.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use pty_process::Size;
use pty_process::blocking::{Pts, Pty};
use rustix::process::getpgrp;
use rustix::termios::{self, OptionalActions, OutputModes, Termios, isatty};

/// How the command is tied to the terminal and to siftd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// A session of its own on a pseudo-terminal: siftd has keyboard and screen.
    Session,
    /// siftd's own group: the terminal's signals reach it by themselves.
    Shared,
    /// A group of its own: without a terminal, or in the background of one.
    Own,
}

/// What siftd was started on.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// stdout is a terminal.
    pub stdout: bool,
    /// stderr is a terminal.
    pub stderr: bool,
    /// What follows from it.
    pub wiring: Wiring,
}

impl Around {
    /// Looks at the three streams and the controlling terminal.
    #[must_use]
    pub fn look() -> Self {
        let (stdin, stdout, stderr) = (isatty(io::stdin()), isatty(io::stdout()), isatty(io::stderr()));
        let in_front = File::open("/dev/tty").is_ok_and(|tty| termios::tcgetpgrp(&tty).is_ok_and(|group| group == getpgrp()));
        let wiring = match (in_front, stdin && stdout) {
            (true, true) => Wiring::Session,
            (true, false) => Wiring::Shared,
            (false, _) => Wiring::Own,
        };
        Self { stdout, stderr, wiring }
    }

    fn size(self) -> Option<Size> {
        let size = if self.stdout { termios::tcgetwinsize(io::stdout()) } else { termios::tcgetwinsize(io::stderr()) };
        size.ok().map(|size| Size::new_with_pixel(size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel))
    }

    /// A pseudo-terminal in the place of a real one. Unless siftd makes that raw, it still does what a terminal
    /// does to output, and this one must not do it, too.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(self, real: impl AsFd) -> io::Result<(Pty, Pts)> {
        let (pty, pts) = pty_process::blocking::open().map_err(into_io)?;
        let mut modes = termios::tcgetattr(real)?;
        if self.wiring != Wiring::Session {
            modes.output_modes.remove(OutputModes::OPOST);
        }
        termios::tcsetattr(&pts, OptionalActions::Now, &modes)?;
        self.resize(&pty);
        Ok((pty, pts))
    }

    /// Gives a pseudo-terminal the size of the real one.
    pub fn resize(self, pty: &Pty) {
        if let Some(size) = self.size() {
            // A terminal without a size is no reason to stop.
            let _ = pty.resize(size);
        }
    }
}

/// The reason behind an error of a pseudo-terminal.
pub fn into_io(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
    }
}

/// The terminal on stdin in raw mode, until this is dropped.
pub struct Raw(Termios);

impl Raw {
    /// Saves the modes and sets raw ones.
    ///
    /// # Errors
    /// What the system says.
    pub fn enter() -> io::Result<Self> {
        let raw = Self(termios::tcgetattr(io::stdin())?);
        raw.again()?;
        Ok(raw)
    }

    /// The modes from before, for as long as siftd is stopped.
    pub fn leave(&self) {
        // There is nobody left to tell.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }

    /// Raw modes again.
    ///
    /// # Errors
    /// What the system says.
    pub fn again(&self) -> io::Result<()> {
        let mut raw = self.0.clone();
        raw.make_raw();
        Ok(termios::tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.leave();
    }
}
