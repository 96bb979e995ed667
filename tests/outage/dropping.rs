//! A sink that drops what does not fit, beside one that does not: what is left out stays left out after a kill, and is counted once.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;

use serde_json::Value;

use super::killing::{Daemon, until};
use super::playing::{Mood, Peer};

const ERRORS: usize = 2000;

/// Returns the texts of the errors among these records, and how many records their gaps count.
fn had(lines: &[String]) -> (HashSet<String>, u64) {
    let records: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &'static str| records.iter().filter(move |record| record["kind"] == kind);
    let errors = of("error").map(|record| record["text"].as_str().unwrap().to_owned()).collect();
    // One that was written before a kill may come again.
    let gaps: HashSet<(&str, u64)> = of("gap").map(|record| (record["id"].as_str().unwrap(), record["count"].as_u64().unwrap())).collect();
    (errors, gaps.iter().map(|(_, missed)| missed).sum())
}

#[test]
fn a_kill_changes_nothing_about_what_was_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (drops, blocks) = (Peer::tcp(), Peer::tcp());
    let sinks = format!(
        "[[sink]]\nname = \"drops\"\ntype = \"tcp\"\naddress = \"{}\"\nwhen_full = \"drop\"\nmax_delay = \"200ms\"\n\
         [[sink]]\nname = \"blocks\"\ntype = \"tcp\"\naddress = \"{}\"\nmax_delay = \"200ms\"\n\
         [delivery]\noutbox_max = \"1MiB\"\nshutdown_grace = \"60s\"\n",
        drops.address, blocks.address
    );
    let mut daemon = Daemon::new(folder.path(), &sinks);
    daemon.start();
    let mut log = OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap();
    let text: String = (0..ERRORS).map(|n| format!("2026-09-21T10:00:00Z ERROR job-{n} {}\nall is well\n", "x".repeat(300))).collect();
    log.write_all(text.as_bytes()).unwrap();
    until("nothing is left out", || daemon.stderr().contains("records are left out") && daemon.stderr().contains("reading waits"));
    daemon.kill();
    drops.set(Mood::Good);
    blocks.set(Mood::Good);
    daemon.start();
    until("not all came to the one that blocks", || had(&blocks.lines()).0.len() == ERRORS);
    daemon.stop();
    let (came, missed) = had(&drops.lines());
    assert!(missed > 0, "{}", daemon.stderr());
    assert_eq!(came.len() as u64 + missed, ERRORS as u64, "{}", daemon.stderr());
}
