//! The real daemon: killed, queried, told to reopen its output, and without inotify. `SIFTD_KILLS=200`
//! runs the long version, `SIFTD_SEED` one that failed; `cargo bench --bench daemon -- kill` runs it on the release build.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::killing::{DEADLINE, Daemon, kill_many, until, until_or};

#[test]
fn killed_at_random_moments_it_loses_and_doubles_nothing() {
    let kills = std::env::var("SIFTD_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12);
    let killed = kill_many(kills, crate::seed::seed(), "");
    eprintln!("{} errors, {} rotations", killed.errors, killed.rotations);
}

#[test]
fn sigusr1_opens_the_output_anew_although_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    let out = folder.path().join("out.ndjson");
    daemon.start();
    until("it does not begin", || out.exists());
    let old = folder.path().join("out.ndjson.1");
    fs::rename(&out, &old).unwrap();
    // Many signals at once count as one.
    (0..20).for_each(|_| daemon.signal("-USR1"));
    assert!(until_or(Duration::from_secs(10), || out.exists()), "{}", daemon.stderr());
    fs::write(daemon.log("a.log"), "2026-09-21T10:00:00Z ERROR job-1 failed\nfine\n").unwrap();
    until("it is not in the new file", || fs::read_to_string(&out).unwrap().contains("job-1"));
    assert_eq!(fs::metadata(&old).unwrap().len(), 0);
    daemon.stop();
}

#[test]
fn an_end_that_is_asked_for_twice_at_once_drains_as_well() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let mut daemon = Daemon::new(folder.path(), "");
        daemon.start();
        let word = format!("job-{round}");
        fs::write(daemon.log(&format!("{round}.log")), format!("2026-09-21T10:00:00Z ERROR {word} failed\nfine\n")).unwrap();
        until("its error does not come out", || fs::read_to_string(folder.path().join("out.ndjson")).is_ok_and(|out| out.contains(&word)));
        // The second signal may come too late.
        daemon.signal("-TERM");
        drop(Command::new("kill").args(["-TERM", &daemon.pid().to_string()]).stderr(Stdio::null()).status());
        let status = daemon.child.take().unwrap().wait().unwrap();
        assert_eq!(status.code(), Some(0), "{}", daemon.stderr());
    }
}

pub fn said(daemon: &Daemon, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
    let output = command.args(args).args(["--config", "siftd.toml"]).current_dir(&daemon.folder).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_state_can_be_looked_at_while_it_runs_and_forgotten_when_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    let line = "2026-09-21T10:00:00Z ERROR job-1 failed\nfine\n";
    fs::write(daemon.log("a.log"), line).unwrap();
    let (code, dry) = said(&daemon, &["run", "--dry-run"]);
    assert!(code == Some(0) && dry.contains("a.log  from its beginning, 45 B to read") && !folder.path().join("state").exists(), "{dry}");
    daemon.start();
    let read = || said(&daemon, &["state", "list"]).1.contains("45 B  0 B");
    until("the position is not kept", read);
    let path = daemon.log("a.log").display().to_string();
    let (code, shown) = said(&daemon, &["state", "show", &path]);
    assert!(code == Some(0) && shown.contains("goes on at  byte 45, line 3"), "{shown}");
    let (code, refused) = said(&daemon, &["state", "forget", &path]);
    assert!(code == Some(2) && refused.contains(&format!("process {}", daemon.pid())), "{refused}");
    let (code, second) = said(&daemon, &["run"]);
    assert!(code == Some(2) && second.contains(&format!("in use by process {}", daemon.pid())), "{second}");
    let (_, json) = said(&daemon, &["state", "list", "--format", "json"]);
    let rows: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((rows[0]["read"].as_u64(), rows[0]["left"].as_u64()), (Some(45), Some(0)));
    daemon.stop();
    let (_, dry) = said(&daemon, &["run", "--dry-run"]);
    assert!(dry.contains("read to its end, byte 45, 0 B to read"), "{dry}");
    assert_eq!(said(&daemon, &["state", "forget", &path]).0, Some(0));
    assert_eq!(said(&daemon, &["state", "show", &path]).0, Some(2));
}

#[test]
fn without_inotify_it_says_how_to_raise_the_limit_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::new(folder.path(), "");
    let script = format!("echo 0 > /proc/sys/user/max_inotify_instances && exec {:?} run --config siftd.toml", env!("CARGO_BIN_EXE_siftd"));
    let errors = fs::File::create(folder.path().join("stderr")).unwrap();
    let mut command = Command::new("unshare");
    let child = command.args(["--user", "--map-root-user", "sh", "-c", &script]).current_dir(folder.path()).stdin(Stdio::null()).stderr(errors).spawn();
    let Ok(child) = child else { return crate::skip::skipped("unshare") };
    let mut daemon = daemon;
    daemon.child = Some(child);
    let mut has_ended = false;
    let said = until_or(DEADLINE, || {
        has_ended = daemon.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some());
        has_ended || daemon.stderr().contains("sysctl")
    });
    if has_ended || !said {
        daemon.child = None;
        return crate::skip::skipped(format_args!("the right to make a user namespace with limits of its own: {}", daemon.stderr()));
    }
    assert!(daemon.stderr().contains("sysctl fs.inotify.max_user_instances="), "{}", daemon.stderr());
    fs::write(daemon.log("later.log"), "2026-09-21T10:00:00Z ERROR job-1 failed\nfine\n").unwrap();
    until("polling does not find it", || fs::read_to_string(folder.path().join("out.ndjson")).unwrap_or_default().contains("job-1"));
}

