//! The file whose line is explained: how much of it can be read, and what `scan` makes of it.

use std::io::{self, Read};
use std::path::Path;

use crate::cli::say;
use crate::core::pipeline::MAX_HEAD_BYTES;
use crate::sources::foreign;
use crate::sources::input::{self, Watched};

/// Says if a file is no log. It is explained all the same, since `scan` reads such a file when told to.
pub(super) fn say_if_foreign(path: &Path, head: &[u8]) {
    if let Some(foreign) = foreign::judge(head, head.len() < MAX_HEAD_BYTES) {
        say(&format!("{}: to `siftd scan` it {}", path.display(), foreign.advice(Some(path))));
    }
}

/// Opens a file for reading up to a damaged part; returns its first [`MAX_HEAD_BYTES`], too, and what follows them.
pub(super) fn open(path: &Path) -> io::Result<(Vec<u8>, UpToDamage)> {
    let mut rest = UpToDamage { bytes: input::file(path, Watched::default())?.bytes, damage: None };
    let mut head = vec![0; MAX_HEAD_BYTES];
    let count = input::fill(&mut rest, &mut head)?;
    head.truncate(count);
    Ok((head, rest))
}

/// The bytes before a damaged part, and the damage.
pub(super) struct UpToDamage {
    bytes: Box<dyn Read + Send>,
    pub(super) damage: Option<io::Error>,
}

impl Read for UpToDamage {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(space).or_else(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof | io::ErrorKind::Other => {
                self.damage = Some(error);
                Ok(0)
            }
            _ => Err(error),
        })
    }
}
