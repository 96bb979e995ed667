//! A state that cannot be looked at is no state that is not there yet.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use super::{Done, Folder};

/// A user who owns nothing here.
const NOBODY: u32 = 65_534;

/// Everything that asks a state, each with how it names the folder.
const ASKING: [&[&str]; 6] = [
    &["breaker", "check", "op", "--state-dir"],
    &["breaker", "check", "--quiet", "op", "--state-dir"],
    &["breaker", "status", "--state-dir"],
    &["breaker", "reset", "op", "--state-dir"],
    &["history", "--state-dir"],
    &["run", "--file", "b.log", "--dry-run", "--state-dir"],
];

fn with_open_breaker() -> Folder {
    let folder = Folder::new();
    folder.write("a.log", "fine\n");
    folder.siftd(["breaker", "record", "op", "--failure", "--fatal", "--error", "boom", "--state-dir", "state"]).ended(0);
    folder.siftd(["breaker", "check", "op", "--state-dir", "state"]).ended(11);
    folder
}

/// Runs siftd as someone who is not root and owns none of the files; `None` where the tests may not do so.
fn as_stranger(folder: &Folder, args: &[&str]) -> Option<Done> {
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let mut command = folder.command(args);
    // Who is not root has no access to what has no permissions at all.
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let done = command.output().map(Done);
    if done.is_err() {
        println!("skipped: another user may not run siftd here");
    }
    done.ok()
}

#[test]
fn what_is_below_a_file_is_an_obstacle_and_no_closed_breaker() {
    let folder = with_open_breaker();
    for place in ["a.log", "a.log/state"] {
        for args in ASKING {
            let done = folder.siftd([args, &[place]].concat()).ended(2);
            assert!(done.err().contains("a file, no folder") && done.out().is_empty(), "{args:?} {place}: {} {}", done.out(), done.err());
        }
    }
}

#[test]
fn a_folder_that_may_not_be_read_is_an_obstacle_and_no_closed_breaker() {
    let folder = with_open_breaker();
    for (name, mode) in [("state", 0), ("state/siftd.db", 0)] {
        fs::set_permissions(folder.at(name), Permissions::from_mode(mode)).unwrap();
        for args in ASKING {
            let Some(done) = as_stranger(&folder, &[args, &["state"]].concat()) else { return };
            let done = done.ended(2);
            let said = done.err();
            assert!(said.contains("siftd.db: Permission denied") && said.contains("ask as the user"), "{name} {args:?}: {said}");
            assert!(done.out().is_empty() && !said.contains("immutable") && !said.contains("no state"), "{name} {args:?}: {} {said}", done.out());
        }
        fs::set_permissions(folder.at(name), Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_state_that_may_be_read_and_not_written_is_named_with_the_reason() {
    let folder = with_open_breaker();
    fs::set_permissions(folder.at("state"), Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(folder.at("state/siftd.db"), Permissions::from_mode(0o444)).unwrap();
    let record = ["breaker", "record", "op", "--success", "--state-dir", "state"];
    for args in [&record[..], &["breaker", "reset", "op", "--state-dir", "state"]] {
        let Some(done) = as_stranger(&folder, args) else { return };
        let said = done.ended(2).err();
        assert!(said.contains("siftd.db: Permission denied") && said.contains("ask as the user") && !said.contains("readonly"), "{said}");
    }
}

#[test]
fn a_user_without_a_home_is_told_so() {
    let folder = Folder::new();
    let mut command = folder.command(["breaker", "record", "op", "--success"]);
    command.env_remove("HOME").env_remove("XDG_STATE_HOME");
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let said = Done(command.output().unwrap()).ended(2).err();
    assert!(said.contains("HOME is not set") && said.contains("--state-dir"), "{said}");
}

/// A folder below a glob that siftd may not search is named once; one that is excluded or hidden is not.
#[test]
fn a_folder_that_may_not_be_searched_is_said() {
    let folder = Folder::new();
    for name in ["open", "shut", "out", ".hidden"] {
        folder.write(&format!("logs/{name}/a.log"), "fine\n");
    }
    ["shut", "out", ".hidden"].iter().for_each(|name| fs::set_permissions(folder.at("logs").join(name), Permissions::from_mode(0o000)).unwrap());
    folder.write("a.toml", "state_dir = \"st\"\n[[source]]\nname = \"a\"\ntype = \"file\"\ninclude = [\"logs/**/*.log\"]\nexclude = [\"logs/out/**\"]\n");
    let done = as_stranger(&folder, &["run", "--config", "a.toml", "--dry-run"]);
    ["shut", "out", ".hidden"].iter().for_each(|name| fs::set_permissions(folder.at("logs").join(name), Permissions::from_mode(0o755)).unwrap());
    let Some(done) = done else { return };
    let done = done.ended(0);
    assert!(done.err().contains("logs/shut: Permission denied, and is passed over"), "{}", done.err());
    assert!(done.err().lines().count() == 1 && done.out().contains("source a: 1 file\n"), "{} {}", done.err(), done.out());
}
