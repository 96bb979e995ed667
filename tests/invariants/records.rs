//! Structured lines: a level alone decides, and each part of a record is found in its field.

use crate::support::{NOW, scan, stream, usual};

const STACK: &str = "TypeError: x is not a function\\n    at f (/srv/app.js:3:7)";

#[test]
fn a_level_below_error_is_no_error_whatever_the_message_says() {
    for level in ["\"level\":\"info\"", "\"level\":\"warn\"", "\"level\":30", "\"severity\":\"INFO\"", "\"@level\":\"debug\"", "\"lvl\":\"warning\""] {
        let line = format!("{{{level},\"msg\":\"{STACK}\",\"err\":{{\"stack\":\"{STACK}\"}}}}\n");
        assert!(scan(&line).is_empty(), "{line}");
    }
    for line in ["level=info msg=\"TypeError: x\"\n", "time=2026-09-21T10:00:00Z level=WARN msg=\"panic: boom\" err=\"connection refused\"\n"] {
        assert!(scan(line).is_empty(), "{line}");
    }
}

#[test]
fn a_level_of_error_is_one_error() {
    for (line, text) in [
        (format!("{{\"level\":\"error\",\"msg\":\"cannot start\",\"stack\":\"{STACK}\"}}"), "TypeError: x is not a function"),
        ("{\"level\":50,\"time\":1790000000000,\"msg\":\"cannot start\"}".to_owned(), "cannot start"),
        ("{\"severity\":\"ERROR\",\"message\":\"cannot start\"}".to_owned(), "cannot start"),
        ("level=error msg=\"cannot start\" port=80".to_owned(), "cannot start"),
        ("{\"level\":\"fatal\",\"msg\":\"first\\nsecond: TypeError: x\"}".to_owned(), "first"),
    ] {
        let found = scan(format!("{line}\nready\n"));
        assert_eq!(found.len(), 1, "{line}\n{found:#?}");
        assert!(found[0].text == text || found[0].text.contains("TypeError"), "{line}: {}", found[0].text);
        assert_eq!((found[0].line_num, found[0].line_end, found[0].offset), (1, 1, 0));
    }
}

#[test]
fn a_record_says_where_its_text_stands() {
    let line = format!("{{\"a\":1,\"runs\":[{{}},{{\"stderr/x\":\"ok\\nready\\n{STACK}\\nend\"}}]}}\n");
    let found = scan(format!("ready\n{line}ready\n"));
    assert_eq!(found.len(), 1, "{found:#?}");
    let event = &found[0];
    let place = event.record.as_ref().unwrap();
    assert_eq!((place.pointer.as_str(), place.line), ("/runs/1/stderr~1x", 3));
    assert_eq!((event.line_num, event.line_end, event.offset), (2, 2, 6));
    assert_eq!(event.multiline, ["TypeError: x is not a function", "    at f (/srv/app.js:3:7)"]);
}

/// Two errors of one record differ by the inner line where they start.
#[test]
fn errors_of_one_record_have_their_own_ids() {
    let found = scan("{\"out\":\"TypeError: a\\nready\\nRangeError: b\\nready\",\"err\":\"ValueError: c\"}\n");
    assert!(found.len() >= 2, "{found:#?}");
    let mut ids: Vec<_> = found.iter().map(|event| &event.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), found.len());
}

#[test]
fn a_record_in_a_record_is_read() {
    let inner = format!("{{\"level\":\"error\",\"msg\":\"{STACK}\"}}");
    let line = format!("{{\"body\":{}}}\n", serde_json::to_string(&inner).unwrap());
    let found = scan(line);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].text.contains("TypeError"));
}

