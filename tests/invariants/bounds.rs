//! Invariant 7: everything is bounded, and reaching a bound is visible.

use siftd::core::engine::Limits;
use siftd::core::event::{Event, Exception, Frame, Frames, Link, Location, RecordPlace, Sender, Timestamp};
use siftd::core::pipeline::Counts;
use siftd::sinks::record::{Envelope, write};

use crate::support::{NOW, Rng, engine, events, parts, scan, stream, usual};

fn one(bytes: impl AsRef<[u8]>, limits: Limits) -> Event {
    let mut found = events(&engine(limits), bytes);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

#[test]
fn invariant_7_an_endless_line_keeps_its_head_and_its_tail() {
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push(b"TypeError: head ", NOW, &mut out);
    let mut largest = 0;
    for _ in 0..256 {
        stream.push(&[b'x'; 1 << 20], NOW, &mut out);
        largest = largest.max(stream.space().len());
    }
    stream.push(b" tail\nready\n", NOW, &mut out);
    stream.finish(NOW, &mut out);
    assert!(largest <= 1 << 20, "{largest}");
    assert_eq!((out.len(), stream.counts().truncated, stream.counts().lines), (1, 1, 2));
    let text = out[0].multiline.iter().next().unwrap();
    assert!(out[0].truncated && text.starts_with("TypeError: head x") && text.ends_with("x tail") && text.contains(" […] "), "{}", text.len());
    assert!(text.len() <= 1 << 20);
}

#[test]
fn invariant_7_an_error_in_the_tail_of_a_cut_line_is_found() {
    let limits = Limits { max_line_bytes: 4096, ..Limits::default() };
    let text = format!("{}\rTypeError: boom\nready\n", "x".repeat(1 << 20));
    let event = one(&text, limits);
    assert!(event.truncated && event.text == "TypeError: boom");
    assert_eq!((event.line_num, event.offset), (1, 0));
}

fn traceback(frames: usize) -> String {
    let frames: String = (0..frames).map(|n| format!("  File \"m{n}.py\", line {n}, in f{n}\n    g{n}()\n")).collect();
    format!("Traceback (most recent call last):\n{frames}ValueError: no\n")
}

#[test]
fn invariant_7_a_long_trace_keeps_its_first_lines_and_what_names_it() {
    for limits in [Limits { max_trace_lines: 20, ..Limits::default() }, Limits { max_trace_bytes: 700, ..Limits::default() }] {
        let event = one(traceback(45), limits);
        assert!(event.truncated);
        assert!(event.multiline.len() <= 40, "{}", event.multiline.len());
        assert_eq!((event.line_num, event.line_end), (1, 92));
        assert_eq!(event.text, "ValueError: no");
        assert_eq!(event.exception.unwrap().kind, "ValueError");
    }
}

/// A machine tries lines that turn out not to be its own: they are looked at again, or it is counted that they are not.
#[test]
fn invariant_7_a_long_trace_gives_back_what_it_tried() {
    let plain = |from: usize| (from..from + 20).map(|n| format!("shelf {n} of the shop\n")).collect::<String>();
    let text = format!("org.acme.shop.TillException: only 1 is open\n{}TypeError: boom\n{}", plain(0), plain(20));
    let read = |limits: Limits| {
        let (mut stream, mut out) = (stream(&engine(limits)), Vec::new());
        stream.push(text.as_bytes(), NOW, &mut out);
        stream.finish(NOW, &mut out);
        (out.iter().map(|event| event.line_num).collect::<Vec<_>>(), stream.counts())
    };
    let (whole, counts) = read(Limits::default());
    assert_eq!((&whole[..], counts.unasked), (&[1, 22][..], 0));
    assert!(counts.reread > 30, "it tried them: {}", counts.reread);
    let (few_lines, counts) = read(Limits { max_trace_lines: 4, ..Limits::default() });
    assert_eq!((few_lines, counts.unasked), (whole, 0));
    let (few_bytes, counts) = read(Limits { max_trace_bytes: 400, ..Limits::default() });
    assert!(few_bytes == [1] && counts.unasked > 10, "{few_bytes:?} {}", counts.unasked);
}

/// Even if a trace's rows accept any line, the trace ends.
#[test]
fn invariant_7_a_trace_ends() {
    let stamped = format!("2026-09-21T10:00:00Z ERROR no\n{}", "  of\n".repeat(120_001));
    for long in [traceback(60_000), stamped] {
        let found = scan(format!("{long}TypeError: boom\n    at f (a.js:1:1)\n"));
        assert!(found[0].truncated && found[0].line_num == 1 && found[0].line_end <= 20_001, "{}", found[0].line_end);
        assert!(found.iter().any(|event| event.line_num == 120_003), "{}", found.len());
    }
}

/// A line that is too long to be kept does not change the meaning of the lines after it.
#[test]
fn invariant_7_a_long_line_within_a_trace() {
    let long = "x".repeat(100_000);
    let text = format!(
        "java.lang.IllegalStateException: boom\n\tat com.acme.A.a(A.java:1)\n\tat com.acme.{long}.b(B.java:2)\n\tat com.acme.C.c(C.java:3)\nCaused by: java.io.IOException: gone\n\tat com.acme.D.d(D.java:4)\n"
    );
    let event = one(text, Limits { max_trace_bytes: 4096, ..Limits::default() });
    assert!(event.truncated);
    let said = event.exception.unwrap();
    assert_eq!(said.kind, "java.lang.IllegalStateException");
    assert!(said.frames.iter().all(|frame| frame.line > 0 && frame.file.ends_with(".java")), "{:?}", said.frames);
    assert!(said.chain.iter().all(|link| !link.kind.starts_with("com.acme")), "{:?}", said.chain);
}

#[test]
fn invariant_7_open_traces_are_at_most_thirty_two() {
    let writers = 400;
    let heads: String = (0..writers).map(|n| format!("web_{n} | TypeError: no {n}\n")).collect();
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push(heads.as_bytes(), NOW, &mut out);
    assert!(out.len() >= writers - 32, "{}", out.len());
    stream.finish(NOW, &mut out);
    assert_eq!(out.len(), writers);
}

/// Work is measured in examined lines, not in time.
#[test]
fn invariant_7_a_million_open_looking_traces() {
    let kinds = [
        "Traceback (most recent call last):",
        "TypeError: no",
        "goroutine 1 [running]:",
        "panic: boom",
        "Exception in thread \"main\" x.Y: z",
        "error[E0583]: no",
        "FAILURES!",
    ];
    let mut rng = Rng(7);
    let count = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    for n in 0..count {
        let line = format!("{}{}\n", if rng.one_in(2) { format!("w{} | ", n % 100) } else { String::new() }, rng.pick(&kinds));
        stream.push(line.as_bytes(), NOW, &mut out);
        out.clear();
    }
    stream.finish(NOW, &mut out);
    let counts = stream.counts();
    assert_eq!(counts.lines, count);
    assert!(counts.reread <= 4 * count, "{} lines were looked at again", counts.reread);
}

/// Each of many heads in a row takes all that follow, and comes to nothing.
#[test]
fn invariant_7_lines_are_not_looked_at_again_without_end() {
    for head in ["Caused by: java.lang.E: x", "goroutine 1 [running]:", "Traceback (most recent call last):"] {
        let text = format!("{}2026-11-20 10:00:00,123 INFO ok\n", format!("{head}\n").repeat(1500)).repeat(2);
        let (mut stream, mut out) = (stream(&usual()), Vec::new());
        stream.push(text.as_bytes(), NOW, &mut out);
        stream.finish(NOW, &mut out);
        let Counts { lines, reread, .. } = stream.counts();
        assert!(reread <= 20 * lines, "{head}: {reread} of {lines} lines were looked at again");
    }
}

#[test]
fn invariant_7_notes_that_wait_are_bounded() {
    let text: String = (0..2000).map(|n| format!("\u{2716} test {n} {} (2.1ms)\n", "y".repeat(n * 10))).collect();
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push(text.as_bytes(), NOW, &mut out);
    assert!(out.len() >= 2000 - 256, "{}", out.len());
    stream.finish(NOW, &mut out);
    assert_eq!(out.len(), 2000);
}

#[test]
fn invariant_7_regions_end() {
    let region = "=================================== FAILURES ===================================\n";
    let text = format!("{region}{}TypeError: boom\n    at f (a.js:1:1)\n", "quiet\n".repeat(200_000));
    let found = scan(text);
    assert!(found.iter().any(|event| event.line_num == 200_002), "{found:#?}");
}

#[test]
fn invariant_7_regions_do_not_nest_without_end() {
    let openers: Vec<&String> =
        parts().examples.iter().filter(|text| text.contains("FAILURES") || text.contains("Failures") || text.contains("captured")).collect();
    let mut text: String = (0..200).flat_map(|_| openers.iter().map(|text| format!("{text}\n"))).collect();
    text.push_str("============================== 1 passed in 0.01s ===============================\n$ node a.js\n2026-09-21T10:00:00Z ERROR the last\n");
    scan(text);
}

/// Beyond the bound, the oldest section of a named writer ends, which is counted; that of the log itself goes on.
#[test]
fn invariant_7_sections_of_many_writers_are_bounded_and_counted() {
    let banner = "=================================== FAILURES ===================================";
    let services: String = (100..200).map(|n| format!("w{n}-1  | Failures:\n")).collect();
    let failure = "___________________________________ test_sum ___________________________________\n\n    def test_sum():\n\
        >       assert add(1, 2) == 4\nE       assert 3 == 4\n\ntest_sum.py:5: AssertionError\n";
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push(format!("{banner}\n{services}{failure}").as_bytes(), NOW, &mut out);
    stream.finish(NOW, &mut out);
    assert_eq!(out.iter().map(|event| &*event.rule).collect::<Vec<_>>(), ["pytest.test"], "{out:#?}");
    assert_eq!(stream.counts().cut_sections, 37);
}

#[test]
fn invariant_7_a_line_with_every_literal() {
    let all = parts().literals.join(" ");
    for text in [
        all.clone(),
        format!("2026-09-21T10:00:00Z ERROR {all}"),
        format!("{{\"msg\":{}}}", serde_json::to_string(&all).unwrap()),
        parts().literals.concat().repeat(50),
    ] {
        let found = scan(format!("{text}\nTypeError: boom\n    at f (a.js:1:1)\n"));
        assert!(found.iter().any(|event| event.text == "TypeError: boom"), "{found:#?}");
    }
}

/// What is not followed up of a line is counted: an error there may be missing.
#[test]
fn invariant_7_places_that_are_left_out_are_counted() {
    let many = "error: ".repeat(9000);
    let result = format!(
        r#"{{"type":"user","sessionId":"s","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"{many}"}}]}}}}"#
    );
    for (text, unasked) in [
        ("error: ".repeat(900), 0),
        (many.clone(), 1),
        (format!("2026-09-21T10:00:00Z stdout F {many}"), 1),
        // The record's own line, and a line inside it.
        (format!(r#"{{"msg":"{many}"}}"#), 2),
        // The record of a transcript is read, not searched.
        (result, 1),
    ] {
        let (mut stream, mut out) = (stream(&usual()), Vec::new());
        stream.push(format!("{text}\nready\n").as_bytes(), NOW, &mut out);
        stream.finish(NOW, &mut out);
        assert_eq!(stream.counts().unasked, unasked, "{} bytes", text.len());
    }
}

#[test]
fn invariant_7_deeply_nested_json() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"error\":", "}]")] {
        for depth in [100, 127, 128, 129, 100_000] {
            let nested = format!("{}\"TypeError: x\"{}", open.repeat(depth), close.repeat(depth));
            for line in [
                nested.clone(),
                format!("{{\"level\":\"error\",\"msg\":{nested}}}"),
                format!("{{\"level\":\"error\",\"msg\":\"{}", open.repeat(depth).replace('"', "\\\"")),
            ] {
                let found = scan(format!("{line}\nTypeError: boom\n    at f (a.js:1:1)\n"));
                assert!(found.iter().any(|event| event.line_num == 2 && event.text == "TypeError: boom"), "{depth} {open}: {found:?}");
            }
        }
    }
}

