//! stdin for commands that copy it to stdout: its errors tell that stdin failed.

use std::io::{self, Read, Stdin};

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
