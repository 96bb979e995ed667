//! Invariant 9: time is an argument; it says when, never what.

use siftd::core::event::{Event, Timestamp};

use crate::support::{NOW, for_documents, same, scan, stream, usual};

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
    // Late lines are swallowed, and the end says nothing again.
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
        assert!(out.len() == 1 && out[0].closed_idle, "{out:?}");
        assert_eq!(((out[0].line_num, out[0].line_end), stream.deadline()), (lines, None));
        stream.push(late, due, &mut out);
        stream.finish(due, &mut out);
        assert_eq!(out.len(), 1, "{out:?}");
    }
}
