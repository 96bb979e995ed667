//! Invariant 9: time is an argument; it decides when something is reported, never what.

use siftd::core::event::{Event, Timestamp};
use siftd::core::patience::Patience;

use std::path::Path;

use crate::support::{NOW, Rng, for_documents, same, scan, stream, usual};

fn at(bytes: &[u8], now: Timestamp) -> Vec<Event> {
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push(bytes, now, &mut out);
    stream.finish(now, &mut out);
    out
}

fn timeless(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| format!("{} {} {} {:?}", event.line_num, event.id, event.signature, event.text)).collect()
}

#[test]
fn invariant_9_another_time_of_reading_changes_no_id_and_no_signature() {
    let times = [0, 1, -1, NOW.0 + 400 * 86_400_000_000, i64::MAX, i64::MIN, i64::MAX / 2];
    for_documents(200, 80_000, |document, seed| {
        let now = Timestamp(times[seed as usize % times.len()]);
        same(&timeless(&scan(document)), &timeless(&at(document, now)))
    });
}

#[test]
fn invariant_9_a_stated_time_is_believed_when_it_is_near() {
    let stated = at(b"2026-09-21T10:00:00Z ERROR boom\n", Timestamp(1_789_984_800_000_000 + 3600 * 1_000_000));
    assert_eq!(stated[0].timestamp, Timestamp(1_789_984_800_000_000));
    let forged = at(b"1999-09-21T10:00:00Z ERROR boom\n", NOW);
    assert_eq!(forged[0].timestamp, NOW);
}

#[test]
fn invariant_9_deadlines_are_told_and_kept() {
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    assert_eq!(stream.deadline(), None);
    stream.push(b"TypeError: no\n    at f (a.js:1:1)\n", NOW, &mut out);
    let due = stream.deadline().unwrap();
    stream.tick(Timestamp(due.0 - 1), &mut out);
    assert!(out.is_empty());
    stream.tick(due, &mut out);
    assert!(out.len() == 1 && out[0].closed_idle);
    assert_eq!(stream.deadline(), None);
    stream.tick(Timestamp(due.0 + 1), &mut out);
    // Late lines are absorbed, and the end reports nothing again.
    stream.push(b"    at g (a.js:2:1)\nready\n", due, &mut out);
    stream.finish(due, &mut out);
    assert_eq!((out.len(), stream.counts().events), (1, 1));
}

#[test]
fn invariant_9_a_pause_publishes_what_a_line_is_by_itself_whatever_may_follow() {
    for (first, late, lines) in [
        (&b"KeyError: one\n"[..], &b"ready\n"[..], (1, 1)),
        (b"Error: one\nnext\n", b"ready\n", (1, 1)),
        (b"TypeError: no\n", b"    at f (a.js:1:1)\nready\n", (1, 1)),
        (b"2026-09-21T10:00:00Z ERROR pool - lost\nTypeError: no\n", b"    at f (a.js:1:1)\nready\n", (1, 1)),
    ] {
        let (mut stream, mut out) = (stream(&usual()), Vec::new());
        stream.push(first, NOW, &mut out);
        let due = stream.deadline().unwrap();
        stream.tick(due, &mut out);
        assert!(out.len() == 1 && out[0].closed_idle, "{}: {out:?}", String::from_utf8_lossy(first));
        assert_eq!((out[0].line_num, out[0].line_end), lines);
        stream.push(late, due, &mut out);
        stream.finish(due, &mut out);
        assert_eq!(out.len(), 1, "{out:?}");
    }
}

/// Returns the events of `bytes`, pushed line by line, with a pause after the lines (from 1) that `pauses` selects.
fn paused(bytes: &[u8], pauses: impl Fn(usize) -> bool) -> Vec<Event> {
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        stream.push(line, NOW, &mut out);
        if pauses(at + 1) {
            stream.pause(Patience::Short, &mut out);
        }
    }
    stream.finish(NOW, &mut out);
    out
}

/// Fails if anything is reported twice.
fn told_once(bytes: &[u8], pauses: impl Fn(usize) -> bool) -> Result<(), String> {
    let mut ids: Vec<_> = paused(bytes, pauses).iter().map(|event| format!("{} (line {}: {})", event.id, event.line_num, event.rule)).collect();
    ids.sort_unstable();
    ids.windows(2).find(|two| two[0][..32] == two[1][..32]).map_or(Ok(()), |two| Err(format!("twice: {} and {}", two[0], two[1])))
}

/// Collects all `input.log` below `folder`.
fn logs(folder: &Path, out: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            logs(&path, out);
        } else if path.file_name().is_some_and(|name| name == "input.log") {
            out.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn invariant_9_no_pause_tells_an_error_twice() {
    let mut all = Vec::new();
    logs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), &mut all);
    assert!(all.len() > 500);
    let mut twice = Vec::new();
    for (seed, (path, bytes)) in (1..).zip(&all) {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').count();
        let mut tell = |pauses: &dyn Fn(usize) -> bool, which: &str| {
            twice.extend(told_once(bytes, pauses).err().map(|why| format!("{path}, {which}: {why}")));
        };
        tell(&|_| true, "all");
        let mut rng = Rng(seed);
        for _ in 0..16 {
            let (first, second) = (1 + rng.below(lines.max(1)), 1 + rng.below(12));
            tell(&|at| at == first || at == first + second, &format!("{first} and {}", first + second));
        }
    }
    assert!(twice.is_empty(), "{}", twice.join("\n"));
    for_documents(200, 90_000, |document, seed| {
        let every = 1 + seed as usize % 3;
        told_once(document, |at| at.is_multiple_of(every))
    });
}

