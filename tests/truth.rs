//! The generator of `benches/loggen` knows where its errors are:
//! exactly those must be found, at usual and at high error rates.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::Timestamp;
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;

#[allow(dead_code)]
#[path = "../benches/log/mod.rs"]
mod log;

const NOW: Timestamp = Timestamp(1_795_183_200_000_000);
/// Maximum number of differences printed.
const MAX_SHOWN: usize = 10;

/// First line, last line, kind.
type Found = (u64, u64, String);

#[test]
fn every_error_of_the_generator_is_found_with_its_lines_and_nothing_else() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    for (seed, rate, look_alikes) in [(1, 0.01, true), (2, 0.1, true), (3, 0.1, false)] {
        let recipe = log::Recipe { bytes: 1 << 20, rate, seed, look_alikes };
        let (mut text, mut truth) = (Vec::new(), Vec::new());
        let truth_of = |fault: log::Fault| {
            truth.push((fault.line, fault.line + fault.lines - 1, fault.kind.to_owned()));
            Ok(())
        };
        let written = log::write(recipe, &mut text, truth_of).unwrap();
        assert!(written.faults > 40, "{written:?}");
        check(&engine, &text, &truth, seed);
    }
}

fn check(engine: &Arc<Engine>, text: &[u8], truth: &[Found], seed: u64) {
    let (mut stream, mut events) = (Stream::new(Arc::clone(engine), Origin::default()).of_finished(), Vec::new());
    stream.push(text, NOW, &mut events);
    stream.finish(NOW, &mut events);
    let found: Vec<Found> = events.iter().map(|event| (event.line_num, event.line_end, event.rule.to_string())).collect();
    let differ = |left: &[Found], right: &[Found]| {
        let known = |one: &&Found| right.iter().any(|other| (one.0, one.1) == (other.0, other.1));
        left.iter().filter(|one| !known(one)).take(MAX_SHOWN).cloned().collect::<Vec<_>>()
    };
    let (missed, extra) = (differ(truth, &found), differ(&found, truth));
    assert!(missed.is_empty() && extra.is_empty(), "seed {seed}: not found so: {missed:?}\nfound instead: {extra:?}");
    assert_eq!(found.len(), truth.len(), "seed {seed}");
}
