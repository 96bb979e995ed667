//! What proves that a file is a known one, and what does not: device, birth time, content, and the number of candidates.

use std::fs;
use std::io::Write;
use std::time::Duration;

use siftd::sources::discover::Spec;

use super::rig::{ROTATE_WAIT, Rig, SECOND, World, error};

/// Returns the texts of the errors without their level, sorted.
#[track_caller]
fn errors(world: &World) -> Vec<String> {
    let mut texts: Vec<String> = world.texts().into_iter().map(|text| text.replace("ERROR ", "")).collect();
    texts.sort();
    texts
}

/// Returns a world with logs of twenty errors each, which were read and are no longer followed.
fn twenty_are_read(names: &[&str]) -> World {
    let mut world = World::new(&["logs/*.log"]);
    for name in names {
        world.append(name, &(0..20).map(|n| error(&format!("number {n}"))).collect::<String>());
    }
    Rig::start(&world).wait(&mut world);
    assert_eq!(errors(&world).len(), 20 * names.len());
    world
}

/// Changes what the state knows of all files.
fn change_state(world: &World, set: &str) {
    let db = rusqlite::Connection::open(world.folder.path().join("state/siftd.db")).unwrap();
    assert!(db.execute(&format!("UPDATE stream SET {set}"), []).unwrap() > 0);
}

/// Replaces a file as a move to another file system does: another inode with the same bytes.
fn copy_and_remove(world: &World, from: &str, to: &[&str]) {
    let bytes = fs::read(world.path(from)).unwrap();
    fs::write(world.path("zz"), "holds another inode").unwrap();
    to.iter().for_each(|name| fs::write(world.path(name), &bytes).unwrap());
    fs::remove_file(world.path(from)).unwrap();
}

#[test]
fn rule_1_rewritten_and_longer_than_before() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    let old = rig.follower.marks().next().unwrap().2;
    fs::write(world.path("a.log"), error("another one") + &error("two") + &error("three")).unwrap();
    rig.wait(&mut world);
    assert_eq!(errors(&world), ["another one", "gap \"truncated_file\"", "one", "three", "two"]);
    let new = rig.follower.marks().next().unwrap().2;
    assert_eq!((new.node, new.generation), (old.node, old.generation + 1));
}

#[test]
fn rule_1_a_change_of_what_was_read_long_ago_is_seen_at_the_next_start() {
    let world = &mut twenty_are_read(&["a.log"]);
    // The tail is unchanged, the head is not.
    let bytes = fs::read_to_string(world.path("a.log")).unwrap();
    fs::write(world.path("a.log"), bytes.replacen("number 0", "changed!", 1)).unwrap();
    Rig::start(world).wait(world);
    assert_eq!(errors(world).iter().filter(|text| text.starts_with("number 1")).count(), 22, "number 1 and 10 to 19, twice");
    assert!(errors(world).contains(&"changed!".to_owned()));
}

#[test]
fn rule_2_an_unlinked_file_that_is_never_quiet_is_closed_some_day() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    let mut writer = fs::OpenOptions::new().append(true).open(world.path("a.log")).unwrap();
    fs::remove_file(world.path("a.log")).unwrap();
    let mut rounds = 0;
    while rounds == 0 || !rig.read().is_empty() {
        rounds += 1;
        assert!(rounds < 100, "it holds the disk for good");
        writer.write_all(error(&format!("round {rounds}")).as_bytes()).unwrap();
        rig.settle(&world);
        world.pass(ROTATE_WAIT / 2);
    }
    assert!(rounds > 15, "it was closed after {rounds} rounds, while it was written");
    assert_eq!(errors(&world).len(), rounds + 1, "and all that was written until then is out");
}

#[test]
fn rule_3_another_number_of_the_device_is_the_same_file() {
    let mut world = twenty_are_read(&["a.log"]);
    change_state(&world, "dev = dev + 1");
    world.append("a.log", &error("new"));
    Rig::start(&world).wait(&mut world);
    assert_eq!(errors(&world).len(), 21);
}

