//! Documents: JSON values that span many lines, whose records are read one by one. The reader keeps one record
//! at a time, with the middle of its long strings cut out; everything between the records is only counted.
//!
//! Their shapes: an object with a list of steps (a `trajectory` of SWE-agent, a `history` of OpenHands, the
//! `loglines` of Claude Code's web sessions, the `messages` of Gemini's and other chats), a list of records of some
//! format, and indented records, one or several.

use super::Format;
use super::json;
use crate::core::frame::edge;

/// Most bytes of one step that are kept; a longer one is not read.
const MAX_STEP_BYTES: usize = 4 << 20;
/// A longer string is cut to its two ends.
const MAX_STRING_BYTES: usize = 256 << 10;
/// The list of a trajectory's steps, and the object that states how it ended.
const STEPS: &[u8] = b"trajectory";
const ENDING: &[u8] = b"info";
/// The list of a conversation's events.
const HISTORY: &[u8] = b"history";
/// The list of a session's records, as Claude Code's web sessions are saved.
const LOGLINES: &[u8] = b"loglines";
/// The list of a chat's messages. Log records have such a list too, each on a line of its own.
const MESSAGES: &[u8] = b"messages";

/// Which parts of a document are records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    /// The objects in a list.
    #[default]
    List,
    /// The objects in the list under this key of the root.
    Member(&'static [u8]),
    /// The root itself.
    Root,
}

/// A reader of one document, or of several in a row.
#[derive(Debug, Default)]
pub struct Document {
    shape: Shape,
    /// Whether nothing after the first value is read.
    is_single: bool,
    begun: bool,
    ended: bool,
    depth: u32,
    string: Option<usize>,
    escaped: bool,
    /// The string being read at the depth of the root's keys.
    key: Vec<u8>,
    wants_key: bool,
    /// Whether the reader is inside the list of steps.
    in_steps: bool,
    /// The element being read: its bytes, and where it began.
    element: Option<Element>,
    /// If requested, the bytes of a root element up to the end of its last complete member.
    whole_members: Option<usize>,
    /// Bytes and lines read so far.
    offset: u64,
    lines: u64,
}

#[derive(Debug)]
struct Element {
    bytes: Vec<u8>,
    depth: u32,
    offset: u64,
    num: u64,
    truncated: bool,
    dropped: bool,
}

/// A complete element.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The JSON of the element; empty if it is longer than is kept.
    pub bytes: Vec<u8>,
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// 1-based number of the line on which it begins.
    pub num: u64,
    /// 1-based number of the line on which it ends.
    pub last: u64,
    /// Whether a string of it lost its middle.
    pub truncated: bool,
}

impl Document {
    /// Whether a document could begin with `head`: the cheap test before the real one.
    pub fn may_begin(head: &[u8]) -> bool {
        matches!(head.trim_ascii_start().first(), Some(b'{' | b'['))
    }

    /// Whether more bytes may show that `head` begins a document: so far it is one JSON value whose first record is incomplete.
    pub fn may_go_on(head: &[u8]) -> bool {
        let (first, inner) = match head.trim_ascii_start() {
            [b'{', rest @ ..] => (rest.trim_ascii_start().first(), b'"'),
            [b'[', rest @ ..] => (rest.trim_ascii_start().first(), b'{'),
            _ => return false,
        };
        let shape = if inner == b'{' { Shape::List } else { Shape::Root };
        let (mut probe, mut is_told) = (Self::new(shape), false);
        probe.feed(head, |_| is_told = true);
        first.is_none_or(|byte| *byte == inner) && !is_told && !probe.ended
    }

    /// Returns a reader for the document that begins with `head`, and its format.
    pub fn begins(head: &[u8]) -> Option<(Self, Format)> {
        if head.trim_ascii_start().first() == Some(&b'[') {
            return Self::of_known(Shape::List, head);
        }
        let has = |key: &[u8]| memchr::memmem::find(head, key).is_some();
        if has(STEPS) && Self::new(Shape::Member(STEPS)).feed(head, |_| {}) {
            return Some((Self::new(Shape::Member(STEPS)), Format::SweAgent));
        }
        let of_member = |name| Self::of_known(Shape::Member(name), head).map(|(known, format)| (Self { is_single: false, ..known }, format));
        let known = [HISTORY, LOGLINES].into_iter().find_map(|name| has(name).then(|| of_member(name)).flatten());
        let is_chat = has(MESSAGES) && !is_one_line(head);
        known.or_else(|| is_chat.then(|| of_member(MESSAGES)).flatten()).or_else(|| Self::of_indented(head))
    }