/// Returns the records of one kind in an output.
fn kinds(folder: &std::path::Path, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("out.ndjson")).unwrap_or_default();
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|record| record["kind"] == kind).collect()
}

#[test]
fn a_stream_that_falls_silent_is_told_and_its_end_too_also_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    let config = fs::read_to_string(folder.path().join("siftd.toml")).unwrap();
    fs::write(folder.path().join("siftd.toml"), config.replace("rotate_wait", "silence = \"1s\"\nrotate_wait")).unwrap();
    fs::write(daemon.log("a.log"), "all is well\n").unwrap();
    daemon.start();
    let silences = || kinds(folder.path(), "silence");
    until("the silence is not told", || silences().len() == 1);
    daemon.kill();
    daemon.start();
    // The silence continues across the restart without a second report; this line ends it.
    fs::OpenOptions::new().append(true).open(daemon.log("a.log")).and_then(|mut file| std::io::Write::write_all(&mut file, b"well again\n")).unwrap();
    until("its end is not told", || silences().len() >= 2);
    let said = silences();
    assert_eq!((&said[0]["status"], &said[1]["status"]), (&"begun".into(), &"ended".into()), "{said:?}");
    assert_eq!((&said[0]["since"], &said[0]["seconds"]), (&said[1]["since"], &1.into()));
    assert!(said[0]["source"]["path"].as_str().unwrap().ends_with("a.log") && said[0]["id"] != said[1]["id"], "{said:?}");
    daemon.stop();
}

/// The state matches the output, whenever the daemon ends.
#[test]
fn a_loop_of_errors_opens_the_streams_breaker_and_tells_the_users_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    let config = fs::read_to_string(folder.path().join("siftd.toml")).unwrap();
    let breaker =
        format!("[breaker]\nstream_window = \"1ms\"\non_open = [\"sh\", \"-c\", \"cat > {0}/part && mv {0}/part {0}/told\"]\n", folder.path().display());
    fs::write(folder.path().join("siftd.toml"), config + &breaker).unwrap();
    daemon.start();
    let mut file = fs::OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap();
    let mut n = 0;
    until("it does not open", || {
        n += 1;
        std::io::Write::write_all(&mut file, format!("2026-09-21T10:00:00Z ERROR job-{n} failed\nfine\n").as_bytes()).unwrap();
        if n == 3 {
            daemon.kill();
            daemon.start();
        }
        folder.path().join("told").exists()
    });
    let told: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("told")).unwrap()).unwrap();
    assert!(kinds(folder.path(), "breaker").contains(&told) && told["to"] == "open" && told["count"] == 5, "{told}");
    let path = daemon.log("a.log").display().to_string();
    let (code, shown) = said(&daemon, &["breaker", "check", "--stream", &path]);
    assert!(code == Some(11) && shown.contains("the same error in"), "{shown}");
    // While `run` works, others write to the state, and it writes what they changed.
    assert_eq!(said(&daemon, &["breaker", "reset", "--stream", &path]).0, Some(0));
    until("the reset is not in the output", || kinds(folder.path(), "breaker").iter().any(|record| record["reason"] == "reset"));
    daemon.stop();
    let (_, list) = said(&daemon, &["history", "--json"]);
    let row: Value = serde_json::from_str(list.lines().next().unwrap()).unwrap();
    let last = kinds(folder.path(), "error").pop().unwrap();
    assert_eq!((&row["count"], &row["first"], &row["signature"]), (&last["seen"]["count"], &last["seen"]["first"], &last["signature"]));
}

#[test]
fn when_new_folders_cannot_be_watched_any_more_it_says_so_and_finds_what_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    let config = fs::read_to_string(folder.path().join("siftd.toml")).unwrap();
    fs::write(folder.path().join("siftd.toml"), config.replace("/logs/*.log", "/logs/**/*.log")).unwrap();
    fs::write(daemon.log("first.log"), "2026-09-21T10:00:00Z ERROR job-0x failed\nfine\n").unwrap();
    let script = format!("echo 3 > /proc/sys/user/max_inotify_watches && exec {:?} run --config siftd.toml", env!("CARGO_BIN_EXE_siftd"));
    let errors = fs::File::create(folder.path().join("stderr")).unwrap();
    let mut command = Command::new("unshare");
    let child = command.args(["--user", "--map-root-user", "sh", "-c", &script]).current_dir(folder.path()).stdin(Stdio::null()).stderr(errors).spawn();
    let Ok(child) = child else { return crate::skip::skipped("unshare") };
    daemon.child = Some(child);
    let is_out = |n: u32| fs::read_to_string(folder.path().join("out.ndjson")).is_ok_and(|out| out.contains(&format!("job-{n}x")));
    let mut has_ended = false;
    until("it does not begin", || {
        has_ended = daemon.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some());
        has_ended || is_out(0)
    });
    if has_ended {
        daemon.child = None;
        return crate::skip::skipped(format_args!("the right to make a user namespace with limits of its own: {}", daemon.stderr()));
    }
    for n in 1..=6 {
        fs::create_dir(daemon.log(&n.to_string())).unwrap();
        fs::write(daemon.log(&format!("{n}/a.log")), format!("2026-09-21T10:00:00Z ERROR job-{n}x failed\nfine\n")).unwrap();
    }
    until("new folders are not found", || (1..=6).all(is_out));
    until(&format!("nobody says why\n{}", daemon.stderr()), || daemon.stderr().contains("sysctl fs.inotify.max_user_watches="));
    fs::write(daemon.log("6/later.log"), "2026-09-21T10:00:00Z ERROR job-7x failed\nfine\n").unwrap();
    until("polling does not find it", || is_out(7));
}
