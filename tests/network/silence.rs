//! Sources other than files that fall silent: each connection separately, the outputs of a command together.

use std::io::Write;

use serde_json::Value;

use super::rig::Daemon;

/// Returns the records of silences with this `status`, either of connections or of the whole source.
fn silences(daemon: &Daemon, status: &str, of_peer: bool) -> Vec<Value> {
    let all = daemon.of_kind("silence").into_iter();
    all.filter(|record| record["status"] == status && record["source"]["peer"].is_string() == of_peer).collect()
}

#[test]
fn a_connection_that_says_nothing_is_told_and_so_is_the_end_of_that() {
    let mut daemon = Daemon::started("[[source]]\nname = \"in\"\ntype = \"tcp\"\naddress = \"127.0.0.1:0\"\nsilence = \"300ms\"\n");
    let mut peer = daemon.connect("in");
    peer.write_all(b"all is well\n").unwrap();
    daemon.until("its silence is not told", || silences(&daemon, "begun", true).len() == 1);
    peer.write_all(b"still there\n").unwrap();
    daemon.until("its end is not told", || !silences(&daemon, "ended", true).is_empty());
    drop(peer);
    daemon.until("nobody is connected, and nobody says so", || silences(&daemon, "begun", false).iter().any(|record| record["source"]["type"] == "tcp"));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn outputs_of_a_command_are_one_voice() {
    let script = "echo one >&2; echo two; until [ -e go ]; do sleep 0.05; done; echo three; sleep 15";
    let mut daemon = Daemon::started(&format!(
        "[[source]]\nname = \"job\"\ntype = \"command\"\nargv = [\"sh\", \"-c\", '''{script}''']\ndirectory = \"FOLDER\"\nsilence = \"300ms\"\nstop_timeout = \"1s\"\n"
    ));
    daemon.until("its silence is not told", || !silences(&daemon, "begun", false).is_empty());
    let begun = silences(&daemon, "begun", false);
    assert_eq!((begun.len(), &begun[0]["source"]["type"], &begun[0]["source"]["io"]), (1, &"command".into(), &Value::Null), "{begun:?}");
    std::fs::write(daemon.path("go"), "").unwrap();
    daemon.until("its end is not told", || silences(&daemon, "ended", false).len() == 1);
    // It falls silent again, and the end of that is reported even if the daemon is killed in between.
    daemon.until("it is not told again", || silences(&daemon, "begun", false).len() == 2);
    daemon.kill();
    std::fs::remove_file(daemon.path("go")).unwrap();
    daemon.start();
    daemon.until("what goes on does not end", || silences(&daemon, "ended", false).len() >= 2);
    assert_eq!(daemon.stop(), Some(0));
}
