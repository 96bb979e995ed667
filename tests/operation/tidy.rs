//! Disk space that the state no longer needs is given back, and this never gets in the way of necessary writes.

use rusqlite::{Connection, TransactionBehavior};

use super::rig::{ONE, World, error};
use super::wait::wait;

/// Returns the number of free pages.
fn free(state: &Connection) -> i64 {
    state.query_row("PRAGMA freelist_count", [], |row| row.get(0)).unwrap()
}

#[test]
fn room_is_given_back_and_a_state_that_is_held_meanwhile_ends_nothing() {
    let world = World::new();
    world.configure(ONE);
    assert_eq!(world.start(&[]).stop(), Some(0));
    // The state as an outage leaves it: large and mostly free.
    let mut state = Connection::open(world.path("state/siftd.db")).unwrap();
    state.execute_batch("CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (zeroblob(48 << 20)); DROP TABLE filler").unwrap();
    let before = free(&state);
    assert!(before > 10_000, "{before}");
    world.hear_no_more();
    let daemon = world.start(&[("SIFTD_LOG", "debug")]);
    // By the second time, everything that a start writes is written: only this waits for the state.
    wait("a part of the room", || (free(&state) <= before - 2000).then_some(()));
    let lock = state.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    wait("a try in vain", || world.said().contains("no room is given back for now").then_some(()));
    world.append("a.log", &error("first"));
    wait("the message", || world.said().contains("reading waits until it can be written").then_some(()));
    lock.rollback().unwrap();
    assert_eq!(world.written("one.ndjson", 1), ["first"]);
    wait("the room", || (free(&state) <= 2000).then_some(()));
    assert_eq!(daemon.stop(), Some(0));
}
