//! File identity: each rule and each style of rotation has a test. The daemon's parts are stepped, with real files.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use siftd::sources::discover::Start;

use super::rig::{ROTATE_WAIT, Rig, SECOND, World, error, half_read_and_gone};

/// Returns the texts without their level.
#[track_caller]
fn bare(world: &World) -> Vec<String> {
    world.texts().into_iter().map(|text| text.replace("ERROR ", "")).collect()
}

#[track_caller]
fn sorted(world: &World) -> Vec<String> {
    let mut texts = bare(world);
    texts.sort();
    texts
}

/// Returns a world with one log and one error, which has been written out.
fn one_is_read() -> (World, Rig) {
    let world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    (world, rig)
}

/// Lets time pass until quiet files are put to rest.
fn rest(world: &mut World, rig: &mut Rig) {
    for _ in 0..3 {
        world.pass(20 * SECOND);
        rig.settle(world);
    }
}

/// Starts the daemon and lets time pass until everything is written.
fn play(world: &mut World) -> Rig {
    let mut rig = Rig::start(world);
    rig.wait(world);
    rig
}

#[test]
fn rename_the_old_file_is_read_to_its_end() {
    let (mut world, mut rig) = one_is_read();
    world.append("a.log", &error("two"));
    world.rename("a.log", "a.log.1");
    world.append("a.log", &error("three"));
    rig.settle(&world);
    // A writer that is slow to reopen its log.
    world.pass(ROTATE_WAIT / 2);
    world.append("a.log.1", &error("four"));
    rig.wait(&mut world);
    assert_eq!(sorted(&world), ["four", "one", "three", "two"]);
    assert_eq!(rig.read().keys().collect::<Vec<_>>(), ["a.log"], "the old one was closed");
}

fn rotated_while_nobody_looks(rotate: impl Fn(&World)) {
    assert_eq!(told_after(rotate), ["one", "three", "two"]);
}

/// Returns what is reported of a log that is read up to "one". It is rotated
/// after "two" while the daemon is down, and continues with "three".
fn told_after(rotate: impl Fn(&World)) -> Vec<String> {
    let (mut world, rig) = one_is_read();
    drop(rig);
    world.append("a.log", &error("two"));
    rotate(&world);
    world.append("a.log", &error("three"));
    for _ in 0..2 {
        play(&mut world);
    }
    sorted(&world)
}

#[test]
fn rename_while_nobody_looks() {
    rotated_while_nobody_looks(|world| world.rename("a.log", "a.log.1"));
}

#[test]
fn what_was_written_and_rotated_away_while_nobody_looks_is_read() {
    let twice = |world: &World| {
        world.date("a.log", 5);
        world.rename("a.log", "a.log.2");
        for (at, name, text) in [(4, "a.log.3", "before"), (6, "a.log.1", "between")] {
            world.append(name, &error(text));
            world.date(name, at);
        }
    };
    assert_eq!(told_after(twice), ["between", "one", "three", "two"], "the oldest is older than what was read");
    let dated = |world: &World| {
        world.date("a.log", 5);
        world.rename("a.log", "a.log-20261119");
        for (at, name, text) in [(6, "a.log-20261120", "between"), (7, "a.log-20261121", "and then"), (8, "a.log.orig", "another's")] {
            world.append(name, &error(text));
            world.date(name, at);
        }
    };
    assert_eq!(told_after(dated), ["and then", "between", "one", "three", "two"]);
    let linked = |world: &World| {
        world.date("a.log", 5);
        world.rename("a.log", "a.log.2");
        fs::write(world.folder.path().join("secret"), error("elsewhere")).unwrap();
        symlink("../secret", world.path("a.log.1")).unwrap();
    };
    assert_eq!(told_after(linked), ["one", "three", "two"], "a link is not followed");
}

/// A start between two rotations that happen while the daemon is down
/// knows whose generations they are, and so does the next start.
#[test]
fn what_is_rotated_away_after_a_start_that_found_another_one_is_read() {
    let (mut world, rig) = one_is_read();
    drop(rig);
    for n in 1..4 {
        world.date("a.log", 2 * n);
        world.rename("a.log", &format!("a.log.{n}"));
        Rig::start(&world).stop(&world);
        world.append("a.log", &error(&format!("number {n}")));
        world.date("a.log", 2 * n + 1);
        // This generation comes and goes while the daemon is down.
        world.rename("a.log", &format!("a.log.{n}0"));
        world.append("a.log", &error(&format!("last {n}")));
        play(&mut world);
    }
    assert_eq!(sorted(&world), ["last 1", "last 2", "last 3", "number 1", "number 2", "number 3", "one"]);
}

#[test]
fn a_copy_under_the_name_of_an_older_generation_is_not_read() {
    let told = told_after(|world| {
        world.date("a.log", 5);
        world.rename("a.log", "a.log.2");
        world.append("a.log", &error("four"));
        fs::copy(world.path("a.log"), world.path("a.log.1")).unwrap();
    });
    assert_eq!(told, ["four", "one", "three", "two"]);
    let told = told_after(|world| {
        world.date("a.log", 5);
        world.rename("a.log", "a.log.2");
        fs::copy(world.path("a.log.2"), world.path("a.log.1")).unwrap();
        world.date("a.log.1", 6);
    });
    assert_eq!(told, ["one", "three", "two"]);
}

