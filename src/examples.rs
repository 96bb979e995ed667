//! Runs the examples of rules. Each `match` text must make exactly one event, from
//! its first to its last line, by that very rule (in a region: anywhere in the
//! text); each `no_match` text must make none. For `siftd rules test` and the tests.

use std::sync::Arc;

use crate::core::engine::{Engine, Limits};
use crate::core::event::{Event, Timestamp};
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::rules::{ExampleSpec, RuleSet};

/// An example with an unexpected outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Id of the rule.
    pub rule: String,
    /// The text.
    pub text: String,
    /// What the text made instead.
    pub got: String,
}

/// Runs every example that `told` has under `rules`, the same set as it reads logs; returns their number and the failures.
#[must_use]
pub fn run(told: &RuleSet, rules: RuleSet) -> (usize, Vec<Failure>) {
    let engine = Arc::new(Engine::new(rules, Limits::default()));
    let mut count = 0;
    let mut failures = Vec::new();
    let entries = told.entries.iter().map(|entry| (&entry.id, &entry.examples, Some(entry.region.is_some())));
    let cancels = told.cancels.iter().map(|cancel| (&cancel.id, &cancel.examples, None));
    for (id, examples, own) in entries.chain(cancels) {
        count += examples.matching.len() + examples.no_match.len();
        failures.extend(check(&engine, id, examples, own));
    }
    (count, failures)
}

/// `own`: `Some` for an entry, whose own event is expected, and `true` if it is tried only in a region; `None` for a cancel.
fn check(engine: &Arc<Engine>, id: &str, examples: &ExampleSpec, own: Option<bool>) -> Vec<Failure> {
    let failure = |text: &String, events: &[Event]| Failure { rule: id.to_owned(), text: text.clone(), got: describe(events) };
    let mut failures = Vec::new();
    for text in &examples.matching {
        let events = events_of(engine, text);
        // The text of a trace that is tried only in a region begins with the line that opens the region.
        let whole = |event: &Event| own == Some(true) || (event.line_num == 1 && event.line_end == text.trim_end().lines().count() as u64);
        let right = events.len() == 1 && whole(&events[0]) && (own.is_none() || *events[0].rule == *id);
        if !right {
            failures.push(failure(text, &events));
        }
    }
    for text in &examples.no_match {
        let events = events_of(engine, text);
        if !events.is_empty() {
            failures.push(failure(text, &events));
        }
    }
    failures
}

/// Returns the events in a text that is a stream of its own.
#[must_use]
pub fn events_of(engine: &Arc<Engine>, text: &str) -> Vec<Event> {
    let mut stream = Stream::new(Arc::clone(engine), Origin::default()).of_finished();
    let mut events = Vec::new();
    stream.push(text.as_bytes(), Timestamp(0), &mut events);
    stream.finish(Timestamp(0), &mut events);
    events
}

fn describe(events: &[Event]) -> String {
    if events.is_empty() {
        return "no event".to_owned();
    }
    let one = |event: &Event| format!("{} at {}-{}: {}", event.rule, event.line_num, event.line_end, event.text);
    events.iter().map(one).collect::<Vec<_>>().join("; ")
}