    fn new(shape: Shape) -> Self {
        Self { shape, is_single: true, ..Self::default() }
    }

    /// Returns a reader if the document's first record is one of a known format.
    fn of_known(shape: Shape, head: &[u8]) -> Option<(Self, Format)> {
        let mut first = None;
        Self::new(shape).feed(head, |found| first = first.take().or(Some(found.bytes)));
        let record = json::parse(&first?)?;
        Format::JSON.into_iter().find(|format| format.knows(&record)).map(|format| (Self::new(shape), format))
    }

    /// Returns a reader for records that span several lines; the first record may be longer than the head.
    fn of_indented(head: &[u8]) -> Option<(Self, Format)> {
        if is_one_line(head) {
            return None;
        }
        let mut probe = Self { whole_members: Some(0), ..Self::new(Shape::Root) };
        let mut whole = None;
        probe.feed(head, |found| whole = Some(found.bytes));
        let begun = || {
            let element = probe.element.as_ref().filter(|element| !element.dropped)?;
            Some([element.bytes.get(..probe.whole_members?)?, b"}"].concat())
        };
        let record = json::parse(&whole.or_else(begun)?)?;
        let format = Format::JSON.into_iter().find(|format| format.knows(&record))?;
        Some((Self { is_single: false, ..Self::new(Shape::Root) }, format))
    }

    /// Reads more bytes and passes each complete element to `take`. Returns whether the list of steps was seen.
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

    /// Returns the number of lines so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    fn byte(&mut self, byte: u8, take: &mut impl FnMut(Found)) {
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
            b',' if self.depth == 1 => {
                self.wants_key = true;
                if let (Some(members), Some(element)) = (&mut self.whole_members, &self.element) {
                    *members = element.bytes.len() - 1;
                }
            }
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
            self.begin(byte);
            return;
        }
        let steps_depth = if self.shape == Shape::List { 1 } else { 2 };
        let is_step = self.in_steps && self.depth == steps_depth;
        let is_ending = self.shape == Shape::Member(STEPS) && self.depth == 1 && self.key == ENDING;
        if byte == b'{' && self.element.is_none() && (is_step || is_ending) {
            self.begin_element(byte);
        }
        if byte == b'[' && self.depth == 1 && matches!(self.shape, Shape::Member(name) if self.key == name) {
            self.in_steps = true;
        }
        self.depth = self.depth.saturating_add(1);
    }

    /// Begins a value.
    fn begin(&mut self, byte: u8) {
        self.begun = true;
        self.wants_key = byte == b'{';
        self.in_steps = self.shape == Shape::List && byte == b'[';
        if self.shape == Shape::Root && byte == b'{' {
            self.begin_element(byte);
        }
        self.depth = 1;
    }

    fn begin_element(&mut self, byte: u8) {
        let (offset, num) = (self.offset, self.lines + 1);
        self.element = Some(Element { bytes: vec![byte], depth: self.depth, offset, num, truncated: false, dropped: false });
    }

    fn close(&mut self, take: &mut impl FnMut(Found)) {
        self.depth = self.depth.saturating_sub(1);
        if self.element.as_ref().is_some_and(|element| element.depth == self.depth)
            && let Some(element) = self.element.take()
        {
            let Element { bytes, offset, num, truncated, .. } = element;
            take(Found { bytes, offset, num, last: self.lines + 1, truncated });
        }
        if self.depth == 1 && self.shape != Shape::List {
            self.in_steps = false;
        }
        if self.depth == 0 {
            self.begun = false;
            self.ended = self.is_single;
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

    /// Cuts the middle out of the string that begins at `start`, when it has grown too long.
    fn shorten(&mut self, start: usize) {
        let end = self.bytes.len();
        if end.saturating_sub(start) < 2 * MAX_STRING_BYTES {
            return;
        }
        let from = edge::front(&self.bytes, start + 1, start + MAX_STRING_BYTES / 2);
        let to = edge::back(&self.bytes, end - MAX_STRING_BYTES / 2, end - 1);
        self.bytes.drain(from..to);
        self.truncated = true;
    }
}

/// Whether the first line is a complete value.
fn is_one_line(head: &[u8]) -> bool {
    let first = head.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    first.is_some_and(|first| first.trim_ascii().len() > 1 && json::parse(first).is_some())
}
