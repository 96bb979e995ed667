//! Rule 8 of file identity: the state of files that are long gone is dropped, and no other state.

use std::collections::BTreeMap;
use std::fs;

use siftd::delivery::Uid;
use siftd::state::store::Store;

use super::rig::{Rig, SECOND, World, error, half_read_and_gone};

const DAY: i64 = 86_400 * SECOND;

/// Returns the streams that the state knows, by file name.
fn known(world: &World) -> BTreeMap<String, Uid> {
    let rows = Store::look(&world.folder.path().join("state")).unwrap().unwrap().streams().unwrap();
    rows.into_iter().map(|row| (row.mark.path.file_name().unwrap().to_string_lossy().into_owned(), row.uid)).collect()
}

#[track_caller]
fn assert_known(world: &World, names: &[&str]) {
    assert_eq!(known(world).keys().collect::<Vec<_>>(), names);
}

/// Creates two files and reads them.
fn two_files() -> (World, Rig) {
    let world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("of a"));
    world.append("b.log", &error("of b"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    (world, rig)
}

#[test]
fn rule_8_a_row_goes_a_month_after_its_file() {
    let (mut world, mut rig) = two_files();
    // An existing file stays known, however quiet it is.
    world.pass(100 * DAY);
    rig.prune(&world);
    assert_known(&world, &["a.log", "b.log"]);
    fs::remove_file(world.path("a.log")).unwrap();
    rig.wait(&mut world);
    rig.prune(&world);
    assert_known(&world, &["a.log", "b.log"]);
    world.pass(29 * DAY);
    rig.prune(&world);
    assert_known(&world, &["a.log", "b.log"]);
    world.pass(2 * DAY);
    rig.prune(&world);
    assert_known(&world, &["b.log"]);
    // Nothing of it is left in memory: a file with equal content is a new one.
    world.append("a.log", &error("of a"));
    rig.wait(&mut world);
    assert_eq!(world.texts(), ["ERROR of a", "ERROR of b", "ERROR of a"]);
}

#[test]
fn rule_8_a_file_that_vanished_while_nobody_looked() {
    for (days, left) in [(29, &["a.log", "b.log"][..]), (31, &["b.log"])] {
        let (mut world, rig) = two_files();
        rig.stop(&world);
        fs::remove_file(world.path("a.log")).unwrap();
        world.pass(days * DAY);
        let mut rig = Rig::start(&world);
        rig.prune(&world);
        assert_known(&world, left);
        // The other file has just been seen, whatever the state says.
        drop(rig);
        fs::remove_file(world.path("b.log")).unwrap();
        world.pass(20 * DAY);
        Rig::start(&world).prune(&world);
        assert!(known(&world).contains_key("b.log"));
    }
}

#[test]
fn rule_8_a_loss_is_said_before_its_row_goes() {
    let mut world = half_read_and_gone();
    world.pass(100 * DAY);
    let mut rig = Rig::start(&world);
    rig.prune(&world);
    rig.wait(&mut world);
    assert_eq!(world.texts(), ["ERROR one", "gap \"rotated_away\""]);
    rig.prune(&world);
    assert_known(&world, &[]);
}

#[test]
fn rule_8_of_a_source_that_is_not_configured_any_more() {
    let (mut world, rig) = two_files();
    rig.stop(&world);
    let source = Store::look(&world.folder.path().join("state")).unwrap().unwrap().sources().unwrap();
    assert_eq!(source, ["agent"]);
    // Its files exist, but nothing follows them.
    world.include = vec!["other/*.log"];
    world.source = "another";
    world.pass(29 * DAY);
    let mut rig = Rig::start(&world);
    rig.prune(&world);
    assert_known(&world, &["a.log", "b.log"]);
    world.pass(2 * DAY);
    rig.prune(&world);
    assert_known(&world, &[]);
}
