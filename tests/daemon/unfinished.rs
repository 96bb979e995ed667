//! The last line of a live file without a newline: it is reported after a while, and only once.

use super::rig::{Rig, SECOND, World, error};

/// Longer than a line may pause.
const WHILE: i64 = 6 * SECOND;

fn rig(world: &World, text: &str) -> Rig {
    world.append("a.log", text);
    let mut rig = Rig::start(world);
    rig.settle(world);
    rig
}

#[test]
fn it_comes_after_a_while_and_not_again_when_it_ends() {
    let mut world = World::new(&["logs/*.log"]);
    let mut rig = rig(&world, &(error("one") + error("two").trim_end()));
    world.pass(SECOND);
    rig.settle(&world);
    assert_eq!(world.texts(), ["ERROR one"], "a line may still go on");
    world.pass(WHILE);
    rig.settle(&world);
    assert_eq!(world.texts(), ["ERROR one", "ERROR two"]);
    let record = &world.records()[1];
    assert_eq!((record["line_num"].as_u64(), record["closed"].as_str()), (Some(2), Some("idle")));
    // An end, a pause, the newline, and another line.
    drop(rig);
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    world.append("a.log", "\n");
    rig.wait(&mut world);
    world.append("a.log", &error("three"));
    rig.wait(&mut world);
    assert_eq!(world.texts(), ["ERROR one", "ERROR two", "ERROR three"]);
    assert_eq!(world.records()[2]["line_num"], 3);
}

#[test]
fn it_has_the_id_of_the_whole_line() {
    let mut world = World::new(&["logs/*.log"]);
    let mut rig = rig(&world, "fine\n");
    world.append("a.log", "2026-09-21T10:00:00Z ERROR half of");
    rig.wait(&mut world);
    world.append("a.log", " a line\n");
    rig.wait(&mut world);
    let half = world.records();
    assert_eq!(half.len(), 1, "{half:?}");
    // Read again, as a whole.
    drop(rig);
    std::fs::remove_dir_all(world.folder.path().join("state")).unwrap();
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    let both = world.records();
    assert_eq!((both.len(), &both[1]["id"], both[1]["text"].as_str()), (2, &half[0]["id"], Some("ERROR half of a line")));
}

#[test]
fn a_trace_has_its_last_line() {
    let mut world = World::new(&["logs/*.log"]);
    let mut rig = rig(&world, "fine\nTraceback (most recent call last):\n  File \"x.py\", line 3, in f\n    boom()\nValueError: the end");
    world.pass(SECOND);
    rig.settle(&world);
    assert_eq!(world.texts(), ["ValueError: the end"]);
    rig.wait(&mut world);
    assert_eq!(world.texts().len(), 1);
}

#[test]
fn a_torn_record_waits_for_its_end() {
    let mut world = World::new(&["logs/*.log"]);
    let record = "{\"level\":\"error\",\"msg\":\"ValueError: of a record\"}";
    let mut rig = rig(&world, &record[..record.len() - 4]);
    rig.wait(&mut world);
    assert!(world.texts().is_empty(), "{:?}", world.texts());
    world.append("a.log", &record[record.len() - 4..]);
    rig.wait(&mut world);
    assert_eq!(world.texts().len(), 1, "{:?}", world.texts());
}

#[test]
fn at_the_end_of_a_run_what_has_paused_comes_and_what_is_being_written_waits() {
    for (pause, comes) in [(SECOND, true), (SECOND / 10, false)] {
        let mut world = World::new(&["logs/*.log"]);
        let rig = rig(&world, error("one").trim_end());
        world.pass(pause);
        rig.stop(&world);
        assert_eq!(world.texts().len(), usize::from(comes));
        world.append("a.log", "\n");
        let mut rig = Rig::start(&world);
        rig.wait(&mut world);
        assert_eq!(world.texts(), ["ERROR one"]);
    }
}

#[test]
fn many_of_them_need_no_descriptors_while_they_wait() {
    let mut world = World::new(&["logs/*.log"]);
    for n in 0..30 {
        world.append(&format!("{n}.log"), error(&format!("number {n}")).trim_end());
    }
    let mut rig = Rig::start_with(&world, 5);
    rig.settle(&world);
    assert_eq!(rig.follower.open_files(), 5);
    assert!(world.texts().is_empty());
    world.pass(WHILE);
    rig.settle(&world);
    assert_eq!((world.texts().len(), rig.follower.open_files()), (30, 5));
    rig.wait(&mut world);
    assert_eq!(world.texts().len(), 30);
}

#[test]
fn in_utf_16_too() {
    let mut world = World::new(&["logs/*.log"]);
    let text: Vec<u8> = format!("\u{feff}{}{}", error("one"), error("two").trim_end()).encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(world.path("a.log"), &text).unwrap();
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    assert_eq!(world.texts(), ["ERROR one", "ERROR two"]);
}
