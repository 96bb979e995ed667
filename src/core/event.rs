//! What the core reports: the event and the closed sets of words in it. The core
//! fills these types; `sinks::record` turns them into bytes. Nothing here knows JSON.

use std::borrow::Cow;
use std::sync::Arc;

pub use super::text::{Hex, Lines};
pub use crate::words::{Category, Cause, Io, Level, Remedy, RetryClass, Severity};

/// Microseconds since 1970-01-01T00:00:00Z. Time enters the core only as a value of this type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Whether a pause of so many microseconds that began here is over. Also true if it began well after `now`: the
    /// clock was set back. A small lead is tolerated, since several threads read the clock.
    #[must_use]
    pub fn is_past(self, micros: i64, now: Self) -> bool {
        now.0.saturating_sub(self.0).saturating_abs() >= micros
    }
}

/// Whether and why a retry can help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The class.
    pub class: RetryClass,
    /// The row of the retry table that decided, such as `network_timeout`.
    pub reason: Cow<'static, str>,
    /// Who can fix it.
    pub remedy: Remedy,
    /// When the limit will be lifted, in the words of the text.
    pub reset_at: Option<String>,
}

/// One frame of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Function or method; empty when the frame names none.
    pub function: &'a str,
    /// File as printed; empty when the frame names none.
    pub file: &'a str,
    /// 1-based line, 0 when unknown.
    pub line: u32,
    /// 1-based column, 0 when unknown.
    pub column: u32,
    /// Whether the frame belongs to the program rather than to a library or the runtime.
    pub in_app: bool,
}

/// The frames of a stack, crash first, with their names in one string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    text: String,
    spans: Vec<FrameSpan>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FrameSpan {
    from: u32,
    function: u32,
    file: u32,
    line: u32,
    column: u32,
    in_app: bool,
}

impl Frames {
    /// Creates an empty list with room for `frames` frames whose names take `bytes` bytes in all.
    #[must_use]
    pub fn with_room(frames: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), spans: Vec::with_capacity(frames) }
    }

    /// Appends a frame.
    pub fn push(&mut self, frame: Frame) {
        let span = FrameSpan {
            from: self.text.len() as u32,
            function: frame.function.len() as u32,
            file: frame.file.len() as u32,
            line: frame.line,
            column: frame.column,
            in_app: frame.in_app,
        };
        self.text.push_str(frame.function);
        self.text.push_str(frame.file);
        self.spans.push(span);
    }

    /// Iterates over the frames, crash first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Frame<'_>> + Clone {
        self.spans.iter().map(|span| self.frame(span))
    }

    /// Returns the frame pushed last.
    #[must_use]
    pub fn last(&self) -> Option<Frame<'_>> {
        self.spans.last().map(|span| self.frame(span))
    }

    fn frame(&self, span: &FrameSpan) -> Frame<'_> {
        let (from, middle) = (span.from as usize, (span.from + span.function) as usize);
        let end = middle + span.file as usize;
        Frame { function: &self.text[from..middle], file: &self.text[middle..end], line: span.line, column: span.column, in_app: span.in_app }
    }

    /// Adds the place to the frame pushed last, which has named a function only.
    pub fn complete(&mut self, place: Frame) {
        if let Some(span) = self.spans.last_mut() {
            self.text.truncate((span.from + span.function) as usize);
            self.text.push_str(place.file);
            *span = FrameSpan { file: place.file.len() as u32, line: place.line, column: place.column, in_app: place.in_app, ..*span };
        }
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Keeps the first `count` frames.
    pub fn truncate(&mut self, count: usize) {
        self.spans.truncate(count);
    }

    /// Reverses the order of the frames.
    pub fn reverse(&mut self) {
        self.spans.reverse();
    }

    /// Number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

impl<'a> FromIterator<Frame<'a>> for Frames {
    fn from_iter<I: IntoIterator<Item = Frame<'a>>>(frames: I) -> Self {
        let mut all = Self::default();
        frames.into_iter().for_each(|frame| all.push(frame));
        all
    }
}

/// One exception of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Exception type, as printed.
    pub kind: String,
    /// Message, as printed; may be empty.
    pub message: String,
}

