//! A stream that resumes at its newest checkpoint finds the same events as an uninterrupted one.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use siftd::core::assemble::{Facts, Snapshot};
use siftd::core::engine::{Engine, Limits};
use siftd::core::event::Event;
use siftd::core::extract::Origin;
use siftd::core::patience::Patience;
use siftd::core::pipeline::{BEFORE_BYTES, Stream, Workspace};

use super::support::{NOW, Rng, engine, events, for_documents, same};

fn ids(found: &[Event]) -> BTreeSet<String> {
    // A line longer than the look-back has lost its beginning in one of the two.
    let end = |line: &str| line.chars().rev().take(80).collect::<String>();
    let before = |event: &Event| event.context.before(event.line_num, usize::MAX).map(|lines| lines.iter().map(end).collect::<Vec<_>>());
    found.iter().map(|event| format!("{}:{} {} {:?}", event.line_num, event.inner, event.id, before(event))).collect()
}

/// Returns the events of `bytes` with restarts at random places, and how far the checkpoints lagged behind.
fn with_restarts(engine: &Arc<Engine>, bytes: &[u8], rng: &mut Rng) -> (BTreeSet<String>, usize) {
    let mut stream = Stream::new(engine.clone(), Origin::default());
    let (mut out, mut at, mut restarts, mut space) = (Vec::new(), 0, 0, Workspace::default());
    while at < bytes.len() {
        let most = *rng.pick(&[40, 3000, 3000]);
        let count = (1 + rng.below(most)).min(bytes.len() - at);
        stream.attach(&mut space);
        stream.push(&bytes[at..at + count], NOW, &mut out);
        stream.safe();
        stream.detach(&mut space);
        at += count;
        if rng.one_in(5) {
            stream.pause(Patience::Short, &mut out);
        }
        if rng.one_in(8) && restarts < 40 {
            let (offset, facts) = stream.facts();
            let facts: Facts = serde_json::from_str(&serde_json::to_string(&facts).unwrap()).unwrap();
            at = offset as usize;
            let before = &bytes[at - at.min(BEFORE_BYTES as usize)..at];
            stream = Stream::resume(engine.clone(), Origin::default(), Snapshot::new(offset, &facts, engine), before);
            restarts += 1;
        }
    }
    stream.finish(NOW, &mut out);
    (ids(&out), restarts)
}

#[test]
fn a_restart_at_any_safe_place_finds_the_same_events() {
    let small = Limits { max_trace_lines: 6, max_trace_bytes: 700, ..Limits::default() };
    for engine in [engine(Limits::default()), engine(small)] {
        let restarts = Cell::new(0);
        for_documents(400, 80_000, |document, seed| {
            let whole = ids(&events(&engine, document));
            let (found, count) = with_restarts(&engine, document, &mut Rng(seed));
            restarts.set(restarts.get() + count);
            same(&whole.into_iter().collect::<Vec<_>>(), &found.into_iter().collect::<Vec<_>>())
        });
        assert!(restarts.get() > 200, "{restarts:?}");
    }
}

fn restarts_change_nothing(engine: &Arc<Engine>, text: &str, whole: &BTreeSet<String>) {
    let mut all = 0;
    for seed in 0..20 {
        let (found, restarts) = with_restarts(engine, text.as_bytes(), &mut Rng(seed));
        assert_eq!(found, *whole, "{seed}");
        all += restarts;
    }
    assert!(all > 20, "{all}");
}

/// A section that started after a writer's name continues after that name.
#[test]
fn a_restart_within_a_section_of_a_named_writer_finds_the_same_events() {
    let engine = engine(Limits::default());
    let failed = |name: &str| {
        format!(
            "    it {name}:\n{0}____ test_{name} ____\n{0}\n{0}    def test_{name}():\n{0}>       assert 1 == 2\n{0}E       assert 1 == 2\n{0}\n{0}test_cart.py:7: AssertionError\n",
            "[web] "
        )
    };
    let text = format!("[web] ===== FAILURES =====\n{}", (0..40).map(|n| failed(&format!("row{n}"))).collect::<String>());
    let whole = ids(&events(&engine, text.as_bytes()));
    assert_eq!(whole.len(), 40, "{whole:?}");
    restarts_change_nothing(&engine, &text, &whole);
}

/// What one program's passing tests print is taken back, also after a restart; what another logs meanwhile is not.
#[test]
fn a_restart_within_the_sections_of_two_writers_finds_the_same_events() {
    let engine = engine(Limits::default());
    let round = |n: u32| {
        format!(
            "[tests] === RUN   TestPay{n}\n[tests] Error: card {n} was declined\n[api] 2026-11-20T10:00:00Z ERROR order {n} is stuck\n[api] 2026-11-20T10:00:01Z INFO closed\n[tests] --- PASS: TestPay{n} (0.00s)\n"
        )
    };
    let text: String = (0..60).map(round).collect();
    let whole = ids(&events(&engine, text.as_bytes()));
    assert_eq!(whole.len(), 60, "{whole:?}");
    restarts_change_nothing(&engine, &text, &whole);
}

/// A section that a service's own record has opened goes on hiding none of its errors.
#[test]
fn a_restart_within_a_section_that_a_logger_opened_finds_the_same_events() {
    let engine = engine(Limits::default());
    let record = |n: u32| format!("2026-11-20 09:24:31,484 - shop.till - ERROR - cannot open cart-{n}.db: Permission denied\n");
    let text = "2026-11-20 09:24:31,484 - shop.flags - INFO - Feature: dark mode\n".to_owned() + &(0..200).map(record).collect::<String>();
    let whole = ids(&events(&engine, text.as_bytes()));
    assert_eq!(whole.len(), 200);
    restarts_change_nothing(&engine, &text, &whole);
}

#[test]
fn the_safe_place_follows_a_log_of_errors_alone() {
    let engine = engine(Limits::default());
    let mut stream = Stream::new(engine.clone(), Origin::default());
    let mut out = Vec::new();
    for n in 0..2000 {
        stream.push(format!("2026-01-01T00:00:00Z ERROR job {n} failed\n").as_bytes(), NOW, &mut out);
        stream.safe();
    }
    let behind = stream.position() - stream.safe().offset;
    assert!(behind < 200, "{behind} bytes behind");
}