/// The marks know the last content before a cut, but the copies of earlier ones lie there, too; and the
/// file that they were copied from is gone at the next start.
#[test]
fn copies_of_a_file_that_is_gone_are_not_read() {
    let (mut world, mut rig) = one_is_read();
    world.date("a.log", 1);
    world.rename("a.log", "a.log.1");
    for (number, text) in [(2, "two"), (3, "three"), (4, "four")] {
        world.append("a.log", &error(text));
        rig.wait(&mut world);
        world.copytruncate("a.log", &format!("a.log.{number}"));
        world.date(&format!("a.log.{number}"), number);
        rig.settle(&world);
    }
    world.append("a.log", &error("five"));
    rig.wait(&mut world);
    drop(rig);
    fs::remove_file(world.path("a.log")).unwrap();
    world.append("a.log", &error("six"));
    play(&mut world);
    assert_eq!(sorted(&world), ["five", "four", "one", "six", "three", "two"]);
}

#[test]
fn copytruncate_while_nobody_looks() {
    rotated_while_nobody_looks(|world| world.copytruncate("a.log", "a.log.1"));
}

/// In whatever order the names are met, the copy is not read before its original; nor if that has been renamed since.
#[test]
fn copytruncate_and_a_rename_while_nobody_looks() {
    let lines = "all is well\n".repeat(40);
    for (first, is_renamed, has_heir, text) in [
        ("logs/a.log.1", false, false, ""),
        ("logs/a.log", false, false, ""),
        ("logs/a.log.1", true, false, ""),
        ("logs/a.log.3", true, false, ""),
        ("logs/a.log.1", true, true, ""),
        ("logs/a.log.3", true, true, ""),
        ("logs/a.log.1", true, true, &lines),
        ("logs/a.log.3", true, true, &lines),
    ] {
        let mut world = World::new(&[first, "logs/a.log*"]);
        world.append("a.log", &error("one"));
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        drop(rig);
        world.append("a.log", &error("two"));
        world.copytruncate("a.log", "a.log.1");
        world.append("a.log", &(error("three") + text));
        if is_renamed {
            world.rename("a.log", "a.log.3");
        }
        let name = if has_heir || !is_renamed { "a.log" } else { "a.log.3" };
        world.append(name, &error("four"));
        // The last start finds all of them under the names that they have already.
        for _ in 0..2 {
            play(&mut world);
        }
        assert_eq!(sorted(&world), ["four", "one", "three", "two"], "{first} {is_renamed} {has_heir} {}", text.len());
    }
}

#[test]
fn copytruncate_the_rest_is_read_from_the_copy() {
    let (mut world, mut rig) = one_is_read();
    world.append("a.log", &error("two"));
    world.copytruncate("a.log", "a.log.1");
    rig.settle(&world);
    world.append("a.log", &error("three"));
    rig.wait(&mut world);
    assert_eq!(sorted(&world), ["one", "three", "two"], "and no gap");
}

#[test]
fn copytruncate_and_grown_beyond_the_old_offset() {
    let (mut world, mut rig) = one_is_read();
    world.copytruncate("a.log", "a.log.1");
    world.append("a.log", &(error("new one") + &error("new two") + &error("new three")));
    rig.wait(&mut world);
    assert_eq!(sorted(&world), ["new one", "new three", "new two", "one"]);
}

#[test]
fn rule_1_rewritten_to_the_same_size() {
    let (mut world, mut rig) = one_is_read();
    fs::write(world.path("a.log"), error("two")).unwrap();
    // Only a notice reports the change: the size is unchanged.
    rig.follower.changed(&[world.path("a.log")].into(), false, world.now);
    rig.wait(&mut world);
    assert_eq!(sorted(&world), ["gap \"truncated_file\"", "one", "two"]);
    let ids: Vec<_> = world.records().iter().map(|record| record["id"].clone()).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

#[test]
fn rule_1_truncated_without_a_copy_is_a_gap() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &(error("one") + &error("two")));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    fs::write(world.path("a.log"), error("three")).unwrap();
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["one", "two", "gap \"truncated_file\"", "three"]);
}

#[test]
fn rule_2_delete_and_recreate() {
    let (mut world, mut rig) = one_is_read();
    fs::remove_file(world.path("a.log")).unwrap();
    world.append("a.log", &error("two"));
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["one", "two"]);
    assert_eq!(rig.read().len(), 1);
}

#[test]
fn rule_2_unlinked_but_open_is_read_and_then_let_go() {
    let (mut world, mut rig) = one_is_read();
    let mut writer = fs::OpenOptions::new().append(true).open(world.path("a.log")).unwrap();
    fs::remove_file(world.path("a.log")).unwrap();
    writer.write_all(error("two").as_bytes()).unwrap();
    rig.settle(&world);
    writer.write_all(error("three").as_bytes()).unwrap();
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["one", "two", "three"]);
    assert!(rig.read().is_empty(), "its descriptor would keep the disk full: {:?}", rig.read());
}

/// Root reads everything: lets this thread, and those that it starts, open files as another user.
fn give_up_root() {
    const NOBODY: u32 = 65_534;
    if nix::unistd::geteuid().is_root() {
        nix::unistd::setfsuid(NOBODY.into());
    }
}

