//! Pairs of errors that are the same fault, which must share a signature, and pairs that differ in one word that matters,
//! which must not. The pairs are in `fixtures/signature-pairs.jsonl`, one per line: `[verdict, what, one, other]`.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Hex, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;

const NOW: Timestamp = Timestamp(1_795_183_200_000_000);
/// Fewer pairs than this prove little.
const MIN_PAIRS: usize = 150;

#[test]
fn the_same_fault_has_one_signature_and_another_one_has_another() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/signature-pairs.jsonl")).unwrap();
    let (mut wrong, mut pairs) = (Vec::new(), 0);
    for line in text.lines() {
        let [verdict, what, one, other]: [String; 4] = serde_json::from_str(line).unwrap();
        assert!(["same", "differ"].contains(&verdict.as_str()), "{line}");
        let signs = (signatures(&engine, &one), signatures(&engine, &other));
        let is_right = signs.0.len() == 1 && signs.1.len() == 1 && (signs.0 == signs.1) == (verdict == "same");
        if !is_right {
            wrong.push(format!("{verdict}, {what}: {} and {} events", signs.0.len(), signs.1.len()));
        }
        pairs += 1;
    }
    assert!(wrong.is_empty(), "{} of {pairs} pairs:\n{}", wrong.len(), wrong.join("\n"));
    assert!(pairs >= MIN_PAIRS, "{pairs} pairs");
}

fn signatures(engine: &Arc<Engine>, text: &str) -> Vec<Hex> {
    let (mut stream, mut events) = (Stream::new(Arc::clone(engine), Origin::default()), Vec::new());
    stream.push(text.as_bytes(), NOW, &mut events);
    stream.push(b"\n", NOW, &mut events);
    stream.finish(NOW, &mut events);
    events.iter().map(|event| event.signature).collect()
}
