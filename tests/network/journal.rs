//! The journal, printed by the test's own `journalctl`: one entry per line of a file, with the line number as cursor.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use super::rig::{Daemon, is_alive};

const JOURNALCTL: &str = r#"#!/bin/sh
after=0
for word; do
    case $word in
        --after-cursor=c*) after=${word#*=c} ;;
        --since=@*) after=$(wc -l < entries); echo "$word" >> since ;;
        --lines=1) tail -n 1 entries; exit ;;
    esac
done
exec tail -n +$((after + 1)) -f entries
"#;

fn journal(start_at: &str) -> Daemon {
    let daemon = Daemon::new(&format!("[[source]]\nname = \"journal\"\ntype = \"journald\"\nstart_at = \"{start_at}\"\nrestart_delay = \"20ms\"\n"));
    let tool = daemon.path("bin/journalctl");
    fs::create_dir(daemon.path("bin")).unwrap();
    fs::write(&tool, JOURNALCTL).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(daemon.path("entries"), "").unwrap();
    daemon
}

fn start(daemon: &mut Daemon) {
    let path = format!("{}:{}", daemon.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command: Command = daemon.command();
    daemon.child = Some(command.env("PATH", path).spawn().unwrap());
}

/// Appends entries; returns the cursor of the last one.
fn log(daemon: &Daemon, at: &mut u64, entries: &[(&str, &str)]) {
    let mut file = OpenOptions::new().append(true).open(daemon.path("entries")).unwrap();
    for (fields, message) in entries {
        *at += 1;
        let time = jiff::Timestamp::now().as_microsecond();
        let message = serde_json::to_string(message).unwrap();
        writeln!(
            file,
            r#"{{"__CURSOR":"c{at}","__REALTIME_TIMESTAMP":"{time}","_HOSTNAME":"web01","SYSLOG_IDENTIFIER":"shop","_PID":"7",{fields},"MESSAGE":{message}}}"#
        )
        .unwrap();
    }
}

const ERR: &str = r#""PRIORITY":"3""#;
const INFO: &str = r#""PRIORITY":"6","_TRANSPORT":"syslog""#;
const PRINTED: &str = r#""PRIORITY":"6","_TRANSPORT":"stdout""#;

/// Returns what `siftd state list` prints.
fn listed(daemon: &Daemon) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_siftd")).args(["state", "list", "--config", "siftd.toml"]).current_dir(&daemon.folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn entries_are_judged_by_their_priority_or_by_what_a_service_printed() {
    let mut daemon = journal("end");
    let mut at = 0;
    log(&daemon, &mut at, &[(ERR, "from before")]);
    start(&mut daemon);
    daemon.until("it has no position", || daemon.stderr().contains("journal") || daemon.path("state/siftd.db").exists());
    daemon.until("its position is not kept", || listed(&daemon).contains("(journal)"));
    let trace = ["Traceback (most recent call last):", "  File \"a.py\", line 3, in f", "    g()", "ValueError: boom"];
    log(&daemon, &mut at, &[(ERR, "the store is gone"), (INFO, "error count is 0"), (INFO, "TypeError: only said")]);
    log(&daemon, &mut at, &trace.map(|line| (PRINTED, line)));
    log(&daemon, &mut at, &[(r#""_COMM":"siftd","PRIORITY":"3""#, "siftd tells of itself")]);
    daemon.wait_for(&["ValueError: boom", "the store is gone"]);
    let records = daemon.records();
    let boom = records.iter().find(|record| record["text"] == "ValueError: boom").unwrap();
    assert_eq!((&boom["source"]["type"], &boom["source"]["app"], &boom["source"]["key"]), (&"command".into(), &"shop".into(), &"web01 shop[7]".into()));
    assert_eq!(boom["multiline"].as_array().unwrap().len(), 4);
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.of_kind("exit").is_empty(), "its reader is no command of the user's");
}

#[test]
fn killed_at_any_moment_it_goes_on_behind_the_last_entry_and_doubles_nothing() {
    let mut daemon = journal("beginning");
    let (mut at, mut wanted) = (0, Vec::new());
    let mut seed = crate::seed::seed();
    for round in 0..12 {
        start(&mut daemon);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The seed says how many entries there are before the kill; with the clock it would not be the same again.
        for number in 1..=5 + (seed >> 33 & 0x3f) {
            let text = format!("job {round} {number} is gone");
            log(&daemon, &mut at, &[(INFO, "fine"), (ERR, &text)]);
            wanted.push(text);
            std::thread::sleep(Duration::from_millis(3));
        }
        daemon.kill();
    }
    // Entries from while it was down are read, too.
    log(&daemon, &mut at, &[(ERR, "the last one")]);
    wanted.push("the last one".to_owned());
    start(&mut daemon);
    daemon.until("not all came", || daemon.texts().iter().any(|text| text == "the last one"));
    wanted.sort();
    assert_eq!(daemon.texts(), wanted);
    let ids: std::collections::BTreeSet<_> = daemon.of_kind("error").iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), wanted.len());
    assert_eq!(daemon.stop(), Some(0));
}