#[test]
fn rule_2_what_cannot_be_read_in_its_last_turn_is_tried_again() {
    give_up_root();
    for (waits, wanted) in [(3, &["one", "three", "two"][..]), (12, &["gap \"rotated_away\"", "one", "three"])] {
        let (mut world, mut rig) = one_is_read();
        rest(&mut world, &mut rig);
        world.append("a.log", &error("two"));
        fs::set_permissions(world.path("a.log"), fs::Permissions::from_mode(0o000)).unwrap();
        assert!(fs::File::open(world.path("a.log")).is_err());
        world.rename("a.log", "a.log.1");
        world.append("a.log", &error("three"));
        for _ in 0..waits {
            rig.settle(&world);
            world.pass(ROTATE_WAIT);
        }
        fs::set_permissions(world.path("a.log.1"), fs::Permissions::from_mode(0o644)).unwrap();
        rig.wait(&mut world);
        assert_eq!(sorted(&world), wanted);
    }
}

#[test]
fn rule_2_a_switched_symlink() {
    let mut world = World::new(&["logs/current.log"]);
    world.append("a.txt", &error("one"));
    symlink("a.txt", world.path("current.log")).unwrap();
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.append("a.txt", &error("two"));
    world.append("b.txt", &error("three"));
    fs::remove_file(world.path("current.log")).unwrap();
    symlink("b.txt", world.path("current.log")).unwrap();
    rig.wait(&mut world);
    assert_eq!(sorted(&world), ["one", "three", "two"]);
}

#[test]
fn what_was_rotated_away_unread_while_nobody_looked_is_a_gap_once() {
    let mut world = half_read_and_gone();
    world.append("b.log", &error("two"));
    for _ in 0..2 {
        play(&mut world);
    }
    assert_eq!(sorted(&world), ["gap \"rotated_away\"", "one", "two"]);
    let gap = world.records().into_iter().find(|record| record["kind"] == "gap").unwrap();
    assert!(gap["bytes"].as_u64().unwrap() > 1_000_000, "{gap}");
}

/// An error waits for more of its lines; after a kill it is read again if its file still exists.
#[test]
fn what_waited_when_it_was_killed_and_is_gone_is_a_gap_once() {
    for (is_killed, wanted) in [(true, &["gap \"rotated_away\"", "two"][..]), (false, &["curl: (7) no till", "two"])] {
        let mut world = World::new(&["logs/*.log"]);
        world.append("a.log", "all is well\ncurl: (7) no till\n");
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        if is_killed {
            drop(rig);
        } else {
            rig.stop(&world);
        }
        fs::remove_file(world.path("a.log")).unwrap();
        world.append("b.log", &error("two"));
        for _ in 0..2 {
            play(&mut world);
        }
        assert_eq!(sorted(&world), wanted);
    }
}

/// Nothing has the file open: what was seen of it, but not read, is known to be lost.
#[test]
fn what_was_seen_and_is_gone_before_it_is_read_is_a_gap_once() {
    let (mut world, mut rig) = one_is_read();
    rest(&mut world, &mut rig);
    world.append("a.log", &error("two"));
    rig.look(&world);
    fs::remove_file(world.path("a.log")).unwrap();
    rig.wait(&mut world);
    drop(rig);
    play(&mut world);
    assert_eq!(bare(&world), ["one", "gap \"rotated_away\""]);
    assert_eq!(world.records()[1]["bytes"], error("two").len());
}

/// Logs are deleted every day: of one that was read to its end, as far as anybody has seen, nothing is known to be missing.
#[test]
fn what_was_read_and_is_gone_is_no_loss() {
    for is_down in [false, true] {
        let (mut world, mut rig) = one_is_read();
        rest(&mut world, &mut rig);
        world.append("a.log", &error("two"));
        rig.settle(&world);
        rest(&mut world, &mut rig);
        if is_down {
            rig.stop(&world);
            fs::remove_file(world.path("a.log")).unwrap();
            rig = Rig::start(&world);
        } else {
            fs::remove_file(world.path("a.log")).unwrap();
        }
        rig.wait(&mut world);
        assert_eq!(bare(&world), ["one", "two"]);
    }
}

/// A binary file is left out: what was never to be read is not lost.
#[test]
fn what_is_no_log_and_is_gone_is_no_loss() {
    for is_down in [false, true] {
        let mut world = World::new(&["logs/*"]);
        fs::write(world.path("a.bin"), (0..=255).cycle().take(5000).collect::<Vec<u8>>()).unwrap();
        let mut rig = Rig::start(&world);
        rest(&mut world, &mut rig);
        if is_down {
            rig.stop(&world);
            fs::remove_file(world.path("a.bin")).unwrap();
            rig = Rig::start(&world);
        } else {
            fs::remove_file(world.path("a.bin")).unwrap();
        }
        world.append("b.log", &error("one"));
        rig.wait(&mut world);
        assert_eq!(bare(&world), ["one"]);
    }
}

#[test]
fn rule_3_a_known_file_goes_on_where_it_was() {
    let (mut world, rig) = one_is_read();
    drop(rig);
    world.append("a.log", &error("two"));
    play(&mut world);
    assert_eq!(bare(&world), ["one", "two"]);
    assert_eq!(world.records()[1]["line_num"], 2);
}