#[test]
fn rule_3_another_birth_is_another_file() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    Rig::start(&world).wait(&mut world);
    if fs::metadata(world.path("a.log")).unwrap().created().is_err() {
        return crate::skip::skipped("a file system that knows when a file was made");
    }
    // The inode number was reused by a file that starts with the same
    // bytes; these are too few for it to be taken for a moved file.
    change_state(&world, "born = born - 1");
    world.append("a.log", &error("two"));
    Rig::start(&world).wait(&mut world);
    assert_eq!(errors(&world), ["one", "one", "two"]);
}

#[test]
fn rule_4_two_files_that_could_be_the_moved_one_are_new() {
    let mut world = twenty_are_read(&["a.log"]);
    copy_and_remove(&world, "a.log", &["b.log", "c.log"]);
    Rig::start(&world).wait(&mut world);
    assert_eq!(errors(&world).len(), 60);
}

#[test]
fn rule_4_a_file_that_could_be_two_moved_ones_is_new() {
    let mut world = twenty_are_read(&["a.log", "b.log"]);
    fs::remove_file(world.path("b.log")).unwrap();
    copy_and_remove(&world, "a.log", &["c.log"]);
    Rig::start(&world).wait(&mut world);
    assert_eq!(errors(&world).len(), 60);
}

#[test]
fn rule_4_a_file_is_not_moved_while_the_other_one_is_there() {
    let mut world = World { include: vec!["logs/*.log", "logs/*.txt"], ..twenty_are_read(&["a.log"]) };
    fs::copy(world.path("a.log"), world.path("b.txt")).unwrap();
    Rig::start(&world).wait(&mut world);
    assert_eq!(errors(&world).len(), 40);
}

#[test]
fn rule_5_equal_content_under_names_that_have_nothing_in_common_is_two_files() {
    let world = twenty_are_read(&["a.log", "b.log"]);
    assert_eq!(errors(&world).iter().filter(|text| *text == "number 0").count(), 2);
}

#[test]
fn links_lead_into_folders_that_are_named_and_nowhere_else() {
    let mut world = World::new(&["logs/*.log"]);
    let pods = world.folder.path().join("pods");
    world.append("a.log", &error("of the folder itself"));
    for name in ["pods", "elsewhere"] {
        fs::create_dir(world.folder.path().join(name)).unwrap();
        fs::write(world.folder.path().join(name).join("0.log"), error(&format!("of {name}"))).unwrap();
        std::os::unix::fs::symlink(format!("../{name}/0.log"), world.path(&format!("{name}.log"))).unwrap();
    }
    Rig::start(&world).wait(&mut world);
    assert_eq!(errors(&world), ["of the folder itself"]);
    world.links_into = vec![pods];
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    assert_eq!(errors(&world), ["of pods", "of the folder itself"]);
    assert!(rig.follower.troubles().is_empty(), "{:?}", rig.follower.troubles());
    assert!(rig.follower.passed_over().iter().eq([&world.path("elsewhere.log")]), "{:?}", rig.follower.passed_over());
}

#[test]
fn links_may_lead_into_a_folder_that_is_made_later() {
    let world = World::new(&["logs/*.log"]);
    let mut spec = Spec::new("agent", world.start, Duration::from_micros(SECOND as u64)).unwrap();
    spec.include(&world.path("*.log")).unwrap();
    let pods = world.folder.path().join("pods");
    spec.follow_links_into(&pods);
    fs::create_dir(&pods).unwrap();
    fs::write(pods.join("0.log"), "").unwrap();
    std::os::unix::fs::symlink("../pods/0.log", world.path("a.log")).unwrap();
    siftd::sources::open::open(&world.path("a.log"), &spec.trust(&world.path("a.log"))).unwrap();
}
