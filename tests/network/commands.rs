//! Command sources: their outputs, how they end and restart, and that they leave nothing behind.

use std::fs;
use std::process::Command;

use super::rig::{Daemon, is_alive};

fn source(script: &str, more: &str) -> String {
    format!("[[source]]\nname = \"job\"\ntype = \"command\"\nargv = [\"sh\", \"-c\", '''{script}''']\n{more}\n")
}

#[test]
fn outputs_are_apart_and_the_end_is_a_record() {
    let script = "echo 'Traceback (most recent call last):'; echo '  File \"a.py\", line 1, in f' ; echo 'TypeError: x' >&2; echo \"ValueError: $WORD in $(basename $PWD)\"; exit 3";
    let more = "restart = \"never\"\nenvironment = { WORD = \"boom\" }\ndirectory = \"FOLDER/inner\"";
    let mut daemon = Daemon::new(&source(script, more));
    fs::create_dir(daemon.path("inner")).unwrap();
    daemon.start();
    // Nothing more can arrive: the daemon ends by itself.
    assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(0), "{}", daemon.stderr());
    assert_eq!(daemon.texts(), ["TypeError: x", "ValueError: boom in inner"]);
    let records = daemon.records();
    let io = |text: &str| records.iter().find(|record| record["text"] == text).unwrap()["source"]["io"].clone();
    assert_eq!((io("TypeError: x"), io("ValueError: boom in inner")), ("stderr".into(), "stdout".into()));
    let exit = records.last().unwrap();
    assert_eq!((&exit["kind"], exit["code"].as_i64(), &exit["outcome"], exit["attempts"].as_u64()), (&"exit".into(), Some(3), &"failure".into(), Some(1)));
    assert_eq!((&exit["argv"][0], &exit["source"]["name"], &exit["source"]["type"]), (&"sh".into(), &"job".into(), &"command".into()));
    assert!(exit["duration_ms"].is_u64() && exit["signal"].is_null());
}

#[test]
fn a_failure_begins_anew_and_a_success_does_not() {
    // The command fails twice.
    let script = "echo x >> tries; [ $(wc -l < tries) -ge 3 ] || { echo 'TypeError: again' >&2; kill -9 $$; }";
    let mut daemon = Daemon::started(&source(script, "restart_delay = \"10ms\""));
    assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(0), "{}", daemon.stderr());
    let exits = daemon.of_kind("exit");
    let outcomes: Vec<_> = exits.iter().map(|exit| (exit["outcome"].as_str().unwrap(), exit["signal"].as_i64(), exit["code"].as_i64())).collect();
    assert_eq!(outcomes, [("failure", Some(9), None), ("failure", Some(9), None), ("success", None, Some(0))]);
    assert_eq!(daemon.texts(), ["TypeError: again"; 2]);
    let ids: std::collections::BTreeSet<_> = daemon.records().iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 5);
    assert!(daemon.stderr().contains("was ended by signal 9, starts anew in 10ms"), "{}", daemon.stderr());
}

