//! Line formats that state a level, in `formats.txt`: of each, a line of level error or above is exactly
//! one event, and a line of a lower level that speaks of errors is none.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Event, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;

const FORMATS: &str = include_str!("formats.txt");
/// 2026-11-20T14:00:00Z: ten days after the lines.
const NOW: Timestamp = Timestamp(1_795_183_200_000_000);
/// Fewer would mean that the file was not read as it is meant.
const LEAST_FORMATS: usize = 250;

/// A format's name, its error line and its look-alike.
struct Format<'a> {
    name: &'a str,
    error: &'a str,
    look_alike: &'a str,
}

fn formats() -> Vec<Format<'static>> {
    let lines: Vec<&str> = FORMATS.lines().filter(|line| !line.is_empty() && !line.starts_with("# ") && !line.starts_with("## ")).collect();
    lines
        .chunks(3)
        .map(|block| {
            let text = |at: usize, mark: &str| block.get(at).and_then(|line| line.strip_prefix(mark)).unwrap_or_else(|| panic!("{block:?}"));
            Format { name: block[0], error: text(1, "! "), look_alike: text(2, ". ") }
        })
        .collect()
}

fn events(engine: &Arc<Engine>, line: &str) -> Vec<Event> {
    let mut out = Vec::new();
    let mut stream = Stream::new(Arc::clone(engine), Origin::default());
    stream.push(line.as_bytes(), NOW, &mut out);
    stream.push(b"\n", NOW, &mut out);
    stream.finish(NOW, &mut out);
    out
}

#[test]
fn levels_are_found_in_every_format() {
    let engine = Arc::new(Engine::new(RuleSet::builtin(), Limits::default()));
    let formats = formats();
    assert!(formats.len() >= LEAST_FORMATS, "{}", formats.len());
    let mut wrong = Vec::new();
    for format in &formats {
        let found = events(&engine, format.error).len();
        if found != 1 {
            wrong.push(format!("{}: {found} events, one expected: {}", format.name, format.error));
        }
        for event in events(&engine, format.look_alike) {
            wrong.push(format!("{}: {} in {}", format.name, event.rule, format.look_alike));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), formats.len(), wrong.join("\n"));
}
