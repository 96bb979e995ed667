//! Reading for one turn. Each read includes the last bytes of the previous one, which show whether
//! the file is still the same. Where possible, it reads straight into the stream's buffer.

use std::io::{self, IoSliceMut};

use super::hole::pass;
use super::{Reader, Space, Turn};
use crate::core::event::Timestamp;
use crate::core::frame::utf16;
use crate::sources::bytes::{Bytes, ReadAt};
use crate::sources::content::{TAIL_BYTES, bytes_at, push_tail};
use crate::sources::foreign;

/// Bytes to read of a file before the next file has its turn.
const TURN_BYTES: u64 = 1 << 20;
/// The same limit in events: where every line is an error, they take many times the memory of what was read.
const TURN_EVENTS: usize = 256;
/// Counting lines is quick, so such a turn may be longer.
const COUNT_BYTES: u64 = 64 << 20;
/// A file rewritten more often than this within one turn is left for the next turn.
const MAX_REWRITES: u32 = 2;

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Got {
    /// There may be more.
    More,
    /// There is nothing after what was read.
    End,
    /// The file is not the one that was read.
    Other,
}

impl Reader {
    pub(super) fn read(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        if self.offset == 0 && !self.is_done() {
            turn.left_out = self.left_out();
            if turn.left_out.is_some() {
                return Ok(());
            }
        }
        let mut rewrites = 0;
        while !self.is_done() {
            let most = if self.counting.is_some() { COUNT_BYTES } else { TURN_BYTES };
            if turn.bytes >= most || turn.events.len() >= TURN_EVENTS {
                turn.more = true;
                return Ok(());
            }
            let got = match self.read_some(space, now, turn) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got?,
            };
            if got == Got::End {
                return Ok(());
            }
            if got == Got::Other {
                rewrites += 1;
                if rewrites > MAX_REWRITES {
                    turn.more = true;
                    return Ok(());
                }
                self.rewritten(space, now, turn)?;
                self.take_up(None, space)?;
            }
        }
        Ok(())
    }

    /// Returns why the file is not a log, if it is not.
    fn left_out(&self) -> Option<String> {
        // A read error is reported by the reading itself.
        let first = bytes_at(self.file.as_ref()?, 0, foreign::BLOCK_BYTES).ok()?;
        foreign::left_out(&self.path, &first, self.engine.limits.mode)
    }

    /// Reads once.
    fn read_some(&mut self, space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<Got> {
        if let (Some(Bytes::Plain(_)), Some(_), None) = (&self.file, &self.stream, &self.counting) {
            return self.read_straight(now, turn);
        }
        let Some(file) = &self.file else { return Ok(Got::End) };
        let overlap = self.tail.len();
        let got = match file.read_at(&mut space.bytes, self.offset - overlap as u64) {
            Err(error) if file.is_packed() && error.kind() != io::ErrorKind::Interrupted => {
                return self.end_packed(Some(&error), space, now, turn).map(|()| Got::End);
            }
            got => got?,
        };
        if got < overlap || space.bytes[..overlap] != self.tail {
            return Ok(Got::Other);
        }
        if got == overlap {
            if file.is_packed() {
                // After what was read comes the end, or the error.
                let fault = file.read_at(&mut [0], self.offset).err();
                self.end_packed(fault.as_ref(), space, now, turn)?;
            }
            return Ok(Got::End);
        }
        let bytes = std::mem::take(&mut space.bytes);
        let fed = self.feed(&bytes[overlap..got], space, now, turn);
        space.bytes = bytes;
        fed.map(|()| Got::More)
    }

    /// Reads once, straight into the stream's buffer; the bytes read before are compared separately.
    fn read_straight(&mut self, now: Timestamp, turn: &mut Turn) -> io::Result<Got> {
        let (Some(Bytes::Plain(file)), Some(stream)) = (&self.file, &mut self.stream) else { return Ok(Got::End) };
        let overlap = self.tail.len();
        let mut seam = [0; TAIL_BYTES];
        let room = stream.space();
        let mut slices = [IoSliceMut::new(&mut seam[..overlap]), IoSliceMut::new(room)];
        let got = rustix::io::preadv(file, &mut slices, self.offset - overlap as u64)?;
        if got < overlap || seam[..overlap] != self.tail {
            return Ok(Got::Other);
        }
        let count = got - overlap;
        if count == 0 {
            return Ok(Got::End);
        }
        let bytes = &room[..count];
        turn.bytes += count as u64;
        self.head.push(bytes);
        push_tail(&mut self.tail, bytes);
        let mut events = Vec::new();
        if memchr::memchr(0, bytes).is_some() {
            let bytes = bytes.to_vec();
            pass(stream, &bytes, now, &mut events);
        } else {
            stream.advance(count, now, &mut events);
        }
        self.offset += count as u64;
        self.unfinished.read_to(self.offset, now);
        self.keep(events, turn);
        if self.tail.iter().all(|byte| *byte == 0) {
            self.skip_hole();
        }
        Ok(Got::More)
    }

    /// Passes on the next bytes of the file.
    fn feed(&mut self, bytes: &[u8], space: &mut Space, now: Timestamp, turn: &mut Turn) -> io::Result<()> {
        turn.bytes += bytes.len() as u64;
        self.unfinished.read_to(self.offset + bytes.len() as u64, now);
        if self.counting.is_some() {
            if self.offset == 0 && utf16(bytes).is_some() {
                // UTF-16 has no newline byte to count: read it, and leave out the events.
                self.begin();
                self.take_up(None, space)?;
            } else {
                return self.count(bytes, space);
            }
        }
        self.pass(bytes, now, turn);
        self.head.push(bytes);
        self.offset += bytes.len() as u64;
        push_tail(&mut self.tail, bytes);
        if self.tail.iter().all(|byte| *byte == 0) {
            self.skip_hole();
        }
        Ok(())
    }

    /// Passes bytes into the stream.
    pub(super) fn pass(&mut self, bytes: &[u8], now: Timestamp, turn: &mut Turn) {
        let mut events = Vec::new();
        if let Some(stream) = &mut self.stream {
            pass(stream, bytes, now, &mut events);
        }
        self.keep(events, turn);
    }
}