/// Records inside strings of records, each level escaped once more.
#[test]
fn invariant_7_records_inside_records() {
    let mut text = "TypeError: boom\n    at f (a.js:1:1)".to_owned();
    for _ in 0..12 {
        text = format!("{{\"msg\":{}}}", serde_json::to_string(&text).unwrap());
        assert!(scan(format!("{text}\n")).len() <= 1);
    }
}

#[test]
fn invariant_7_any_bytes() {
    for seed in 0..300 {
        let mut rng = Rng(seed);
        let bytes: Vec<u8> = (0..rng.below(4000)).map(|_| if rng.one_in(9) { b'\n' } else { rng.next() as u8 }).collect();
        let (mut stream, mut out) = (stream(&usual()), Vec::new());
        stream.push(&bytes, NOW, &mut out);
        stream.finish(NOW, &mut out);
        assert_eq!(stream.counts().bytes, bytes.len() as u64, "seed {seed}");
    }
}

/// Every decoder, table and recipe looks ahead for what may follow a word: here nothing follows.
#[test]
fn invariant_7_texts_that_end_anywhere() {
    let words = [
        "Sun",
        "Mon Jan",
        "Jan  2",
        "Mon Jan  2 15:04:05 2026",
        "2026-09-21T10:00:00.000+02:00",
        "1695668091.895",
        "10:00:00",
        "at 10.0.0.3:5432",
        "user@host",
        "https://a:b@h:1/p?q=1#f",
        "/tmp/tmpabcdefgh/x",
        "C:\\Temp\\x",
        "pid=7",
        "0x7fff5fbff8c8",
        "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
        "sha256:0123456789abcdef",
        "retry after 30s",
        "HTTP 429",
        "status code was 418",
        "exit code -1",
        "[Errno 13]",
        "#42",
        "key=value",
        "\"quoted\"",
        "'a'",
        "`b`",
        "(c",
        "[d",
        "{e",
        "<f>",
        "1.5 GiB",
        "3rd",
        "50%",
        "é",
        "\u{1f600}",
        "v1.2.3-rc.1",
        "a.b.c",
        "foo$1",
        "\\u00",
        "\\",
        "=",
        ":",
        "@",
        "~1",
    ];
    let mut rng = Rng(17);
    let mut text = String::new();
    for word in words {
        for other in words {
            let cut = word.floor_char_boundary(rng.below(word.len() + 1));
            text.push_str(&format!("ERROR {other} {word}\nERROR {other}{word}\nERROR {other} {}\n", &word[..cut]));
        }
    }
    for line in parts().examples.iter().flat_map(|text| text.lines()) {
        let cut = line.floor_char_boundary(rng.below(line.len() + 1));
        text.push_str(&format!("ERROR {}\nERROR {}\nERROR {} {}\n", &line[..cut], &line[cut..], &line[..cut], rng.pick(&words)));
    }
    assert!(scan(&text).len() > 3000);
}

