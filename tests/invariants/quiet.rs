//! Invariants 3 and 4: text that no rule knows costs nothing, and an open event sees every line.

use siftd::core::pipeline::Stream;

use crate::support::{NOW, Rng, scan, stream, usual};

fn fed(text: &str) -> Stream {
    let mut stream = stream(&usual());
    stream.push(text.as_bytes(), NOW, &mut Vec::new());
    stream
}

#[test]
fn invariant_3_a_block_without_a_hit_is_not_looked_at() {
    let lines = [
        "Listening on 0.0.0.0:8080",
        "GET /health 200 3ms",
        "    return total",
        "",
        "{\"level\":\"info\",\"msg\":\"ready\"}",
        "level=info msg=ready",
        "2026-09-21T10:00:00Z INFO ready",
        "\u{1b}[32mgreen\u{1b}[0m",
        "10%\r20%\r100%",
        "web_1 | up",
    ];
    let mut rng = Rng(3);
    let text: String = (0..20_000).map(|_| format!("{}\n", rng.pick(&lines))).collect();
    let counts = fed(&text).counts();
    assert_eq!((counts.candidates, counts.lines, counts.bytes), (0, 20_000, text.len() as u64));
}

#[test]
fn invariant_3_after_an_error_lines_are_skipped_again() {
    let error = "Traceback (most recent call last):\n  File \"a.py\", line 3, in main\n    f()\nValueError: no\n";
    // The maximum number of lines that may belong to its message.
    let before = fed(&format!("{error}{}", "ready\n".repeat(100))).counts().candidates;
    assert!(before < 50, "{before}");
    let after = fed(&format!("{error}{}", "ready\n".repeat(10_000))).counts().candidates;
    assert_eq!(before, after);
}

#[test]
fn invariant_3_the_look_back_still_knows_skipped_lines() {
    let text = format!("{}src/app.js:3\nthrow new Error('x')\n^\n\nError: x\n    at f (src/app.js:3:7)\n", "ready\n".repeat(50_000));
    let events = scan(text);
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].line_num, events[0].line_end), (50_001, 50_006));
}

/// Lines that contain no literal, across several blocks of the buffer.
#[test]
fn invariant_4_an_open_trace_sees_every_line() {
    let frames: String = (0..700).map(|n| format!("  File \"/srv/{}/m{n}.py\", line {n}, in f{n}\n    g{n}()\n", "d".repeat(200))).collect();
    let text = format!("ready\nTraceback (most recent call last):\n{frames}ValueError: no\nready\n");
    let events = scan(&text);
    assert_eq!(events.len(), 1);
    let expected: Vec<&str> = text.lines().skip(1).take(1402).collect();
    assert_eq!(events[0].multiline, expected[..]);
    assert_eq!((events[0].line_num, events[0].line_end, events[0].text.as_str()), (2, 1403, "ValueError: no"));
}

/// Weak traces start without a literal, in an open region.
#[test]
fn invariant_4_an_open_region_sees_every_line() {
    let text = "=================================== FAILURES ===================================\n___________________________________ test_a ___________________________________\n\n    def test_a():\n>       assert 1 == 2\nE       assert 1 == 2\n\ntest_a.py:2: AssertionError\n=========================== short test summary info ============================\nFAILED test_a.py::test_a - assert 1 == 2\n============================== 1 failed in 0.01s ===============================\n";
    let events = scan(text);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert!(events[0].multiline.iter().any(|line| line.contains("assert 1 == 2")));
}
