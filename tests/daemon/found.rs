//! New files are found within a second, wherever a source may have them, with and without inotify.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::killing::{Daemon, until};

/// The promised time, on a machine that has nothing else to do.
const SOON: Duration = Duration::from_secs(1);
/// Number of files created; the machine may be busy during one of them.
const FILES: usize = 5;

/// Returns the promised time on this machine as it is now: a line of a file that is followed already takes `usual`, most of which
/// is waiting for the processor; to find a new file and to begin it takes several such waits.
fn soon(usual: Duration) -> Duration {
    SOON + 10 * usual
}

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

/// How long it took until errors were written; the middle of some.
#[derive(Debug)]
struct Times {
    /// Those of new files.
    new: Duration,
    /// Those of a file that was followed already.
    usual: Duration,
}

/// Writes an error to a file; returns how long it took until it was in the output.
fn time(daemon: &Daemon, path: &Path, word: &str) -> Duration {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    let start = Instant::now();
    file.write_all(format!("2026-09-21T10:00:00Z ERROR {word} failed\nfine\n").as_bytes()).unwrap();
    until("an error is not found", || is_out(&daemon.folder, word));
    start.elapsed()
}

/// Takes the times of new files, and each time that of a file that is followed already.
fn times(daemon: &Daemon, name: impl Fn(usize) -> String) -> Times {
    let (mut new, mut usual) = (Vec::new(), Vec::new());
    for n in 0..FILES {
        let path = daemon.log(&name(n));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        new.push(time(daemon, &path, &format!("job-{n}x")));
        usual.push(time(daemon, &daemon.log("first.log"), &format!("job-{n}y")));
    }
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[FILES / 2]
    };
    Times { new: middle(new), usual: middle(usual) }
}

#[test]
fn a_new_file_is_found_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = started(folder.path());
    let times = times(&daemon, |n| format!("{n}.log"));
    assert!(times.new < soon(times.usual), "{times:?}");
    daemon.stop();
}

#[test]
fn a_new_file_in_a_new_folder_of_new_folders_is_found_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = started(folder.path());
    let times = times(&daemon, |n| format!("{n}/of/some/depth/a.log"));
    assert!(times.new < soon(times.usual), "{times:?}");
    // Such a folder may also be moved here as a whole.
    let made = folder.path().join("made");
    fs::create_dir_all(made.join("deep")).unwrap();
    fs::write(made.join("deep/b.log"), "2026-09-21T10:00:00Z ERROR job-moved failed\nfine\n").unwrap();
    let start = Instant::now();
    fs::rename(&made, daemon.log("made")).unwrap();
    until("a folder that was moved is not found", || is_out(folder.path(), "job-moved"));
    let moved = start.elapsed();
    // New files in the moved folder are found, which takes a watch.
    let later = time(&daemon, &daemon.log("made/deep/c.log"), "job-later");
    assert!(moved.min(later) < soon(times.usual), "{moved:?} {later:?} {times:?}");
    daemon.stop();
}
