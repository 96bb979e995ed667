//! Signals, time limits, and the processes that remain when a command has to end.

use std::time::Instant;

use crate::{Done, Folder, runs, until};

#[test]
fn signals_are_handed_on() {
    let folder = Folder::new();
    for (name, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15), ("USR1", 10), ("USR2", 12)] {
        let script = format!("trap 'echo caught {name}; exit {number}' {name}; echo ready > ready.{name}; while :; do sleep 0.02; done");
        let child = folder.heedful(["exec", "--", "sh", "-c", &script]).spawn().unwrap();
        folder.wait_for(&format!("ready.{name}"), "ready");
        folder.shell(&format!("kill -{name} {}", child.id()));
        let done = Done::of(child).ended(number);
        assert_eq!(done.out(), format!("caught {name}\n"));
    }
}

/// Until someone reads a named pipe, siftd waits, and a signal ends the wait: there is no command yet that could have it.
#[test]
fn a_pipe_that_nobody_reads_is_waited_for_until_a_signal() {
    let folder = Folder::new();
    folder.shell("mkfifo pipe").ended(0);
    let flags = ["exec", "--events", "pipe", "--", "sh", "-c", "echo 'KeyError: x' >&2; exit 3"];
    let child = folder.heedful(flags).spawn().unwrap();
    let mut waits = 0;
    until("it waits", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        // For so long it sleeps only here.
        waits = if stat.contains("(siftd) S") { waits + 1 } else { 0 };
        waits > 60
    });
    folder.shell(&format!("kill -TERM {}", child.id()));
    let done = Done::of(child);
    assert_eq!((std::os::unix::process::ExitStatusExt::signal(&done.0.status), done.out()), (Some(15), String::new()));

    let child = folder.heedful(flags).spawn().unwrap();
    assert!(folder.shell("cat pipe").ended(0).out().contains("\"text\":\"KeyError: x\""));
    Done::of(child).ended(3);
}

#[test]
fn a_signal_that_ends_the_command_shows_in_the_code() {
    let folder = Folder::new();
    let child = folder.command(["exec", "--verdict", "v.json", "--retries", "5", "--", "sh", "-c", "echo ready > ready; exec sleep 60"]).spawn().unwrap();
    folder.wait_for("ready", "ready");
    folder.shell(&format!("kill -TERM {}", child.id()));
    Done::of(child).ended(143);
    // A run that was told to end is not retried.
    assert_eq!(folder.records("v.json")[0]["attempts"], 1);
}

#[test]
fn a_pause_between_runs_can_be_ended() {
    let folder = Folder::new();
    let child = folder
        .command(["exec", "--retries", "3", "--base-delay", "10m", "--events", "e.ndjson", "--", "sh", "-c", "echo 'Error: read ECONNRESET' >&2; exit 1"])
        .spawn()
        .unwrap();
    folder.wait_for("e.ndjson", "\"kind\":\"retry\"");
    folder.shell(&format!("kill -INT {}", child.id()));
    Done::of(child).ended(130);
}

/// `nohup` ignores SIGHUP, and so do the processes it starts.
#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = Folder::new();
    let script = "mkfifo fifo; trap '' HUP; $SIFTD exec -- sh -c 'echo $$ > pid; read go < fifo; echo alive' > out & echo $! > siftd; wait_pid() { until [ -s pid ]; do sleep 0.02; done; }; wait_pid; kill -HUP $(cat siftd); kill -HUP $(cat pid); echo > fifo; wait";
    folder.shell(script);
    assert_eq!(folder.read("out"), "alive\n");
}

#[test]
fn a_limit_ends_the_command_and_all_that_it_started() {
    let folder = Folder::new();
    let script = "trap 'echo told to end' TERM; sleep 300 & echo $! > child; (sh -c 'echo $$ > orphan; exec sleep 300' &) ; until [ -s orphan ]; do sleep 0.01; done; echo started; while :; do sleep 0.02; done";
    let started = Instant::now();
    let done = folder.exec(&["--timeout", "1s", "--kill-after", "300ms", "--verdict", "v.json"], script).ended(124);
    assert!(started.elapsed().as_secs() < 15, "{:?}", started.elapsed());
    assert!(done.out().contains("started") && done.out().contains("told to end"), "{}", done.out());
    assert!(done.err().ends_with("siftd: sh was ended after 1 s (--timeout), and with SIGKILL 300 ms later (--kill-after)\n"), "{}", done.err());
    for name in ["child", "orphan"] {
        let pid = folder.read(name);
        until(name, || !runs(&pid));
    }
    let verdict = &folder.records("v.json")[0];
    assert_eq!((&verdict["status"], &verdict["cause"], &verdict["retry"]["reason"]), (&"timeout".into(), &"timeout".into(), &"timed_out".into()));
    assert_eq!((&verdict["timed_out"], &verdict["failures"]), (&true.into(), &1.into()));
}

#[test]
fn a_limit_that_is_kept_changes_nothing() {
    Folder::new().exec(&["--timeout", "1m"], "sleep 0.05 & exit 3").ended(3);
}

#[test]
fn a_limit_of_zero_is_none() {
    for zero in ["0s", "0ms"] {
        assert_eq!(Folder::new().exec(&["--timeout", zero], "sleep 0.05; echo done; exit 3").ended(3).out(), "done\n");
    }
}

#[test]
fn a_run_that_was_timed_out_is_retried_only_when_asked_for() {
    let folder = Folder::new();
    let script = "echo run >> runs; sleep 60";
    folder.exec(&["--timeout", "200ms", "--retries", "2", "--base-delay", "1ms"], script).ended(124);
    assert_eq!(folder.read("runs"), "run\n");
    folder.exec(&["--timeout", "200ms", "--retries", "2", "--base-delay", "1ms", "--retry-on", "timed_out"], script).ended(75);
    assert_eq!(folder.read("runs"), "run\n".repeat(4));
}
