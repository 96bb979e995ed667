//! `siftd breaker` and `siftd exec --breaker` as a loop uses them: exit codes, records, concurrent processes.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

#[path = "support/folder.rs"]
mod folder;
#[path = "support/wait.rs"]
mod wait;

use std::time::Instant;

use folder::{Done, Folder};
use rusqlite::Connection;
use serde_json::{Value, json};

const BUG: &str = "echo 'TypeError: x is not a function' >&2; exit 1";

/// `siftd breaker WORDS --state-dir st`
fn breaker(folder: &Folder, words: &[&str]) -> Done {
    folder.siftd([&["breaker"][..], words, &["--state-dir", "st"]].concat())
}

fn exec(folder: &Folder, flags: &[&str], script: &str) -> Done {
    folder.siftd([&["exec", "--state-dir", "st"][..], flags, &["--", "sh", "-c", script]].concat())
}

#[test]
fn a_call_that_records_nothing_makes_no_state() {
    let folder = Folder::new();
    assert!(folder.siftd(["breaker", "record", "x", "--state-dir", "zz"]).ended(2).err().contains("how did the run go"));
    assert!(!folder.at("zz").exists());
    folder.piped(["breaker", "record", "x", "--state-dir", "zz"], "no verdict\n").ended(2);
    assert!(!folder.at("zz").exists());
}

#[test]
fn check_says_it_by_the_exit_code() {
    let folder = Folder::new();
    let codes = |times: usize| -> Vec<Option<i32>> {
        let one = |_| {
            breaker(&folder, &["record", "a", "--exit-code", "1", "--error", "boom in 3 s"]).ended(0);
            breaker(&folder, &["check", "a", "-q"]).code()
        };
        (0..times).map(one).collect()
    };
    assert_eq!(breaker(&folder, &["check", "a"]).ended(0).out(), "a: closed\n");
    assert!(!folder.at("st").exists(), "asking makes nothing");
    assert_eq!(codes(5), [Some(0), Some(0), Some(10), Some(10), Some(11)]);
    let said = breaker(&folder, &["check", "a"]).ended(11).out();
    assert!(said.contains("open since") && said.contains("the same error in 5 runs") && said.contains("a probe may run from"), "{said}");
    assert!(said.contains("`siftd breaker reset a --state-dir st` closes it"), "{said}");
    assert!(breaker(&folder, &["reset", "nope"]).ended(2).err().contains("siftd: nope: no breaker of that name"));
    assert!(breaker(&folder, &["record", "a", "--exit-code", "300"]).ended(2).err().contains("300 is not in -64..=255"));
    // Other breakers are not affected, and a reset closes this one.
    breaker(&folder, &["check", "b"]).ended(0);
    breaker(&folder, &["reset", "a"]).ended(0);
    breaker(&folder, &["check", "a", "-q"]).ended(0);
    assert_eq!(codes(2), [Some(0); 2], "the count begins anew");
    breaker(&folder, &["record", "a", "--success"]).ended(0);
    assert_eq!(codes(2), [Some(0); 2]);
}

#[test]
fn names_tasks_and_sessions_are_apart_and_a_fatal_error_opens_at_once() {
    let folder = Folder::new();
    breaker(&folder, &["record", "--task", "7", "--failure", "--fatal"]).ended(0);
    breaker(&folder, &["check", "--task", "7"]).ended(11);
    breaker(&folder, &["check", "task:7"]).ended(11);
    for other in [&["check", "7"][..], &["check", "--session", "7"], &["check", "--stream", "7"]] {
        breaker(&folder, other).ended(0);
    }
    let rows: Vec<Value> = breaker(&folder, &["status", "--json"]).ended(0).records();
    assert_eq!((rows.len(), &rows[0]["state"], &rows[0]["reason"]), (1, &"open".into(), &"fatal".into()));
}

