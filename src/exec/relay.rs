//! A process of siftd's own that outlives siftd. What a command leaves behind may still write after siftd has ended,
//! as it could without siftd. The relay passes those bytes on, unexamined, until the last writer closes its end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::termios::{self, OptionalActions, OutputModes};

use super::{pump, signals};

/// The name of the relay process; it takes no arguments.
const NAME: &str = "siftd-relay";
/// Bytes per read, which is what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// Starts a process that copies `input` to `output` from now on.
///
/// # Errors
/// The process cannot be started.
pub fn take_over(input: File, output: File) -> io::Result<()> {
    // The descriptor was set non-blocking to write keys.
    rustix::io::ioctl_fionbio(&input, false)?;
    if let Ok(mut modes) = termios::tcgetattr(&input) {
        // From now on the real terminal processes the output again.
        modes.output_modes.remove(OutputModes::OPOST);
        termios::tcsetattr(&input, OptionalActions::Now, &modes)?;
    }
    let mut command = Command::new("/proc/self/exe");
    // A process group of its own: keys that interrupt the next command must not reach the relay.
    command.arg0(NAME).stdin(input).stdout(output).stderr(Stdio::null()).process_group(0);
    signals::as_before(|| command.spawn()).map(drop)
}

/// Whether this process is the relay.
#[must_use]
pub fn is_wanted() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Copies stdin to stdout until one of them ends.
pub fn copy() {
    // A writer notices by itself that the output is closed; nobody else needs to know.
    let _ = pass_on(io::stdin().as_fd(), io::stdout().as_fd());
}

/// Copies with read and write. `io::copy` uses splice(2), which takes the file position before it waits
/// for bytes, and so would overwrite what others that share the file have written in the meantime.
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
