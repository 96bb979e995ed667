//! Inputs that are not logs, recognised by their first block: programs, images and databases,
//! archives, and siftd's own output. Otherwise "no errors found" in them would be taken for an answer.

use std::path::Path;

use super::archive::{self, Archive};
use super::binary;
use super::own::{Own, is_written};
use crate::core::transcript::Mode;

/// Bytes to examine.
pub const BLOCK_BYTES: usize = 8 << 10;

/// Why an input is not a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It has zeros amid its bytes.
    Binary,
    /// siftd wrote it.
    Own,
    /// siftd wrote it, in another format.
    Written,
    /// It is a packed archive.
    Packed(Archive),
}

impl Foreign {
    /// Returns the message of `scan` on the file at `path`, if it has one.
    #[must_use]
    pub fn advice(self, path: Option<&Path>) -> String {
        match self {
            Self::Binary => "is a binary file and was not read (--binary reads it)".to_owned(),
            Self::Own => "holds siftd's own records and was not read: `siftd digest` sums them up (--mode text reads it as a log)".to_owned(),
            Self::Written => "is siftd's own output and was not read (--mode text reads it as a log)".to_owned(),
            Self::Packed(archive) => archive.advice("scan", path),
        }
    }

    /// Returns the message of `run`.
    fn said(self, path: Option<&Path>) -> String {
        match self {
            Self::Binary => binary::LEFT_OUT.to_owned(),
            Self::Own => "holds siftd's own records and is not read (--mode text reads it as a log)".to_owned(),
            Self::Written => "is siftd's own output and is not read (--mode text reads it as a log)".to_owned(),
            Self::Packed(archive) => archive.advice("run", path),
        }
    }
}

/// Judges the first bytes of an input, unpacked. `is_whole`: nothing follows them.
#[must_use]
pub fn judge(first: &[u8], is_whole: bool) -> Option<Foreign> {
    let block = &first[..first.len().min(BLOCK_BYTES)];
    own(block, is_whole && first.len() <= BLOCK_BYTES)
        .or_else(|| archive::of(block).map(Foreign::Packed))
        .or_else(|| binary::is_binary(block).then_some(Foreign::Binary))
}

/// Whether siftd wrote it. A digest counts only as a whole, because other programs print one and continue.
fn own(block: &[u8], is_whole: bool) -> Option<Foreign> {
    if Own::of(block).is_some() {
        return Some(Foreign::Own);
    }
    is_written(block, if is_whole { block.len() } else { usize::MAX }).then_some(Foreign::Written)
}

/// Returns what an input is that begins with these bytes, if it is not read in this mode.
#[must_use]
pub fn unread(first: &[u8], is_whole: bool, mode: Mode) -> Option<Foreign> {
    let is_meant = |foreign: &Foreign| mode == Mode::Text && matches!(foreign, Foreign::Own | Foreign::Written);
    judge(first, is_whole).filter(|foreign| !is_meant(foreign))
}

/// Returns why a pipe that begins with these bytes is not read, if it is not a log.
#[must_use]
pub fn left_out_of_pipe(first: &[u8], is_whole: bool, mode: Mode) -> Option<String> {
    unread(first, is_whole, mode).map(|foreign| foreign.said(None))
}

/// Returns why the file at `path` with these first [`BLOCK_BYTES`] is not followed, if it is not a log.
#[must_use]
pub fn left_out(path: &Path, first: &[u8], mode: Mode) -> Option<String> {
    let own = if mode == Mode::Text { None } else { own(first, first.len() < BLOCK_BYTES) };
    own.map(|foreign| foreign.said(Some(path))).or_else(|| binary::left_out(path, first))
}
