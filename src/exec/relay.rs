//! What a command leaves behind may still write when siftd has ended, as it could without siftd: a process of siftd's
//! own passes that on, unseen, for as long as somebody holds the other end.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::termios::{self, OptionalActions, OutputModes};

use super::signals;

/// What this process is called; it has no arguments.
const NAME: &str = "siftd-relay";

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
    let _ = io::copy(&mut io::stdin().lock(), &mut io::stdout().lock());
}
