//! Properties that hold for any bytes: nothing panics; chunks, short pauses and the prefilter change
//! no event; a long pause hides no error; no id occurs twice; every record is one line of valid JSON
//! within the limit. The first bytes of the input choose limits and chunks; the rest is the log.

use std::sync::{Arc, OnceLock};

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Event, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::patience::Patience;
use siftd::core::pipeline::Stream;
use siftd::rules::{Kind, RuleSet};
use siftd::sinks::record::{Envelope, write};

const NOW: i64 = 1_790_000_000_000_000;
const HOUR_US: i64 = 3600 * 1_000_000;
const MAX_EVENT_BYTES: usize = 4 << 10;
/// Number of input bytes that choose the settings.
const CHOICES: usize = 4;

/// Returns an engine with the usual or with small limits, with or without the prefilter.
fn engine(small: bool, two_stage: bool) -> &'static Arc<Engine> {
    static ENGINES: OnceLock<Vec<Arc<Engine>>> = OnceLock::new();
    let make = |at: usize| {
        let usual = Limits { two_stage: at % 2 == 1, max_line_bytes: 64 << 10, ..Limits::default() };
        let limits = if at < 2 { usual } else { Limits { max_line_bytes: 1024, max_trace_lines: 5, max_trace_bytes: 900, max_context_lines: 9, ..usual } };
        Arc::new(Engine::new(RuleSet::compiled(), limits))
    };
    &ENGINES.get_or_init(|| (0..4).map(make).collect())[usize::from(small) * 2 + usize::from(two_stage)]
}

struct Way<'a> {
    engine: &'a Arc<Engine>,
    /// Maximum number of bytes in a chunk.
    chunk: usize,
    /// Number of chunks between two pauses; 0 for no pauses.
    pause: usize,
    patience: Patience,
    seed: u64,
}

fn run(log: &[u8], way: &Way) -> Vec<Event> {
    let (mut stream, mut out, mut now) = (Stream::new(Arc::clone(way.engine), Origin::default()), Vec::new(), Timestamp(NOW));
    let (mut rest, mut count, mut seed) = (log, 0, way.seed | 1);
    while !rest.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = (1 + (seed >> 33) as usize % way.chunk).min(rest.len());
        stream.push(&rest[..size], now, &mut out);
        rest = &rest[size..];
        count += 1;
        if way.pause > 0 && count % way.pause == 0 {
            now.0 += HOUR_US;
            stream.pause(way.patience, &mut out);
        }
    }
    stream.finish(now, &mut out);
    assert_eq!(stream.counts().bytes, log.len() as u64);
    assert_eq!(stream.counts().events, out.len() as u64);
    out
}

fn essence(event: &Event) -> String {
    let Event { id, line_num, line_end, offset, inner, rule, text, multiline, signature, truncated, .. } = event;
    format!("{id} {line_num}-{line_end} @{offset}.{inner} {rule} {signature} {truncated} {text:?} {multiline:?}")
}

fn ids(events: &[Event]) -> Vec<(u64, &str)> {
    let mut ids: Vec<_> = events.iter().map(|event| (event.line_num, event.id.as_str())).collect();
    ids.sort_unstable();
    ids
}

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let Some((choices, log)) = input.split_at_checked(CHOICES) else { return };
    let small = choices[0] & 1 == 1;
    let chunk = [1, 7, 200, 70_000][usize::from(choices[1] & 3)];
    let pause = 1 + usize::from(choices[2] & 7);
    let seed = u64::from(choices[3]);
    let usual = Way { engine: engine(small, true), chunk: 1 << 20, pause: 0, patience: Patience::Short, seed: 0 };
    let whole = run(log, &usual);
    let same = |way: Way| {
        let other: Vec<String> = run(log, &way).iter().map(essence).collect();
        assert_eq!(whole.iter().map(essence).collect::<Vec<_>>(), other);
    };
    same(Way { chunk, seed, ..usual });
    same(Way { engine: engine(small, false), ..usual });
    let paused = run(log, &Way { chunk, seed, pause, ..usual });
    assert_eq!(ids(&whole), ids(&paused));
    assert_unique(&whole);
    let interrupted = run(log, &Way { chunk, seed, pause, patience: Patience::Verdict, ..usual });
    assert_unique(&interrupted);
    let told = |event: &Event| interrupted.iter().any(|other| tells(event, other)) || is_repeat(event, &interrupted);
    whole.iter().filter(|event| !is_note(event)).for_each(|event| assert!(told(event), "a long pause hides {event:?}"));
    whole.iter().for_each(check_event);
}

/// Whether the failure is a repetition. A section would have held it
/// back, but a pause reported the first one before this one began.
fn is_repeat(event: &Event, told: &[Event]) -> bool {
    let entries = &engine(false, true).rules.entries;
    let is_once = |entry: u16| matches!(&entries[usize::from(entry)].kind, Kind::Trace(machine) if machine.once);
    entries.position(&event.rule).is_some_and(is_once)
        && told.iter().any(|other| other.offset < event.offset && (&other.rule, other.signature) == (&event.rule, event.signature))
}

/// Whether the event is a status line, which an error reported during a pause may claim.
fn is_note(event: &Event) -> bool {
    let entries = &engine(false, true).rules.entries;
    entries.position(&event.rule).is_some_and(|entry| matches!(entries[usize::from(entry)].kind, Kind::Note(_)))
}

/// Whether `other` reports the error `event`, completely or in part.
fn tells(event: &Event, other: &Event) -> bool {
    other.id == event.id || (event.line_num..=event.line_end).contains(&other.line_num) || (other.line_num..=other.line_end).contains(&event.line_num)
}

fn assert_unique(events: &[Event]) {
    let ids = ids(events);
    assert!(ids.windows(2).all(|two| two[0] != two[1]), "an id is there twice: {ids:?}");
}

fn check_event(event: &Event) {
    assert!(event.line_num >= 1 && event.line_end >= event.line_num);
    let mut record = Vec::new();
    write(&mut record, &Envelope { host: "h".into(), name: "n".into(), kind: "file", path: Some("/p".into()), ..Envelope::default() }, event, MAX_EVENT_BYTES);
    assert!(record.len() <= MAX_EVENT_BYTES, "{} bytes", record.len());
    assert!(record.pop() == Some(b'\n') && !record.iter().any(|byte| *byte < b' ' || *byte == 0x7f));
    let json: serde_json::Value = serde_json::from_slice(&record).expect("a record is JSON");
    assert_eq!(json["id"], event.id.as_str());
}
