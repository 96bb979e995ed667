//! Keys whose effect takes long by default: with a short time in place of it, it comes at once.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use rusqlite::Connection;
use siftd::state::store::Store;

use super::killing::{Daemon, until};

const HOUR_US: i64 = 3_600_000_000;

fn error(text: &str) -> String {
    format!("2026-09-21T10:00:00Z ERROR {text} failed\nfine\n")
}

/// Adds keys to the source, or whole tables after everything.
fn configure(folder: &Path, source: &str, tables: &str) {
    let path = folder.join("siftd.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, text.replace("rotate_wait", &format!("{source}\nrotate_wait")) + tables).unwrap();
}

fn records(folder: &Path) -> String {
    fs::read_to_string(folder.join("out.ndjson")).unwrap_or_default()
}

#[test]
fn stream_quiet_closes_a_breaker() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    configure(folder.path(), "", "[breaker]\nstream_window = \"1ms\"\nopen_after = 1000\nstream_quiet = \"1s\"\n");
    daemon.start();
    let mut log = OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap();
    until("it does not warn", || {
        log.write_all(error("job").as_bytes()).unwrap();
        records(folder.path()).contains("\"to\":\"half_open\"")
    });
    until("it does not close", || records(folder.path()).contains("\"reason\":\"quiet\""));
    daemon.stop();
}

#[test]
fn forget_after_drops_a_file_that_is_gone() {
    let known = |folder: &Path| Store::look(&folder.join("state")).unwrap().map_or(0, |store| store.streams().unwrap().len());
    for (key, left) in [("forget_after = \"1h\"", 1), ("", 2)] {
        let folder = tempfile::tempdir().unwrap();
        let mut daemon = Daemon::new(folder.path(), "");
        configure(folder.path(), key, "");
        ["a.log", "b.log"].iter().for_each(|name| fs::write(daemon.log(name), error(name)).unwrap());
        daemon.start();
        until("they are not read", || records(folder.path()).lines().count() == 2 && known(folder.path()) == 2);
        daemon.stop();
        fs::remove_file(daemon.log("a.log")).unwrap();
        // Two hours pass, and nobody looks.
        let state = Connection::open(folder.path().join("state/siftd.db")).unwrap();
        state.execute("UPDATE stream SET seen = seen - ?1", [2 * HOUR_US]).unwrap();
        drop(state);
        daemon.start();
        fs::write(daemon.log("c.log"), error("c.log")).unwrap();
        // What is forgotten is forgotten at the start, so before the new file's position is kept at the end.
        until("the new file is not read", || records(folder.path()).lines().count() == 3);
        daemon.stop();
        assert_eq!(known(folder.path()), left + 1, "{key}");
    }
}
