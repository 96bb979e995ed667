//! Orderly shutdowns in the middle of work.

use super::rig::{ONE, World, error};

/// siftd ends when half of a trace has been written: the next start finds the whole trace.
#[test]
fn a_trace_that_is_cut_by_an_orderly_end_is_found_whole() {
    let world = World::new();
    world.configure(ONE);
    world.append("a.log", "Traceback (most recent call last):\n  File \"/srv/app/shop.py\", line 3, in <module>\n    pay()\n");
    world.append("ab.log", &error("read"));
    let daemon = world.start(&[]);
    assert_eq!(world.written("one.ndjson", 1), ["read"]);
    assert_eq!(daemon.stop(), Some(0));
    world.append("a.log", "  File \"/srv/app/shop.py\", line 9, in pay\n    total()\nKeyError: 'sku'\n");
    let daemon = world.start(&[]);
    assert_eq!(world.written("one.ndjson", 2), ["read", "KeyError: 'sku'"]);
    assert_eq!(daemon.stop(), Some(0));
    let last = &world.records("one.ndjson")[1];
    assert_eq!((&last["line_num"], &last["line_end"]), (&1.into(), &6.into()), "{last}");
}
