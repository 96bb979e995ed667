//! What a command leaves behind may still write when siftd has ended, as it could without siftd: a process of siftd's
//! own passes that on, unseen, for as long as somebody holds the other end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::termios::{self, OptionalActions, OutputModes};

use super::{pump, signals};

/// What this process is called; it has no arguments.
const NAME: &str = "siftd-relay";
/// Bytes of one read, which is what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// Starts the process that copies `input` to `output` from now on.
///
/// # Errors
/// It cannot be started.
pub fn take_over(input: File, output: File) -> io::Result<()> {
    // For the keys it did not wait.
    rustix::io::ioctl_fionbio(&input, false)?;
    if let Ok(mut modes) = termios::tcgetattr(&input) {
        // The real terminal does again what terminals do to output.
        modes.output_modes.remove(OutputModes::OPOST);
        termios::tcsetattr(&input, OptionalActions::Now, &modes)?;
    }
    let mut command = Command::new("/proc/self/exe");
    // A group of its own: the keys that end the next command are not meant for it.
    command.arg0(NAME).stdin(input).stdout(output).stderr(Stdio::null()).process_group(0);
    signals::as_before(|| command.spawn()).map(drop)
}

/// Whether this is that process.
#[must_use]
pub fn is_wanted() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Copies stdin to stdout until one of them ends.
pub fn copy() {
    // Whoever writes on learns of a closed output by its own; there is nobody else to tell.
    let _ = pass_on(io::stdin().as_fd(), io::stdout().as_fd());
}

/// With reads and writes: splice(2), which `io::copy` takes, looks where a file stands before it waits for bytes, and what
/// others who share the file have written meanwhile would be overwritten.
fn pass_on(input: BorrowedFd, output: BorrowedFd) -> io::Result<()> {
    let [mut input, mut output] = [File::from(input.try_clone_to_owned()?), File::from(output.try_clone_to_owned()?)];
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match input.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => pump::write_all(&mut output, &bytes[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
