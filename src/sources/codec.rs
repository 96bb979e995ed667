//! Framing on the wire: newline-framed and octet-counted messages (RFC 6587), told apart message by message, become
//! lines that end with a newline. The decoder keeps only an undecided head: a message is passed on in pieces, and
//! `core::frame`, which receives them, cuts lines that are too long. It never fails: what has no frame is text.

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::Decoder;

use crate::config::Framing;
use crate::core::frame::{Buffer, Framed};
use crate::telemetry::metrics::Counter;

/// A number above this is not a count.
const MAX_COUNT: usize = 1 << 20;
/// Maximum digits of a count.
const MAX_DIGITS: usize = 7;
/// Maximum bytes needed to decide how a message is framed: count, space, priority.
const HEAD_BYTES: usize = MAX_DIGITS + 1 + 5;

/// The state of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the beginning of a message.
    Start,
    /// Inside a message that ends with a newline.
    Line,
    /// Inside a message of which this many bytes are left.
    Counted(usize),
    /// After a counted message.
    Trailer,
    /// A frame was broken: text, until a new frame is found.
    Lost,
}

/// The decoder of one connection.
pub struct Frames {
    framing: Framing,
    state: State,
    /// Whether the output ends with a newline so far.
    is_ended: bool,
    broken: Arc<Counter>,
}

/// What the first bytes of a message begin.
enum Head {
    /// A counted message: its count, and the length of the count with the space.
    Counted(usize, usize),
    Other,
    /// Too few bytes to tell.
    More,
}

impl Frames {
    /// Starts at the beginning of a connection. `broken` counts broken frames.
    #[must_use]
    pub fn new(framing: Framing, broken: Arc<Counter>) -> Self {
        Self { framing, state: State::Start, is_ended: true, broken }
    }

    /// Takes what can be decided from `src`; `is_end`: nothing more will come.
    fn take(&mut self, src: &mut BytesMut, is_end: bool) -> Bytes {
        if self.framing == Framing::Newline {
            return src.split().freeze();
        }
        let mut out = BytesMut::with_capacity(src.len() + 1);
        while !src.is_empty() {
            let went_on = match self.state {
                State::Start => self.start(src, is_end),
                State::Trailer => self.trailer(src, is_end),
                State::Line => {
                    let end = memchr::memchr(b'\n', src).map(|at| at + 1);
                    self.pass(src, end.unwrap_or(src.len()), &mut out);
                    if end.is_some() {
                        self.state = State::Start;
                    }
                    true
                }
                State::Counted(left) => {
                    let count = left.min(src.len());
                    self.pass(src, count, &mut out);
                    self.state = State::Counted(left - count);
                    if left == count {
                        self.finish(&mut out);
                        self.state = State::Trailer;
                    }
                    true
                }
                State::Lost => self.look_for_frame(src, is_end, &mut out),
            };
            if !went_on {
                break;
            }
        }
        out.freeze()
    }

    fn pass(&mut self, src: &mut BytesMut, count: usize, out: &mut BytesMut) {
        if count > 0 {
            self.is_ended = src[count - 1] == b'\n';
            out.extend_from_slice(&src[..count]);
            src.advance(count);
        }
    }

    /// Ends a line here, whether or not it brought its own newline.
    fn finish(&mut self, out: &mut BytesMut) {
        if !std::mem::replace(&mut self.is_ended, true) {
            out.extend_from_slice(b"\n");
        }
    }

    fn start(&mut self, src: &mut BytesMut, is_end: bool) -> bool {
        let is_strict = self.framing == Framing::OctetCounting;
        match head(src, is_strict) {
            Head::Counted(count, len) => {
                src.advance(len);
                self.state = State::Counted(count);
            }
            Head::More if !is_end => return false,
            _ if is_strict => self.lose(),
            _ => self.state = State::Line,
        }
        true
    }

    /// Skips the newline that some senders add to a counted message. After a count, only a count or a `<` begins a message.
    fn trailer(&mut self, src: &mut BytesMut, is_end: bool) -> bool {
        while let Some(b'\n' | b'\r' | 0) = src.first() {
            src.advance(1);
        }
        let Some(first) = src.first() else { return true };
        match head(src, true) {
            Head::Counted(..) => self.state = State::Start,
            Head::More if !is_end => return false,
            _ if *first == b'<' && self.framing == Framing::Auto => self.state = State::Line,
            _ => self.lose(),
        }
        true
    }

