//! The committer and sinks that come and go.

use std::collections::BTreeMap;

use super::*;
use crate::core::event::{Category, Hex, Severity};
use crate::delivery::{Mark, Record};
use crate::state::breakers;
use crate::state::outbox::Next;

/// A batch of one record.
fn batch(n: u64) -> Batch {
    let (severity, category) = (Severity::High, Category::ALL[0]);
    let (signature, at, seen_at, weight, session) = Default::default();
    let record = Record { len: 10, generation: 0, offset: n, inner: 0, id: format!("{n:032x}"), signature, severity, category, at, seen_at, weight, session };
    let label = Arc::new(Label { source: "agent".into(), kind: "file", path: "a".into(), ..Label::default() });
    Batch { uid: [1; 16], label, records: vec![record], body: vec![b'x'; 10], notices: Vec::new(), mark: None, at: Timestamp(0) }
}

fn done(name: &str, seq: u64) -> ControlMessage {
    ControlMessage::Sink(SinkMark { name: name.into(), seq, ..SinkMark::default() })
}

fn held_for_a_new_one(store: Option<Store>) {
    let write: WriteNotice = Arc::new(|_: &mut Vec<u8>, _: &Label, _: &Notice, _| {});
    let mut committer = Committer::new(store, Rules::default(), write, &["old".to_owned(), "stays".to_owned()]).unwrap();
    let outbox = committer.outbox();
    committer.commit(&[batch(1)], &[], Timestamp(0)).unwrap();
    let mut ends = 0;
    let after = outbox.hand_over(&["new".to_owned()], |last| ends = last);
    assert_eq!((ends, after), (1, 1), "one ends where the other begins");

    // Of what is committed meanwhile the old one gets nothing, and the other one is done with it.
    committer.commit(&[batch(2)], &[], Timestamp(0)).unwrap();
    committer.commit(&[], &[done("old", 1), done("stays", 2)], Timestamp(0)).unwrap();
    committer.commit(&[], &[ControlMessage::SinkEnds("old".to_owned())], Timestamp(0)).unwrap();
    committer.commit(&[batch(3)], &[ControlMessage::SinkBegins { name: "new".to_owned(), after }], Timestamp(0)).unwrap();
    assert_eq!(committer.sink("new").map(|mark| mark.seq), Some(1));
    let Next::Chunk(chunk) = outbox.next(1) else { panic!("it is gone") };
    assert_eq!(chunk.first, 2);
    if let Some(store) = &committer.store {
        assert_eq!(store.chunk_after(1).unwrap().map(|chunk| chunk.first), Some(2));
    }

    committer.commit(&[], &[done("new", 3), done("stays", 3)], Timestamp(0)).unwrap();
    assert_eq!((outbox.held(), outbox.waiting(), outbox.waiting_bytes()), (None, 0, 0));
}

#[test]
fn what_comes_before_a_sink_has_begun_is_held_for_it() {
    let folder = tempfile::tempdir().unwrap();
    held_for_a_new_one(Some(Store::open(folder.path()).unwrap().0));
    held_for_a_new_one(None);
}

/// Sets the size that the state file may have, in pages beyond those that it has.
fn leave_room(committer: &mut Committer, pages: i64) {
    let tx = committer.store.as_mut().unwrap().begin().unwrap();
    let count: i64 = tx.db().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let most: i64 = tx.db().query_row(&format!("PRAGMA max_page_count = {}", count + pages), [], |row| row.get(0)).unwrap();
    assert_eq!(most, count + pages);
}