/// Returns an event in which every part is too large, made of characters that take several bytes in JSON.
fn huge(rng: &mut Rng) -> Event {
    let mut event = scan("2026-09-21T10:00:00Z ERROR boom\n").remove(0);
    let mut text = |most: usize| {
        let piece = *rng.pick(&["x", "\u{1}", "\"\\", "é", "\u{1f600}", "\n"]);
        piece.repeat(rng.below(most))
    };
    event.text = text(9000);
    event.key = Some(text(9000));
    event.hint = Some(text(900).into());
    event.retry.reset_at = Some(text(9000));
    event.record = Some(RecordPlace { pointer: text(9000), line: 1 });
    event.location = Some(Location { file: text(9000), line: 3, column: 1 });
    event.multiline = (0..60).map(|_| text(900)).collect();
    event.sender = Some(Box::new(Sender { host: text(300), app: text(300) }));
    event.context = (0..9).map(|_| text(3000)).collect();
    let link = |text: &mut dyn FnMut(usize) -> String| Link { kind: text(3000), message: text(3000) };
    event.exception = Some(Exception { kind: text(9000), message: text(9000), chain: (0..12).map(|_| link(&mut text)).collect(), frames: Frames::default() });
    for _ in 0..20 {
        let (function, file) = (text(900), text(900));
        event.exception.iter_mut().for_each(|said| said.frames.push(Frame { function: &function, file: &file, line: 1, column: 1, in_app: true }));
    }
    event
}

