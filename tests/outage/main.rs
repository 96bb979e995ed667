//! Delivery to a peer over the network, whatever happens on the way.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

use std::time::Duration;

mod dropping;
mod grace;
mod keys;
#[path = "../daemon/killing.rs"]
#[allow(dead_code, reason = "the daemon's own tests use all of it")]
mod killing;
mod piped;
mod playing;
mod shippers;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../invariants/support.rs"]
#[allow(dead_code, reason = "the invariants use all of it")]
mod support;

/// The bench `daemon -- outage` runs the same with 100,000.
#[test]
fn all_arrive_in_order_after_an_outage_of_every_kind_and_two_kills() {
    let folder = tempfile::tempdir().unwrap();
    let seen = playing::play(folder.path(), 3000, Duration::from_millis(400), Duration::from_secs(600));
    assert!(seen.rss_kib < 64 << 10, "{} KiB of memory", seen.rss_kib);
    assert!(seen.http_twice > 0, "what broke off before the answer comes again");
    assert!(seen.tcp_twice < 20_000, "what comes twice has a bound: {}", seen.tcp_twice);
    println!("all came {:?} after the end of the outage", seen.took);
}
