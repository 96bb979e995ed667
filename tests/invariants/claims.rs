//! Invariant 11: text is only a claim. It cannot hide an error that
//! follows it, or control the reader of the records. Secrets stay secret.

use siftd::core::event::Event;
use siftd::rules::Kind;
use siftd::sinks::record::{Envelope, write};

use crate::support::{Rng, for_documents, parts, scan};

const ERROR: &str = "TypeError: boom\n    at f (/srv/app.js:3:7)\n";

fn finds_the_error_after(text: &str) {
    let found = scan(format!("{text}\n{ERROR}"));
    let line = text.lines().count() as u64 + 1;
    assert!(found.iter().any(|event| event.line_num <= line && line <= event.line_end || event.text == "TypeError: boom"), "{text:?}\n{found:#?}");
}

fn record(event: &Event) -> String {
    let mut out = Vec::new();
    write(&mut out, &Envelope::default(), event, 30 << 10);
    String::from_utf8(out).unwrap()
}

#[test]
fn invariant_11_a_line_hides_no_error_after_it() {
    for line in [
        "ok 1 - TypeError: x",
        "# TODO TypeError",
        "0 errors",
        "All tests passed",
        "// TypeError: x",
        "\u{2713} throws TypeError",
        "{\"level\":\"info\",\"msg\":\"TypeError: x\"}",
        "level=info msg=\"TypeError: x\"",
        "-----BEGIN RSA PRIVATE KEY-----",
        "\u{1b}]0;title",
        "\u{1b}P",
        "\u{1b}[",
        "{\"msg\":\"",
        "\"\"\"",
        "/*",
        "<!--",
        "```",
    ] {
        finds_the_error_after(line);
    }
}

/// What takes any line as its own, such as R's report of a failed test, ends where a CI runner begins the next step.
#[test]
fn no_trace_goes_on_beyond_a_step() {
    let failed = "── Failure (test-till.R:3:3): the till adds up ──\n`till` not equal to 5.\n1/1 mismatches\n";
    for step in
        ["##[group]Run make", "::group::make", "section_start:1700000000:step_script", "travis_fold:start:make", "2026-11-20T13:00:00.0000000Z ##[endgroup]"]
    {
        let found = scan(format!("{failed}{step}\nmake: Nothing to be done\n"));
        assert_eq!(found.iter().map(|event| (event.line_num, event.line_end)).collect::<Vec<_>>(), [(1, 3)], "{step}");
    }
}

/// A waiting status line becomes the first line of the next one, or an event of its own, but never both.
#[test]
fn no_id_is_given_twice_where_a_status_line_begins_with_another() {
    let found = scan("@shop/api: npm error command sh -c tsc -p .\nnpm error command sh -c node t.js\n");
    let mut ids: Vec<&str> = found.iter().map(|event| event.id.as_str()).collect();
    ids.dedup();
    assert!(!found.is_empty() && ids.len() == found.len(), "{found:#?}");
}

/// Whatever a text opens (a section, a noise block, a trace) ends within the number of lines that its rule sets.
#[test]
fn invariant_11_no_example_hides_an_error_for_long() {
    let engine = crate::support::usual();
    let longest = engine.rules.entries.iter().map(|entry| match &entry.kind {
        Kind::Region(region) => region.max_lines,
        Kind::Noise { block: Some((_, lines)), .. } => *lines,
        _ => 0,
    });
    let longest = longest.max().unwrap() as usize;
    assert!(longest <= 20_000, "{longest}");
    let found_after = |text: &str, quiet: usize| {
        let line = (text.lines().count() + quiet + 1) as u64;
        scan(format!("{text}\n{}{ERROR}", "ready\n".repeat(quiet))).iter().any(|event| event.line_num == line)
    };
    for text in parts().examples.iter().map(|text| text.trim_end()) {
        assert!(found_after(text, 150) || found_after(text, longest + 150), "{text:?}");
    }
}

/// A rule defines the further lines of its noise block; the first other line ends the block.
#[test]
fn invariant_11_a_noise_block_ends_at_the_first_other_line() {
    let engine = crate::support::usual();
    let blocks = engine.rules.entries.iter().filter(|entry| matches!(entry.kind, Kind::Noise { block: Some(_), .. }));
    for text in blocks.flat_map(|entry| &entry.examples.no_match) {
        finds_the_error_after(text);
    }
}