#[test]
fn invariant_7_a_record_is_at_most_max_event_bytes() {
    let envelope = Envelope {
        host: "h".into(),
        name: "logs".into(),
        kind: "file",
        path: Some("/var/log/".repeat(30)),
        raw_path: None,
        peer: Some("192.0.2.7:".repeat(30)),
        labels: vec![("l".repeat(99), "v".repeat(9000))],
        argv: vec!["a".repeat(400); 65],
    };
    for seed in 0..60 {
        let event = huge(&mut Rng(seed));
        for max in [2048, 30 << 10] {
            let mut out = b"before\n".to_vec();
            write(&mut out, &envelope, &event, max);
            let record = out.strip_prefix(b"before\n").unwrap();
            assert!(record.len() <= max, "seed {seed}: {} of {max} bytes", record.len());
            assert!(record.ends_with(b"}\n") && record.iter().filter(|b| **b == b'\n').count() == 1);
            let json: serde_json::Value = serde_json::from_slice(record).unwrap();
            assert_eq!((&json["truncated"], &json["id"]), (&true.into(), &event.id.as_str().into()), "seed {seed}");
        }
    }
}

#[test]
fn invariant_7_pieces_of_split_lines_are_bounded() {
    let piece = format!("2026-09-21T10:00:00Z stdout P {}\n", "x".repeat(60_000));
    let text = format!("{}2026-09-21T10:00:00Z stdout F end\n2026-09-21T10:00:00Z stdout F TypeError: boom\n", piece.repeat(60));
    assert_eq!(scan(text).len(), 1);
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    for n in 0..500 {
        let line = format!("{{\"log\":\"{}\",\"stream\":\"stdout\",\"container_name\":\"c{n}\",\"time\":\"2026-09-21T10:00:00Z\"}}\n", "x".repeat(16 << 10));
        stream.push(line.as_bytes(), Timestamp(n), &mut out);
    }
    stream.finish(NOW, &mut out);
    assert!(out.is_empty());
}

