//! Keys of http sinks: how large a batch is, and how much is put aside.

use std::fs;
use std::path::Path;

use super::killing::{Daemon, until};
use super::playing::{Mood, Peer};

const COUNT: usize = 20;

/// Starts a daemon with a sink of these keys, whose peer is not there yet, and lets it find some errors.
fn found(folder: &Path, peer: &Peer, keys: &str) -> Daemon {
    let sink = format!("[[sink]]\nname = \"posts\"\ntype = \"http\"\nurl = \"http://{}/in\"\nmax_delay = \"100ms\"\n{keys}\n", peer.address);
    let mut daemon = Daemon::new(folder, &sink);
    let log: String = (0..COUNT).map(|n| format!("2026-09-21T10:00:00Z ERROR job-{n} {}\nfine\n", "x".repeat(200))).collect();
    fs::write(daemon.log("a.log"), log).unwrap();
    daemon.start();
    until("the other sink does not write", || fs::read_to_string(folder.join("out.ndjson")).unwrap_or_default().lines().count() == COUNT);
    daemon
}

/// Returns the batches that come with these keys.
fn batches(keys: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::batches();
    let mut daemon = found(folder.path(), &peer, keys);
    peer.set(Mood::Good);
    until("not all come", || peer.lines().iter().map(|batch| batch.lines().count()).sum::<usize>() >= COUNT);
    daemon.stop();
    peer.lines()
}

#[test]
fn batch_rows_bounds_a_batch() {
    let rows: Vec<usize> = batches("batch_rows = 3").iter().map(|batch| batch.lines().count()).collect();
    assert!(rows.iter().all(|rows| *rows <= 3), "{rows:?}");
}

#[test]
fn batch_bytes_bounds_a_batch() {
    let bytes: Vec<usize> = batches("batch_bytes = \"1KiB\"").iter().map(String::len).collect();
    // What fills a batch still belongs to it.
    assert!(bytes.iter().all(|bytes| *bytes < 4 << 10) && bytes.iter().sum::<usize>() > 8 << 10, "{bytes:?}");
}

#[test]
fn dead_letter_max_bounds_what_is_put_aside() {
    const MAX: u64 = 4 << 10;
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::batches();
    let dead = folder.path().join("dead.ndjson");
    let daemon = found(folder.path(), &peer, &format!("batch_rows = 1\ndead_letter = {dead:?}\ndead_letter_max = \"{MAX}B\""));
    peer.set(Mood::Refused);
    until(&format!("nobody says that it is full\n{}", daemon.stderr()), || daemon.stderr().contains("(dead_letter_max)"));
    let size = fs::metadata(&dead).unwrap().len();
    assert!((1..=MAX).contains(&size), "{size}");
}
