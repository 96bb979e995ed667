//! The wire form of an event: one NDJSON record, as the README's table of fields describes it.
//! Wire types stand apart from the core's: here is the only place that knows the names and their
//! order. Strings are written straight into one buffer; nothing is built in between.
//!
//! A record is at most `max_event_bytes`: first the middle of `multiline`, then frames, then
//! context, then the middle of `text` and `message` go, and `truncated` says so.

use std::fmt::Write as _;

use crate::core::event::{Event, Exception, Timestamp};

/// Version of the record's shape.
pub const SCHEMA: u32 = 1;

/// What the records of one source have in common.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// Name of this machine.
    pub host: String,
    /// `name` of the source in the configuration.
    pub name: String,
    /// `file`, `stdin`, …
    pub kind: &'static str,
    /// Path of a file.
    pub path: Option<String>,
}

/// Appends `event` as one line to `out`.
pub fn write(out: &mut Vec<u8>, envelope: &Envelope, event: &Event, max_bytes: usize) {
    let start = out.len();
    write_whole(out, envelope, event);
    if out.len() - start <= max_bytes {
        return;
    }
    let (mut envelope, mut smaller) = (envelope.clone(), event.clone());
    for step in 0..MAX_STEPS {
        shrink(&mut smaller, step, out.len() - start, max_bytes);
        if step + 1 == MAX_STEPS {
            [&mut envelope.host, &mut envelope.name].into_iter().chain(&mut envelope.path).for_each(|text| cut_text(text, max_bytes / 64));
        }
        out.truncate(start);
        write_whole(out, &envelope, &smaller);
        if out.len() - start <= max_bytes {
            return;
        }
    }
}

const MAX_STEPS: usize = 12;

/// Takes away what is needed least, more at each step.
fn shrink(event: &mut Event, step: usize, size: usize, max_bytes: usize) {
    event.truncated = true;
    let over = size.saturating_sub(max_bytes) + 256;
    match step {
        0..=2 => cut_middle(&mut event.multiline, over),
        3 => {
            if let Some(exception) = &mut event.exception {
                exception.frames.truncate(5);
                exception.chain.truncate(4);
            }
        }
        4 => event.context.clear(),
        5 => event.multiline.truncate(2),
        _ => {
            let keep = max_bytes / (8 << (step - 6));
            strings(event).into_iter().for_each(|text| cut_text(text, keep));
            if step + 2 >= MAX_STEPS {
                event.multiline.clear();
                event.exception.iter_mut().for_each(|said| (said.frames.clear(), said.chain.clear()).1);
            }
        }
    }
}

/// What the log wrote, apart from context.
fn strings(event: &mut Event) -> Vec<&mut String> {
    let mut all: Vec<&mut String> = vec![&mut event.text];
    all.extend(&mut event.multiline);
    if let Some(said) = &mut event.exception {
        all.extend([&mut said.kind, &mut said.message]);
        all.extend(said.chain.iter_mut().flat_map(|link| [&mut link.kind, &mut link.message]));
        all.extend(said.frames.iter_mut().flat_map(|frame| [&mut frame.function, &mut frame.file]));
    }
    all.extend(event.location.iter_mut().map(|place| &mut place.file));
    all.extend(event.record.iter_mut().map(|place| &mut place.pointer));
    all.extend(event.key.iter_mut().chain(&mut event.retry.reset_at).chain(&mut event.hint));
    all
}

/// Drops lines from the middle until about `over` bytes are gone.
fn cut_middle(lines: &mut Vec<String>, over: usize) {
    let mut gone = 0;
    let (mut from, mut to) = (lines.len() / 2, lines.len() / 2);
    while gone < over && (from > 2 || to + 2 < lines.len()) {
        if from > 2 && (lines.len() - to <= from || to + 2 >= lines.len()) {
            from -= 1;
            gone += lines[from].len() + 3;
        } else {
            gone += lines[to].len() + 3;
            to += 1;
        }
    }
    if to > from {
        lines.splice(from..to, [format!("… {} lines …", to - from)]);
    }
}

fn cut_text(text: &mut String, keep: usize) {
    if text.len() <= keep {
        return;
    }
    let head = text.floor_char_boundary(keep / 2);
    let tail = text.ceil_char_boundary(text.len() - keep / 2);
    *text = format!("{} … {}", &text[..head], &text[tail..]);
}

fn write_whole(out: &mut Vec<u8>, envelope: &Envelope, event: &Event) {
    let mut w = Writer { out };
    w.raw(b"{\"schema\":1,\"kind\":\"error\"");
    w.string("id", &event.id);
    let observed = rfc3339(event.observed_at);
    let stated = if event.timestamp == event.observed_at { observed.clone() } else { rfc3339(event.timestamp) };
    w.string("timestamp", &stated);
    w.string("observed_at", &observed);
    w.string("host", &envelope.host);
    source(&mut w, envelope, event);
    w.number("line_num", event.line_num);
    w.number("line_end", event.line_end);
    if let Some(place) = &event.record {
        w.raw(b",\"record\":{");
        w.first_string("pointer", &place.pointer);
        w.number("line", u64::from(place.line));
        w.raw(b"}");
    }
    w.number("offset", event.offset);
    w.string("text", &event.text);
    w.string("category", event.category.as_str());
    w.string("severity", event.severity.as_str());
    w.string("cause", event.cause.as_str());
    w.string("signature", &event.signature);
    w.number("sig_version", u64::from(crate::core::signature::SIG_VERSION));
    w.string("signature_loose", &event.signature_loose);
    w.string("rule", &event.rule);
    w.optional("language", event.language.as_deref());
    if let Some(said) = &event.exception {
        exception(&mut w, said);
    }
    if let Some(place) = &event.location {
        w.raw(b",\"location\":{");
        w.first_string("file", &place.file);
        w.positive("line", place.line);
        w.positive("column", place.column);
        w.raw(b"}");
    }
    w.strings("context", &event.context);
    w.strings("multiline", &event.multiline);
    retry(&mut w, event);
    if event.closed_idle {
        w.string("closed", "idle");
    }
    w.optional("hint", event.hint.as_deref());
    if event.truncated {
        w.raw(b",\"truncated\":true");
    }
    if event.redactions > 0 {
        w.number("redactions", u64::from(event.redactions));
    }
    w.raw(b"}\n");
}

