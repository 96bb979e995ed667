//! The wire form of an event: one NDJSON record, as the README's table of fields describes it.
//! Wire types stand apart from the core's: here is the only place that knows the names and their
//! order. Strings are written straight into one buffer; nothing is built in between.
//!
//! A record is at most `max_event_bytes`: first the middle of `multiline`, then frames, then
//! context, then the middle of `text` and `message` go, and `truncated` says so.

use std::cell::RefCell;

use crate::core::event::{Event, Exception, Frame, Frames, Lines, Timestamp};
use crate::core::text::with_digits;

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
    /// The command that printed it, without secrets.
    pub argv: Vec<String>,
    /// `labels` of the source in the configuration, without secrets.
    pub labels: Vec<(String, String)>,
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
            envelope.labels.clear();
            envelope.argv.truncate(1);
            envelope.argv.iter_mut().for_each(|word| cut_text(word, max_bytes / 64));
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
/// Room for most records.
const TYPICAL_BYTES: usize = 4096;

/// Takes away what is needed least, more at each step.
fn shrink(event: &mut Event, step: usize, size: usize, max_bytes: usize) {
    event.truncated = true;
    let over = size.saturating_sub(max_bytes) + 256;
    match step {
        0..=2 => event.multiline = cut_middle(&event.multiline, over),
        3 => {
            if let Some(exception) = &mut event.exception {
                exception.frames.truncate(5);
                exception.chain.truncate(4);
            }
        }
        4 => event.context.clear(),
        5 => event.multiline = event.multiline.iter().take(2).collect(),
        _ => {
            let keep = max_bytes / (8 << (step - 6));
            cut_texts(event, keep);
            if step + 2 >= MAX_STEPS {
                event.multiline.clear();
                event.exception.iter_mut().for_each(|said| (said.frames.clear(), said.chain.clear()).1);
            }
        }
    }
}

/// Cuts what the log wrote, apart from context.
fn cut_texts(event: &mut Event, keep: usize) {
    let short = |text: &str| {
        let mut text = text.to_owned();
        cut_text(&mut text, keep);
        text
    };
    let mut all: Vec<&mut String> = vec![&mut event.text];
    if let Some(said) = &mut event.exception {
        all.extend([&mut said.kind, &mut said.message]);
        all.extend(said.chain.iter_mut().flat_map(|link| [&mut link.kind, &mut link.message]));
        let mut frames = Frames::default();
        said.frames.iter().for_each(|frame| frames.push(Frame { function: &short(frame.function), file: &short(frame.file), ..frame }));
        said.frames = frames;
    }
    all.extend(event.location.iter_mut().map(|place| &mut place.file));
    all.extend(event.record.iter_mut().map(|place| &mut place.pointer));
    all.extend(event.key.iter_mut().chain(&mut event.retry.reset_at));
    all.extend(event.call.iter_mut().flat_map(|call| call.session.iter_mut().chain(&mut call.tool).chain(&mut call.id).chain(&mut call.command)));
    all.into_iter().for_each(|text| cut_text(text, keep));
    event.multiline = event.multiline.iter().map(short).collect();
    event.hint = event.hint.as_deref().map(|hint| short(hint).into());
}

