//! The watchdog is fed while everything makes progress, and only then.

use std::time::{Duration, Instant};

use super::rig::{ONE, World, error};
use super::wait::wait;

#[test]
fn a_committer_that_is_stuck_stops_the_feeding_and_one_that_goes_on_resumes_it() {
    let world = World::new();
    world.configure(ONE);
    world.append("a.log", &error("first"));
    let daemon = world.start(&[("WATCHDOG_USEC", "4000000")]);
    world.written("one.ndjson", 1);
    world.hears("WATCHDOG=1");
    world.hears("WATCHDOG=1");

    // Another process holds the state: no transaction can start.
    let mut state = rusqlite::Connection::open(world.path("state/siftd.db")).unwrap();
    let lock = state.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    world.append("a.log", &error("second"));
    world.hears("STATUS=");
    let stuck = wait("the message", || Some(world.said()).filter(|said| said.contains("the committer has not moved")));
    assert!(stuck.contains("the watchdog is not fed"), "{stuck}");
    // Then nothing feeds it for as long as the service manager would have waited. (On a busy machine the message may
    // have come before, when the committer was only slow, and be followed by food.)
    let mut fed = Instant::now();
    wait("the end of the feeding", || {
        if world.heard_now().contains("WATCHDOG=1") {
            fed = Instant::now();
        }
        (fed.elapsed() > Duration::from_secs(4)).then_some(())
    });

    lock.rollback().unwrap();
    world.hears("WATCHDOG=1");
    assert_eq!(world.written("one.ndjson", 2), ["first", "second"]);
    assert_eq!(daemon.stop(), Some(0));
}
