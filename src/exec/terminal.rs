//! Terminals: which of the three streams are terminals, the pseudo-terminals
//! that replace them, and raw mode while a command uses the keyboard.

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
    /// A session of its own on a pseudo-terminal: siftd handles keyboard and screen.
    Session,
    /// siftd's own process group: the terminal's signals reach the command directly.
    Shared,
    /// A process group of its own: no terminal, or in the background of one.
    Own,
}

/// The terminals that siftd was started on.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// stdout is a terminal.
    pub stdout: bool,
    /// stderr is a terminal.
    pub stderr: bool,
    /// The wiring that follows from them.
    pub wiring: Wiring,
}

impl Around {
    /// Inspects the three streams and the controlling terminal.
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

    /// Opens a pseudo-terminal to replace a real one. Unless siftd puts the real one in raw
    /// mode, that one still processes output, so the pseudo-terminal must not do it as well.
    ///
    /// # Errors
    /// The system's error.
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
            // A terminal without a size is no reason to fail.
            let _ = pty.resize(size);
        }
    }
}

/// Converts an error of a pseudo-terminal.
pub fn into_io(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
    }
}

/// The terminal on stdin in raw mode, until this is dropped.
pub struct Raw(Termios);

impl Raw {
    /// Saves the current modes and sets raw mode.
    ///
    /// # Errors
    /// The system's error.
    pub fn enter() -> io::Result<Self> {
        let raw = Self(termios::tcgetattr(io::stdin())?);
        raw.again()?;
        Ok(raw)
    }

    /// Restores the saved modes while siftd is stopped.
    pub fn leave(&self) {
        // There is nobody left to tell.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }

    /// Sets raw mode again.
    ///
    /// # Errors
    /// The system's error.
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
