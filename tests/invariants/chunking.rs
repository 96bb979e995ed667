//! Invariant 5: chunks and short pauses change neither ids nor line numbers.

use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::Event;
use siftd::core::patience::Patience;

use crate::support::{NOW, Rng, engine, essence, essences, events, for_documents, ids, same, stream, usual};

/// Pushes `bytes` in chunks of the sizes that `size` returns; after
/// each chunk `pause` decides whether there is a short pause.
pub fn chunked(engine: &Arc<Engine>, bytes: &[u8], mut size: impl FnMut() -> usize, mut pause: impl FnMut() -> bool) -> Vec<Event> {
    let (mut stream, mut out) = (stream(engine), Vec::new());
    let mut rest = bytes;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(size().clamp(1, rest.len()));
        stream.push(chunk, NOW, &mut out);
        if pause() {
            stream.pause(Patience::Short, &mut out);
        }
        rest = after;
    }
    stream.finish(NOW, &mut out);
    out
}

fn never() -> bool {
    false
}

/// Returns an engine with small limits, for chunks of every size that reach the bounds.
fn small() -> Arc<Engine> {
    engine(Limits { max_line_bytes: 1024, max_trace_lines: 6, max_trace_bytes: 700, ..Limits::default() })
}

#[test]
fn invariant_5_chunks_change_nothing() {
    for engine in [usual(), small()] {
        for_documents(150, 50_000, |document, seed| {
            let whole = essences(&events(&engine, document));
            let mut rng = Rng(seed);
            let most = *rng.pick(&[3, 40, 500, 9000]);
            same(&whole, &essences(&chunked(&engine, document, || 1, never)))?;
            same(&whole, &essences(&chunked(&engine, document, || rng.below(most), never)))
        });
    }
}

/// The context of an input that is at hand holds the lines that come after an error, wherever a read ended.
#[test]
fn invariant_5_chunks_change_no_context() {
    let contexts = |document: &[u8], size: &mut dyn FnMut() -> usize| -> Vec<String> {
        let (mut stream, mut out, mut rest) = (stream(&usual()).of_finished().with_whole_context(), Vec::new(), document);
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(size().clamp(1, rest.len()));
            stream.push(chunk, NOW, &mut out);
            rest = after;
        }
        stream.finish(NOW, &mut out);
        out.iter().map(|event| format!("{} {:?}", essence(event), event.context)).collect()
    };
    for_documents(150, 80_000, |document, seed| {
        let whole = contexts(document, &mut || usize::MAX);
        let mut rng = Rng(seed);
        let most = *rng.pick(&[3, 40, 500, 9000]);
        same(&whole, &contexts(document, &mut || 1))?;
        same(&whole, &contexts(document, &mut || rng.below(most)))
    });
}

#[test]
fn invariant_5_pauses_change_no_id() {
    for engine in [usual(), small()] {
        for_documents(200, 60_000, |document, seed| {
            let whole = ids(&events(&engine, document));
            same(&whole, &ids(&chunked(&engine, document, || 1 << 20, never)))?;
            same(&whole, &ids(&chunked(&engine, document, || 1, || true)))?;
            let mut sizes = Rng(seed);
            let mut pauses = Rng(seed + 1);
            same(&whole, &ids(&chunked(&engine, document, || sizes.below(200), || pauses.one_in(3))))
        });
    }
}

