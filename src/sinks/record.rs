//! The wire form of an event: one NDJSON record, as the README's table of fields describes it. Wire types are separate from the core's:
//! only this module knows the names and their order. Strings are written straight into one buffer, without intermediate values.
//!
//! A record is at most `max_event_bytes` long. To fit, it loses first the middle of `multiline`,
//! then frames, then context, then the middle of `text` and `message`; `truncated` says so.

use super::stamp;
use crate::core::event::{Event, Exception, Frame, Frames, Lines, Timestamp};
use crate::delivery::Seen;
use crate::json::Writer;

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
    /// The path's bytes, if they are no text: `path` has a mark in place of each byte that is none.
    pub raw_path: Option<Vec<u8>>,
    /// The peer that sends it over a socket.
    pub peer: Option<String>,
    /// The command that printed it, without secrets.
    pub argv: Vec<String>,
    /// `labels` of the source in the configuration, without secrets.
    pub labels: Vec<(String, String)>,
}

/// Appends `event` as one line to `out`.
pub fn write(out: &mut Vec<u8>, envelope: &Envelope, event: &Event, max_bytes: usize) {
    write_within(out, envelope, event, max_bytes);
}

/// As [`write()`], with room for a member [`seen`]. Returns where in the line it belongs.
pub fn write_open(out: &mut Vec<u8>, envelope: &Envelope, event: &Event, max_bytes: usize) -> usize {
    write_within(out, envelope, event, max_bytes.saturating_sub(SEEN_BYTES))
}

/// Maximum length of what [`seen`] writes, in bytes.
const SEEN_BYTES: usize = 160;

/// Appends the member `seen` of an error's record, with the comma before it.
pub fn seen(out: &mut Vec<u8>, seen: &Seen) {
    let mut w = Writer::new(out);
    w.word(b",\"seen\":{\"status\":\"", seen.status.as_str());
    w.number(b",\"count\":", seen.count);
    with_rfc3339(seen.first, |text| w.word(b",\"first\":\"", text));
    with_rfc3339(seen.last, |text| w.word(b",\"last\":\"", text));
    w.raw(b"}");
}

/// Writes the record and, as long as it is too long, writes it anew with less. Returns where a member `seen` belongs.
fn write_within(out: &mut Vec<u8>, envelope: &Envelope, event: &Event, max_bytes: usize) -> usize {
    let start = out.len();
    let mut seen_at = write_whole(out, envelope, event);
    if out.len() - start <= max_bytes {
        return seen_at - start;
    }
    let (mut envelope, mut smaller) = (envelope.clone(), event.clone());
    for step in 0..MAX_STEPS {
        shrink(&mut smaller, step, out.len() - start, max_bytes);
        if step + 1 == MAX_STEPS {
            envelope.labels.clear();
            envelope.argv.truncate(1);
            envelope.argv.iter_mut().for_each(|word| cut_text(word, max_bytes / LEAST));
            [&mut envelope.host, &mut envelope.name]
                .into_iter()
                .chain(&mut envelope.path)
                .chain(&mut envelope.peer)
                .for_each(|text| cut_text(text, max_bytes / LEAST));
        }
        out.truncate(start);
        seen_at = write_whole(out, &envelope, &smaller);
        if out.len() - start <= max_bytes {
            break;
        }
    }
    seen_at - start
}

const MAX_STEPS: usize = 12;
/// In the last step, texts that all events of a source share are cut to this fraction
/// of the record: small, because a control character is written as six bytes.
const LEAST: usize = 256;

/// Removes what is needed least, more at each step.
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

/// Shortens the texts that come from the log, except context.
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
    all.extend(event.sender.iter_mut().flat_map(|sender| [&mut sender.host, &mut sender.app]));
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

/// Removes the middle of a text that is longer than `keep` bytes.
pub(super) fn cut_text(text: &mut String, keep: usize) {
    if text.len() <= keep {
        return;
    }
    let head = text.floor_char_boundary(keep / 2);
    let tail = text.ceil_char_boundary(text.len() - keep / 2);
    *text = format!("{} … {}", &text[..head], &text[tail..]);
}

