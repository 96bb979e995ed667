//! Calls every public function that reads text with any bytes: nothing panics, ranges lie within the text, text
//! that must be one harmless line is one, and a record is JSON within its limit. Streams are tested in `body`.

use std::sync::OnceLock;

use siftd::core::classify::{Subject, classify};
use siftd::core::decode::{cri, is_dressed, json, last_visible, level_word, logfmt, loose_level, parse_any_time, parse_time_at, prefix, strip, visible};
use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Call, Category, Cause, Event, Exception, Frame, Link, Location, RecordPlace, Remedy, Retry, RetryClass, Sender, Severity, Timestamp};
use siftd::core::noise::Noise;
use siftd::core::redact::Redactor;
use siftd::core::retry::{StructuredError, classify_structured, http_status};
use siftd::core::signature::{Fault, normalise, normalise_explained, signature};
use siftd::core::text::Hex;
use siftd::core::{frames, shown};
use siftd::rules::spec::Shape;
use siftd::rules::{RuleSet, Signs};
use siftd::sinks::human::{Paint, github, pretty, sanitise, unix};
use siftd::sinks::record::{Envelope, write};

const NOW: Timestamp = Timestamp(1_790_000_000_000_000);
/// The smallest limit that a configuration may set.
const MAX_EVENT_BYTES: usize = 2 << 10;
/// Number of input lines that are tested one by one.
const MAX_LINES: usize = 8;

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').take(MAX_LINES).collect();
    for line in &lines {
        decoded(line);
        let text = String::from_utf8_lossy(line);
        signed(&text);
        judged(&text);
        harmless(&text);
    }
    let texts: Vec<String> = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    redacted(&texts);
    written(&event(&texts));
    filtered(&lines);
    files(&String::from_utf8_lossy(input));
}

fn decoded(line: &[u8]) {
    let got = prefix(line, NOW);
    assert!(got.body <= got.message && got.message <= line.len());
    assert!(got.key.is_none_or(|(from, to)| line.get(from..to).is_some()));
    let mut bare = Vec::new();
    strip(line, &mut bare);
    assert!(bare.len() <= line.len() && !bare.contains(&0x1b));
    assert!(is_dressed(line) || !line.contains(&0x1b));
    for (from, to) in [visible(line, line.len() / 2), last_visible(line)] {
        assert!(line.get(from..to).is_some());
    }
    for at in 0..line.len().min(64) {
        assert!(parse_time_at(line, at, NOW).is_none_or(|(_, end)| (at..=line.len()).contains(&end)));
    }
    let pairs = logfmt(line, NOW).unwrap_or_default();
    assert!(pairs.message.iter().chain(&pairs.error).all(|(from, to)| line.get(*from..*to).is_some()));
    let _ = (json(line, NOW), cri(line, NOW), loose_level(line), level_word(line), parse_any_time(line, NOW));
    let _ = (shown::reads_as_code(line, Signs::of(line)), shown::stands_alone(line));
    for shape in [Shape::Python, Shape::Call, Shape::Place] {
        let text = String::from_utf8_lossy(line);
        assert!(frames::read(shape, &text).function.len() <= text.len());
    }
}

fn signed(text: &str) {
    let mut short = String::new();
    normalise(text, &mut short);
    let (long, replacements) = normalise_explained(text);
    assert_eq!(short, long);
    assert!(!short.contains(char::is_control), "{short:?}");
    assert!(replacements.iter().all(|one| text.contains(&one.from)));
    let frame = Frame { function: text, file: text, ..Frame::default() };
    let link = Link { kind: text.to_owned(), message: text.to_owned() };
    let (strict, loose) =
        signature(&Fault { language: Some("python"), test: Some(text), kind: text, message: text }, &[link.clone(), link], &[frame].into_iter().collect());
    assert!([strict, loose].iter().all(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit())));
}

fn judged(text: &str) {
    assert!(http_status(text).is_none_or(|status| (400..600).contains(&status)));
    let (kind, message) = text.split_once(": ").unwrap_or((text, ""));
    let subject = Subject { text, kind: Some(kind), message: Some(message), whole: text, ..Subject::default() };
    let _ = (classify(&subject), classify(&Subject { kind: None, message: None, ..subject }));
    let _ = classify_structured(&StructuredError { name: Some(kind), code: Some(message), message: Some(text), ..StructuredError::default() }, true);
}

fn harmless(text: &str) {
    let shown = sanitise(text);
    assert!(!shown.contains(char::is_control) && !shown.contains("##vso[") && !shown.contains("::stop-commands"), "{shown:?}");
}

