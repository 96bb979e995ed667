//! Recognises a file by hashes of its first bytes and of the bytes before an offset.
//! The hashes cover only what was read, so even a file of one line has an identity.

use std::io::{self, ErrorKind};

use super::bytes::ReadAt;
use crate::delivery::{Content, Print};

/// Bytes to hash at the beginning.
pub const HEAD_BYTES: usize = 4096;
/// Bytes to hash before an offset.
pub const TAIL_BYTES: usize = 64;
/// Bytes to compare at once.
const STEP_BYTES: usize = 64 << 10;
/// Of a long file, at most this many bytes before an offset are compared.
const MAX_COMPARED_BYTES: u64 = 1 << 20;

/// Reads until `space` is full or the file ends.
///
/// # Errors
/// Those of the file system.
pub fn read_at(file: &(impl ReadAt + ?Sized), space: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < space.len() {
        match file.read_at(&mut space[count..], offset + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Returns `count` bytes at `offset`, or as many as there are.
///
/// # Errors
/// Those of the file system.
pub fn bytes_at(file: &(impl ReadAt + ?Sized), offset: u64, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let got = read_at(file, &mut bytes, offset)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Whether the file still holds what was read.
///
/// # Errors
/// Those of the file system.
pub fn is_same(file: &impl ReadAt, known: Content) -> io::Result<bool> {
    Ok(has(file, &known.head, 0)? && has(file, &known.tail, known.read.saturating_sub(u64::from(known.tail.len)))?)
}

fn has(file: &impl ReadAt, print: &Print, offset: u64) -> io::Result<bool> {
    let bytes = bytes_at(file, offset, print.len as usize)?;
    Ok(Print::of(&bytes) == *print)
}

/// Whether the first `len` bytes of both files are equal, as far as a bounded check can tell: it compares their heads, and up to 1 MiB before `len`.
///
/// # Errors
/// Those of the file system.
pub fn is_prefix(one: &impl ReadAt, other: &impl ReadAt, len: u64) -> io::Result<bool> {
    let head = len.min(HEAD_BYTES as u64);
    Ok(are_equal(one, other, 0, head)? && are_equal(one, other, len.saturating_sub(MAX_COMPARED_BYTES).max(head), len)?)
}

fn are_equal(one: &impl ReadAt, other: &impl ReadAt, from: u64, to: u64) -> io::Result<bool> {
    let mut at = from;
    while at < to {
        let count = (to - at).min(STEP_BYTES as u64) as usize;
        let (left, right) = (bytes_at(one, at, count)?, bytes_at(other, at, count)?);
        if left != right || left.len() < count {
            return Ok(false);
        }
        at += count as u64;
    }
    Ok(true)
}

/// The first bytes of a stream: kept while they are few, later only as a hash.
#[derive(Clone, Debug, Default)]
pub struct Head {
    bytes: Vec<u8>,
    print: Option<Print>,
}

impl Head {
    /// Continues the head of a file that was read before; `bytes` are its first bytes.
    #[must_use]
    pub fn known(print: Print, bytes: Vec<u8>) -> Self {
        if (print.len as usize) < HEAD_BYTES { Self { bytes, print: None } } else { Self { bytes: Vec::new(), print: Some(print) } }
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.print.is_some() {
            return;
        }
        let room = HEAD_BYTES - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.bytes.len() == HEAD_BYTES {
            self.print = Some(Print::of(&std::mem::take(&mut self.bytes)));
        }
    }

    /// Returns the hash of the first bytes.
    #[must_use]
    pub fn print(&self) -> Print {
        self.print.unwrap_or_else(|| Print::of(&self.bytes))
    }
}

/// Keeps the last bytes of a stream.
pub fn push_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() >= TAIL_BYTES {
        tail.clear();
        tail.extend_from_slice(&bytes[bytes.len() - TAIL_BYTES..]);
        return;
    }
    let gone = (tail.len() + bytes.len()).saturating_sub(TAIL_BYTES);
    tail.drain(..gone);
    tail.extend_from_slice(bytes);
}
