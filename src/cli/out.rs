//! stdout as a plain file, without line buffering, and the handling of a pipe whose reader has gone.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use super::args::Color;
use super::stdin::StdinFault;
use super::{Exit, Failure, say};
use crate::sinks::human::Paint;
use crate::sources::input::Identity;
use crate::sources::interrupt::{self, Interrupt};

/// stdout, unbuffered.
pub fn stdout() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Returns the identity of stdout if it is a regular file, which must not be read as a log.
pub fn regular_stdout() -> Option<Identity> {
    let file = stdout().ok()?;
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    Identity::of(&file).ok().filter(|_| is_file)
}

/// Ignores a closed pipe: `head` and `less` close it when they have enough.
pub fn quiet_on_closed_pipe(result: io::Result<()>) -> Result<Exit, Failure> {
    match result {
        Err(error) if error.get_ref().is_some_and(|inner| inner.is::<StdinFault>()) => Err(Failure::new(error.to_string())),
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!("stdout: {error}"))),
        _ => Ok(Exit::Done),
    }
}

/// Ends siftd with the signal that was caught, once everything is written.
pub fn heed(interrupt: &Interrupt) {
    if let Some(signal) = interrupt.caught() {
        say(&"interrupted: what was read by then is all that is shown");
        interrupt::end(signal);
    }
}

/// Whether to colour stdout.
pub fn paint(color: Color) -> Paint {
    let is = |name: &str, wanted: fn(&OsStr) -> bool| std::env::var_os(name).is_some_and(|value| wanted(&value));
    // A dumb terminal would show the escapes as text.
    let plain = || is("NO_COLOR", |value| !value.is_empty()) || is("TERM", |value| value == "dumb");
    let on = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stdout().is_terminal() && !plain(),
    };
    Paint { on }
}

/// Prints a text and ends the command successfully.
pub fn print(text: &str) -> Result<Exit, Failure> {
    write(text.as_bytes())
}

/// Writes all bytes at once. The stdout of std would buffer what follows the last line end, and lose it silently.
pub fn write(bytes: &[u8]) -> Result<Exit, Failure> {
    quiet_on_closed_pipe(stdout().and_then(|mut out| out.write_all(bytes)))
}

/// Returns the columns of the terminal that stdout is, if it is one and says.
pub fn columns() -> Option<usize> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(out).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}