#[test]
fn rule_3_a_reused_inode_is_a_new_file() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    drop(play(&mut world));
    // Most file systems reuse the inode at once; otherwise it is a new file all the same.
    fs::remove_file(world.path("a.log")).unwrap();
    world.append("b.log", &(error("longer than the first one") + &error("two")));
    play(&mut world);
    let texts: Vec<String> = bare(&world).into_iter().filter(|text| !text.starts_with("gap")).collect();
    assert_eq!(texts, ["one", "longer than the first one", "two"]);
}

#[test]
fn rule_4_moved_from_elsewhere_goes_on() {
    let mut world = World::new(&["logs/*.log"]);
    let long: String = (0..20).map(|n| error(&format!("number {n}"))).collect();
    world.append("a.log", &long);
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    drop(rig);
    // As on another file system: another inode with the same bytes.
    let bytes = fs::read(world.path("a.log")).unwrap();
    fs::remove_file(world.path("a.log")).unwrap();
    fs::write(world.path("zz"), "takes the old inode").unwrap();
    fs::write(world.path("b.log"), bytes).unwrap();
    world.append("b.log", &error("new"));
    play(&mut world);
    assert_eq!(bare(&world).len(), 21, "{:?}", bare(&world));
}

#[test]
fn rule_4_a_short_file_proves_nothing() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    drop(play(&mut world));
    fs::remove_file(world.path("a.log")).unwrap();
    fs::write(world.path("zz"), "takes the old inode").unwrap();
    world.append("b.log", &error("one"));
    play(&mut world);
    assert_eq!(bare(&world), ["one", "one"]);
}

#[test]
fn rule_5_a_copy_that_the_glob_matches_is_not_read_again() {
    let mut world = World::new(&["logs/*"]);
    world.append("a.log", &(error("one") + &error("two")));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    // Seen when it is half written, when it is complete, and when the file is cut.
    let bytes = fs::read(world.path("a.log")).unwrap();
    fs::write(world.path("a.log.1"), &bytes[..bytes.len() / 2]).unwrap();
    rig.settle(&world);
    fs::write(world.path("a.log.1"), &bytes).unwrap();
    rig.settle(&world);
    world.append("a.log", &error("three"));
    rig.settle(&world);
    fs::OpenOptions::new().write(true).open(world.path("a.log")).unwrap().set_len(0).unwrap();
    rig.settle(&world);
    world.append("a.log", &error("four"));
    rig.wait(&mut world);
    let texts: Vec<String> = bare(&world).into_iter().filter(|text| !text.starts_with("gap")).collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
}

/// As `cp` and logrotate create it: the name exists before the first byte.
#[test]
fn rule_5_a_copy_that_is_met_empty_is_not_read_again() {
    for is_read in [true, false] {
        let mut world = World::new(&["logs/*"]);
        world.append("a.log", &(error("one") + &error("two")));
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        for n in 1..4 {
            world.append("a.log", &error(&format!("before {n}")));
            if is_read {
                rig.settle(&world);
            }
            let copy = format!("a.log.{n}");
            world.append(&copy, "");
            rig.look(&world);
            fs::copy(world.path("a.log"), world.path(&copy)).unwrap();
            fs::OpenOptions::new().write(true).open(world.path("a.log")).unwrap().set_len(0).unwrap();
            rig.settle(&world);
        }
        rig.wait(&mut world);
        assert_eq!(sorted(&world), ["before 1", "before 2", "before 3", "one", "two"], "{is_read}");
    }
}

/// Nothing of the original is known before its first turn ends, nor before the first one since it was cut. The copy
/// may hold what that turn has read; if the original was cut before that, the copy alone holds it.
#[test]
fn rule_5_a_copy_that_is_made_during_a_first_turn_is_read_once() {
    for (was_cut, is_read) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut world = World::new(&["logs/*"]);
        world.append("a.log", &if was_cut { error("before") } else { String::new() });
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        if was_cut {
            world.copytruncate("a.log", "a.log.2");
            rig.settle(&world);
        }
        world.append("a.log", &(error("one") + &error("two")));
        rig.look(&world);
        let job = rig.follower.next_job().unwrap();
        let early = is_read.then(|| rig.read_for(&job, &world));
        world.copytruncate("a.log", "a.log.1");
        rig.look(&world);
        let turn = early.unwrap_or_else(|| rig.read_for(&job, &world));
        rig.end(&job, turn, &world);
        rig.wait(&mut world);
        world.append("a.log", &error("three"));
        rig.wait(&mut world);
        let wanted = if was_cut { &["before", "one", "three", "two"][..] } else { &["one", "three", "two"] };
        assert_eq!(sorted(&world), wanted, "{was_cut} {is_read}");
    }
}

/// The copy is noticed before the original is known to have changed.
#[test]
fn rule_5_a_copy_that_is_met_before_a_first_turn_is_read_once() {
    for is_read in [true, false] {
        let mut world = World::new(&["logs/*"]);
        world.append("a.log", "");
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        world.append("a.log", &(error("one") + &error("two")));
        fs::copy(world.path("a.log"), world.path("a.log.1")).unwrap();
        rig.follower.changed(&[world.path("a.log.1")].into(), true, world.now);
        if is_read {
            rig.follower.changed(&[world.path("a.log")].into(), false, world.now);
            while rig.turn(&world) {}
        }
        fs::OpenOptions::new().write(true).open(world.path("a.log")).unwrap().set_len(0).unwrap();
        rig.wait(&mut world);
        assert_eq!(sorted(&world), ["one", "two"], "{is_read}");
    }
}

