//! `siftd state` for a rotated log: each generation is listed
//! separately, and can be forgotten alone or together with the others.

use std::fs;

use serde_json::Value;

use super::kill::said;
use super::killing::{Daemon, until};

/// Creates four generations of `a.log`: the current file, two under other names, and the oldest, which is gone.
fn rotated() -> (tempfile::TempDir, Daemon) {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    daemon.start();
    for n in 1..=4 {
        for old in (0..n - 1).rev() {
            let name = |n: i32| daemon.log(&if n == 0 { "a.log".to_owned() } else { format!("a.log.{n}") });
            fs::rename(name(old), name(old + 1)).unwrap();
        }
        fs::write(daemon.log("a.log"), format!("2026-09-21T10:00:00Z ERROR job-{n}x failed\nfine\n")).unwrap();
        let is_out = || fs::read_to_string(folder.path().join("out.ndjson")).unwrap_or_default().contains(&format!("job-{n}x"));
        until("an error does not come", is_out);
    }
    fs::remove_file(daemon.log("a.log.3")).unwrap();
    daemon.stop();
    (folder, daemon)
}

/// Returns file names as `state list` shows them, without their folder, and whether they are gone.
fn listed(daemon: &Daemon) -> Vec<String> {
    let (code, table) = said(daemon, &["state", "list"]);
    assert_eq!(code, Some(0), "{table}");
    let mut rows: Vec<String> = table
        .lines()
        .skip(1)
        .map(|line| format!("{}{}", line.split_whitespace().nth(1).unwrap().rsplit('/').next().unwrap(), if line.contains(" gone ") { " gone" } else { "" }))
        .collect();
    rows.sort();
    rows
}

#[test]
fn a_name_stands_for_what_has_it_now_and_all_for_its_generations() {
    let (_folder, daemon) = rotated();
    assert_eq!(listed(&daemon), ["a.log", "a.log gone", "a.log.1", "a.log.2"]);
    let path = daemon.log("a.log").display().to_string();
    let (code, shown) = said(&daemon, &["state", "show", &path]);
    assert!(code == Some(0) && shown.matches("identity").count() == 2 && shown.contains("the file is gone"), "{shown}");
    let (code, text) = said(&daemon, &["state", "forget", &format!("{path}.2")]);
    assert!(code == Some(0) && text.contains("a.log.2, an older generation"), "{text}");
    let (code, text) = said(&daemon, &["state", "forget", &path]);
    assert!(code == Some(0) && text.contains("a.log, which is gone") && text.contains("a.log; the next start reads it from its beginning"), "{text}");
    assert_eq!(listed(&daemon), ["a.log.1"]);
    let (code, text) = said(&daemon, &["state", "forget", &path]);
    assert!(code == Some(2) && text.contains("only older generations"), "{text}");
    assert_eq!(said(&daemon, &["state", "forget", "--all", &path]).0, Some(0));
    assert!(listed(&daemon).is_empty());
}

#[test]
fn an_identity_names_one_generation() {
    let (_folder, daemon) = rotated();
    let (_, json) = said(&daemon, &["state", "list", "--format", "json"]);
    let rows: Value = serde_json::from_str(&json).unwrap();
    let gone = rows.as_array().unwrap().iter().find(|row| row["found_at"].is_null()).unwrap();
    assert_eq!(gone["left"], Value::Null);
    let identity = &gone["uid"].as_str().unwrap()[..12];
    assert!(said(&daemon, &["state", "list"]).1.contains(identity));
    let (code, text) = said(&daemon, &["state", "forget", identity]);
    assert!(code == Some(0) && text.contains("which is gone"), "{text}");
    assert_eq!(listed(&daemon), ["a.log", "a.log.1", "a.log.2"]);
    assert_eq!(said(&daemon, &["state", "forget", &identity[..3]]).0, Some(2), "three digits are no identity");
}
