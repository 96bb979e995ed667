//! One stream at a time and many; the test takes their turns.

use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::core::engine::{Engine, Limits};
use crate::rules::RuleSet;

const NOW: Timestamp = Timestamp(1_795_000_000_000_000);

fn intake() -> (Arc<Intake>, Receiver<Arc<Flow>>) {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let (sender, turns) = channel();
    let hooks = Hooks { enqueue: Box::new(move |flow| drop(sender.send(flow))), changed: Box::new(|| ()) };
    (Intake::new(engine, || [7; 16], hooks), turns)
}

fn run(future: impl Future<Output = bool>) -> bool {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn texts(turn: &Turn) -> Vec<&str> {
    turn.events.iter().map(|(_, event)| event.text.as_str()).collect()
}

#[test]
fn a_stream_has_one_turn_at_a_time_and_ends_once() {
    let (intake, turns) = intake();
    let flow = intake.open(Label::default(), Reading::default());
    let mut space = Space::default();
    assert!(run(flow.push(Bytes::from_static(b"2026-09-21T10:00:00Z ERROR one\n2026-09-21T10:00:01Z INFO x\n"))));
    assert!(run(flow.push(Bytes::from_static(b"2026-09-21T10:00:00Z ERROR two"))));
    assert!(turns.try_recv().is_ok() && turns.try_recv().is_err());
    assert_eq!(texts(&flow.turn(&mut space, NOW)), ["ERROR one"]);
    flow.end();
    assert!(turns.try_recv().is_err(), "its turn is not handed on yet");
    flow.done();
    assert!(turns.try_recv().is_ok());
    assert_eq!(texts(&flow.turn(&mut space, NOW)), ["ERROR two"]);
    assert_eq!((intake.open_flows(), flow.is_finished()), (1, false), "its last errors are not handed on yet");
    flow.done();
    assert_eq!((intake.open_flows(), flow.is_finished()), (0, true));
    assert!(!run(flow.push(Bytes::from_static(b"late"))));
    assert!(turns.try_recv().is_err());
}

#[test]
fn what_is_open_is_published_when_its_time_has_come() {
    let (intake, turns) = intake();
    let flow = intake.open(Label::default(), Reading { syslog: true, max_line_bytes: None });
    run(flow.push(Bytes::from_static(b"<11>1 2026-11-18T10:00:00Z web01 shop 7 - - the store is gone\n")));
    turns.try_recv().unwrap();
    let mut space = Space::default();
    let turn = flow.turn(&mut space, NOW);
    flow.done();
    let deadline = intake.deadline().expect("a stamped line waits for what may follow it");
    assert_eq!((texts(&turn).len(), turn.deadline), (0, Some(deadline)));
    intake.due(Timestamp(deadline.0 - 1));
    assert!(turns.try_recv().is_err());
    intake.due(deadline);
    turns.try_recv().unwrap();
    let turn = flow.turn(&mut space, deadline);
    let (_, event) = &turn.events[0];
    let sender = event.sender.as_ref().unwrap();
    assert_eq!(
        (event.text.as_str(), event.key.as_deref(), sender.host.as_str(), sender.app.as_str()),
        ("the store is gone", Some("web01 shop[7]"), "web01", "shop")
    );
    assert!(event.closed_idle);
}

#[test]
fn small_pieces_take_the_room_that_they_need() {
    let (intake, _turns) = intake();
    let flow = intake.open(Label::default(), Reading::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let push = || runtime.block_on(async { tokio::time::timeout(std::time::Duration::from_millis(1), flow.push(Bytes::from_static(b"x"))).await });
    assert_eq!((0..MAX_FLOW_BYTES).take_while(|_| push().is_ok()).count(), MAX_FLOW_BYTES / MIN_PIECE_BYTES);
    assert_eq!(flow.turn(&mut Space::default(), NOW).bytes, (MAX_FLOW_BYTES / MIN_PIECE_BYTES) as u64);
    flow.done();
    assert!(push().is_ok());
}

#[test]
fn the_one_who_reads_waits_while_there_is_no_room() {
    let (intake, turns) = intake();
    let flow = intake.open(Label::default(), Reading::default());
    let (mut pushed, piece) = (0, Bytes::from(vec![b'x'; 16 << 10]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let push = |flow: &Arc<Flow>| runtime.block_on(async { tokio::time::timeout(std::time::Duration::from_millis(1), flow.push(piece.clone())).await });
    while push(&flow).is_ok() {
        pushed += 1;
    }
    assert_eq!(pushed * piece.len(), MAX_FLOW_BYTES);
    // Another stream still has room, until all of it is taken.
    let others: Vec<_> = (0..100).map(|_| intake.open(Label::default(), Reading::default())).collect();
    assert!(push(&others[0]).is_ok());
    let more = others.iter().map(|flow| (0..20).take_while(|_| push(flow).is_ok()).count()).sum::<usize>();
    assert_eq!((pushed + more + 1) * piece.len(), MAX_WAITING_BYTES);
    turns.try_recv().unwrap();
    flow.turn(&mut Space::default(), NOW);
    flow.done();
    assert!(push(&flow).is_ok());
}

#[test]
fn who_waits_for_the_end_does_not_take_the_room_of_who_reads() {
    let (intake, _turns) = intake();
    let flow = intake.open(Label::default(), Reading::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (waiting, reading) = (flow.clone(), flow.clone());
    runtime.block_on(async {
        let end = tokio::spawn(async move { waiting.finished().await });
        assert!(flow.push(Bytes::from(vec![b'x'; MAX_FLOW_BYTES])).await);
        let next = tokio::spawn(async move { reading.push(Bytes::from_static(b"x\n")).await });
        // Both wait from here on.
        tokio::task::yield_now().await;
        let mut space = Space::default();
        assert_eq!(flow.turn(&mut space, NOW).bytes, MAX_FLOW_BYTES as u64);
        flow.done();
        let deadline = std::time::Duration::from_secs(10);
        assert!(tokio::time::timeout(deadline, next).await.expect("there is room").unwrap());
        assert!(!end.is_finished());
        flow.end();
        assert!(flow.turn(&mut space, NOW).finished);
        flow.done();
        tokio::time::timeout(deadline, end).await.expect("it has ended").unwrap();
    });
}