#[test]
fn rule_5_an_empty_file_that_is_no_copy_is_followed() {
    let mut world = World::new(&["logs/*"]);
    world.append("a.log", &error("one"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.append("a.log.err", "");
    world.append("a.log.out", "");
    rig.settle(&world);
    world.append("a.log.err", &error("two"));
    rig.settle(&world);
    assert_eq!(rig.read().keys().collect::<Vec<_>>(), ["a.log", "a.log.err"]);
    world.pass(60 * SECOND);
    rig.wait(&mut world);
    assert_eq!(rig.read().len(), 3, "nobody fills it any more");
    assert_eq!(sorted(&world), ["one", "two"]);
}

#[test]
fn rule_5_equal_heads_stay_two_files() {
    let mut world = World::new(&["logs/*.log"]);
    let banner = "starting version 7 with the usual settings, which take a line of their own\n".repeat(80);
    world.append("a.log", &(banner.clone() + &error("of a")));
    world.append("a-2.log", &(banner.clone() + &error("of the second")));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.append("a-3.log", &banner);
    rig.settle(&world);
    world.append("a-3.log", &error("of the third"));
    rig.wait(&mut world);
    assert_eq!(sorted(&world), ["of a", "of the second", "of the third"]);
}

/// A log that starts like another log did before that one was truncated: its program prints the same banner.
#[test]
fn rule_5_what_begins_as_another_file_did_is_read_behind_that() {
    let banner = "starting version 7 with the usual settings, which take a line of their own\n".repeat(4);
    for (name, is_met) in [("zebra.log", true), ("zebra.log", false), ("a-zebra.log", true), ("a-zebra.log", false)] {
        let mut world = World::new(&["logs/*.log"]);
        world.append("a.log", &banner);
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        fs::write(world.path("a.log"), "second run\n").unwrap();
        rig.settle(&world);
        let text = banner.clone() + &error("one") + &error("two");
        if is_met {
            world.append(name, &text);
        } else {
            rig.stop(&world);
            world.append(name, &text);
            rig = Rig::start(&world);
        }
        rig.settle(&world);
        world.append(name, &error("three"));
        rig.wait(&mut world);
        assert_eq!(sorted(&world), ["gap \"truncated_file\"", "one", "three", "two"], "{name} {is_met}");
    }
}

#[test]
fn rule_6_a_compressed_log_of_another_name_that_begins_as_one_does_is_read() {
    let mut world = World::new(&["logs/*.log", "logs/*.gz"]);
    let banner = "starting version 7 with the usual settings, which take a line of their own\n".repeat(4);
    world.append("a.log", &banner);
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.append("job", &(banner.clone() + &error("one")));
    compress(&world, "job");
    world.append("same", &banner);
    compress(&world, "same");
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["one"]);
}

#[test]
fn rule_6_compressed_generations_are_not_read() {
    let mut world = World::new(&["logs/*"]);
    world.append("a.log", &error("one"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    fs::write(world.path("a.log.1.gz"), error("not even compressed")).unwrap();
    fs::write(world.path("a.log.2.zst"), error("not even compressed")).unwrap();
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["one"]);
}

/// Does what logrotate's `compress` does.
fn compress(world: &World, name: &str) {
    let mut gzip = flate2::write::GzEncoder::new(fs::File::create(world.path(&format!("{name}.gz"))).unwrap(), flate2::Compression::fast());
    gzip.write_all(&fs::read(world.path(name)).unwrap()).unwrap();
    gzip.finish().unwrap();
    fs::remove_file(world.path(name)).unwrap();
}

#[test]
fn rule_6_included_by_name_they_are_read_once() {
    let mut world = World::new(&["logs/*.log", "logs/*.gz"]);
    let long: String = (0..3000).map(|n| format!("{}all is well\n", error(&format!("number {n}")))).collect();
    world.append("old", &long);
    compress(&world, "old");
    let mut rig = play(&mut world);
    assert_eq!(bare(&world), (0..3000).map(|n| format!("number {n}")).collect::<Vec<_>>());
    assert_eq!(world.records()[2999]["line_num"], 5999);
    // Renamed, and found after a restart.
    world.rename("old.gz", "older.gz");
    rig.wait(&mut world);
    drop(rig);
    play(&mut world);
    assert_eq!(world.records().len(), 3000);
}

#[test]
fn rule_6_a_generation_that_was_read_is_not_read_again() {
    for copied in [false, true] {
        let mut world = World::new(&["logs/*.log", "logs/*.gz"]);
        world.append("a.log", &(0..20).map(|n| error(&format!("number {n}"))).collect::<String>());
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        if copied {
            world.copytruncate("a.log", "a.log.1");
        } else {
            world.rename("a.log", "a.log.1");
        }
        world.append("a.log", &error("new"));
        rig.wait(&mut world);
        compress(&world, "a.log.1");
        rig.wait(&mut world);
        drop(rig);
        play(&mut world);
        assert_eq!(bare(&world).len(), 21, "{:?}", bare(&world));
    }
}

/// A compressed copy is recognized as read, even though its log has grown since.
#[test]
fn rule_6_a_compressed_copy_of_a_log_that_goes_on_is_not_read() {
    for is_met in [false, true] {
        let mut world = World::new(&["logs/*.log", "logs/*.gz"]);
        // Shorter and longer than the part of a file's beginning that is hashed.
        for (name, count) in [("a.log", 20), ("b.log", 400)] {
            world.append(name, &(0..count).map(|n| error(&format!("number {n}"))).collect::<String>());
        }
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        for name in ["a.log", "b.log"] {
            fs::copy(world.path(name), world.path("copy")).unwrap();
            compress(&world, "copy");
            world.rename("copy.gz", &format!("{name}.1.gz"));
            // The file is inspected once it has not been written for a while.
            let now = std::time::UNIX_EPOCH + std::time::Duration::from_micros(world.now.0.unsigned_abs());
            fs::File::open(world.path(&format!("{name}.1.gz"))).unwrap().set_modified(now).unwrap();
        }
        if is_met {
            rig.wait(&mut world);
        }
        world.append("a.log", &error("more of a"));
        world.append("b.log", &error("more of b"));
        rig.settle(&world);
        rig.wait(&mut world);
        drop(rig);
        world.append("a.log", &error("last"));
        play(&mut world);
        assert_eq!(bare(&world).len(), 423, "{is_met}");
        // A file with other content is read.
        world.append("other", &(0..20).map(|n| error(&format!("number {n} of another"))).collect::<String>());
        compress(&world, "other");
        play(&mut world);
        assert_eq!(bare(&world).len(), 443, "{is_met}");
    }
}

#[test]
fn rule_6_the_rest_of_a_file_that_was_compressed_while_nobody_looked() {
    let mut world = World::new(&["logs/*.log", "logs/*.gz"]);
    world.append("a.log", &(0..20).map(|n| error(&format!("number {n}"))).collect::<String>());
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    drop(rig);
    world.append("a.log", &error("number 20"));
    world.rename("a.log", "a.log.1");
    compress(&world, "a.log.1");
    world.append("a.log", &error("number 21"));
    play(&mut world);
    let mut texts = bare(&world);
    texts.sort_by_key(|text| text.trim_start_matches("number ").parse::<u32>().unwrap());
    assert_eq!(texts, (0..22).map(|n| format!("number {n}")).collect::<Vec<_>>());
}

/// Compresses a file, which keeps its time.
fn compress_as_it_was(world: &World, name: &str) {
    let written = fs::metadata(world.path(name)).unwrap().modified().unwrap();
    compress(world, name);
    fs::File::open(world.path(&format!("{name}.gz"))).unwrap().set_modified(written).unwrap();
}

#[test]
fn what_was_rotated_and_compressed_while_nobody_looks_is_read_whatever_the_glob() {
    let compressed = |world: &World| {
        world.date("a.log", 5);
        world.rename("a.log", "a.log.1");
        compress_as_it_was(world, "a.log.1");
        // An archive from before, and one of another log.
        for (at, name) in [(-5, "a.log.2"), (5, "b.log.1")] {
            world.append(name, &(error("one") + &error("of another")));
            world.date(name, at);
            compress_as_it_was(world, name);
        }
    };
    rotated_while_nobody_looks(compressed);
    let zstd = |world: &World| {
        world.rename("a.log", "a.log.1");
        let packed = ruzstd::encoding::compress_to_vec(fs::read(world.path("a.log.1")).unwrap().as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        fs::write(world.path("a.log.1.zst"), packed).unwrap();
        fs::remove_file(world.path("a.log.1")).unwrap();
    };
    rotated_while_nobody_looks(zstd);
    rotated_while_nobody_looks(|world| compress(world, "a.log"));
}

/// The file between the compressed one and the new one is read, too.
#[test]
fn what_was_rotated_twice_and_compressed_goes_on_in_the_older_one() {
    let twice = |world: &World| {
        world.date("a.log", 5);
        world.rename("a.log", "a.log.2");
        compress_as_it_was(world, "a.log.2");
        world.append("a.log.1", &error("between"));
        world.date("a.log.1", 6);
    };
    assert_eq!(told_after(twice), ["between", "one", "three", "two"]);
}

/// What is known to be unread is in the compressed file, however often siftd is killed while it reads that: nothing is lost.
#[test]
fn what_is_compressed_before_it_is_read_is_no_loss() {
    for kills in [1, 2] {
        let mut world = World::new(&["logs/*.log"]);
        world.append("a.log", &(error("one") + &"all is well\n".repeat(400_000) + &error("two")));
        for kill in 0..kills {
            let mut rig = Rig::start(&world);
            rig.look(&world);
            rig.turn(&world);
            rig.commit(9, &world);
            drop(rig);
            if kill == 0 {
                world.rename("a.log", "a.log.1");
                compress(&world, "a.log.1");
            }
        }
        for _ in 0..2 {
            play(&mut world);
        }
        assert_eq!(sorted(&world), ["one", "two"], "{kills}");
    }
}

#[test]
fn rule_6_a_damaged_one_is_read_as_far_as_it_goes_and_said_once() {
    let mut world = World::new(&["logs/*.gz"]);
    world.append("old", &(0..9000).map(|n| error(&format!("number {n} {}", n * 7919 % 10_007))).collect::<String>());
    compress(&world, "old");
    let bytes = fs::read(world.path("old.gz")).unwrap();
    fs::write(world.path("old.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let mut rig = play(&mut world);
    let texts = bare(&world);
    assert!(texts.len() > 1000 && texts[0].starts_with("number 0 "), "{}", texts.len());
    assert_eq!(texts.iter().filter(|text| text.starts_with("gap")).count(), 1);
    assert_eq!(rig.follower.troubles().len(), 1, "{:?}", rig.follower.troubles());
    rig.wait(&mut world);
    drop(rig);
    play(&mut world);
    assert_eq!(bare(&world).len(), texts.len());
}

#[test]
fn rule_6_a_cut_one_gives_all_that_was_unpacked_and_padding_is_no_damage() {
    let mut world = World::new(&["logs/*.gz"]);
    let text: String = (0..50).map(|n| error(&format!("number {n}"))).collect();
    for name in ["cut", "padded"] {
        world.append(name, &text);
        compress(&world, name);
    }
    let bytes = fs::read(world.path("cut.gz")).unwrap();
    fs::write(world.path("cut.gz"), &bytes[..bytes.len() - 12]).unwrap();
    fs::OpenOptions::new().append(true).open(world.path("padded.gz")).unwrap().write_all(&[0; 1000]).unwrap();
    let rig = play(&mut world);
    let texts = bare(&world);
    assert!(texts.iter().filter(|text| !text.starts_with("gap")).count() > 90, "{texts:?}");
    assert_eq!(texts.iter().filter(|text| text.starts_with("gap")).count(), 1);
    assert_eq!(rig.follower.troubles().len(), 1, "{:?}", rig.follower.troubles());
}

#[test]
fn rule_7_a_hole_is_skipped() {
    let mut world = World::new(&["logs/*.log"]);
    // A writer without O_APPEND continues at its own offset after the file was cut.
    let mut writer = fs::File::create(world.path("a.log")).unwrap();
    let line = error("first") + &"fine\n".repeat(4000);
    writer.write_all(line.as_bytes()).unwrap();
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.copytruncate("a.log", "a.log.1");
    writer.seek(SeekFrom::Start(line.len() as u64)).unwrap();
    writer.write_all((error("second") + &error("third")).as_bytes()).unwrap();
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["first", "second", "third"]);
    let record = &world.records()[1];
    assert_eq!((record["line_num"].as_u64(), record["offset"].as_u64()), (Some(1), Some(line.len() as u64)));
}

#[test]
fn rule_7_two_names_of_one_file_are_one_stream() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    fs::hard_link(world.path("a.log"), world.path("b.log")).unwrap();
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    fs::remove_file(world.path("a.log")).unwrap();
    world.append("b.log", &error("two"));
    rig.wait(&mut world);
    world.append("b.log", &error("three"));
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["one", "two", "three"]);
}

#[test]
fn start_at_end_holds_for_what_is_there_at_the_first_start_alone() {
    let mut world = World { start: Start::End, ..World::new(&["logs/*.log"]) };
    world.append("a.log", &(error("old") + "half of a li"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.append("a.log", &("ne\n".to_owned() + &error("new")));
    world.append("b.log", &error("of a later file"));
    rig.wait(&mut world);
    drop(rig);
    world.append("c.log", &error("of a file between two starts"));
    play(&mut world);
    assert_eq!(bare(&world), ["new", "of a later file", "of a file between two starts"]);
    assert_eq!(world.records()[0]["line_num"], 3, "lines before the start count");
}

#[test]
fn start_at_end_survives_an_end_before_the_first_turn() {
    let mut world = World { start: Start::End, ..World::new(&["logs/*.log"]) };
    world.append("a.log", &error("old"));
    drop(Rig::start(&world));
    let mut rig = Rig::start(&world);
    world.append("a.log", &error("new"));
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["new"]);
}

#[test]
fn a_quiet_file_is_put_to_rest_and_goes_on() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &(error("one") + "fine\nTraceback (most recent call last):\n"));
    let mut rig = Rig::start(&world);
    for _ in 0..20 {
        rig.settle(&world);
        world.pass(SECOND);
    }
    world.append("a.log", "  File \"x.py\", line 3, in f\n    boom()\nValueError: of two halves\n");
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["one", "ValueError: of two halves"]);
    // Renamed while nothing has it open.
    world.pass(60 * SECOND);
    rig.settle(&world);
    world.append("a.log", &error("last"));
    world.rename("a.log", "a.log.1");
    rig.wait(&mut world);
    assert_eq!(bare(&world), ["one", "ValueError: of two halves", "last"]);
}

