//! stdin for commands that read it. On a terminal nothing comes until somebody types, so they say what is
//! missing; for those that copy it to stdout, its errors tell that stdin failed.

use std::io::{self, IsTerminal, Read, Stdin};

use super::Failure;

/// Whether stdin has input to read if no input was named.
pub fn is_given() -> bool {
    !io::stdin().is_terminal()
}

/// Checks that stdin has input to read. The message is that there is nothing to `verb`, and `mend`
/// says what to do; `command` is the one whose help says more.
///
/// # Errors
/// stdin is a terminal.
pub fn needed(verb: &str, mend: &str, command: &str) -> Result<(), Failure> {
    if is_given() { Ok(()) } else { Err(Failure::new(format!("nothing to {verb}: {mend} (siftd {command} --help)"))) }
}

/// stdin could not be read.
#[derive(Debug, thiserror::Error)]
#[error("stdin: {0}")]
pub struct StdinFault(io::Error);

/// stdin, with errors of type [`StdinFault`].
pub struct NamedStdin(Stdin);

impl NamedStdin {
    /// Creates it for the stdin of this process.
    pub fn new() -> Self {
        Self(io::stdin())
    }
}

impl Read for NamedStdin {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.0.read(space).map_err(|error| io::Error::new(error.kind(), StdinFault(error)))
    }
}
