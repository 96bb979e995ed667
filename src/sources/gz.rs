//! A reader over successive gzip members (RFC 1952). Zeros and blanks after them, as padding on
//! tape, are no fault. Like gzip, it stops before anything else that is not a member, and says so.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

use super::input::fill;

/// The first bytes of a member.
pub const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// Decompresses a source.
pub struct Gz<R: BufRead> {
    /// `None`: all members were read.
    member: Option<GzDecoder<Ahead<R>>>,
}

impl<R: BufRead> Gz<R> {
    /// Reads a source that begins with a member.
    pub fn new(source: R) -> Self {
        Self { member: Some(GzDecoder::new(Ahead { source, held: MAGIC, from: 0, to: 0 })) }
    }
}

impl<R: BufRead> Read for Gz<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buf)?;
            if count > 0 || buf.is_empty() {
                return Ok(count);
            }
            let mut behind = self.member.take().map(GzDecoder::into_inner);
            if behind.as_mut().map_or(Ok(false), Ahead::begins_member)? {
                self.member = behind.map(GzDecoder::new);
            } else if let Some(rest) = &mut behind {
                expect_padding(rest)?;
            }
        }
        Ok(0)
    }
}

/// Reads what follows the compressed data and ends there.
///
/// # Errors
/// It is not padding: its loss would otherwise go unnoticed.
pub fn expect_padding(rest: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = rest.fill_buf()?;
        if bytes.iter().any(|byte| *byte != 0 && !byte.is_ascii_whitespace()) {
            return Err(uncompressed());
        }
        match bytes.len() {
            0 => return Ok(()),
            count => rest.consume(count),
        }
    }
}

/// Returns the error for data that is not compressed.
pub fn uncompressed() -> io::Error {
    io::Error::other("what follows its compressed data is not compressed, and is not read")
}

/// A source with look-ahead for the next member's first bytes.
struct Ahead<R> {
    source: R,
    held: [u8; MAGIC.len()],
    from: usize,
    to: usize,
}

impl<R: BufRead> Ahead<R> {
    /// Whether another member follows; one cut off within its first bytes is an error.
    fn begins_member(&mut self) -> io::Result<bool> {
        (self.from, self.to) = (0, fill(&mut self.source, &mut self.held)?);
        match &self.held[..self.to] {
            [] => Ok(false),
            next if next.len() < MAGIC.len() && MAGIC.starts_with(next) => Err(ErrorKind::UnexpectedEof.into()),
            next => Ok(next == MAGIC),
        }
    }
}

impl<R: BufRead> Read for Ahead<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut next = self.fill_buf()?;
        let count = next.read(buf)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.from < self.to { Ok(&self.held[self.from..self.to]) } else { self.source.fill_buf() }
    }

    fn consume(&mut self, count: usize) {
        if self.from < self.to { self.from += count } else { self.source.consume(count) }
    }
}