/// Replaces a log like a program that copies it, changes the copy, and renames it into place.
fn renew(world: &World, name: &str, change: impl Fn(String) -> String) {
    let text = change(fs::read_to_string(world.path(name)).unwrap());
    fs::write(world.path(".renewed"), text).unwrap();
    world.rename(".renewed", name);
}

/// Returns a world with three errors of more than 256 bytes in all, which have been written out.
fn three_are_read() -> (World, Rig) {
    let world = World::new(&["logs/*.log"]);
    for name in ["one", "two", "three"] {
        world.append("a.log", &error(&format!("{name} {}", "x".repeat(100))));
    }
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    (world, rig)
}

/// Returns the first word of each text.
fn words(world: &World) -> Vec<String> {
    sorted(world).iter().map(|text| text.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn rule_4_renewed_with_all_that_was_read_goes_on() {
    let (mut world, mut rig) = three_are_read();
    for (n, name) in ["four", "five"].into_iter().enumerate() {
        renew(&world, "a.log", |text| text + &error(name));
        match n {
            0 => rig.settle(&world),
            // The file is idle meanwhile, so no descriptor of the replaced file is open.
            _ => world.pass(20 * SECOND),
        }
        rig.wait(&mut world);
    }
    assert_eq!(words(&world), ["five", "four", "one", "three", "two"]);
    drop(rig);
    renew(&world, "a.log", |text| text + &error("six"));
    let mut rig = play(&mut world);
    world.append("a.log", &error("seven"));
    rig.wait(&mut world);
    assert_eq!(words(&world), ["five", "four", "one", "seven", "six", "three", "two"]);
}

#[test]
fn rule_4_renewed_at_rest_goes_on() {
    let (mut world, mut rig) = three_are_read();
    for _ in 0..3 {
        world.pass(20 * SECOND);
        rig.look(&world);
        rig.settle(&world);
    }
    renew(&world, "a.log", |text| text + &error("four"));
    rig.wait(&mut world);
    assert_eq!(words(&world), ["four", "one", "three", "two"]);
}

#[test]
fn rule_4_replaced_by_other_content_is_new() {
    let (mut world, mut rig) = three_are_read();
    renew(&world, "a.log", |text| text.replace("two", "six") + &error("four"));
    rig.wait(&mut world);
    assert_eq!(words(&world), ["four", "one", "one", "six", "three", "three", "two"]);
}

#[test]
fn rule_4_replaced_by_as_much_is_new() {
    let (mut world, mut rig) = three_are_read();
    renew(&world, "a.log", |text| text);
    rig.wait(&mut world);
    assert_eq!(words(&world).len(), 6, "a program may say the same at each start");
}

#[test]
fn rule_4_replaced_while_the_elder_has_another_name_is_new() {
    let (mut world, mut rig) = three_are_read();
    fs::hard_link(world.path("a.log"), world.path("a.log.1")).unwrap();
    renew(&world, "a.log", |text| text + &error("four"));
    rig.wait(&mut world);
    assert_eq!(words(&world).len(), 7);
}

#[test]
fn rule_4_what_was_not_read_yet_is_read_in_the_renewed_one() {
    let (mut world, mut rig) = three_are_read();
    world.append("a.log", &error("four"));
    renew(&world, "a.log", |text| text + &error("five"));
    rig.wait(&mut world);
    assert_eq!(words(&world), ["five", "four", "one", "three", "two"]);
}

#[test]
fn what_is_hidden_is_meant_only_by_a_glob_that_writes_the_dot() {
    for (glob, wanted) in [("logs/*", &["seen"][..]), ("logs/**", &["seen"]), ("logs/.a.*", &["hidden"])] {
        let mut world = World::new(&[glob]);
        world.append(".a.log.Bn5W5A", &error("hidden"));
        world.append("a.log", &error("seen"));
        play(&mut world);
        assert_eq!(bare(&world), wanted, "{glob}");
    }
}

#[test]
fn a_file_that_is_renamed_while_a_thread_waits_with_it_goes_on_under_its_new_name() {
    let mut world = World::new(&["logs/*.log*"]);
    world.append("a.log", &error("one"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.append("a.log", &error("two"));
    rig.look(&world);
    rig.while_a_thread_waits(&world, || {
        world.rename("a.log", "a.log.1");
        world.append("a.log", &error("three"));
    });
    world.append("a.log.1", &error("four"));
    rig.wait(&mut world);
    assert_eq!(sorted(&world), ["four", "one", "three", "two"]);
    let mut paths: Vec<_> = rig.follower.marks().map(|(_, _, mark)| mark.path).collect();
    paths.sort();
    assert_eq!(paths, [world.path("a.log"), world.path("a.log.1")]);
    world.append("a.log.1", &error("five"));
    rig.wait(&mut world);
    assert_eq!(sorted(&world), ["five", "four", "one", "three", "two"]);
}

#[test]
fn a_file_that_is_renewed_or_rotated_while_a_thread_waits_with_it_is_read_once() {
    let world = &mut World::new(&["logs/*.log"]);
    world.append("a.log", &(error("one") + &"all is well\n".repeat(30)));
    let mut rig = Rig::start(world);
    rig.settle(world);
    world.append("a.log", &error("two"));
    rig.look(world);
    rig.while_a_thread_waits(world, || renew(world, "a.log", |text| text + &error("three")));
    rig.wait(world);
    assert_eq!(sorted(world), ["one", "three", "two"]);
    world.append("a.log", &error("four"));
    rig.look(world);
    // A new file with different content, longer than the old one: it is followed at once, as it may soon be gone.
    rig.while_a_thread_waits(world, || {
        world.rename("a.log", "a.log.1");
        world.append("a.log", &(error("five") + &"all is well\n".repeat(90)));
    });
    world.rename("a.log", "a.log.2");
    rig.wait(world);
    assert_eq!(sorted(world), ["five", "four", "one", "three", "two"]);
}
