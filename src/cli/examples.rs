//! Runs the examples that rules carry: each text through a stream of its own. `siftd rules test`,
//! `rules check` and `cargo test` use it. It judges rules by their events only.

use std::sync::Arc;

use crate::core::engine::Engine;
use crate::core::event::{Event, Timestamp};
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::rules::{ExampleSpec, Kind};

/// 2026-01-01T00:00:00Z: examples come out the same on every day.
const NOW: Timestamp = Timestamp(1_767_225_600_000_000);

/// An example that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rule.
    pub id: String,
    /// The text.
    pub example: String,
    /// What should have come of it.
    pub wanted: String,
    /// What came of it.
    pub got: String,
}

/// What an example says must come of its text.
enum Want<'a> {
    /// Exactly one event over all lines, by this rule if one is named.
    One(Option<&'a str>),
    /// No event.
    Nothing,
}

/// Runs the examples of every rule for which `wanted` holds; also returns how many there were.
pub fn run(engine: &Arc<Engine>, wanted: impl Fn(&str) -> bool) -> (usize, Vec<Failure>) {
    let entries = engine.rules.entries.iter().map(|entry| (entry.id.as_str(), &entry.examples, want(&entry.id, &entry.kind)));
    let cancels = engine.rules.cancels.iter().map(|cancel| (cancel.id.as_str(), &cancel.examples, Want::Nothing));
    let (mut count, mut failures) = (0, Vec::new());
    for (id, examples, want) in entries.chain(cancels).filter(|(id, ..)| wanted(id)) {
        count += examples.matching.len() + examples.no_match.len();
        failures.extend(failures_of(engine, id, examples, &want));
    }
    (count, failures)
}

/// A region's event bears the name of the region or of what it holds.
fn want<'a>(id: &'a str, kind: &Kind) -> Want<'a> {
    match kind {
        Kind::Rule(_) | Kind::Trace(_) | Kind::Fact(_) => Want::One(Some(id)),
        Kind::Note(note) if note.silent => Want::Nothing,
        Kind::Note(_) => Want::One(Some(id)),
        Kind::Region(_) => Want::One(None),
        Kind::Border(_) | Kind::Noise { .. } => Want::Nothing,
    }
}

fn failures_of<'a>(engine: &'a Arc<Engine>, id: &'a str, examples: &'a ExampleSpec, want: &'a Want) -> impl Iterator<Item = Failure> {
    let matching = examples.matching.iter().filter_map(move |text| failure(engine, id, text, want));
    matching.chain(examples.no_match.iter().filter_map(move |text| failure(engine, id, text, &Want::Nothing)))
}

fn failure(engine: &Arc<Engine>, id: &str, text: &str, want: &Want) -> Option<Failure> {
    let events = events(engine, text);
    let (first, last) = extent(text);
    let (holds, wanted) = match want {
        Want::Nothing => (events.is_empty(), "no event".to_owned()),
        Want::One(rule) => {
            let holds = matches!(&events[..], [only] if (only.line_num, only.line_end) == (first, last) && rule.is_none_or(|rule| only.rule == rule));
            (holds, format!("one event, lines {first}-{last}{}", rule.map_or(String::new(), |rule| format!(", by {rule}"))))
        }
    };
    (!holds).then(|| Failure { id: id.to_owned(), example: text.to_owned(), wanted, got: summary(&events) })
}

/// All events of a text.
#[must_use]
pub fn events(engine: &Arc<Engine>, text: &str) -> Vec<Event> {
    let (mut stream, mut events) = (Stream::new(engine.clone(), Origin::default()), Vec::new());
    stream.push(text.as_bytes(), NOW, &mut events);
    stream.finish(NOW, &mut events);
    events
}

/// 1-based numbers of the first and the last line that is not blank.
fn extent(text: &str) -> (u64, u64) {
    let mut full = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()).map(|(_, num)| num);
    let first = full.next().unwrap_or(1);
    (first, full.last().unwrap_or(first))
}

fn summary(events: &[Event]) -> String {
    let each: Vec<String> = events.iter().map(|event| format!("lines {}-{} by {}", event.line_num, event.line_end, event.rule)).collect();
    if each.is_empty() { "no event".to_owned() } else { each.join("; ") }
}
