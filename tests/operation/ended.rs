//! Orderly shutdowns in the middle of work.

use super::rig::{ONE, World, error};
use super::wait::wait;

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

/// A command for opened breakers that takes long is ended with the grace, with all that it has started, and that is said.
#[test]
fn the_command_of_on_open_does_not_outlive_the_grace() {
    let world = World::new();
    let on_open = "on_open = [\"sh\", \"-c\", \"sleep 600 & echo $! > @/began; wait\"]";
    world.configure(&format!("[delivery]\nshutdown_grace = \"2s\"\n[breaker]\nstream_window = \"1ms\"\n{on_open}\n{ONE}"));
    world.append("a.log", &error("first"));
    let daemon = world.start(&[]);
    let began = || std::fs::read_to_string(world.path("began")).unwrap_or_default();
    wait("the breaker to open", || {
        world.append("a.log", &error("again"));
        began().ends_with('\n').then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
    let said = world.said();
    assert!(said.contains("on_open sh: it still ran at the end of siftd, and was ended"), "{said}");
    assert!(said.contains("ending: the command of on_open still runs; it ends in "), "{said}");
    assert!(!said.contains("records wait in the state"), "{said}");
    let stat = format!("/proc/{}/stat", began().trim());
    wait("the end of what it has started", || std::fs::read_to_string(&stat).map_or(Some(()), |stat| stat.contains(") Z").then_some(())));
}