    fn lose(&mut self) {
        self.broken.add(1);
        self.state = State::Lost;
    }

    /// Passes text up to a newline, or up to what looks like a frame.
    fn look_for_frame(&mut self, src: &mut BytesMut, is_end: bool, out: &mut BytesMut) -> bool {
        let newline = memchr::memchr(b'\n', src).map_or(src.len(), |at| at + 1);
        if let Some(frame) = memchr::memchr_iter(b'<', &src[..newline]).find_map(|at| frame_before(src, at)) {
            self.pass(src, frame, out);
            self.finish(out);
            self.state = State::Start;
            return true;
        }
        let is_line = src[newline - 1] == b'\n';
        // A frame may begin within the last bytes.
        let count = if is_line || is_end { newline } else { src.len().saturating_sub(HEAD_BYTES) };
        self.pass(src, count, out);
        if is_line {
            self.state = State::Start;
        }
        count > 0
    }
}

/// Returns where the count begins that precedes the `<` of a priority at `at`.
fn frame_before(src: &[u8], at: usize) -> Option<usize> {
    let blank = at.checked_sub(1).filter(|blank| src[*blank] == b' ')?;
    let digits = src[..blank].iter().rev().take(MAX_DIGITS).take_while(|b| b.is_ascii_digit()).count();
    // Leading zeros are not part of a count.
    let zeros = src[blank - digits..blank].iter().take_while(|b| **b == b'0').count();
    let from = blank - digits + zeros;
    if from == blank {
        return None;
    }
    matches!(head(&src[from..], false), Head::Counted(..)).then_some(from)
}

/// Says what the first bytes begin. Unless `is_strict`, a priority must follow the count, because a line may begin with a number.
fn head(src: &[u8], is_strict: bool) -> Head {
    let digits = src.iter().take(MAX_DIGITS + 1).take_while(|b| b.is_ascii_digit()).count();
    if digits == src.len() && digits <= MAX_DIGITS && src[0] != b'0' {
        return Head::More;
    }
    let count = src[..digits].iter().fold(0, |n, digit| n * 10 + usize::from(digit - b'0'));
    if digits == 0 || digits > MAX_DIGITS || src[0] == b'0' || src[digits] != b' ' || count > MAX_COUNT {
        return Head::Other;
    }
    let priority = &src[digits + 1..src.len().min(digits + 6)];
    if !is_strict && is_priority(priority) != Some(true) {
        return if is_priority(priority).is_none() { Head::More } else { Head::Other };
    }
    Head::Counted(count, digits + 1)
}

/// Whether these bytes begin with a `<PRI>`; `None` if that is undecided.
fn is_priority(src: &[u8]) -> Option<bool> {
    let first = src.first()?;
    let digits = src[1..].iter().take(3).take_while(|b| b.is_ascii_digit()).count();
    match src.get(1 + digits) {
        None if *first == b'<' => None,
        end => Some(*first == b'<' && digits > 0 && end == Some(&b'>')),
    }
}

impl Decoder for Frames {
    type Item = Bytes;
    type Error = io::Error;

    fn decode(&mut self, src: &mut BytesMut) -> io::Result<Option<Bytes>> {
        Ok(Some(self.take(src, false)).filter(|out| !out.is_empty()))
    }

    fn decode_eof(&mut self, src: &mut BytesMut) -> io::Result<Option<Bytes>> {
        Ok(Some(self.take(src, true)).filter(|out| !out.is_empty()))
    }
}

/// Whole lines without their newlines, and whether each was cut: for readers of records that a program prints.
pub struct Lines(Buffer);

impl Lines {
    /// Starts at the beginning of a stream. Longer lines are cut.
    #[must_use]
    pub fn new(max_line_bytes: usize) -> Self {
        Self(Buffer::new(max_line_bytes))
    }

    fn take(&mut self, framed: &Framed, lines: &mut Vec<(Vec<u8>, bool)>) {
        let block = &self.0.bytes[framed.from..framed.to];
        let all = block.strip_suffix(b"\n").unwrap_or(block).split(|byte| *byte == b'\n');
        lines.extend(all.map(|line| (line.to_vec(), framed.truncated)));
        self.0.done(framed);
    }
}

impl Decoder for Lines {
    type Item = Vec<(Vec<u8>, bool)>;
    type Error = io::Error;

