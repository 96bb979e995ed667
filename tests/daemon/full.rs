//! Small file systems that fill up and are freed: under the state, and under the output.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::killing::{Daemon, Shipper, counts, until};

/// A file system of its own, unmounted when it goes.
struct Small(PathBuf);

impl Small {
    fn mount(folder: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            println!("skipped: needs the right to mount a tmpfs");
            return None;
        }
        Some(Self(folder.to_owned()))
    }

    fn fill(&self) {
        let mut filler = OpenOptions::new().append(true).create(true).open(self.0.join("filler")).unwrap();
        while filler.write_all(&[b'x'; 1024]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").args(["-l"]).arg(&self.0).status());
    }
}

fn append(daemon: &Daemon, from: u32, to: u32) {
    let mut file = OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap();
    for n in from..=to {
        writeln!(file, "2026-09-21T10:00:00Z ERROR job-{n} {}\nall is well", "x".repeat(300)).unwrap();
    }
}

/// The exit code of `siftd status` and what it prints.
fn status(state: &Path) -> (Option<i32>, String) {
    let asked = Command::new(env!("CARGO_BIN_EXE_siftd")).args(["status", "--state-dir"]).arg(state).output().unwrap();
    (asked.status.code(), String::from_utf8(asked.stdout).unwrap())
}

fn is_out(out: &Path, n: u32) -> bool {
    memchr::memmem::find(&fs::read(out).unwrap_or_default(), format!("ERROR job-{n} ").as_bytes()).is_some()
}

fn play(state: &Path, out: &Path, folder: &Path, small: &Small) {
    let mut daemon = Daemon::with(folder, state, out, "");
    let shipper = Shipper::new(out.to_owned());
    daemon.start();
    append(&daemon, 1, 50);
    until("the first ones do not come", || is_out(out, 50));
    small.fill();
    append(&daemon, 51, 1500);
    until(&format!("nobody says that it is full\n{}", daemon.stderr()), || daemon.stderr().contains("nothing is lost"));
    if state.starts_with(&small.0) {
        let (code, said) = status(state);
        assert!(code == Some(1) && said.contains("\ntrouble: state: "), "{code:?} {said}");
    }
    // An end while it is full, and another one when there is room again.
    daemon.kill();
    let said = daemon.stderr().len();
    daemon.start();
    append(&daemon, 1501, 1600);
    until("it does not say again that it is full", || daemon.stderr().len() > said);
    small.free();
    until(&format!("the last ones do not come\n{}", daemon.stderr()), || is_out(out, 1600));
    daemon.kill();
    daemon.start();
    append(&daemon, 1601, 1601);
    until("it does not go on", || is_out(out, 1601));
    until("it does not say that it is well again", || status(state).0 == Some(0));
    daemon.stop();
    let counts = counts(&shipper.end());
    let wrong: Vec<_> = (1..=1601).map(|n| format!("job-{n}")).filter(|word| counts.get(word) != Some(&1)).collect();
    assert!(wrong.is_empty(), "{wrong:?}\n{}", daemon.stderr());
}

#[test]
fn a_full_disk_under_the_state_stops_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("small"), "16m") else { return };
    play(&folder.path().join("small/state"), &folder.path().join("out.ndjson"), folder.path(), &small);
}

#[test]
fn a_full_disk_under_the_output_stops_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("small"), "6m") else { return };
    play(&folder.path().join("state"), &folder.path().join("small/out.ndjson"), folder.path(), &small);
}
