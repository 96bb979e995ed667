//! Inputs that are no log, told by their first block: programs, images and databases, archives, and siftd's own output. That
//! nothing is found in them would be taken for an answer.

use std::borrow::Cow;

use crate::digest::Own;
use crate::sources::archive::{self, Archive};

/// Bytes that are looked at.
const BLOCK_BYTES: usize = 8 << 10;
/// From so many zeros amid text on a file is binary: one or two are a damaged log's.
const MIN_ZEROS: usize = 3;

/// Why an input is no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Zeros stand between its bytes.
    Binary,
    /// siftd wrote it.
    Own,
    /// It holds others, packed.
    Packed(Archive),
}

impl Foreign {
    /// What is said of it.
    pub fn advice(self) -> Cow<'static, str> {
        match self {
            Self::Binary => "is a binary file and was not read (--binary reads it)".into(),
            Self::Own => "holds siftd's own records and was not read: `siftd digest` sums them up (--mode text reads it as a log)".into(),
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
    archive::of(block).map(Foreign::Packed).or_else(|| is_binary(block).then_some(Foreign::Binary))
}

/// Zeros between text, and not those of a hole before a line, which a writer leaves whose file was truncated under it.
fn is_binary(block: &[u8]) -> bool {
    if memchr::memchr(0, block).is_none() || is_utf16(block) {
        return false;
    }
    let begins = |at: usize| block[at] == 0 && !matches!(at.checked_sub(1).map(|before| block[before]), None | Some(0 | b'\n'));
    (0..block.len()).filter(|&at| begins(at)).nth(MIN_ZEROS - 1).is_some()
}

/// With a mark, or with a zero in every other byte and nowhere else.
fn is_utf16(block: &[u8]) -> bool {
    let zeros = |from: usize| block.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    block.starts_with(b"\xff\xfe") || block.starts_with(b"\xfe\xff") || (even.min(odd) == 0 && even.max(odd) > block.len() / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_amid_text_make_a_file_binary_and_a_hole_does_not() {
        let utf16: Vec<u8> = "an error\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (first, want) in [
            (&b"\x7fELF\x02\x01\x01\0\0\0\0\x03\0>\0\x01\0\0\0error:"[..], true),
            (b"SQLite format 3\0\x10\0\x01\x01\0@  \0\0", true),
            (b"\0\0\0\0error: x\nmore\n", false),
            (b"a\n\0\0\0error: x\nb\n\0\0c\nd\n\0\0e\nf\n\0\0", false),
            (b"power lost\0\0\0\0\nerror: x\n", false),
            (b"\xff\xfea\0b\0c\0d\0", false),
            (&utf16, false),
            (&[0; 9000], false),
            (b"error: x\n", false),
            (b"", false),
        ] {
            assert_eq!(judge(first) == Some(Foreign::Binary), want, "{first:?}");
        }
    }
}
