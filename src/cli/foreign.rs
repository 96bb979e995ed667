//! Inputs that are no log, told by their first block: programs, images and databases, archives, and siftd's own output. That
//! nothing is found in them would be taken for an answer.

use std::borrow::Cow;

use crate::digest::{Own, is_written};
use crate::sources::archive::{self, Archive};
use crate::sources::binary::is_binary;

/// Bytes that are looked at.
const BLOCK_BYTES: usize = 8 << 10;

/// Why an input is no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Zeros stand between its bytes.
    Binary,
    /// siftd wrote it.
    Own,
    /// siftd wrote it, in a form for others.
    Written,
    /// It holds others, packed.
    Packed(Archive),
}

impl Foreign {
    /// What is said of it.
    pub fn advice(self) -> Cow<'static, str> {
        match self {
            Self::Binary => "is a binary file and was not read (--binary reads it)".into(),
            Self::Own => "holds siftd's own records and was not read: `siftd digest` sums them up (--mode text reads it as a log)".into(),
            Self::Written => "is siftd's own output and was not read (--mode text reads it as a log)".into(),
            Self::Packed(archive) => archive.advice("scan").into(),
        }
    }
}

/// Judges the first bytes of an input, unpacked.
pub fn judge(first: &[u8]) -> Option<Foreign> {
    let block = &first[..first.len().min(BLOCK_BYTES)];
    if Own::of(block).is_some() {
        return Some(Foreign::Own);
    }
    if is_written(block, first.len()) {
        return Some(Foreign::Written);
    }
    archive::of(block).map(Foreign::Packed).or_else(|| is_binary(block).then_some(Foreign::Binary))
}