#[test]
fn invariant_9_a_line_that_a_pause_has_told_may_begin_a_trace_later() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/go/error-stacks/input.log");
    assert_eq!(told_once(&std::fs::read(path).unwrap(), |at| at == 31 || at == 37), Ok(()));
}

/// The line belongs to the record before it, or to an event that
/// starts before it, once an unsuccessful trace gives that line back.
#[test]
fn invariant_9_a_pause_does_not_tell_a_line_that_another_may_own() {
    let record = "     [till] Error: Could not open the till   at Shop.Till.Total () [0x00001] in /srv/app/Till.cs:42\n\
        11-20 10:11:12.101  2211  2211 E AndroidRuntime: \tat crc64.MainActivity.onCreate class Till\n     \
        [java] Caused by: java.lang.ClassNotFoundException: Till\n\n";
    let section = "test_cart.py:16: AssertionError\n____________ test_row ____________\n\n    def test_row():\n>       assert 1 == 2\n\
        E       assert 1 == 2\n\ntest_cart.py:7: AssertionError\n";
    for text in [record, section] {
        let ids = |pauses: bool| {
            let mut ids: Vec<_> = paused(text.as_bytes(), |_| pauses).into_iter().map(|event| (event.line_num, event.id)).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(false), ids(true), "{text}");
    }
}

/// An error waits for a next line that may extend it or take it back, but not for ever.
#[test]
fn invariant_9_the_last_error_of_a_stream_is_told() {
    let curl = "curl: (7) Failed to connect to db.example.com port 5432 after 3 ms: Connection refused\n";
    for (text, lines) in [
        (curl.to_owned(), &[1][..]),
        (format!("KeyError: a\n{curl}"), &[1, 2]),
        ("KeyError: a\nbash: foo: command not found\n".to_owned(), &[1, 2]),
        ("KeyError: a\nnpm error code E404\n".to_owned(), &[1, 2]),
        ("KeyError: a\nsrc/a.ts(5,9): error TS2322: no\n".to_owned(), &[1, 2]),
    ] {
        let (mut stream, mut out) = (stream(&usual()), Vec::new());
        stream.push(text.as_bytes(), NOW, &mut out);
        let idle = usual().limits.trace_idle_us;
        stream.tick(Timestamp(NOW.0 + idle), &mut out);
        stream.tick(Timestamp(NOW.0 + 10 * idle), &mut out);
        assert_eq!(out.iter().map(|event| event.line_num).collect::<Vec<_>>(), lines, "{text}");
        assert!(out.iter().all(|event| event.closed_idle));
        stream.push(b"ready\n", Timestamp(NOW.0 + 11 * idle), &mut out);
        stream.finish(NOW, &mut out);
        assert_eq!(out.len(), lines.len(), "{text}\n{out:#?}");
    }
}

/// A stack that follows a record, and has no head of its own.
#[test]
fn invariant_9_what_a_record_states_begins_nothing_else() {
    let text = b"{\"level\":\"error\",\"msg\":\"till\"}\nruntime.main\n\t/usr/local/go/src/runtime/proc.go:271\n";
    assert_eq!(told_once(text, |_| false), Ok(()));
}

/// The line that names the error comes last: a part of its calls must not become an event that absorbs it.
#[test]
fn a_pause_waits_for_the_line_that_names_the_error() {
    let (half, rest) = (
        &b"Traceback (most recent call last):\n  File \"/srv/app/shop.py\", line 3, in <module>\n    pay()\n"[..],
        &b"  File \"/srv/app/shop.py\", line 9, in pay\n    total()\nKeyError: 'sku'\n"[..],
    );
    let (mut stream, mut out) = (stream(&usual()), Vec::new());
    stream.push(half, NOW, &mut out);
    stream.pause(Patience::Long, &mut out);
    assert!(out.is_empty(), "{out:?}");
    stream.push(rest, NOW, &mut out);
    stream.pause(Patience::Short, &mut out);
    assert_eq!(out.iter().map(|event| (event.line_num, event.line_end, event.text.as_str())).collect::<Vec<_>>(), [(1, 6, "KeyError: 'sku'")]);
    // A trace whose rest never comes is reported all the same.
    let (mut stream, mut out) = (self::stream(&usual()), Vec::new());
    stream.push(half, NOW, &mut out);
    stream.pause(Patience::Verdict, &mut out);
    assert_eq!(out.iter().map(|event| (event.line_num, event.line_end)).collect::<Vec<_>>(), [(1, 3)]);
}
