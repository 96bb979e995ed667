//! Honest peers of tcp and unix sockets: framing, syslog, limits.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use super::rig::{DEADLINE, Daemon, counted};

const TCP: &str = "[[source]]\nname = \"in\"\ntype = \"tcp\"\naddress = \"127.0.0.1:0\"\n";

#[test]
fn messages_of_both_framings_and_standards_become_events() {
    let mut daemon = Daemon::started(TCP);
    let now = jiff::Timestamp::now();
    let stamp = jiff::Timestamp::from_second(now.as_second()).unwrap();
    let peer = daemon.connect("in");
    let name = peer.local_addr().unwrap().to_string();
    let trace = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nValueError: boom";
    let all = [
        format!("<131>1 {stamp} web01 shop 12 ID7 [a@1 b=\"c\"] the store is gone\n"),
        format!("<27>{} web02 nginx[7]: the disk is gone\n", now.strftime("%b %e %H:%M:%S")),
        counted(11, trace),
        counted(14, "error count is 0"),
        "<30>shop[1]: TypeError: x is undefined\n".to_owned(),
        "<13>shop[1]: RangeError: nobody stated this\n".to_owned(),
        "panic: of plain text\n".to_owned(),
    ];
    (&peer).write_all(all.concat().as_bytes()).unwrap();
    drop(peer);
    daemon.wait_for(&["the store is gone", "the disk is gone", "ValueError: boom", "RangeError: nobody stated this", "panic: of plain text"]);
    let records = daemon.records();
    let of = |text: &str| records.iter().find(|record| record["text"] == text).unwrap();
    let (store, disk, boom) = (of("the store is gone"), of("the disk is gone"), of("ValueError: boom"));
    assert_eq!(store["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap(), stamp);
    assert_eq!((&store["source"]["host"], &store["source"]["app"], &store["source"]["key"]), (&"web01".into(), &"shop".into(), &"web01 shop[12]".into()));
    assert_eq!((&disk["source"]["host"], &disk["source"]["app"]), (&"web02".into(), &"nginx".into()));
    assert_eq!((&boom["language"], boom["line_end"].as_u64()), (&"python".into(), Some(6)));
    assert!(records.iter().all(|record| record["source"]["peer"] == name.as_str() && record["source"]["type"] == "tcp"));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn each_connection_is_a_stream_of_its_own_and_what_has_arrived_is_drained() {
    let mut daemon = Daemon::started(TCP);
    // Two traces whose lines alternate.
    let peers = [daemon.connect("in"), daemon.connect("in")];
    for line in ["Traceback (most recent call last):\n", "  File \"a.py\", line 3, in f\n", "    g()\n"] {
        peers.iter().for_each(|mut peer| peer.write_all(line.as_bytes()).unwrap());
    }
    for (mut peer, name) in peers.iter().zip(["one", "two"]) {
        peer.write_all(format!("ValueError: {name}\n<11>not ended {name}").as_bytes()).unwrap();
    }
    daemon.wait_for(&["ValueError: one", "ValueError: two"]);
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(daemon.texts(), ["ValueError: one", "ValueError: two", "not ended one", "not ended two"]);
    let records = daemon.of_kind("error");
    let ids: std::collections::BTreeSet<_> = records.iter().map(|record| record["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 4, "the same offsets of two connections have ids of their own");
}

#[test]
fn the_framing_can_be_said() {
    let sources =
        format!("{TCP}framing = \"newline\"\n[[source]]\nname = \"counted\"\ntype = \"tcp\"\naddress = \"127.0.0.1:0\"\nframing = \"octet_counting\"\n");
    let mut daemon = Daemon::started(&sources);
    daemon.send("in", "10 <11>TypeError: lines\n");
    daemon.send("counted", "13 Error: no PRI24 <11>TypeError: counted a");
    daemon.wait_for(&["Error: no PRI", "TypeError: counted a", "10 <11>TypeError: lines"]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_unix_socket_has_its_mode_knows_its_peers_and_goes_with_the_daemon() {
    let sources = "[[source]]\nname = \"local\"\ntype = \"unix\"\npath = \"FOLDER/log.sock\"\npermissions = \"0600\"\n";
    let mut daemon = Daemon::new(sources);
    let path = daemon.path("log.sock");
    // A socket that a killed process has left.
    drop(UnixListener::bind(&path).unwrap());
    daemon.start();
    daemon.until("it does not listen", || UnixStream::connect(&path).is_ok());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    UnixStream::connect(&path).unwrap().write_all(b"<11>shop[7]: the store is gone\n").unwrap();
    daemon.wait_for(&["the store is gone"]);
    let record = &daemon.records()[0];
    let peer = record["source"]["peer"].as_str().unwrap();
    assert!(peer.starts_with(&format!("pid {} uid ", std::process::id())), "{peer}");
    assert_eq!(record["source"]["path"], path.to_str().unwrap());
    let mut second = std::process::Command::new(env!("CARGO_BIN_EXE_siftd"));
    let second = second.args(["run", "--config", "siftd.toml", "--state-dir", "other"]).current_dir(&daemon.folder).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(second.status.code() == Some(2) && said.contains("another process listens there"), "{said}");
    assert_eq!(daemon.stop(), Some(0));
    assert!(!path.exists());
}

/// Whether the other side has closed the connection.
fn is_closed(mut peer: &TcpStream) -> bool {
    peer.set_read_timeout(Some(DEADLINE)).unwrap();
    matches!(peer.read(&mut [0; 10]), Ok(0) | Err(_))
}

#[test]
fn connections_beyond_the_limit_are_turned_away_and_silent_ones_closed() {
    let mut daemon = Daemon::started(&format!("{TCP}max_connections = 2\nidle_timeout = \"3s\"\n"));
    let first = [daemon.connect("in"), daemon.connect("in")];
    first.iter().for_each(|mut peer| peer.write_all(b"<11>one\n").unwrap());
    daemon.wait_for(&["one", "one"]);
    assert!(is_closed(&daemon.connect("in")), "there is no room");
    daemon.until("nothing is said", || daemon.stderr().contains("max_connections (2) is reached, 1 turned away, the last from 127.0.0.1:"));
    daemon.until("there is no record of it", || daemon.of_kind("gap").len() == 1);
    let gap = &daemon.of_kind("gap")[0];
    assert_eq!((&gap["why"], &gap["connections"], &gap["source"]["name"]), (&"turned_away".into(), &1.into(), &"in".into()));
    // Connections that are silent for too long make room for others.
    assert!(first.iter().all(is_closed));
    assert!(daemon.stderr().contains("was silent for idle_timeout"), "{}", daemon.stderr());
    daemon.send("in", "<11>two\n");
    daemon.wait_for(&["one", "one", "two"]);
    assert_eq!(daemon.stop(), Some(0));
}

/// Each peer has ended before the next one connects, and none knows how
/// far siftd is. Even those still waiting at the end have sent their line.
#[test]
fn who_comes_one_after_the_other_is_heard_to_the_last() {
    const COUNT: usize = 400;
    let sources = format!("{TCP}max_connections = 4\n[[source]]\nname = \"local\"\ntype = \"unix\"\npath = \"FOLDER/log.sock\"\nmax_connections = 4\n");
    let mut daemon = Daemon::started(&sources);
    let path = daemon.path("log.sock");
    daemon.until("it does not listen", || path.exists());
    for n in 0..COUNT {
        UnixStream::connect(&path).unwrap().write_all(format!("<11>local {n:03}\n").as_bytes()).unwrap();
    }
    for n in 0..COUNT {
        daemon.send("in", format!("<11>net {n:03}\n"));
    }
    assert_eq!(daemon.stop(), Some(0));
    let wanted: Vec<String> = ["local", "net"].iter().flat_map(|kind| (0..COUNT).map(move |n| format!("{kind} {n:03}"))).collect();
    assert!(daemon.texts() == wanted, "{} of {}\n{}", daemon.texts().len(), wanted.len(), daemon.stderr());
    assert_eq!(daemon.of_kind("gap").len(), 0);
}

/// A local peer is never turned away, however long the others stay connected.
#[test]
fn a_unix_socket_without_room_keeps_who_comes_waiting() {
    let mut daemon = Daemon::started("[[source]]\nname = \"local\"\ntype = \"unix\"\npath = \"FOLDER/log.sock\"\nmax_connections = 1\n");
    let path = daemon.path("log.sock");
    daemon.until("it does not listen", || path.exists());
    let mut first = UnixStream::connect(&path).unwrap();
    first.write_all(b"<11>one\n").unwrap();
    daemon.wait_for(&["one"]);
    UnixStream::connect(&path).unwrap().write_all(b"<11>two\n").unwrap();
    daemon.until("nothing is said", || daemon.stderr().contains("max_connections (1) is reached, further ones wait"));
    drop(first);
    daemon.wait_for(&["one", "two"]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_peer_that_sends_too_much_is_read_slower_and_loses_nothing() {
    let mut daemon = Daemon::started(&format!("{TCP}max_peer_bytes_per_second = \"64KiB\"\n"));
    let start = std::time::Instant::now();
    let line = format!("INFO {}\n", "x".repeat(1000));
    daemon.send("in", line.repeat(190) + "<11>the last one\n");
    daemon.wait_for(&["the last one"]);
    assert!(start.elapsed() > Duration::from_millis(1500), "190 KiB in {:?}", start.elapsed());
    assert_eq!(daemon.stop(), Some(0));
}

/// The port is taken, then free again; the configuration is the same.
#[test]
fn a_source_that_could_not_change_begins_with_the_next_reload() {
    let source = |name: &str, address: &str| format!("[[source]]\nname = \"{name}\"\ntype = \"tcp\"\naddress = \"{address}\"\n");
    let stays = source("stays", "127.0.0.1:0");
    let mut daemon = Daemon::started(&(stays.clone() + &source("in", "127.0.0.1:0")));
    daemon.send("in", "<11>one\n");
    daemon.wait_for(&["one"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    daemon.configure(&(stays + &source("in", &address)));
    daemon.signal("-HUP");
    daemon.until("it does not fail", || daemon.stderr().contains(&format!("cannot listen on {address}")));
    // Reloads are refused as long as the port is taken.
    daemon.signal("-HUP");
    daemon.until("it is not refused", || daemon.stderr().contains("the old one goes on"));
    drop(taken);
    daemon.signal("-HUP");
    daemon.until("it does not begin", || daemon.stderr().contains(&format!("source in: listens on {address}")));
    daemon.send("in", "<11>two\n");
    daemon.wait_for(&["one", "two"]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_reload_begins_ends_and_changes_sources_and_leaves_the_others_alone() {
    let source = |name: &str, address: &str, more: &str| format!("[[source]]\nname = \"{name}\"\ntype = \"tcp\"\naddress = \"{address}\"\n{more}\n");
    let mut daemon = Daemon::started(&(source("stays", "127.0.0.1:0", "") + &source("changes", "127.0.0.1:0", "") + &source("goes", "127.0.0.1:0", "")));
    let (mut stays, goes) = (daemon.connect("stays"), daemon.connect("goes"));
    stays.write_all(b"<11>one\n").unwrap();
    let changes = daemon.address("changes").to_string();
    daemon.wait_for(&["one"]);
    // An address that is in use changes nothing.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    daemon.configure(&(source("stays", "127.0.0.1:0", "") + &source("new", &taken.local_addr().unwrap().to_string(), "")));
    daemon.signal("-HUP");
    daemon.until("it is not refused", || daemon.stderr().contains("the old one goes on"));
    daemon.send("changes", "<11>two\n");
    daemon.wait_for(&["one", "two"]);
    // The same address, which the old source still uses.
    daemon.configure(&(source("stays", "127.0.0.1:0", "") + &source("changes", &changes, "framing = \"newline\"") + &source("new", "127.0.0.1:0", "")));
    daemon.signal("-HUP");
    daemon.until("it does not begin anew", || daemon.stderr().matches(&format!("source changes: listens on {changes}")).count() == 2);
    daemon.send("changes", "9 <11>three\n<11>four\n");
    daemon.send("new", "<11>five\n");
    stays.write_all(b"<11>six\n").unwrap();
    daemon.until("not all came", || ["five", "four", "six"].iter().all(|wanted| daemon.texts().iter().any(|text| text == wanted)));
    assert!(is_closed(&goes));
    assert_eq!(daemon.stop(), Some(0));
}