fn redacted(texts: &[String]) {
    let redactor = Redactor::builtin();
    let (mut lines, mut count) = (texts.to_vec(), 0);
    redactor.redact_lines(&mut lines, &mut count);
    assert_eq!(lines.len(), texts.len());
    for text in texts {
        let mut count = 0;
        let clean = redactor.redact(text, &mut count);
        assert_eq!(count > 0, clean != text.as_str() || (count > 0 && text.contains("[redacted:")), "{text:?} → {clean:?}");
        assert!(count == 0 || redactor.touches(text.as_bytes()), "{text:?}");
    }
}

/// Returns an event in which every string is hostile.
fn event(texts: &[String]) -> Event {
    let text = texts.iter().max_by_key(|text| text.len()).cloned().unwrap_or_default();
    let frame = Frame { function: &text, file: &text, line: u32::MAX, column: u32::MAX, in_app: true };
    let link = Link { kind: text.clone(), message: text.clone() };
    Event {
        id: Hex::default(),
        timestamp: Timestamp(i64::MAX),
        observed_at: Timestamp(i64::MIN),
        key: Some(text.clone()),
        io: None,
        sender: Some(Box::new(Sender { host: text.clone(), app: text.clone() })),
        line_num: u64::MAX - 7,
        line_end: u64::MAX,
        record: Some(RecordPlace { pointer: text.clone(), line: u32::MAX }),
        offset: u64::MAX,
        inner: u32::MAX,
        category: Category::UnknownError,
        severity: Severity::High,
        cause: Cause::Unknown,
        signature: Hex::default(),
        signature_loose: Hex::default(),
        rule: "a.b".into(),
        language: None,
        location: Some(Location { file: text.clone(), line: 0, column: u32::MAX }),
        exception: Some(Exception { kind: text.clone(), message: text.clone(), chain: vec![link; 9], frames: [frame; 9].into_iter().collect() }),
        context: texts.iter().zip(1..).map(|(text, number)| format!("{number}: {text}")).chain(texts.iter().cloned()).collect(),
        multiline: texts.iter().collect(),
        retry: Retry { class: RetryClass::Unknown, reason: "unmatched".into(), remedy: Remedy::None, reset_at: Some(text.clone()) },
        call: Some(Box::new(Call {
            session: Some(text.clone()),
            tool: Some(text.clone()),
            id: Some(text.clone()),
            command: Some(text.clone()),
            flavour: Some("refused"),
        })),
        closed_idle: false,
        on_trial: false,
        is_status: false,
        hint: Some(text.as_str().into()),
        truncated: false,
        redactions: 0,
        text,
    }
}

fn written(event: &Event) {
    let envelope = Envelope {
        host: event.text.clone(),
        name: event.text.clone(),
        kind: "file",
        path: Some(event.text.clone()),
        raw_path: None,
        peer: Some(event.text.clone()),
        labels: vec![(event.text.clone(), event.text.clone())],
        argv: vec![event.text.clone()],
    };
    let mut record = Vec::new();
    write(&mut record, &envelope, event, MAX_EVENT_BYTES);
    assert!(record.len() <= MAX_EVENT_BYTES, "{} bytes", record.len());
    assert!(record.pop() == Some(b'\n') && !record.iter().any(|byte| *byte < b' ' || *byte == 0x7f));
    let json: serde_json::Value = serde_json::from_slice(&record).expect("a record is JSON");
    assert_eq!(json["offset"], u64::MAX);
    let mut lines = Vec::new();
    github(&mut lines, &envelope, event);
    unix(&mut lines, &envelope, event);
    assert_eq!(lines.iter().filter(|byte| byte.is_ascii_control()).count(), 2);
    pretty(&mut lines, &envelope, event, Paint { on: false });
    assert!(!lines.iter().any(|byte| byte.is_ascii_control() && *byte != b'\n'));
}

/// Filters noise and its blocks, line by line.
fn filtered(lines: &[&[u8]]) {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| Engine::new(RuleSet::compiled(), Limits::default()));
    let mut noise = Noise::new(engine);
    let _ = lines.iter().filter(|line| noise.is(line, Timestamp(0))).count();
}

/// Reads the text as each kind of file that a person writes: a mistake is only reported.
fn files(text: &str) {
    let _ = siftd::config::Config::parse("f", text).map_err(|mistakes| mistakes.to_string());
    let _ = siftd::config::import("f", text).map_err(|mistakes| mistakes.to_string());
    let source = siftd::diag::Source::new("f", text);
    let problems = siftd::rules::parse("f", &source.text, true).err().unwrap_or_default();
    for problem in problems {
        assert!(!source.error(problem.span, problem.problem).with_mend(problem.mend).to_string().is_empty());
    }
}