fn write_whole(out: &mut Vec<u8>, envelope: &Envelope, event: &Event) -> usize {
    let mut w = Writer::new(out);
    w.word(b"{\"schema\":1,\"kind\":\"error\",\"id\":\"", event.id.digits());
    times(&mut w, event);
    w.string(b",\"host\":\"", &envelope.host);
    source(&mut w, envelope, event);
    position(&mut w, event);
    w.string(b",\"text\":\"", &event.text);
    class(&mut w, event);
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
    let seen_at = w.position();
    if event.truncated {
        w.raw(b",\"truncated\":true");
    }
    if event.redactions > 0 {
        w.number(b",\"redactions\":", u64::from(event.redactions));
    }
    labels(&mut w, &envelope.labels);
    w.raw(b"}\n");
    seen_at
}

/// Writes where in its stream the event is.
#[inline]
fn position(w: &mut Writer, event: &Event) {
    w.number(b",\"line_num\":", event.line_num);
    w.number(b",\"line_end\":", event.line_end);
    if let Some(place) = &event.record {
        w.string(b",\"record\":{\"pointer\":\"", &place.pointer);
        w.number(b",\"line\":", u64::from(place.line));
        w.raw(b"}");
    }
    w.number(b",\"offset\":", event.offset);
}

/// Writes what kind of error it is, and what told it.
#[inline]
fn class(w: &mut Writer, event: &Event) {
    w.word(b",\"category\":\"", event.category.as_str());
    w.word(b",\"severity\":\"", event.severity.as_str());
    w.word(b",\"cause\":\"", event.cause.as_str());
    w.word(b",\"signature\":\"", event.signature.digits());
    w.number(b",\"sig_version\":", u64::from(crate::core::signature::SIG_VERSION));
    w.word(b",\"signature_loose\":\"", event.signature_loose.digits());
    w.string(b",\"rule\":\"", &event.rule);
}

fn labels(w: &mut Writer, labels: &[(String, String)]) {
    for (at, (name, value)) in labels.iter().enumerate() {
        w.string(if at == 0 { b",\"labels\":{\"" } else { b",\"" }, name);
        w.string(b":\"", value);
    }
    if !labels.is_empty() {
        w.raw(b"}");
    }
}

fn source(w: &mut Writer, envelope: &Envelope, event: &Event) {
    w.string(b",\"source\":{\"name\":\"", &envelope.name);
    w.word(b",\"type\":\"", envelope.kind);
    w.optional(b",\"path\":\"", envelope.path.as_deref());
    w.optional(b",\"peer\":\"", envelope.peer.as_deref());
    if let Some(sender) = &event.sender {
        w.optional(b",\"host\":\"", Some(sender.host.as_str()).filter(|host| !host.is_empty()));
        w.optional(b",\"app\":\"", Some(sender.app.as_str()).filter(|app| !app.is_empty()));
    }
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

/// Formats a time in RFC 3339, in UTC with microseconds.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    let mut text = String::new();
    with_rfc3339(time, |shown| text.push_str(&String::from_utf8_lossy(shown)));
    text
}

/// As [`rfc3339`], without an allocation.
pub(super) fn with_rfc3339(time: Timestamp, show: impl FnOnce(&[u8])) {
    match stamp::stamp(time) {
        Some(stamp) => show(&stamp),
        None => show(by_calendar(time).as_bytes()),
    }
}

#[cold]
fn by_calendar(time: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(time.0) {
        Ok(moment) => format!("{moment:.6}"),
        Err(_) => "1970-01-01T00:00:00.000000Z".to_owned(),
    }
}

fn times(w: &mut Writer, event: &Event) {
    with_rfc3339(event.observed_at, |observed| {
        if event.timestamp == event.observed_at {
            w.word(b",\"timestamp\":\"", observed);
        } else {
            with_rfc3339(event.timestamp, |stated| w.word(b",\"timestamp\":\"", stated));
        }
        w.word(b",\"observed_at\":\"", observed);
    });
}
