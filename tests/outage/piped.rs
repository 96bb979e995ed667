//! Records of piped input reach every kind of peer before siftd ends, and what a server
//! refuses is on disk. No secret of the configuration appears in a message, however verbose.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use super::killing::{Daemon, until};
use super::playing::{Mood, Peer};

/// Runs `siftd run` with this many errors on its stdin, and a state; returns its messages at the most verbose level.
fn run(folder: &std::path::Path, sinks: &str, errors: usize, code: i32) -> String {
    let text = format!("state_dir = {:?}\n[[source]]\nname = \"pipe\"\ntype = \"stdin\"\n{sinks}", folder.join("state"));
    run_with(folder, &text, errors, code)
}

/// The same with this configuration.
fn run_with(folder: &std::path::Path, text: &str, errors: usize, code: i32) -> String {
    std::fs::write(folder.join("siftd.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
    command.args(["run", "--config", "siftd.toml"]).current_dir(folder).env("SIFTD_LOG", "trace").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    for n in 0..errors {
        writeln!(pipe, "2026-09-21T10:00:00Z ERROR job-{n} failed\nfine").unwrap();
    }
    drop(pipe);
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(code), "{said}");
    said
}

#[test]
fn a_pipe_reaches_every_peer_before_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (tcp, http) = (Peer::tcp(), Peer::http());
    [&tcp, &http].iter().for_each(|peer| peer.set(Mood::Good));
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    let unix = std::thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    std::fs::write(folder.path().join("token"), "a-very-secret-one").unwrap();
    let sinks = format!(
        "[[sink]]\nname = \"a\"\ntype = \"tcp\"\naddress = \"{}\"\n[[sink]]\nname = \"b\"\ntype = \"unix\"\npath = \"socket\"\n\
         [[sink]]\nname = \"c\"\ntype = \"http\"\nurl = \"http://{}/?key=another-secret-one\"\ncompress = true\ntoken_file = \"token\"\n\
         headers = {{ X-Key = \"one-more-secret-one\" }}\n",
        tcp.address, http.address
    );
    let said = run(folder.path(), &sinks, 500, 0);
    assert!(!said.contains("secret-one"), "{said}");
    let unix = unix.join().unwrap();
    assert_eq!((tcp.lines().len(), unix.lines().count(), http.lines().len()), (500, 500, 500), "{said}");
    assert!(tcp.lines() == http.lines() && unix.lines().eq(tcp.lines().iter().map(String::as_str)));
}

#[test]
fn what_a_server_refuses_is_on_disk_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("state")).unwrap();
    let http = Peer::http();
    http.set(Mood::Refused);
    let said = run(folder.path(), &format!("[[sink]]\nname = \"c/d\"\ntype = \"http\"\nurl = \"http://{}/\"\ncompress = true\n", http.address), 300, 0);
    assert!(said.contains("the server refused") && said.contains("401 who are you?"), "{said}");
    let text = std::fs::read_to_string(folder.path().join("state/c_d.dead.ndjson")).unwrap();
    let dead: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(dead.len(), 300);
    for (n, letter) in dead.iter().enumerate() {
        assert_eq!((&letter["sink"], &letter["status"], &letter["reason"]), (&"c/d".into(), &401.into(), &"who are you?".into()));
        assert_eq!(letter["record"]["text"], format!("ERROR job-{n} failed"));
    }
}

#[test]
fn without_a_state_what_cannot_be_sent_is_said_to_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let tcp = Peer::tcp();
    let sink = format!("[[sink]]\nname = \"a\"\ntype = \"tcp\"\naddress = \"{}\"\n[delivery]\nshutdown_grace = \"1s\"\n", tcp.address);
    let said = run_with(folder.path(), &sink, 20, 2);
    assert!(said.contains("ERROR sink a: 20 records could not be written within shutdown_grace and are lost; with --state-dir"), "{said}");
}

#[test]
fn a_reload_ends_a_connection_in_order_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tcp = Peer::tcp();
    tcp.set(Mood::Good);
    let sink = |delay: &str| format!("[[sink]]\nname = \"a\"\ntype = \"tcp\"\naddress = \"{}\"\nmax_delay = \"{delay}\"\n", tcp.address);
    let mut daemon = Daemon::new(folder.path(), &sink("1s"));
    daemon.start();
    let write = |from: usize| {
        let mut log = std::fs::OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap();
        (from..from + 50).for_each(|n| writeln!(log, "2026-09-21T10:00:00Z ERROR job-{n} failed\nfine").unwrap());
    };
    write(0);
    until("the first ones do not come", || tcp.lines().len() == 50);
    let config = std::fs::read_to_string(folder.path().join("siftd.toml")).unwrap();
    std::fs::write(folder.path().join("siftd.toml"), config.replace("\"1s\"", "\"2s\"")).unwrap();
    daemon.signal("-HUP");
    write(50);
    until("the last ones do not come", || tcp.lines().len() >= 100);
    daemon.stop();
    let lines = tcp.lines();
    let jobs: Vec<usize> = (0..100).filter(|n| lines.iter().filter(|line| line.contains(&format!("\"text\":\"ERROR job-{n} failed\""))).count() == 1).collect();
    assert_eq!((jobs.len(), lines.len()), (100, 100), "{}", daemon.stderr());
}