/// What a trace says about the exception that it prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// Type of the exception that reached the top.
    pub kind: String,
    /// Its message.
    pub message: String,
    /// The whole chain, outermost first; empty when there is only one.
    pub chain: Vec<Link>,
    /// Frames, crash first, at most `max_stack_depth`.
    pub frames: Frames,
}

/// Where an editor should jump to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// File as printed.
    pub file: String,
    /// 1-based line, 0 when unknown.
    pub line: u32,
    /// 1-based column, 0 when unknown.
    pub column: u32,
}

/// What a transcript of an agent says about a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Session of the agent.
    pub session: Option<String>,
    /// The tool that failed.
    pub tool: Option<String>,
    /// Id of its call.
    pub id: Option<String>,
    /// Its command or target.
    pub command: Option<String>,
    /// No program failed: `refused`, `not_permitted` or `cancelled`. No breaker counts these.
    pub flavour: Option<&'static str>,
}

/// Who sent a message over a network, according to its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// The machine; empty if it is not named.
    pub host: String,
    /// The program; empty if it is not named.
    pub app: String,
}

/// Where the text was in a structured record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// JSON pointer (RFC 6901) of the string.
    pub pointer: String,
    /// 1-based line within that string.
    pub line: u32,
}

/// What identifies a line within its stream, even if it has no number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Index among the decoded inner lines of a record; 0 in plain text.
    pub inner: u32,
}

/// One error. Offsets and line numbers count in the stream that it was found in.
#[derive(Clone, Debug)]
pub struct Event {
    /// 32 hex digits, the same after any restart.
    pub id: Hex,
    /// The time that the line states, if it is credible, else `observed_at`.
    pub timestamp: Timestamp,
    /// When the first line was read.
    pub observed_at: Timestamp,
    /// The interleaved writer within the stream.
    pub key: Option<String>,
    /// The output that the line says it came from.
    pub io: Option<Io>,
    /// Who sent it, if a syslog header says so.
    pub sender: Option<Box<Sender>>,
    /// 1-based first line.
    pub line_num: u64,
    /// 1-based last line.
    pub line_end: u64,
    /// Place within a structured record.
    pub record: Option<RecordPlace>,
    /// Byte offset of the first line in the stream.
    pub offset: u64,
    /// Index of the first line among the decoded inner lines of a record.
    pub inner: u32,
    /// The line that names the error.
    pub text: String,
    /// Category.
    pub category: Category,
    /// Severity.
    pub severity: Severity,
    /// Cause.
    pub cause: Cause,
    /// 32 hex digits.
    pub signature: Hex,
    /// 32 hex digits, over type and message only.
    pub signature_loose: Hex,
    /// Id of the rule that confirmed it.
    pub rule: Arc<str>,
    /// Language or tool.
    pub language: Option<Arc<str>>,
    /// Exception, when there is one.
    pub exception: Option<Exception>,
    /// Location, when there is one.
    pub location: Option<Location>,
    /// Numbered lines around the error.
    pub context: Lines,
    /// Every line of the error.
    pub multiline: Lines,
    /// Retry advice.
    pub retry: Retry,
    /// What the transcript says about it, if it comes from one.
    pub call: Option<Box<Call>>,
    /// Whether a pause, not the text, ended the error.
    pub closed_idle: bool,
    /// Whether it came out before a verdict that could have taken it back.
    pub on_trial: bool,
    /// Whether it is a status line: it says that something failed, not what.
    pub is_status: bool,
    /// What usually fixes it.
    pub hint: Option<Arc<str>>,
    /// Whether lines or bytes were cut.
    pub truncated: bool,
    /// Number of secrets replaced.
    pub redactions: u32,
}

impl Event {
    /// Returns what identifies its first line within the stream.
    #[must_use]
    pub fn spot(&self) -> Spot {
        Spot { offset: self.offset, inner: self.inner }
    }

    /// Whether the line belongs to it.
    #[must_use]
    pub fn covers(&self, num: u64) -> bool {
        (self.line_num..=self.line_end).contains(&num)
    }

    /// Whether a program failed. A refusal, a missing permission and a cancelled call are events that no breaker counts.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        self.call.as_ref().is_none_or(|call| call.flavour.is_none())
    }
}
