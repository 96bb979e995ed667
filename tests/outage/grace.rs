//! Shutdown while a peer hangs: it ends in time, and the next start delivers the rest.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use siftd::state::store::Store;

use super::killing::{Daemon, until};
use super::playing::{Mood, Peer};

/// `shutdown_grace`.
const GRACE: Duration = Duration::from_secs(1);
/// How long a peer may take to answer: a shutdown that waits for that takes much longer than any other, on a busy machine as well.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Starts a daemon whose peer never answers; its timeout is too long to end the wait.
fn daemon(folder: &Path, peer: &Peer, delivery: &str) -> Daemon {
    let sink = format!(
        "[[sink]]\nname = \"posts\"\ntype = \"http\"\nurl = \"http://{}/in\"\ncompress = true\nbatch_wait = \"20ms\"\ntimeout = \"{}s\"\n\
         [delivery]\nshutdown_grace = \"{}ms\"\n{delivery}",
        peer.address,
        TIMEOUT.as_secs(),
        GRACE.as_millis()
    );
    let mut daemon = Daemon::new(folder, &sink);
    daemon.start();
    daemon
}

fn write(daemon: &Daemon, jobs: std::ops::Range<usize>) {
    let mut log = OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap();
    let text: String = jobs.map(|n| format!("2026-09-21T10:00:00Z ERROR job-{n} {}\nfine\n", "x".repeat(200))).collect();
    log.write_all(text.as_bytes()).unwrap();
}

/// Checks that the daemon ends within its time, successfully.
#[track_caller]
fn ends_in_time(daemon: &mut Daemon) {
    let asked = Instant::now();
    daemon.stop();
    assert!(asked.elapsed() < TIMEOUT / 2, "{:?}\n{}", asked.elapsed(), daemon.stderr());
}

/// Counts how often each job occurs in the lines.
fn jobs(lines: &[String]) -> BTreeMap<usize, usize> {
    let mut jobs = BTreeMap::new();
    for line in lines {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let word = record["text"].as_str().unwrap().split(' ').find_map(|word| word.strip_prefix("job-")).unwrap();
        *jobs.entry(word.parse().unwrap()).or_default() += 1;
    }
    jobs
}

/// Counts the files that were read to their end.
fn read(folder: &Path) -> usize {
    let Ok(Some(store)) = Store::look(&folder.join("state")) else { return 0 };
    store.streams().unwrap_or_default().iter().filter(|row| row.mark.read > 0 && row.mark.read == row.mark.size).count()
}

fn lines(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join("out.ndjson")).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Checks that the file and the peer have all records, once each.
#[track_caller]
fn all_come(folder: &Path, daemon: &mut Daemon, peer: &Peer, count: usize) {
    peer.set(Mood::Good);
    daemon.start();
    until(&format!("not all come\n{}", daemon.stderr()), || peer.lines().len() >= count && lines(folder).len() >= count);
    daemon.stop();
    let wanted: BTreeMap<usize, usize> = (0..count).map(|n| (n, 1)).collect();
    assert!(jobs(&lines(folder)) == wanted && jobs(&peer.lines()) == wanted, "{}", daemon.stderr());
}

#[test]
fn a_sink_that_hangs_does_not_hold_up_the_end_and_the_next_start_delivers() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::http();
    peer.set(Mood::Hang);
    let mut daemon = daemon(folder.path(), &peer, "");
    write(&daemon, 0..700);
    until("the other sink does not write", || lines(folder.path()).len() == 700);
    ends_in_time(&mut daemon);
    assert!(daemon.stderr().contains("shutdown_grace is over: 700 records wait in the state for the next start"), "{}", daemon.stderr());
    assert_eq!(peer.lines().len(), 0);
    all_come(folder.path(), &mut daemon, &peer, 700);
}

/// Events that are open at the shutdown are handed over last, when there is no room for them.
#[test]
fn so_it_is_when_the_outbox_is_full_and_the_readers_wait() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::http();
    peer.set(Mood::Hang);
    let mut daemon = daemon(folder.path(), &peer, "outbox_max = \"1MiB\"\n[limits]\ntrace_idle = \"3s\"\n");
    let count = 12_000;
    // Lines without an end, which could stay open for ten times `trace_idle`.
    for n in 0..6 {
        fs::write(daemon.log(&format!("open-{n}.log")), format!("2026-09-21T10:00:00Z ERROR job-{}", count + n)).unwrap();
    }
    until("they are not read", || read(folder.path()) == 6);
    write(&daemon, 0..count);
    until("the outbox is not full", || daemon.stderr().contains("outbox_max is reached"));
    assert!(lines(folder.path()).len() < count);
    ends_in_time(&mut daemon);
    all_come(folder.path(), &mut daemon, &peer, count + 6);
}

