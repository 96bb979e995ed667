//! Failed downloads as current tools print them (`fixtures/downloads`): each is worth a retry.

use std::fs;

use serde_json::json;

use crate::Folder;

#[test]
fn a_download_that_failed_by_the_network_is_transient() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for tool in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/downloads")).unwrap() {
        let output = fs::read_to_string(tool.unwrap().path().join("input.log")).unwrap();
        // Each run is `$ command` and its output.
        let runs: Vec<&str> = output.split("$ ").filter(|run| !run.is_empty()).collect();
        let results: String = runs.iter().map(|run| json!({"exit_code": 1, "stderr": run.split_once('\n').unwrap().1}).to_string() + "\n").collect();
        let verdicts = Folder::new().piped(["judge"], results).ended(0).records();
        assert_eq!(verdicts.len(), runs.len());
        count += runs.len();
        let is_wrong = |verdict: &serde_json::Value| verdict["retry"]["class"] != "transient" || verdict["summary"]["total"] == 0;
        wrong.extend(runs.iter().zip(verdicts).filter(|(_, verdict)| is_wrong(verdict)).map(|(run, verdict)| format!("{run}{verdict}")));
    }
    assert!(count > 50 && wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A tool that retries by itself and then gives up is retried as a whole.
#[test]
fn such_a_download_is_tried_again() {
    let folder = Folder::new();
    let output = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/downloads/pip/input.log")).unwrap();
    folder.write("pip.txt", output.split("$ ").nth(1).unwrap());
    let done = folder.exec(&["--retries", "2", "--base-delay", "1ms"], "cat pip.txt >&2; exit 1").ended(75);
    assert!(done.err().contains("siftd: gave up after 3 runs (network)"), "{}", done.err());
}