/// If the newest entry cannot be read, siftd does not fall back to years of old entries: not at this start, and not at one
/// after a kill.
#[test]
fn where_the_newest_entry_is_not_known_it_is_read_from_now_on() {
    let mut daemon = journal("end");
    let tool = daemon.path("bin/journalctl");
    fs::write(&tool, JOURNALCTL.replace("tail -n 1 entries", "echo torn")).unwrap();
    let mut at = 0;
    log(&daemon, &mut at, &[(ERR, "of long ago")]);
    let asked = |daemon: &Daemon| fs::read_to_string(daemon.path("since")).unwrap_or_default();
    for round in ["first", "second"] {
        start(&mut daemon);
        let times = if round == "first" { 1 } else { 2 };
        daemon.until("it does not begin", || asked(&daemon).lines().count() == times);
        daemon.until("its position is not kept", || listed(&daemon).contains("(journal)"));
        daemon.kill();
    }
    assert!(asked(&daemon).lines().all(|line| Some(line) == asked(&daemon).lines().next()), "{}", asked(&daemon));
    assert_eq!(daemon.stderr().matches("the newest entry of the journal is not known (it cannot be read)").count(), 1, "{}", daemon.stderr());
    start(&mut daemon);
    daemon.until("it does not begin", || asked(&daemon).lines().count() == 3);
    log(&daemon, &mut at, &[(ERR, "the store is gone")]);
    daemon.wait_for(&["the store is gone"]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn who_is_told_to_end_does_not_wait_for_the_newest_entry() {
    let mut daemon = journal("end");
    let tool = daemon.path("bin/journalctl");
    fs::write(&tool, JOURNALCTL.replace("tail -n 1 entries", "echo $$ > asked; exec sleep 60")).unwrap();
    start(&mut daemon);
    let asked = || fs::read_to_string(daemon.path("asked")).unwrap_or_default();
    daemon.until("it does not ask", || asked().ends_with('\n'));
    let pid = asked().trim().to_owned();
    assert_eq!(daemon.stop(), Some(0));
    assert!(!daemon.stderr().contains("shutdown_grace"), "{}", daemon.stderr());
    daemon.until("journalctl is left running", || !is_alive(&pid));
}

#[test]
fn its_position_is_kept_in_a_state_that_is_made_anew() {
    let mut daemon = journal("end");
    let mut at = 0;
    log(&daemon, &mut at, &[(INFO, "fine")]);
    start(&mut daemon);
    daemon.until("its position is not kept", || listed(&daemon).contains("(journal)"));
    log(&daemon, &mut at, &[(ERR, "the store is gone")]);
    daemon.wait_for(&["the store is gone"]);
    for name in ["state/siftd.db", "state/siftd.db-wal", "state/siftd.db-shm"] {
        fs::remove_file(daemon.path(name)).unwrap();
    }
    daemon.until("it is not made anew", || daemon.stderr().contains("was removed or replaced while it is in use"));
    daemon.kill();
    log(&daemon, &mut at, &[(ERR, "the store is back, and empty")]);
    start(&mut daemon);
    daemon.wait_for(&["the store is back, and empty", "the store is gone"]);
    assert_eq!(daemon.stop(), Some(0));
}
