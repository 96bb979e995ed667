//! The committer and sinks that come and go.

use super::*;
use crate::core::event::{Category, Severity};
use crate::delivery::Record;
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