fn source(w: &mut Writer, envelope: &Envelope, event: &Event) {
    w.raw(b",\"source\":{");
    w.first_string("name", &envelope.name);
    w.string("type", envelope.kind);
    w.optional("path", envelope.path.as_deref());
    w.optional("io", event.io.map(crate::words::Io::as_str));
    w.optional("key", event.key.as_deref());
    w.raw(b"}");
}

fn exception(w: &mut Writer, said: &Exception) {
    w.raw(b",\"exception\":{");
    w.first_string("type", &said.kind);
    if !said.message.is_empty() {
        w.string("message", &said.message);
    }
    w.list("chain", &said.chain, |w, link| {
        w.raw(b"{");
        w.first_string("type", &link.kind);
        if !link.message.is_empty() {
            w.string("message", &link.message);
        }
        w.raw(b"}");
    });
    w.list("frames", &said.frames, |w, frame| {
        w.raw(b"{");
        w.first_string("function", &frame.function);
        if !frame.file.is_empty() {
            w.string("file", &frame.file);
        }
        w.positive("line", frame.line);
        w.positive("column", frame.column);
        w.raw(if frame.in_app { b",\"in_app\":true}" } else { b",\"in_app\":false}" });
    });
    w.raw(b"}");
}

fn retry(w: &mut Writer, event: &Event) {
    use crate::words::RetryClass;
    w.raw(b",\"retry\":{");
    w.first_string("class", event.retry.class.as_str());
    w.string("reason", &event.retry.reason);
    w.raw(if event.retry.class == RetryClass::Transient { b",\"retryable\":true" } else { b",\"retryable\":false" });
    w.string("remedy", event.retry.remedy.as_str());
    w.optional("reset_at", event.retry.reset_at.as_deref());
    w.raw(b"}");
}

/// RFC 3339 in UTC with microseconds.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(time.0) {
        Ok(stamp) => format!("{stamp:.6}"),
        Err(_) => "1970-01-01T00:00:00.000000Z".to_owned(),
    }
}

/// The first byte that a JSON string must escape, eight bytes at a time.
fn first_escaped(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let zero = |x: u64| x.wrapping_sub(ONES) & !x & HIGH;
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        if control | zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5c)) | zero(word ^ (ONES * 0x7f)) != 0 {
            break;
        }
        at += 8;
    }
    bytes[at..].iter().position(|&b| is_escaped(b)).map(|found| at + found)
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte == 0x7f
}

/// Appends JSON members to a buffer. Every member but the first of an object begins with a comma.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn name(&mut self, name: &str) {
        self.out.push(b'"');
        self.raw(name.as_bytes());
        self.raw(b"\":");
    }

    fn first_string(&mut self, name: &str, value: &str) {
        self.name(name);
        self.quoted(value);
    }

    fn string(&mut self, name: &str, value: &str) {
        self.out.push(b',');
        self.first_string(name, value);
    }

    fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(name, value);
        }
    }

    fn number(&mut self, name: &str, value: u64) {
        self.out.push(b',');
        self.name(name);
        let mut digits = String::with_capacity(20);
        let _ = write!(digits, "{value}");
        self.raw(digits.as_bytes());
    }

    fn positive(&mut self, name: &str, value: u32) {
        if value > 0 {
            self.number(name, u64::from(value));
        }
    }

    fn strings(&mut self, name: &str, values: &[String]) {
        self.list(name, values, |w, value| w.quoted(value));
    }

    fn list<T>(&mut self, name: &str, values: &[T], mut each: impl FnMut(&mut Self, &T)) {
        if values.is_empty() {
            return;
        }
        self.out.push(b',');
        self.name(name);
        self.out.push(b'[');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            each(self, value);
        }
        self.out.push(b']');
    }

    /// A JSON string (RFC 8259, section 7): quotes, backslashes and control characters are escaped.
    fn quoted(&mut self, value: &str) {
        self.out.push(b'"');
        let mut rest = value.as_bytes();
        while let Some(at) = first_escaped(rest) {
            self.raw(&rest[..at]);
            self.escape(rest[at]);
            rest = &rest[at + 1..];
        }
        self.raw(rest);
        self.out.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        match byte {
            b'"' => self.raw(b"\\\""),
            b'\\' => self.raw(b"\\\\"),
            b'\n' => self.raw(b"\\n"),
            b'\t' => self.raw(b"\\t"),
            b'\r' => self.raw(b"\\r"),
            _ => {
                let hex = b"0123456789abcdef";
                let digits = [hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]];
                self.raw(b"\\u00");
                self.raw(&digits);
            }
        }
    }
}