/// The look-back: line numbers, and no lines beyond its bounds.
#[test]
fn context_is_what_stood_before() {
    let text = format!("{}one\ntwo\nTypeError: x\nthree\nfour\nfive\n", "ready\n".repeat(30_000));
    let event = scan(text).remove(0);
    assert_eq!(event.context, ["30001: one", "30002: two", "30003: TypeError: x", "30004: three", "30005: four"]);
    let first = scan("TypeError: x\n").remove(0);
    assert_eq!(first.context, ["1: TypeError: x"]);
    let long = scan(format!("{}\nTypeError: x\n", "y".repeat(100_000))).remove(0);
    assert!(long.context.iter().all(|line| line.len() < 20_000), "{}", long.context.as_str().len());
}

/// Older bytes follow those that were read, and are ignored.
#[test]
fn context_holds_no_unfinished_line() {
    for count in 50_000..50_060 {
        let (mut stream, mut out) = (stream(&usual()), Vec::new());
        let text = format!("{}make: *** [Makefile:3: all] Error 2\nunfinished", "ready\n".repeat(count));
        stream.push(text.as_bytes(), NOW, &mut out);
        stream.finish(NOW, &mut out);
        assert!(out.len() == 1 && out[0].context.iter().all(|line| !line.contains("unfinished") || line.ends_with(": unfinished")), "{:?}", out[0].context);
    }
}

#[test]
fn context_crlf_and_dress_are_taken_off() {
    let event = scan("\u{1b}[32mone\u{1b}[0m\r\n10%\rtwo\r\nTypeError: x\r\nthree\r\n").remove(0);
    assert_eq!(event.context, ["1: one", "2: two", "3: TypeError: x", "4: three"]);
}

/// A status line is an event if no detail said the same before it.
#[test]
fn a_summary_speaks_only_when_nothing_else_did() {
    let summary = "Result: FAIL\n";
    assert_eq!(scan(summary).len(), 1);
    let detail = "not ok 1 - adds\n  ---\n  message: 'no'\n  ...\n";
    let found = scan(format!("TAP version 13\n{detail}1..1\n# fail 1\n{summary}"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].line_num == 2);
}

/// Waiting notes are reported at the end of the stream, not by a pause.
#[test]
fn a_note_that_waits_is_not_published_by_a_pause() {
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push("\u{2716} cart (2.1ms)\n".as_bytes(), NOW, &mut out);
    stream.tick(siftd::core::event::Timestamp(i64::MAX), &mut out);
    assert!(out.is_empty() && stream.deadline().is_none());
    stream.finish(NOW, &mut out);
    assert_eq!(out.len(), 1);
}

/// A trace that starts with a waiting status line reports it as well.
#[test]
fn a_note_that_a_trace_has_taken_is_told_with_it() {
    let stack = "\tat org.apache/app.Main.load(x\n    [junit] \tat java.base/java.lang.reflect.Method.invoke(Method.java:569)\n";
    let found = scan(format!("FAIL: tests/sum\n] {stack}ok\n"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].line_num, found[0].line_end), (1, 3));
}

/// A line that belongs to another open error does not start a trace.
#[test]
fn a_line_is_of_one_error() {
    let found = scan(
        "11-20 10:11:12.101  2211  2211 E AndroidRuntime: Process: com.acme.till, PID: 2211\n\
        11-20 10:11:12.101  2211 :2211 E AndroidRuntime: android.runtime.JavaProxyThrowable: System.InvalidOperationException: till is closed\n\
        11-20 10:11:12.101  2211  2211 E AndroidRuntime:   at Shop.Till.Total () [0x00001] in /srv/app/Till.cs:42\n",
    );
    let ids: std::collections::BTreeSet<_> = found.iter().map(|event| &event.id).collect();
    assert_eq!(ids.len(), found.len(), "{found:#?}");
}

/// The error between the two failures has not been reported before.
#[test]
fn a_failure_that_is_printed_again_hides_no_error() {
    let failure = "\u{2716} adds (1.2ms)\n  TypeError: no\n      at f (/srv/a.js:1:1)\n";
    let found = scan(format!("{failure}[ERROR] no\n{failure}"));
    assert_eq!(found.iter().map(|event| (event.line_num, &*event.rule)).collect::<Vec<_>>(), [(1, "tap.spec"), (4, "level.tag")]);
}
