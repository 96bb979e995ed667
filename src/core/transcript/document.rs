//! Documents: one JSON value over a whole file, whose steps come one by one. The reader keeps one step
//! at a time, cut in the middle of its long strings; all between the steps is only counted.
//!
//! Two shapes: an object whose `trajectory` is a list of steps (SWE-agent), and a list of records of
//! some other format.

use super::Format;
use super::json;

/// Most bytes of one step that are kept.
const MAX_STEP_BYTES: usize = 4 << 20;
/// A longer string keeps its two ends.
const MAX_STRING_BYTES: usize = 256 << 10;
/// The list of a trajectory's steps, and the object that says how it ended.
const STEPS: &[u8] = b"trajectory";
const ENDING: &[u8] = b"info";

/// A reader of one document.
#[derive(Debug, Default)]
pub struct Document {
    /// The root is a list.
    is_list: bool,
    begun: bool,
    ended: bool,
    depth: u32,
    string: Option<usize>,
    escaped: bool,
    /// The string under way at the depth of the root's keys.
    key: Vec<u8>,
    wants_key: bool,
    /// Inside the list of steps.
    in_steps: bool,
    /// The element under way: its bytes, and where it began.
    element: Option<Element>,
    /// Bytes and lines so far.
    offset: u64,
    lines: u64,
}

#[derive(Debug)]
struct Element {
    bytes: Vec<u8>,
    depth: u32,
    offset: u64,
    num: u64,
    dropped: bool,
}

/// An element that is complete.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Its JSON.
    pub bytes: Vec<u8>,
    /// Where its first byte stands in the stream.
    pub offset: u64,
    /// 1-based line on which it begins.
    pub num: u64,
}

impl Document {
    /// Whether a document could begin with `head`: the cheap test before the real one.
    pub fn may_begin(head: &[u8]) -> bool {
        matches!(head.trim_ascii_start().first(), Some(b'{' | b'['))
    }

    /// A reader for the document that begins with `head`, and its format.
    pub fn begins(head: &[u8]) -> Option<(Self, Format)> {
        let mut probe = Self::default();
        let mut first = None;
        let keys = probe.feed(head, |found| first = first.take().or(Some(found.bytes)));
        if probe.is_list {
            let record = json::parse(&first?)?;
            let format = Format::JSON.into_iter().find(|format| format.knows(&record))?;
            return Some((Self::default(), format));
        }
        keys.then(|| (Self::default(), Format::SweAgent))
    }

    /// Reads on; `take` gets each element that is complete. Whether the list of steps was seen.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Found)) -> bool {
        let mut seen = false;
        for &byte in bytes {
            self.byte(byte, &mut take);
            seen |= self.in_steps;
            self.offset += 1;
            self.lines += u64::from(byte == b'\n');
        }
        seen
    }

    /// Lines so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    fn byte(&mut self, byte: u8, take: &mut impl FnMut(Found)) {
        // Behind the value there is no document: another one is another record.
        if self.ended {
            return;
        }
        if let Some(element) = &mut self.element {
            element.push(byte);
        }
        if let Some(start) = self.string {
            self.in_string(byte, start);
            return;
        }
        match byte {
            b'"' => {
                self.key.clear();
                self.string = Some(self.element.as_ref().map_or(0, |element| element.bytes.len()));
            }
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => self.close(take),
            b':' => self.wants_key = false,
            b',' if self.depth == 1 => self.wants_key = true,
            _ => {}
        }
    }

    fn in_string(&mut self, byte: u8, start: usize) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.string = None;
            return;
        }
        if self.depth == 1 && self.wants_key && self.key.len() < 32 {
            self.key.push(byte);
        }
        if let Some(element) = &mut self.element {
            element.shorten(start);
        }
    }

    fn open(&mut self, byte: u8) {
        if !self.begun {
            self.begun = true;
            self.is_list = byte == b'[';
            self.wants_key = !self.is_list;
            self.in_steps = self.is_list;
            self.depth = 1;
            return;
        }
        let is_step = self.in_steps && self.depth == if self.is_list { 1 } else { 2 };
        let is_ending = !self.is_list && self.depth == 1 && self.key == ENDING;
        if byte == b'{' && self.element.is_none() && (is_step || is_ending) {
            let (offset, num) = (self.offset, self.lines + 1);
            self.element = Some(Element { bytes: vec![byte], depth: self.depth, offset, num, dropped: false });
        }
        if byte == b'[' && self.depth == 1 && !self.is_list && self.key == STEPS {
            self.in_steps = true;
        }
        self.depth = self.depth.saturating_add(1);
    }

    fn close(&mut self, take: &mut impl FnMut(Found)) {
        self.depth = self.depth.saturating_sub(1);
        self.ended = self.depth == 0;
        if self.element.as_ref().is_some_and(|element| element.depth == self.depth)
            && let Some(element) = self.element.take()
            && !element.dropped
        {
            take(Found { bytes: element.bytes, offset: element.offset, num: element.num });
        }
        if self.depth == 1 && !self.is_list {
            self.in_steps = false;
        }
    }
}

impl Element {
    fn push(&mut self, byte: u8) {
        if self.bytes.len() >= MAX_STEP_BYTES {
            self.dropped = true;
            self.bytes = Vec::new();
        }
        if !self.dropped {
            self.bytes.push(byte);
        }
    }

    /// Takes the middle out of the string that begins at `start`, when it has grown too long.
    fn shorten(&mut self, start: usize) {
        let end = self.bytes.len();
        if end.saturating_sub(start) < 2 * MAX_STRING_BYTES {
            return;
        }
        let from = plain(&self.bytes, start + MAX_STRING_BYTES / 2, start);
        let to = plain(&self.bytes, end - MAX_STRING_BYTES / 2, from);
        self.bytes.drain(from..to);
    }
}

/// The last place up to `at` that no escape reaches over; `at` itself where there is none.
fn plain(bytes: &[u8], at: usize, least: usize) -> usize {
    let is_plain =
        |place: &usize| place.checked_sub(12).is_some_and(|from| !bytes[from..*place].contains(&b'\\')) && bytes.get(*place).is_some_and(u8::is_ascii);
    (least.max(at.saturating_sub(4096))..=at).rev().find(is_plain).unwrap_or(at)
}