/// Nothing listens, which is noticed at once. Delivery is still retried as long as there is time.
#[test]
fn a_peer_that_comes_back_within_the_grace_gets_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::tcp();
    let sink =
        format!("[[sink]]\nname = \"lines\"\ntype = \"tcp\"\naddress = \"{}\"\nmax_delay = \"200ms\"\n[delivery]\nshutdown_grace = \"10m\"\n", peer.address);
    let mut daemon = Daemon::new(folder.path(), &sink);
    daemon.start();
    write(&daemon, 0..50);
    until("the other sink does not write", || lines(folder.path()).len() == 50);
    daemon.signal("-TERM");
    peer.set(Mood::Good);
    let status = daemon.child.take().unwrap().wait().unwrap();
    assert!(status.success() && peer.lines().len() == 50, "{} lines\n{}", peer.lines().len(), daemon.stderr());
    assert!(!daemon.stderr().contains("next start"), "{}", daemon.stderr());
}

/// Returns the processor time that a process has used, in hundredths of a second.
fn used(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap())
}

/// Nothing is left to do but to retry now and then.
#[test]
fn who_waits_for_a_peer_at_the_end_sleeps() {
    const LONG: Duration = Duration::from_secs(4);
    for kind in ["tcp", "http", "unix"] {
        let folder = tempfile::tempdir().unwrap();
        let peer = Peer::tcp();
        let place = match kind {
            "tcp" => format!("address = \"{}\"", peer.address),
            "http" => format!("url = \"http://{}/in\"", peer.address),
            _ => format!("path = \"{}/no.sock\"", folder.path().display()),
        };
        let sink = format!("[[sink]]\nname = \"away\"\ntype = \"{kind}\"\n{place}\n[delivery]\nshutdown_grace = \"{}s\"\n", LONG.as_secs());
        let mut daemon = Daemon::new(folder.path(), &sink);
        daemon.start();
        write(&daemon, 0..50);
        until("the other sink does not write", || lines(folder.path()).len() == 50);
        let before = used(daemon.pid()).unwrap();
        let asked = Instant::now();
        daemon.signal("-TERM");
        let (mut child, mut after) = (daemon.child.take().unwrap(), before);
        while child.try_wait().unwrap().is_none() {
            after = used(child.id()).unwrap_or(after).max(after);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(asked.elapsed() >= LONG, "{kind}: {:?}", asked.elapsed());
        // Who pressed Ctrl-C is told why it goes on.
        let said = daemon.stderr();
        let said = said.lines().find(|line| line.contains("ending: 50 records are not written yet; it ends in ")).unwrap_or_default();
        assert!(said.ends_with(" s at the latest (shutdown_grace); another signal (Ctrl-C) ends it now"), "{kind}: {}", daemon.stderr());
        let most = LONG.as_millis() as u64 / 10 / 8;
        assert!(after - before < most, "{kind}: {} of {most} hundredths of a second", after - before);
    }
}

#[test]
fn what_nobody_took_within_the_grace_is_said_for_each_sink() {
    let folder = tempfile::tempdir().unwrap();
    let peers = [Peer::tcp(), Peer::http()];
    let sinks = format!(
        "[[sink]]\nname = \"lines\"\ntype = \"tcp\"\naddress = \"{}\"\n[[sink]]\nname = \"posts\"\ntype = \"http\"\nurl = \"http://{}/in\"\ncompress = true\n\
         [delivery]\nshutdown_grace = \"{}ms\"\n",
        peers[0].address,
        peers[1].address,
        GRACE.as_millis()
    );
    let mut daemon = Daemon::new(folder.path(), &sinks);
    daemon.start();
    write(&daemon, 0..50);
    until("the other sink does not write", || lines(folder.path()).len() == 50);
    ends_in_time(&mut daemon);
    for sink in ["lines", "posts"] {
        let said = format!("sink {sink}: 50 records could not be written by now and wait in the state for the next start");
        assert!(daemon.stderr().contains(&said), "{said}\n{}", daemon.stderr());
    }
    peers.iter().for_each(|peer| peer.set(Mood::Good));
    daemon.start();
    until("not all come", || peers.iter().all(|peer| peer.lines().len() == 50));
    daemon.stop();
}