/// Fifteen pauses that go on doubling take several minutes.
#[test]
fn max_restart_delay_bounds_the_pauses() {
    let mut daemon = Daemon::started(&source("exit 1", "restart_delay = \"10ms\"\nmax_restart_delay = \"10ms\""));
    daemon.until("it does not begin anew often enough", || daemon.of_kind("exit").len() > 15);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn status_says_how_a_command_ended_that_is_to_run() {
    let mut daemon = Daemon::started(&source("exit 4", "restart_delay = \"1m\""));
    let status = || {
        let done = Command::new(env!("CARGO_BIN_EXE_siftd")).args(["status", "--config", "siftd.toml"]).current_dir(&daemon.folder).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    daemon.until("its trouble is not told", || status().contains("its command exited with 4"));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn at_the_end_the_whole_group_ends_also_who_does_not_heed_sigterm() {
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & echo $! > child; echo $$ > self; while :; do sleep 0.05; done";
    let mut daemon = Daemon::started(&source(script, "stop_timeout = \"300ms\""));
    let pid = |name: &str| fs::read_to_string(daemon.path(name)).unwrap_or_default().trim().to_owned();
    daemon.until("it does not begin", || !pid("self").is_empty() && !pid("child").is_empty());
    let (own, child) = (pid("self"), pid("child"));
    assert!(is_alive(&own) && is_alive(&child));
    assert_eq!(daemon.stop(), Some(0));
    assert!(!is_alive(&own) && !is_alive(&child));
    let exit = &daemon.of_kind("exit")[0];
    assert_eq!((&exit["outcome"], exit["signal"].as_i64()), (&"stopped".into(), Some(9)));
}

#[test]
fn what_a_command_says_when_it_is_told_to_end_is_read() {
    let script = "trap 'echo \"TypeError: at the end\" >&2; exit 0' TERM; echo > ready; while :; do sleep 0.02; done";
    let mut daemon = Daemon::started(&source(script, ""));
    daemon.until("it does not begin", || daemon.path("ready").exists());
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(daemon.texts(), ["TypeError: at the end"]);
    let exit = &daemon.of_kind("exit")[0];
    assert_eq!((&exit["outcome"], exit["code"].as_i64()), (&"stopped".into(), Some(0)));
}

#[test]
fn what_a_command_that_ended_has_left_ends_before_the_next_run() {
    let script = "sleep 7654 > /dev/null 2>&1 & echo $! >> children; exit 1";
    let mut daemon = Daemon::started(&source(script, "restart = \"always\"\nrestart_delay = \"10ms\"\nmax_restart_delay = \"20ms\""));
    let children = || fs::read_to_string(daemon.path("children")).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    daemon.until("it does not begin anew", || children().len() > 3);
    let alive = || children().iter().filter(|pid| is_alive(pid)).count();
    // One more may begin between the two looks.
    daemon.until("what was left goes on", || alive() < 2);
    assert_eq!(daemon.stop(), Some(0));
    let children = fs::read_to_string(daemon.path("children")).unwrap();
    assert!(children.lines().all(|pid| !is_alive(pid)), "{}", daemon.stderr());
    assert!(daemon.of_kind("gap").is_empty(), "it had no output open");
    let exits = daemon.of_kind("exit");
    let failed = exits.iter().filter(|exit| exit["outcome"] == "failure" && exit["code"] == 1).count();
    // The last run may have been under way when the daemon was told to end.
    let stopped = exits.last().filter(|exit| exit["outcome"] == "stopped").iter().count();
    assert_eq!(failed + stopped, exits.len(), "{exits:?}");
}

#[test]
fn what_is_left_and_does_not_heed_sigterm_is_killed() {
    let script = "sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 0.02; done' > /dev/null 2>&1 & until [ -s child ]; do sleep 0.02; done";
    let mut daemon = Daemon::started(&source(script, "restart = \"never\"\nstop_timeout = \"100ms\""));
    assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(0), "{}", daemon.stderr());
    let child = fs::read_to_string(daemon.path("child")).unwrap();
    daemon.until("it goes on", || !is_alive(child.trim()));
}

#[test]
fn what_is_left_with_an_open_output_is_read_to_its_end_and_a_gap_says_that_it_was_cut() {
    let (late, last) = ("sleep 0.3; echo \"TypeError: late\"", "trap \"echo TypeError: told to end >&2; exit\" TERM; while :; do sleep 0.02; done");
    let mut daemon = Daemon::started(&source(&format!("sh -c '{late}; {last}' & exit 0"), ""));
    assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(0), "{}", daemon.stderr());
    assert_eq!(daemon.texts(), ["TypeError: late", "TypeError: told to end"]);
    let (gaps, exits) = (daemon.of_kind("gap"), daemon.of_kind("exit"));
    let cut = (&gaps[0]["why"], &gaps[0]["source"]["name"], gaps.len());
    assert_eq!((cut, &exits[0]["outcome"]), ((&"left_behind".into(), &"job".into(), 1), &"success".into()), "{}", daemon.stderr());
    assert!(exits[0]["duration_ms"].as_u64().unwrap() < 2_000, "that the command ran longer is not so");
}

#[test]
fn what_has_left_the_group_is_not_waited_for_even_if_it_prints_without_an_end() {
    let script = "setsid sh -c 'echo $$ > child; exec yes' & until [ -s child ]; do sleep 0.02; done; echo 'TypeError: before' >&2";
    let mut daemon = Daemon::started(&source(script, ""));
    assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(0), "{}", daemon.stderr());
    assert_eq!((daemon.texts(), daemon.of_kind("exit").len()), (vec!["TypeError: before".to_owned()], 1), "{}", daemon.stderr());
    assert_eq!(daemon.of_kind("gap")[0]["why"], "left_behind");
    // Nobody reads what it prints any more.
    let child = fs::read_to_string(daemon.path("child")).unwrap();
    daemon.until("its output is still open", || !is_alive(child.trim()));
}

#[test]
fn what_ends_by_itself_soon_after_the_command_is_no_gap() {
    let mut daemon = Daemon::started(&source("(sleep 0.3; echo 'TypeError: late') & exit 0", ""));
    assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(0), "{}", daemon.stderr());
    assert_eq!((daemon.texts(), daemon.of_kind("gap").len()), (vec!["TypeError: late".to_owned()], 0));
}

#[test]
fn what_cannot_be_run_is_said_at_the_start() {
    for (more, said) in [
        ("user = \"nobody-of-that-name\"", "source \"job\": there is no user \"nobody-of-that-name\""),
        ("directory = \"FOLDER/none\"", "source \"job\": there is no folder"),
    ] {
        let mut daemon = Daemon::started(&source("exit 0", more));
        assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(2));
        assert!(daemon.stderr().contains(said), "{}", daemon.stderr());
    }
}

#[test]
fn another_user_runs_it() {
    if !nix::unistd::Uid::effective().is_root() {
        return crate::skip::skipped("root, to run a command as another user");
    }
    let mut daemon = Daemon::started(&source("echo \"TypeError: $(id -un)\"", "user = \"nobody\"\ndirectory = \"/\"\nrestart = \"never\""));
    assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(0), "{}", daemon.stderr());
    assert_eq!(daemon.texts(), ["TypeError: nobody"]);
}