#[test]
fn verdicts_and_answers_count_as_what_they_say() {
    let folder = Folder::new();
    let judged = |result: Value| folder.piped(["judge"], result.to_string()).ended(0).out();
    let told = |name: &str, line: &str| {
        folder.piped(["breaker", "record", name, "--state-dir", "st"], line).ended(0);
        let row = breaker(&folder, &["status", name, "--json"]).ended(0).records().remove(0);
        (row["state"].as_str().unwrap().to_owned(), row["counts"].as_array().unwrap().len(), row["transient"].as_u64().unwrap())
    };
    let of = |state: &str, counts, transient| (state.to_owned(), counts, transient);
    assert_eq!(told("bug", &judged(json!({"exit_code": 1, "stderr": "KeyError: 'x'"}))), of("closed", 1, 0));
    assert_eq!(told("net", &judged(json!({"exit_code": 1, "stderr": "Error: connect ECONNREFUSED 10.0.0.1:5432"}))), of("closed", 0, 1));
    let classified = |error: &str| folder.piped(["classify"], error).ended(0).out();
    assert_eq!(told("fatal", &classified(r#"{"name": "SessionError", "code": "PIPELINE_SESSION_LOAD_FAILED"}"#)).0, "open");
    assert_eq!(told("reset", &classified(r#"{"code": "ECONNRESET"}"#)), of("closed", 0, 1));
    assert_eq!(told("bug", &judged(json!({"exit_code": 0}))), of("closed", 0, 0), "a success ends the count");
    for (line, what) in [("x", "no JSON"), ("{}", "neither a verdict")] {
        let done = folder.piped(["breaker", "record", "bug", "--state-dir", "st"], line).ended(2);
        assert!(done.err().contains(what), "{}", done.err());
    }
    assert!(breaker(&folder, &["record", "bug"]).ended(2).err().contains("--exit-code N"));
    assert!(breaker(&folder, &["check"]).ended(2).err().contains("which breaker"));
}

/// Rules that cannot be loaded hide nothing: what they would take for a status line counts as an error, and this is said, but once.
#[test]
fn what_is_counted_without_rules_is_said_once() {
    let folder = Folder::new();
    folder.write("c.toml", "[rules]\nfiles = [\"nope.toml\"]\n");
    let stderr = "npm ERR! code ELIFECYCLE\nKeyError: 'x'\n";
    let judged = folder.piped(["judge"], json!({"exit_code": 1, "stderr": stderr}).to_string()).ended(0).out();
    let done = folder.piped(["breaker", "record", "x", "--config", "c.toml", "--state-dir", "st"], judged.repeat(2)).ended(0);
    let said = done.err();
    assert_eq!((said.matches("status lines cannot be told from errors").count(), said.matches("nope.toml").count()), (1, 1), "{said}");
}

/// The text of an error recorded by hand comes from the history, as for errors that `exec` records.
#[test]
fn the_error_that_was_recorded_is_shown() {
    let folder = Folder::new();
    for _ in 0..5 {
        let judged = folder.piped(["judge"], json!({"exit_code": 1, "stderr": "KeyError: 'x'"}).to_string()).ended(0).out();
        breaker(&folder, &["record", "line", "--exit-code", "1", "--error", "TypeError: a is b, password=hunter2345"]).ended(0);
        folder.piped(["breaker", "record", "verdict", "--state-dir", "st"], &judged).ended(0);
    }
    for (name, text) in [("line", "TypeError: a is b"), ("verdict", "KeyError: 'x'")] {
        assert!(breaker(&folder, &["check", name]).ended(11).out().contains(&format!("the same error in 5 runs ({text}")));
        assert!(breaker(&folder, &["status", name]).ended(0).out().lines().nth(1).unwrap().contains(text));
        let row = breaker(&folder, &["status", name, "--json"]).ended(0).records().remove(0);
        assert!(row["text"].as_str().unwrap().starts_with(text), "{row}");
    }
    let rows = folder.siftd(["history", "--state-dir", "st", "--json"]).ended(0).records();
    assert_eq!(rows.iter().map(|row| row["count"].as_u64().unwrap()).collect::<Vec<_>>(), [5, 5]);
    assert!(!rows.iter().any(|row| row["text"].as_str().unwrap().contains("hunter")), "{rows:?}");
    // What the history has already counted is not counted again.
    exec(&folder, &["--verdict", "v.json"], BUG).ended(1);
    folder.piped(["breaker", "record", "again", "--state-dir", "st"], folder.read("v.json")).ended(0);
    let rows = folder.siftd(["history", "--state-dir", "st", "--json"]).ended(0).records();
    assert!(rows.iter().any(|row| row["text"] == "TypeError: x is not a function" && row["count"] == 1), "{rows:?}");
}

/// A line counts as the error that `judge` finds in it.
#[test]
fn a_line_recorded_by_hand_is_judged_as_stderr_is() {
    let folder = Folder::new();
    let judged = |stderr: &str| folder.piped(["judge"], json!({"exit_code": 1, "stderr": stderr}).to_string()).ended(0).records().remove(0);
    breaker(&folder, &["record", "line", "--exit-code", "1", "--error", "KeyError: 'x'"]).ended(0);
    let error = judged("KeyError: 'x'")["errors"][0].clone();
    let counted = breaker(&folder, &["status", "line", "--json"]).ended(0).records().remove(0);
    assert_eq!(counted["counts"][0]["signature"], error["signature"]);
    let row = folder.siftd(["history", "--state-dir", "st", "--json"]).ended(0).records().remove(0);
    assert_eq!(["signature", "severity", "category", "rule"].map(|name| &row[name]), ["signature", "severity", "category", "rule"].map(|name| &error[name]));
    breaker(&folder, &["record", "net", "--failure", "--error", "Error: connect ECONNREFUSED 10.0.0.1:5432"]).ended(0);
    assert_eq!(breaker(&folder, &["status", "net", "--json"]).ended(0).records()[0]["transient"], 1);
    // What is no error by any rule is one all the same, because the caller says so.
    breaker(&folder, &["record", "own", "--failure", "--error", "the cat is on the keyboard"]).ended(0);
    assert_eq!(breaker(&folder, &["status", "own", "--json"]).ended(0).records()[0]["counts"][0]["count"], 1);
}

#[test]
fn a_state_folder_that_is_not_there_is_said() {
    let folder = Folder::new();
    let done = breaker(&folder, &["check", "a", "-q"]).ended(0);
    assert!(done.out().is_empty() && done.err().starts_with("siftd: st: no state is there yet"), "{}", done.err());
    breaker(&folder, &["record", "a", "--success"]).ended(0);
    assert_eq!(breaker(&folder, &["check", "a", "-q"]).ended(0).err(), "");
    // A forgotten --state-dir, too.
    folder.write("other.toml", "state_dir = \"other\"\n");
    let done = folder.siftd(["breaker", "check", "a", "--config", "other.toml"]).ended(0);
    assert!(done.err().contains("no state is there yet") && done.err().contains("with --state-dir"), "{}", done.err());
}

#[test]
fn exec_asks_before_and_records_after() {
    let folder = Folder::new();
    folder.write("c.toml", "[breaker]\non_open = [\"sh\", \"-c\", \"cat >> told\"]\n");
    let flags = ["--config", "c.toml", "--breaker", "fix", "--events", "e.ndjson", "--digest", "digest"];
    for _ in 0..5 {
        exec(&folder, &flags, BUG).ended(1);
    }
    let digest = folder.read("digest");
    let done = exec(&folder, &flags, "echo run >> ran").ended(11);
    assert!(done.err().contains("breaker fix: open since") && done.err().contains("TypeError: x is not a function"), "{}", done.err());
    assert!(!folder.at("ran").exists() && folder.read("digest") == digest, "nothing was run, nothing was lost");
    let records = folder.records("e.ndjson");
    let breakers: Vec<&Value> = records.iter().filter(|record| record["kind"] == "breaker").collect();
    let words: Vec<_> =
        breakers.iter().map(|record| (record["from"].as_str().unwrap(), record["to"].as_str().unwrap(), record["reason"].as_str().unwrap())).collect();
    assert_eq!(words, [("closed", "half_open", "warn_after"), ("half_open", "open", "open_after")]);
    assert_eq!((&breakers[1]["count"], &breakers[1]["breaker"], breakers[1]["until"].is_string()), (&5.into(), &"fix".into(), true));
    // The hook gets the record itself.
    assert_eq!(folder.records("told"), [breakers[1].clone()]);
    let seen: Vec<_> = records.iter().filter(|record| record["kind"] == "error").map(|record| record["seen"]["status"].as_str().unwrap()).collect();
    assert_eq!(seen, ["new", "recurring", "recurring", "recurring", "recurring"]);
}

/// After the run that caused it, and when nothing is run.
#[test]
fn exec_says_a_change_once() {
    let folder = Folder::new();
    let said: Vec<usize> =
        [1, 1, 1, 1, 1, 11].map(|code| exec(&folder, &["--breaker", "a"], BUG).ended(code).err().matches("siftd: breaker a: ").count()).into();
    assert_eq!(said, [0, 0, 1, 0, 1, 1]);
}

#[test]
fn all_can_be_reset_at_once() {
    let folder = Folder::new();
    let none = breaker(&folder, &["reset", "--all"]).ended(0);
    assert!(none.out().is_empty() && none.err().contains("nothing was recorded there yet"), "{}", none.err());
    assert!(!folder.at("st").exists(), "it makes nothing");
    for name in ["a", "b"] {
        breaker(&folder, &["record", name, "--failure", "--fatal"]).ended(0);
        breaker(&folder, &["check", name]).ended(11);
    }
    assert_eq!(breaker(&folder, &["reset", "--all"]).ended(0).out(), "a: closed\nb: closed\n");
    for name in ["a", "b"] {
        breaker(&folder, &["check", name]).ended(0);
    }
    assert!(breaker(&folder, &["reset", "--all", "a"]).ended(2).err().contains("cannot be used with"));
}

#[test]
fn a_success_that_changes_nothing_is_told() {
    let folder = Folder::new();
    breaker(&folder, &["record", "a b", "--failure", "--fatal"]).ended(0);
    let verdict = folder.piped(["judge"], r#"{"exit_code": 0}"#).out();
    let piped = folder.piped(["breaker", "record", "a b", "--state-dir", "st"], verdict.repeat(2));
    for done in [breaker(&folder, &["record", "a b", "--exit-code", "0"]), piped] {
        let done = done.ended(0);
        assert_eq!(done.err().matches("siftd: a b stays open: ").count(), 1, "{}", done.err());
        assert!(done.err().contains("`siftd breaker reset 'a b' --state-dir st` closes it now"), "{}", done.err());
    }
    breaker(&folder, &["check", "a b"]).ended(11);
    assert_eq!(breaker(&folder, &["record", "c", "--exit-code", "0"]).ended(0).err(), "");
}

#[test]
fn a_person_who_ends_it_is_no_failure_and_a_command_that_is_not_there_is_fatal() {
    let folder = Folder::new();
    for _ in 0..6 {
        exec(&folder, &["--breaker", "a"], "kill -INT $PPID; sleep 5").ended(130);
    }
    breaker(&folder, &["check", "a"]).ended(0);
    folder.siftd(["exec", "--state-dir", "st", "--breaker", "b", "--", "no-such-agent"]).ended(127);
    breaker(&folder, &["check", "b"]).ended(11);
    // What a command prints is a claim.
    exec(&folder, &["--breaker", "c"], "echo 'SessionError: PIPELINE_SESSION_LOAD_FAILED: gone' >&2; exit 1").ended(1);
    breaker(&folder, &["check", "c"]).ended(0);
}

#[test]
fn after_the_cooldown_one_run_may_probe() {
    let folder = Folder::new();
    folder.write("c.toml", "[breaker]\ncooldown = \"1ms\"\n");
    let flags = ["--config", "c.toml", "--breaker", "a"];
    (0..5).for_each(|_| drop(exec(&folder, &flags, BUG).ended(1)));
    let probe = exec(&folder, &flags, BUG).ended(1);
    assert!(probe.err().contains("the next run is a probe"), "{}", probe.err());
    let reasons = |folder: &Folder| breaker(folder, &["status", "a"]).ended(0).out();
    assert!(reasons(&folder).contains("probe_failed"), "{}", reasons(&folder));
    exec(&folder, &flags, "true").ended(0);
    assert!(reasons(&folder).starts_with("a: closed since"), "{}", reasons(&folder));
}

/// Processes that use the same state wait for each other; one that waits too long names the process that holds it.
#[test]
fn a_state_that_is_held_is_waited_for_and_its_holder_named() {
    let folder = Folder::new();
    breaker(&folder, &["record", "a", "--failure"]).ended(0);
    let other = Connection::open(folder.at("st").join("siftd.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let done = breaker(&folder, &["record", "a", "--failure"]).ended(2);
    let us = std::process::id().to_string();
    assert!(done.err().contains(&format!("is held by process {us}")) && begun.elapsed().as_secs() >= 4, "{}", done.err());
    // If the state is released in time, the wait succeeds.
    let mut child = folder.command(["breaker", "record", "a", "--failure", "--state-dir", "st"]).spawn().unwrap();
    // Once it has the file open it can only wait.
    let has_it_open = |pid: u32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|path| path.ends_with("st/siftd.db"))
    };
    wait::wait("the second process", || has_it_open(child.id()).then_some(()));
    assert_eq!(child.try_wait().unwrap(), None);
    other.execute_batch("COMMIT").unwrap();
    Done::of(child).ended(0);
    let row = breaker(&folder, &["status", "a", "--json"]).ended(0).records().remove(0);
    assert_eq!(row["counts"][0]["count"], 2);
}

#[test]
fn many_processes_at_once_count_every_run_and_make_one_state() {
    let folder = Folder::new();
    let children: Vec<_> = (0..8).map(|_| folder.command(["breaker", "record", "a", "--failure", "--state-dir", "st"]).spawn().unwrap()).collect();
    for child in children {
        let done = Done::of(child).ended(0);
        assert_eq!(done.err(), "");
    }
    let row = breaker(&folder, &["status", "a", "--json"]).ended(0).records().remove(0);
    assert_eq!((&row["counts"][0]["count"], &row["state"]), (&8.into(), &"open".into()));
    assert_eq!(
        std::fs::read_dir(folder.at("st")).unwrap().filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("unreadable")).count(),
        0
    );
}

/// A user of `exec` alone has no `run` that would repair the state.
#[test]
fn a_damaged_state_is_set_aside_and_the_command_runs() {
    for bytes in [&b"garbage"[..], b""] {
        let folder = Folder::new();
        folder.write("st/siftd.db", bytes);
        let done = exec(&folder, &["--breaker", "p"], "echo ran").ended(0);
        assert_eq!(done.out(), "ran\n");
        assert!(done.err().contains("set aside as st/siftd.db.unreadable-"), "{}", done.err());
        assert_eq!(exec(&folder, &["--breaker", "p"], "echo ran").ended(0).err(), "");
    }
}

/// A state that a `run` has open is left to it.
#[test]
fn a_damaged_state_that_a_run_has_open_stays() {
    let folder = Folder::new();
    folder.write("st/siftd.db", "garbage");
    let lock = std::fs::File::create(folder.at("st/lock")).unwrap();
    lock.try_lock().unwrap();
    let done = exec(&folder, &["--breaker", "p"], "echo ran").ended(125);
    assert!(done.out().is_empty() && done.err().contains("is held"), "{}", done.err());
    assert_eq!(folder.read("st/siftd.db"), "garbage");
}