/// Drops lines from the middle until about `over` bytes are gone.
fn cut_middle(lines: &Lines, over: usize) -> Lines {
    let lines: Vec<&str> = lines.iter().collect();
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
    let mut kept: Lines = lines[..from].iter().collect();
    if to > from {
        kept.push(&format!("… {} lines …", to - from));
    }
    lines[to..].iter().for_each(|line| kept.push(line));
    kept
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
    w.out.reserve(TYPICAL_BYTES);
    w.word(b"{\"schema\":1,\"kind\":\"error\",\"id\":\"", event.id.digits());
    w.time(b",\"timestamp\":\"", event.timestamp);
    w.time(b",\"observed_at\":\"", event.observed_at);
    w.string(b",\"host\":\"", &envelope.host);
    source(&mut w, envelope, event);
    w.number(b",\"line_num\":", event.line_num);
    w.number(b",\"line_end\":", event.line_end);
    if let Some(place) = &event.record {
        w.string(b",\"record\":{\"pointer\":\"", &place.pointer);
        w.number(b",\"line\":", u64::from(place.line));
        w.raw(b"}");
    }
    w.number(b",\"offset\":", event.offset);
    w.string(b",\"text\":\"", &event.text);
    w.word(b",\"category\":\"", event.category.as_str());
    w.word(b",\"severity\":\"", event.severity.as_str());
    w.word(b",\"cause\":\"", event.cause.as_str());
    w.word(b",\"signature\":\"", event.signature.digits());
    w.number(b",\"sig_version\":", u64::from(crate::core::signature::SIG_VERSION));
    w.word(b",\"signature_loose\":\"", event.signature_loose.digits());
    w.string(b",\"rule\":\"", &event.rule);
    w.optional(b",\"language\":\"", event.language.as_deref());
    if let Some(said) = &event.exception {
        exception(&mut w, said);
    }
    if let Some(place) = &event.location {
        w.string(b",\"location\":{\"file\":\"", &place.file);
        w.positive(b",\"line\":", place.line);
        w.positive(b",\"column\":", place.column);
        w.raw(b"}");
    }
    w.lines(b",\"context\":[\"", &event.context);
    w.lines(b",\"multiline\":[\"", &event.multiline);
    retry(&mut w, event);
    if let Some(call) = &event.call {
        w.optional(b",\"tool\":\"", call.tool.as_deref());
        w.optional(b",\"tool_call_id\":\"", call.id.as_deref());
        w.optional(b",\"command\":\"", call.command.as_deref());
        w.optional(b",\"flavour\":\"", call.flavour);
    }
    if event.closed_idle {
        w.raw(b",\"closed\":\"idle\"");
    }
    w.optional(b",\"hint\":\"", event.hint.as_deref());
    if event.truncated {
        w.raw(b",\"truncated\":true");
    }
    if event.redactions > 0 {
        w.number(b",\"redactions\":", u64::from(event.redactions));
    }
    if !envelope.labels.is_empty() {
        for (at, (name, value)) in envelope.labels.iter().enumerate() {
            w.string(if at == 0 { b",\"labels\":{\"" } else { b",\"" }, name);
            w.string(b":\"", value);
        }
        w.raw(b"}");
    }
    w.raw(b"}\n");
}

fn source(w: &mut Writer, envelope: &Envelope, event: &Event) {
    w.string(b",\"source\":{\"name\":\"", &envelope.name);
    w.word(b",\"type\":\"", envelope.kind);
    w.optional(b",\"path\":\"", envelope.path.as_deref());
    w.list(b",\"argv\":[", envelope.argv.iter(), |w, word| w.string(b"\"", word));
    w.optional(b",\"io\":\"", event.io.map(crate::words::Io::as_str));
    w.optional(b",\"key\":\"", event.key.as_deref());
    w.optional(b",\"session\":\"", event.call.as_ref().and_then(|call| call.session.as_deref()));
    w.raw(b"}");
}

fn exception(w: &mut Writer, said: &Exception) {
    w.string(b",\"exception\":{\"type\":\"", &said.kind);
    w.optional(b",\"message\":\"", Some(said.message.as_str()).filter(|text| !text.is_empty()));
    w.list(b",\"chain\":[", said.chain.iter(), |w, link| {
        w.string(b"{\"type\":\"", &link.kind);
        w.optional(b",\"message\":\"", Some(link.message.as_str()).filter(|text| !text.is_empty()));
        w.raw(b"}");
    });
    w.list(b",\"frames\":[", said.frames.iter(), |w, frame| {
        w.string(b"{\"function\":\"", frame.function);
        w.optional(b",\"file\":\"", Some(frame.file).filter(|file| !file.is_empty()));
        w.positive(b",\"line\":", frame.line);
        w.positive(b",\"column\":", frame.column);
        w.raw(if frame.in_app { b",\"in_app\":true}" } else { b",\"in_app\":false}" });
    });
    w.raw(b"}");
}

fn retry(w: &mut Writer, event: &Event) {
    use crate::words::RetryClass;
    w.word(b",\"retry\":{\"class\":\"", event.retry.class.as_str());
    w.string(b",\"reason\":\"", &event.retry.reason);
    w.raw(if event.retry.class == RetryClass::Transient { b",\"retryable\":true" } else { b",\"retryable\":false" });
    w.word(b",\"remedy\":\"", event.retry.remedy.as_str());
    w.optional(b",\"reset_at\":\"", event.retry.reset_at.as_deref());
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

/// [`rfc3339`], remembering the one that was asked last: many events are read at the same moment.
fn with_rfc3339(time: Timestamp, show: impl FnOnce(&str)) {
    thread_local!(static LAST: RefCell<(Timestamp, String)> = RefCell::new((Timestamp(0), rfc3339(Timestamp(0)))));
    LAST.with_borrow_mut(|(last, text)| {
        if *last != time {
            (*last, *text) = (time, rfc3339(time));
        }
        show(text);
    });
}

/// What stands for a byte in a JSON string (RFC 8259, section 7): `0` the byte itself, `u` a `\u00xx`, else that
/// letter behind a backslash.
const ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x7f] = b'u';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'\n' as usize] = b'n';
    table[b'\t' as usize] = b't';
    table[b'\r' as usize] = b'r';
    table
};