/// A container was killed in the middle of a line, and the next one says nothing on that output for long.
#[test]
fn invariant_7_a_split_line_whose_end_never_comes_ends() {
    let line = |rest: &str| format!("2026-09-21T10:00:00Z {rest}\n");
    let before = line("stderr P TypeError: x is not a func") + &line("stdout F ready").repeat(3000);
    let text = before.clone() + &line("stderr F ValueError: of the next one");
    for size in [100, 4096, text.len()] {
        let (mut stream, mut out) = (stream(&usual()), Vec::new());
        text.as_bytes().chunks(size).for_each(|bytes| stream.push(bytes, NOW, &mut out));
        stream.finish(NOW, &mut out);
        let found: Vec<_> = out.iter().map(|event| (event.line_num, event.text.as_str(), event.truncated)).collect();
        assert_eq!(found, [(1, "TypeError: x is not a func", true), (3002, "ValueError: of the next one", false)], "{size}");
        assert_eq!(stream.counts().truncated, 1);
        assert!(stream.counts().candidates < 1100, "{} of {} lines were looked at", stream.counts().candidates, stream.counts().lines);
    }
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push(before.as_bytes(), NOW, &mut out);
    assert_eq!((stream.safe().offset, out.len()), (before.len() as u64, 1), "it may be taken up where it is");
}
