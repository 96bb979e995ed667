//! Runs the real binary in a folder of its own: input, output and exit code.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod commands;
mod explain;
#[path = "../support/folder.rs"]
mod folder;
mod formats;
mod keys;
mod names;
mod own;
mod pipes;
mod refused;
mod run;
mod scan;
mod secrets;
#[path = "../support/skip.rs"]
mod skip;
mod unreadable;
#[path = "../support/wait.rs"]
mod wait;
mod wording;

use folder::{Done, Folder};
use serde_json::Value;

/// Returns a line that is an error by its level alone.
fn error(text: &str) -> String {
    format!("2026-01-01T00:00:00Z ERROR {text}\n")
}

impl Done {
    /// Returns `path:line_num text` for each record.
    fn shown(&self) -> Vec<String> {
        self.records().iter().map(shown).collect()
    }
}

fn shown(record: &Value) -> String {
    let path = record["source"]["path"].as_str().unwrap_or("-");
    format!("{path}:{} {}", record["line_num"], record["text"].as_str().unwrap())
}
