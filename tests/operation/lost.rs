//! A state damaged by a power cut or a disk fault: it is set aside, and the loss of its content is reported.

use std::fs;

use super::rig::{Daemon, ONE, World, error};
use super::wait::wait;

/// The default of `start_at`: what exists at the first start is skipped.
fn from_the_end() -> String {
    ONE.replace("start_at = \"beginning\"\n", "").replace("[[sink]]", "[[source]]\nname = \"u\"\ntype = \"unix\"\npath = \"@/u.sock\"\n[[sink]]")
}

/// Runs a daemon that finds an error, and kills it.
fn killed(world: &World) {
    world.configure(&from_the_end());
    world.append("a.log", &error("of long ago"));
    let mut daemon = world.start(&[]);
    world.append("a.log", &error("one"));
    world.written("one.ndjson", 1);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    world.hear_no_more();
    // The database could be repaired from its write-ahead log.
    ["state/siftd.db-wal", "state/siftd.db-shm"].iter().for_each(|name| fs::remove_file(world.path(name)).unwrap());
    world.append("a.log", &error("skipped"));
}

/// Returns the sources of the gaps, and all texts.
fn gaps(world: &World) -> Vec<String> {
    let records = world.records("one.ndjson");
    let of_state = records.iter().filter(|record| record["kind"] == "gap" && record["why"] == "state_lost");
    let mut names: Vec<String> =
        of_state.map(|record| format!("{} {}", record["source"]["type"].as_str().unwrap(), record["source"]["name"].as_str().unwrap())).collect();
    names.sort();
    names
}

fn started_anew(world: &World) -> Daemon {
    let daemon = world.start(&[]);
    wait("a gap of each source", || (gaps(world).len() >= 2).then_some(()));
    daemon
}

#[test]
fn a_state_that_is_empty_or_damaged_is_a_gap_of_each_source_once() {
    for bytes in [&b""[..], &[0xa5; 3000]] {
        let world = World::new();
        killed(&world);
        fs::write(world.path("state/siftd.db"), bytes).unwrap();
        let daemon = started_anew(&world);
        assert!(world.said().contains("set aside as") && world.said().contains("a gap record of each source"), "{}", world.said());
        world.append("a.log", &error("two"));
        world.written("one.ndjson", 4);
        assert_eq!(daemon.stop(), Some(0));
        assert_eq!(gaps(&world), ["file a", "unix u"]);
        let daemon = world.start(&[]);
        world.append("a.log", &error("three"));
        let texts = world.written("one.ndjson", 5);
        assert_eq!(texts, ["one", "", "", "two", "three"]);
        assert_eq!(daemon.stop(), Some(0));
    }
}

#[test]
fn a_state_that_another_command_has_set_aside_is_said_by_the_next_run() {
    let world = World::new();
    killed(&world);
    fs::write(world.path("state/siftd.db"), "").unwrap();
    let (code, _, said) = super::rig::siftd(&["breaker", "record", "a", "--exit-code", "1", "--state-dir", "state"], world.folder.path());
    assert!(code == Some(0) && said.contains("it is empty") && said.contains("set aside as"), "{code:?} {said}");
    let daemon = started_anew(&world);
    assert_eq!(gaps(&world), ["file a", "unix u"]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_state_folder_that_is_removed_is_made_anew_with_all_that_is_known() {
    let world = World::new();
    world.configure(ONE);
    world.append("a.log", &error("one"));
    let daemon = world.start(&[]);
    world.written("one.ndjson", 1);
    for (text, gone) in [("two", "state"), ("three", "state/siftd.db"), ("four", "state/lock")] {
        let path = world.path(gone);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        wait("a new one", || path.exists().then_some(()));
        wait("its socket", || world.path("state/status.sock").exists().then_some(()));
        world.append("a.log", &error(text));
        world.written("one.ndjson", ["two", "three", "four"].iter().position(|known| *known == text).unwrap() + 2);
    }
    let said = world.said();
    assert_eq!(said.matches("was removed or replaced while it is in use").count(), 2, "{said}");
    assert!(said.contains("its history (1 errors)") && said.contains("the lock in "), "{said}");
    let (code, _, other) = super::rig::siftd(&["run", "--config", "siftd.toml"], world.folder.path());
    assert!(code == Some(2) && other.contains("is in use by process "), "{other}");
    assert_eq!(daemon.stop(), Some(0));
    let daemon = world.start(&[]);
    world.append("a.log", &error("five"));
    assert_eq!(world.written("one.ndjson", 5), ["one", "two", "three", "four", "five"]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_state_file_that_another_has_replaced_is_begun_anew() {
    let world = World::new();
    world.configure(ONE);
    world.append("a.log", &error("one"));
    let mut daemon = world.start(&[]);
    world.written("one.ndjson", 1);
    let path = world.path("state/siftd.db");
    fs::copy(&path, world.path("state/copy")).unwrap();
    fs::rename(world.path("state/copy"), &path).unwrap();
    wait("a new one", || world.said().contains("was removed or replaced while it is in use").then_some(()));
    world.append("a.log", &error("two"));
    world.written("one.ndjson", 2);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    world.hear_no_more();
    let daemon = world.start(&[]);
    world.append("a.log", &error("three"));
    assert_eq!(world.written("one.ndjson", 3), ["one", "two", "three"], "nothing is written again");
    assert_eq!(daemon.stop(), Some(0));
}

/// What was found lies far before what was read, so that only the positions say that it was.
#[test]
fn a_kill_just_after_the_state_was_made_anew_writes_nothing_twice() {
    const ERRORS: usize = 3000;
    let world = World::new();
    world.configure(ONE);
    world.append("a.log", &(0..ERRORS).map(|n| format!("{}all is well\n", error(&format!("job-{n} failed")))).collect::<String>());
    let mut daemon = world.start(&[]);
    world.written("one.ndjson", ERRORS);
    for name in ["state/siftd.db", "state/siftd.db-wal", "state/siftd.db-shm"] {
        fs::remove_file(world.path(name)).unwrap();
    }
    wait("a new one", || world.said().contains("was removed or replaced while it is in use").then_some(()));
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    world.hear_no_more();
    let daemon = world.start(&[]);
    world.append("a.log", &error("the last"));
    wait("the last", || world.texts("one.ndjson").last().is_some_and(|last| last == "the last").then_some(()));
    assert_eq!(world.records("one.ndjson").len(), ERRORS + 1);
    assert_eq!(daemon.stop(), Some(0));
}
