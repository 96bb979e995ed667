//! Which lines belong to an error whose end no rule of its own tells: a logger's record, a place whose source is shown.

use crate::chunking::chunked;
use crate::support::{ids, scan, usual};

/// Events by their first and last line, however the text is cut.
fn lines(text: &str) -> Vec<(u64, u64)> {
    let found = scan(text);
    assert_eq!(ids(&found), ids(&chunked(&usual(), text.as_bytes(), || 1, || true)), "{text}");
    found.iter().map(|event| (event.line_num, event.line_end)).collect()
}

/// What a test printed owns the indented lines below it, but not the reports of the runner that ran it.
#[test]
fn a_record_ends_before_a_runners_report() {
    let report = "  1) test adds (TillTest)\n     test/till_test.exs:12\n     Assertion with == failed\n     left:  1\n     right: 2\n";
    for (before, first) in [("12:00:01.123 [error] lost\n\n", (1, 1)), ("[error] lost\n    Args: []\n", (1, 2)), ("[error] lost\n\n    Args: []\n\n", (1, 3))] {
        let from = before.lines().count() as u64 + 1;
        assert_eq!(lines(&format!("{before}{report}")), [first, (from, from + 4)], "{before}");
    }
}

/// VMware's services mark the further lines of a record.
#[test]
fn a_record_has_lines_behind_arrows() {
    let head = "2026-11-20T10:00:00.123Z error vpxd[7F3A] [Originator@6876 sub=x] lost\n";
    let next = "2026-11-20T10:00:01.123Z info vpxd[7F3A] [Originator@6876 sub=x] next\n";
    assert_eq!(lines(&format!("{head}--> Reason: Connection refused\n-->\n--> [context]zKq7[/context]\n{next}")), [(1, 4)]);
    assert_eq!(lines(&format!("{head}next --> step\n")), [(1, 1)]);
}

/// Whatever tool shows the line of source that an error is about, and points into it.
#[test]
fn source_that_is_shown_belongs_to_the_error_above() {
    for (text, last) in [
        ("error: src/cart.till:12:5: unknown name\nlet total = qty\n            ~~~^\nnext\n", 3),
        ("ERROR: src/cart.till:12:5: unknown name\n12 | let total = qty\n   |             ^^^ not found\n13 | end\nnext\n", 4),
        ("SyntaxError: src/cart.till: Unexpected token (12:5)\n\n  11 |\n> 12 | let total = = qty\n     |             ^\n  13 | end\nnext\n", 6),
        // Nothing points into what follows.
        ("error: src/cart.till:12:5: unknown name\nlet total = qty\nnext\n", 1),
        ("error: src/cart.till:12:5: unknown name\n\nlet total = qty\n  ^\n", 1),
        ("error: unknown name\nlet total = qty\n            ^\n", 1),
    ] {
        assert_eq!(lines(text), [(1, last)], "{text}");
    }
    // The next error has its source above it.
    let two = "error: one\n      at /srv/till.js:1:55\n1 | let qty\n        ^\nerror: two\n      at /srv/till.js:1:71\n";
    assert_eq!(lines(two).first(), Some(&(1, 2)));
}

/// Tools that relay what others print, in marks that only the first line of a trace shows to be such.
#[test]
fn a_trace_is_read_behind_the_names_of_who_relays_it() {
    let trace = ["step", "Traceback (most recent call last):", "  File \"till.py\", line 3, in <module>", "    total()", "ValueError: no price", "over"];
    for mark in [" 0:12.34 ", "==> web: ", "    amazon-ebs.web: ", "    default: ", "   +build | ", "   web │ ", "till> ", "[12:00:01]: ▸ "] {
        let text: String = trace.iter().map(|line| format!("{mark}{line}\n")).collect();
        assert_eq!(lines(&text), [(2, 5)], "{mark}");
    }
}

/// A test that passed when its runner tried it again has not failed.
#[test]
fn a_retried_test_fails_only_if_it_does_in_the_end() {
    let begin = "Running 2 tests using 1 worker\n\n  ✘  1 a.spec.ts:7:5 › pays (5.1s)\n  ✓  2 a.spec.ts:7:5 › pays (retry #1) (2.1s)\n";
    let report = |number: u32, name: &str| format!("  {number}) {name} ───────\n\n    Error: no\n\n        at /srv/a.spec.ts:8:13\n\n");
    let flaky = format!("{begin}\n{}  1 flaky\n    a.spec.ts:7:5 › pays ─────\n  1 passed (9s)\n", report(1, "a.spec.ts:7:5 › pays"));
    assert_eq!(lines(&flaky), []);
    let removes = "  ✘  3 a.spec.ts:12:5 › removes (1.0s)\n  ✘  4 a.spec.ts:12:5 › removes (retry #1) (1.0s)\n";
    let reports = report(1, "a.spec.ts:7:5 › pays") + &report(2, "a.spec.ts:12:5 › removes");
    let failed = format!("{begin}{removes}\n{reports}  1 failed\n    a.spec.ts:12:5 › removes ───\n  1 flaky\n    a.spec.ts:7:5 › pays ───\n");
    assert_eq!(lines(&failed), [(14, 18)]);
}