/// Chunks that end within lines, and blocks of lines that are longer than the buffer's blocks.
#[test]
fn invariant_5_holds_across_blocks() {
    let engine = engine(Limits { max_line_bytes: 3000, ..Limits::default() });
    for seed in 70_000..70_005 {
        let mut rng = Rng(seed);
        let mut document = Vec::new();
        while document.len() < 1 << 20 {
            let filler = "all is quiet on the line\n".repeat(rng.below(4000));
            document.extend_from_slice(filler.as_bytes());
            if rng.one_in(3) {
                let long = *rng.pick(&[2_990, 3_001, 3_004, 3_100, 200_000, 500_000]) + rng.below(20);
                document.extend_from_slice(&vec![b'x'; long]);
                document.extend_from_slice(b" TypeError: boom\n");
            }
            document.extend_from_slice(&crate::support::document(&mut rng));
        }
        if seed % 4 == 0 {
            document = crate::support::wide(&mut rng, &document);
        }
        let whole = essences(&events(&engine, &document));
        let mut sizes = Rng(seed);
        let most = *sizes.pick(&[700, 70_000, 300_000]);
        let other = essences(&chunked(&engine, &document, || sizes.below(most), never));
        same(&whole, &other).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// A line is judged by the regions and traces that were open when it arrived.
/// Those that started later, before a trace gave the line back, do not count.
#[test]
fn invariant_5_a_line_is_judged_by_what_was_open_in_its_time() {
    let before = b"db_1  | E   ModuleNotFoundError: No module named 'nope'\n2026-09-21T10:00:00.000000000Z stdout F There was 1 failure:\n\
        {\"msg\":\"1) CartTest::testDiscount\",\"pid\":7}\n";
    let held = b"CMake Error: The source directory \"/x\" does not exist.\ndb_1  | ==== FAILURES ====\n\
        {\"Time\":\"2026-09-21T10:00:00.000000000Z\",\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"db_1  | E   AssertionError: bad\\n\"}\n";
    let older = b"Error: boom\n{\"Time\":\"2026-09-21T10:00:00.000000000Z\",\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\
        \"Output\":\"2026-09-21 10:00:00,123 ERROR [main] 1. ERROR in /srv/ECE.java (at line 8)\\n\"}\n";
    for (document, count) in [(&before[..], 1), (held, 2), (older, 2)] {
        let whole = ids(&events(&usual(), document));
        assert_eq!(whole.len(), count);
        assert_eq!(whole, ids(&chunked(&usual(), document, || 1, || true)));
    }
}

/// The verdict on a test follows its output: no short pause reports the output beforehand.
#[test]
fn invariant_5_a_verdict_decides_about_what_came_before_it() {
    let printed =
        "=== RUN   TestMode\n2026/11/20 12:59:23 ERROR simulated\nTraceback (most recent call last):\n  File \"a.py\", line 3, in main\nValueError: no\n";
    let verdicts = [("--- PASS: TestMode (0.00s)\nPASS\n", 0), ("--- SKIP: TestMode (0.00s)\n", 0), ("exit status 1\n", 1), ("panic: boom\n", 2), ("", 1)];
    for (verdict, count) in verdicts {
        let document = format!("{printed}{verdict}");
        let whole = ids(&events(&usual(), &document));
        assert_eq!(whole.len(), count, "{verdict:?} {whole:?}");
        assert_eq!(whole, ids(&chunked(&usual(), document.as_bytes(), || 1, || true)), "{verdict:?}");
    }
}

/// A test that hangs has no verdict: its output is reported after a while, once.
#[test]
fn a_verdict_that_does_not_come_hides_nothing() {
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push(
        b"=== RUN   TestMode\nERROR: simulated\nready\nTraceback (most recent call last):\n  File \"a.py\", line 3, in main\nValueError: no\n",
        NOW,
        &mut out,
    );
    stream.pause(Patience::Long, &mut out);
    assert!(out.is_empty(), "{out:?}");
    stream.pause(Patience::Verdict, &mut out);
    assert_eq!(out.iter().map(|event| event.line_num).collect::<Vec<_>>(), [2, 4]);
    stream.push(b"--- FAIL: TestMode (600.00s)\n", NOW, &mut out);
    stream.finish(NOW, &mut out);
    assert_eq!(out.iter().map(|event| event.line_num).collect::<Vec<_>>(), [2, 4, 7]);
}

/// A runner's own error needs no verdict, but comes out after what its test has printed before it: no later than that.
#[test]
fn what_waits_for_a_verdict_keeps_its_place() {
    let run = b"c2 is a Catch v2.13.10 host application.\nerror: failed to load\n-----------------------------------------\ntotal\n-----------------------------------------\nc2.cpp:8\n.........................................\n\nc2.cpp:8: FAILED:\n  CHECK( total(2) == 5 )\n\n";
    for (end, lines) in [("All tests passed (2 assertions in 2 test cases)\n", &[9][..]), ("test cases: 2 | 1 failed\n", &[2, 9]), ("", &[2, 9])] {
        let (mut stream, mut out) = (stream(&usual()), Vec::new());
        stream.push(run, NOW, &mut out);
        stream.push(b"-----------------------------------------\n", NOW, &mut out);
        assert!(out.is_empty(), "{out:?}");
        stream.push(end.as_bytes(), NOW, &mut out);
        if end.is_empty() {
            stream.pause(Patience::Verdict, &mut out);
        }
        stream.finish(NOW, &mut out);
        assert_eq!(out.iter().map(|event| event.line_num).collect::<Vec<_>>(), lines, "{end:?}");
    }
}

/// The compiler's count of its errors is no further event, whether they wait for a verdict or not.
#[test]
fn what_waits_for_a_verdict_explains_the_status_line_after_it() {
    let printed = "error[E0425]: cannot find value `iter` in this scope\n --> src/lib.rs:5:27\n  |\n5 |     iter.next();\n  |     ^^^^\n\nerror: aborting due to 1 previous error\n\n";
    for (end, lines) in [("--- PASS: TestMode (0.00s)\nPASS\n", &[][..]), ("", &[2])] {
        let found = events(&usual(), format!("=== RUN   TestMode\n{printed}{end}"));
        assert_eq!(found.iter().map(|event| event.line_num).collect::<Vec<_>>(), lines, "{end:?}");
    }
}

/// What is held back is bounded: the oldest is released first.
#[test]
fn invariant_7_what_waits_for_a_verdict_is_bounded() {
    let printed: String = (0..300).map(|number| format!("Error: simulated {number}\n")).collect();
    let found = events(&usual(), format!("=== RUN   TestMode\n{printed}--- PASS: TestMode (0.00s)\nPASS\n"));
    assert_eq!(found.len(), 300 - 128);
    assert_eq!((found[0].line_num, found[171].line_num), (2, 173));
}
