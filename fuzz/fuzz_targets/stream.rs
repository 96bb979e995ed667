//! Any bytes, in any chunks, with and without the prefilter: never a panic, the same events, and
//! every record one line of valid JSON within its limit. The first byte seeds the chunk sizes.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Event, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;
use siftd::sinks::record::{self, Envelope};

const MAX_RECORD_BYTES: usize = 30 << 10;

fn engine(two_stage: bool) -> Arc<Engine> {
    let limits = Limits { two_stage, max_line_bytes: 4096, max_trace_lines: 200, ..Limits::default() };
    Arc::new(Engine::new(RuleSet::builtin(), limits))
}

static FAST: LazyLock<Arc<Engine>> = LazyLock::new(|| engine(true));
static THOROUGH: LazyLock<Arc<Engine>> = LazyLock::new(|| engine(false));

fn events(engine: &Arc<Engine>, bytes: &[u8], mut seed: u8) -> Vec<Event> {
    let mut stream = Stream::new(Arc::clone(engine), Origin::default());
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = if seed == 0 { rest.len() } else { (usize::from(seed) * 7 % 61 + 1).min(rest.len()) };
        stream.push(&rest[..size], Timestamp(0), &mut out);
        rest = &rest[size..];
        seed = seed.wrapping_mul(31).wrapping_add(u8::from(seed != 0));
    }
    stream.finish(Timestamp(0), &mut out);
    out
}

fn keys(events: &[Event]) -> Vec<(&str, u64, u64, &str, &str)> {
    events.iter().map(|e| (e.id.as_str(), e.line_num, e.line_end, e.rule.as_str(), e.text.as_str())).collect()
}

fuzz_target!(|data: &[u8]| {
    let Some((&seed, bytes)) = data.split_first() else { return };
    let whole = events(&FAST, bytes, 0);
    let chunked = events(&FAST, bytes, seed);
    assert_eq!(keys(&whole), keys(&chunked), "chunks");
    let thorough = events(&THOROUGH, bytes, seed);
    assert_eq!(keys(&whole), keys(&thorough), "prefilter");
    for event in &whole {
        let mut line = Vec::new();
        record::write(&mut line, &Envelope::default(), event, MAX_RECORD_BYTES);
        assert!(line.len() <= MAX_RECORD_BYTES && line.ends_with(b"\n"), "{} bytes", line.len());
        serde_json::from_slice::<serde_json::Value>(&line).expect("a record is JSON");
    }
});
