//! New files are found within a second, wherever a source may have them, with and without inotify.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::killing::{Daemon, until};

/// The promised time.
const SOON: Duration = Duration::from_secs(1);
/// Number of files created; the machine may be busy during one of them.
const FILES: usize = 5;

fn is_out(folder: &Path, word: &str) -> bool {
    fs::read_to_string(folder.join("out.ndjson")).is_ok_and(|out| out.contains(word))
}

/// Starts a daemon that follows `logs/**/*.log`, and waits until it has found the initial files.
fn started(folder: &Path) -> Daemon {
    let mut daemon = Daemon::new(folder, "");
    let config = fs::read_to_string(folder.join("siftd.toml")).unwrap();
    fs::write(folder.join("siftd.toml"), config.replace("/logs/*.log", "/logs/**/*.log")).unwrap();
    fs::write(daemon.log("first.log"), "2026-09-21T10:00:00Z ERROR job-first failed\nfine\n").unwrap();
    daemon.start();
    until("it does not begin", || is_out(folder, "job-first"));
    daemon
}

/// Returns how long each of some new files took until its error was written, shortest first.
fn times(daemon: &Daemon, name: impl Fn(usize) -> String) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..FILES)
        .map(|n| {
            let path = daemon.log(&name(n));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let start = Instant::now();
            fs::write(path, format!("2026-09-21T10:00:00Z ERROR job-{n}x failed\nfine\n")).unwrap();
            until("a new file is not found", || is_out(&daemon.folder, &format!("job-{n}x")));
            start.elapsed()
        })
        .collect();
    times.sort();
    times
}

#[test]
fn a_new_file_is_found_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = started(folder.path());
    let times = times(&daemon, |n| format!("{n}.log"));
    assert!(times[FILES / 2] < SOON, "{times:?}");
    daemon.stop();
}

#[test]
fn a_new_file_in_a_new_folder_of_new_folders_is_found_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = started(folder.path());
    let times = times(&daemon, |n| format!("{n}/of/some/depth/a.log"));
    assert!(times[FILES / 2] < SOON, "{times:?}");
    // Such a folder may also be moved here as a whole.
    let made = folder.path().join("made");
    fs::create_dir_all(made.join("deep")).unwrap();
    fs::write(made.join("deep/b.log"), "2026-09-21T10:00:00Z ERROR job-moved failed\nfine\n").unwrap();
    let start = Instant::now();
    fs::rename(&made, daemon.log("made")).unwrap();
    until("a folder that was moved is not found", || is_out(folder.path(), "job-moved"));
    let moved = start.elapsed();
    // New files in the moved folder are found, which takes a watch.
    let start = Instant::now();
    fs::write(daemon.log("made/deep/c.log"), "2026-09-21T10:00:00Z ERROR job-later failed\nfine\n").unwrap();
    until("what is made there later is not found", || is_out(folder.path(), "job-later"));
    assert!(moved.min(start.elapsed()) < SOON, "{moved:?} {:?}", start.elapsed());
    daemon.stop();
}