/// Bytes of a JSON string that are looked at together.
const CHUNK: usize = 16;
/// Half of them.
const HALF: usize = 8;

/// Whether none of the bytes needs an escape: one loop for each question, which become a few instructions on vectors.
#[inline(always)]
fn is_plain(chunk: &[u8; CHUNK]) -> bool {
    let any = |odd: fn(u8) -> bool| chunk.iter().fold(false, |any, &b| any | odd(b));
    !(any(|b| b < 0x20) | any(|b| b == b'"') | any(|b| b == b'\\') | any(|b| b == 0x7f))
}

/// The highest bit of each of eight bytes that needs an escape. (Per byte: is it below 0x20, or equal to one of three?
/// No sum carries into the next byte, so the answer is exact.)
fn odd_bytes(chunk: [u8; HALF]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const LOW: u64 = ONES * 0x7f;
    let word = u64::from_le_bytes(chunk);
    let is_some = |x: u64| ((x & LOW) + LOW) | x;
    let beyond_control = ((word & LOW) + ONES * 0x60) | word;
    !(beyond_control & is_some(word ^ (ONES * 0x22)) & is_some(word ^ (ONES * 0x5c)) & is_some(word ^ (ONES * 0x7f))) & !LOW
}

/// How many bytes there are before the first that needs an escape.
fn plain_bytes(bytes: &[u8]) -> usize {
    let mut at = 0;
    while bytes[at..].first_chunk().is_some_and(is_plain) {
        at += CHUNK;
    }
    while let Some(half) = bytes[at..].first_chunk() {
        let odd = odd_bytes(*half);
        if odd != 0 {
            return at + odd.trailing_zeros() as usize / 8;
        }
        at += HALF;
    }
    at + bytes[at..].iter().take_while(|byte| ESCAPES[usize::from(**byte)] == 0).count()
}

/// Appends JSON members to a buffer. A member is given with its name and all that stands before its
/// value: a string's opening quote, too.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A string in which nothing needs an escape.
    fn word(&mut self, head: &[u8], value: impl AsRef<[u8]>) {
        self.raw(head);
        self.raw(value.as_ref());
        self.out.push(b'"');
    }

    fn time(&mut self, head: &[u8], time: Timestamp) {
        with_rfc3339(time, |text| self.word(head, text));
    }

    fn string(&mut self, head: &[u8], value: &str) {
        self.raw(head);
        self.text(value.as_bytes(), b"\\n");
        self.out.push(b'"');
    }

    fn optional(&mut self, head: &[u8], value: Option<&str>) {
        if let Some(value) = value {
            self.string(head, value);
        }
    }

    fn number(&mut self, head: &[u8], value: u64) {
        self.raw(head);
        with_digits(value, |digits| self.raw(digits));
    }

    fn positive(&mut self, head: &[u8], value: u32) {
        if value > 0 {
            self.number(head, u64::from(value));
        }
    }

    /// A list of strings, one for each line.
    fn lines(&mut self, head: &[u8], lines: &Lines) {
        if !lines.is_empty() {
            self.raw(head);
            self.text(lines.as_str().as_bytes(), b"\",\"");
            self.raw(b"\"]");
        }
    }

    fn list<T>(&mut self, head: &[u8], values: impl Iterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        let mut any = false;
        for value in values {
            self.raw(if any { b"," } else { head });
            each(self, value);
            any = true;
        }
        if any {
            self.out.push(b']');
        }
    }

    /// The inside of a JSON string; `newline` stands for `\n`.
    fn text(&mut self, bytes: &[u8], newline: &[u8]) {
        let mut rest = bytes;
        loop {
            let plain = plain_bytes(rest);
            self.raw(&rest[..plain]);
            let Some(byte) = rest.get(plain) else { break };
            self.escape(*byte, newline);
            rest = &rest[plain + 1..];
        }
    }

    fn escape(&mut self, byte: u8, newline: &[u8]) {
        match ESCAPES[usize::from(byte)] {
            b'n' => self.raw(newline),
            b'u' => {
                let hex = b"0123456789abcdef";
                self.raw(&[b'\\', b'u', b'0', b'0', hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]]);
            }
            letter => self.raw(&[b'\\', letter]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_string_reads_as_it_was(text in r#"([a-zé" \\]|[\x00-\x1f]|\x7f|[a-z]{6,20}){0,12}"#) {
            let mut out = vec![b'"'];
            Writer { out: &mut out }.text(text.as_bytes(), b"\\n");
            out.push(b'"');
            let read: String = serde_json::from_slice(&out).expect("a JSON string");
            proptest::prop_assert_eq!(read, text);
            proptest::prop_assert!(!out.iter().any(|b| *b < 0x20 || *b == 0x7f));
        }
    }
}