/// Wherever a transaction finds its disk full: it has done nothing, others go on, and the same one is done when there is room.
#[test]
fn a_transaction_that_finds_no_room_in_the_middle_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let write: WriteNotice = Arc::new(|_: &mut Vec<u8>, _: &Label, _: &Notice, _| {});
    let rules = Rules { repeat_window_us: 60_000_000, ..Rules::default() };
    let mut committer = Committer::new(Some(Store::open(folder.path()).unwrap().0), rules, write, &["out".to_owned()]).unwrap();
    let outbox = committer.outbox();
    let mark = |read| Some(Mark { read, safe: read, ..Mark::default() });
    let batch_of = |uid: u8, n: u64, bytes: usize| {
        let mut batch = Batch { uid: [uid; 16], mark: mark(n), body: vec![b'x'; bytes], ..batch(n) };
        (batch.records[0].len, batch.records[0].signature) = (bytes as u32, Hex::new([n as u8; 16]));
        batch
    };
    let marks = |committer: &Committer| {
        let rows = committer.store.as_ref().unwrap().streams().unwrap();
        rows.into_iter().map(|row| (row.uid[0], row.mark.read)).collect::<BTreeMap<_, _>>()
    };
    committer.commit(&[batch_of(1, 1, 10)], &[], Timestamp(0)).unwrap();
    let held = |committer: &Committer| committer.withhold.all().count();
    let (was_held, mut failed) = (held(&committer), 0);
    for pages in 0.. {
        let n = pages as u64 + 2;
        let batches: Vec<Batch> = (1..=5).map(|uid| batch_of(uid, n, 40_000)).collect();
        let before = (outbox.last(), marks(&committer), held(&committer));
        leave_room(&mut committer, pages);
        let done = committer.commit(&batches, &[done("out", 1)], Timestamp(0));
        if done.is_ok() {
            break;
        }
        failed += 1;
        assert!(matches!(&done, Err(StoreError::Later(_))), "{pages}: {done:?}");
        assert_eq!((outbox.last(), marks(&committer), held(&committer)), before, "{pages}");
        assert!(matches!(outbox.next(before.0), Next::Nothing), "{pages}");
        assert_eq!(committer.sink("out").map(|mark| mark.seq), Some(u64::from(failed > 1)), "{pages}");
        leave_room(&mut committer, 10_000);
        committer.commit(&batches, &[self::done("out", 1)], Timestamp(0)).unwrap();
        assert_eq!((outbox.last(), held(&committer)), (before.0 + 1, before.2 + 1), "one signature, one record: {pages}");
        assert_eq!(marks(&committer), (1..=5).map(|uid| (uid, n)).collect(), "{pages}");
        // What is found again is known.
        committer.commit(&batches, &[], Timestamp(0)).unwrap();
        assert_eq!(outbox.last(), before.0 + 1, "{pages}");
    }
    assert!(failed > 3 && was_held == 1, "{failed}");
    let (last, marks) = (outbox.last(), marks(&committer));
    drop(committer);
    let store = Store::open(folder.path()).unwrap().0;
    assert_eq!((store.last().unwrap(), store.streams().unwrap().len()), (last, marks.len()));
}

#[test]
fn a_start_that_finds_no_room_at_first_knows_each_source_once() {
    let folder = tempfile::tempdir().unwrap();
    let write: WriteNotice = Arc::new(|_: &mut Vec<u8>, _: &Label, _: &Notice, _| {});
    let mut committer = Committer::new(Some(Store::open(folder.path()).unwrap().0), Rules::default(), write, &["out".to_owned()]).unwrap();
    let sources = ["agent".repeat(20_000)];
    leave_room(&mut committer, 2);
    for _ in 0..3 {
        assert!(matches!(committer.begin(&sources, &[], Timestamp(0)), Err(StoreError::Later(_))));
        assert_eq!(committer.sources, [""; 0]);
    }
    leave_room(&mut committer, 10_000);
    committer.begin(&sources, &[], Timestamp(0)).unwrap();
    committer.begin(&sources, &[], Timestamp(0)).unwrap();
    assert_eq!(committer.sources, sources);
    assert_eq!(committer.store.as_ref().unwrap().sources().unwrap(), sources);
}

/// What other commands have left for a `run` comes with a word on what found no room.
#[test]
fn transitions_that_were_left_out_are_told_with_those_that_waited() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap().0;
    let tx = store.begin().unwrap();
    for n in 0..1003 {
        breakers::add_transition(tx.db(), &breakers::Addition { name: "x", body: b"{}\n", now: Timestamp(n), waits: true }).unwrap();
    }
    tx.commit().unwrap();
    let write: WriteNotice = Arc::new(|out: &mut Vec<u8>, label: &Label, notice: &Notice, _| out.extend(format!("{} {notice:?}\n", label.source).bytes()));
    let committer = Committer::new(Some(store), Rules::default(), write, &["out".to_owned()]).unwrap();
    let mut committer = committer.with_ledger(ledger::Rules::default(), |_, _| ());
    committer.commit(&[batch(1)], &[], Timestamp(2000)).unwrap();
    let Next::Chunk(chunk) = committer.outbox().next(0) else { panic!("nothing was written") };
    let text = String::from_utf8(chunk.body.clone()).unwrap();
    assert!(text.starts_with("breaker Gap") && text.contains("why: TransitionsFull, missed: Events(3), from: Timestamp(1000)"), "{text}");
    assert_eq!(text.lines().filter(|line| *line == "{}").count(), 1000);
}