    fn decode(&mut self, src: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        let mut lines = Vec::new();
        while !src.is_empty() {
            let space = self.0.space();
            let count = space.len().min(src.len());
            space[..count].copy_from_slice(&src[..count]);
            src.advance(count);
            self.0.filled(count);
            while let Some(framed) = self.0.next_lines() {
                self.take(&framed, &mut lines);
            }
        }
        Ok(Some(lines).filter(|lines| !lines.is_empty()))
    }

    fn decode_eof(&mut self, src: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        if let Some(lines) = self.decode(src)? {
            return Ok(Some(lines));
        }
        let mut lines = Vec::new();
        if let Some(framed) = self.0.last_line() {
            self.take(&framed, &mut lines);
        }
        Ok(Some(lines).filter(|lines| !lines.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `text` in pieces of `size` bytes; returns the output and the number of broken frames.
    fn framed(framing: Framing, text: &[u8], size: usize) -> (String, u64) {
        let broken = Arc::new(Counter::default());
        let mut frames = Frames::new(framing, broken.clone());
        let (mut src, mut out) = (BytesMut::new(), Vec::new());
        for piece in text.chunks(size) {
            src.extend_from_slice(piece);
            while let Some(bytes) = frames.decode(&mut src).unwrap() {
                out.extend_from_slice(&bytes);
            }
            assert!(src.len() <= HEAD_BYTES, "{} bytes are kept", src.len());
        }
        while let Some(bytes) = frames.decode_eof(&mut src).unwrap() {
            out.extend_from_slice(&bytes);
        }
        assert!(src.is_empty());
        (String::from_utf8_lossy(&out).into_owned(), broken.get())
    }

    #[track_caller]
    fn check(framing: Framing, text: &str, wanted: &str, broken: u64) {
        for size in [1, 2, 3, 7, 1000] {
            assert_eq!(framed(framing, text.as_bytes(), size), (wanted.to_owned(), broken), "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn each_message_says_how_it_is_framed() {
        let auto = Framing::Auto;
        check(auto, "<11>one\n7 <11>two<11>three\nfour\n", "<11>one\n<11>two\n<11>three\nfour\n", 0);
        check(auto, "8 <11>two\n9 <11>three", "<11>two\n<11>three\n", 0);
        check(auto, "7 <11>two\n9 <11>three\n", "<11>two\n<11>three\n", 0);
        // A message of several lines.
        check(auto, "12 <11>two\na\nb\nnext\n", "<11>two\na\nb\nnext\n", 1);
        // Text that begins with a number.
        check(auto, "12 apples\n12\n7 <a>\n0 <11>x\n", "12 apples\n12\n7 <a>\n0 <11>x\n", 0);
        check(auto, "12", "12", 0);
        check(auto, "12 <1", "12 <1", 0);
        check(auto, "99999999 <11>a\nb\n", "99999999 <11>a\nb\n", 0);
        check(Framing::Newline, "7 <11>two\n", "7 <11>two\n", 0);
        check(Framing::OctetCounting, "3 one4 two\n", "one\ntwo\n", 0);
    }

    #[test]
    fn a_wrong_count_loses_no_more_than_its_frame() {
        let auto = Framing::Auto;
        // Too small: the rest is text, up to the next frame.
        check(auto, "6 <11>two9 <11>three", "<11>tw\no\n<11>three\n", 1);
        // Too large: it takes part of the next one.
        check(auto, "10 <11>two9 <11>three8 <11>four", "<11>two9 <\n11>three\n<11>four\n", 1);
        check(Framing::OctetCounting, "x3 one\n3 two", "x3 one\ntwo\n", 1);
        check(Framing::OctetCounting, "2000000 one\n3 two", "2000000 one\ntwo\n", 1);
        // The input ends inside a frame.
        check(auto, "90 <11>two", "<11>two", 0);
    }

    #[test]
    fn no_bytes_are_kept_and_none_are_lost() {
        let parts = ["7 ", "<11>", "<", "1", "12 <3>", "\n", "x", "0", " ", "99 "];
        let mut seed = 3u64;
        for _ in 0..3000 {
            let mut text = String::new();
            for _ in 0..20 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text += parts[(seed >> 40) as usize % parts.len()];
            }
            for framing in [Framing::Auto, Framing::OctetCounting, Framing::Newline] {
                let whole = framed(framing, text.as_bytes(), 1000);
                assert_eq!(framed(framing, text.as_bytes(), 1), whole, "{text:?}");
                let letters = |text: &str| text.matches('x').count();
                assert_eq!(letters(&whole.0), letters(&text), "{text:?}");
            }
        }
    }
}