#[test]
fn invariant_11_control_characters_do_not_survive() {
    for_documents(150, 90_000, |document, _| {
        for event in scan(document) {
            let record = record(&event);
            if let Some(c) = record.trim_end_matches('\n').chars().find(|c| c.is_ascii_control()) {
                return Err(format!("{c:?} in {record}"));
            }
        }
        Ok(())
    });
    let event =
        scan("TypeError: \u{1b}[31mred\u{1b}[0m \u{7}\u{8}\u{0}bell\u{7f} \u{1b}]0;own\u{7}end\n    at f\u{1b}[5m (/srv/a\u{1b}[0m.js:3:7)\n").remove(0);
    assert_eq!(event.text, "TypeError: red bell end");
    assert_eq!(event.multiline, ["TypeError: red bell end", "    at f (/srv/a.js:3:7)"]);
    assert!(!record(&event).contains("\\u00"));
}

/// Secrets that are removed wherever they occur.
const SECRETS: &[&str] =
    &["AKIAIOSFODNN7EXAMPLF", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "xoxb-263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1", "hunter2squared"];

fn dressed(secret: &str) -> String {
    match secret {
        "hunter2squared" => format!("postgres://admin:{secret}@db.local:5432/x"),
        other => other.to_owned(),
    }
}

#[test]
fn invariant_11_secrets_leave_no_trace_in_a_record() {
    let shapes = [
        "TypeError: bad token #\n    at f (/srv/app.js:3:7)",
        "TypeError: bad\n    at f (#/app.js:3:7)",
        "f@#/app.js:3:7\nTypeError: bad #",
        "#\nTypeError: bad\n    at f (/srv/app.js:3:7)\n#\n",
        "Traceback (most recent call last):\n  File \"#/a.py\", line 3, in main\n    connect(\"#\")\nValueError: #",
        "level=error msg=\"login failed\" token=# url=#",
        "level=error msg=\"login with # failed\"",
        "{\"level\":\"error\",\"msg\":\"login with # failed\",\"stack\":\"TypeError: #\\n    at f (#/a.js:1:1)\"}",
        "{\"#\":{\"text\":\"TypeError: boom #\"}}",
        "{\"#\":\"x\",\"level\":\"error\",\"msg\":\"boom\"}",
        "2026-09-21T10:00:00Z ERROR #",
        "2026-09-21T10:00:00Z ERROR boom\n  #",
        "2026-09-21T10:00:00Z # ERROR boom",
        "[#] TypeError: boom",
        "# | TypeError: boom",
        "src/#.c:6:12: error: undeclared\n    6 | return #;",
        "{\"log\":\"TypeError: #\\n\",\"stream\":\"stderr\",\"container_name\":\"#\",\"time\":\"2026-09-21T10:00:00Z\"}",
        "{\"Time\":\"2026-09-21T10:00:00Z\",\"Action\":\"output\",\"Package\":\"#\",\"Test\":\"T\",\"Output\":\"panic: #\\n\"}",
        "make: *** [#: all] Error 2",
        "npm ERR! # failed",
    ];
    for shape in shapes {
        for secret in SECRETS {
            let text = shape.replace('#', &dressed(secret));
            for event in scan(format!("{text}\n")) {
                let record = record(&event);
                assert!(!record.contains(secret), "{secret} of {text:?} in\n{record}");
            }
        }
    }
}

#[test]
fn invariant_11_a_private_key_leaves_no_trace_in_a_record() {
    let mut rng = Rng(11);
    let mut body = || (0..64).map(|_| *rng.pick(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") as char).collect::<String>();
    let lines = [body(), body(), body(), body()];
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", lines.join("\n"));
    let escaped = key.replace('\n', "\\n");
    for text in [
        format!("TypeError: bad key\n{key}"),
        format!("{key}TypeError: bad key\n    at f (a.js:1:1)\n{key}"),
        format!("2026-09-21T10:00:00Z ERROR bad key:\n{}", key.lines().map(|line| format!("  {line}\n")).collect::<String>()),
        format!("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nValueError: bad key\n{key}"),
        format!("{{\"level\":\"error\",\"msg\":\"bad key\\n{escaped}\"}}\n"),
        format!("{{\"level\":\"error\",\"msg\":\"bad key\",\"stack\":\"TypeError: x\\n{escaped}\"}}\n"),
        format!("level=error msg=\"bad key {escaped}\"\n"),
    ] {
        let found = scan(&text);
        assert!(!found.is_empty(), "{text}");
        for event in found {
            let record = record(&event);
            for line in &lines {
                assert!(!record.contains(&line[8..40]), "{text}\n{record}");
            }
        }
    }
}

/// A file that was truncated while its writer had it open starts with zeros, up to the writer's offset.
#[test]
fn invariant_11_zeros_hide_no_error() {
    for zeros in [1, 3, 70_000, 1 << 20, 3 << 20] {
        let found = scan([vec![0; zeros].as_slice(), b"TypeError: boom\n    at f (a.js:1:1)\n"].concat());
        assert_eq!(found.len(), 1, "{zeros}");
        assert_eq!((found[0].text.as_str(), found[0].line_num, found[0].line_end, found[0].offset), ("TypeError: boom", 1, 2, 0));
    }
}
