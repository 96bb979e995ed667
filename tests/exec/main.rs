//! `siftd exec` and related commands as a user meets them: with the real binary, real commands, signals and terminals.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod digests;
mod downloads;
#[path = "../support/folder.rs"]
mod folder;
mod pass;
mod results;
mod retries;
mod signals;
#[path = "../support/skip.rs"]
mod skip;
mod tables;
mod terminals;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use folder::{Done, Folder, siftd};

/// Maximum time that anything here may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes to send to stdin.
struct Sent(Vec<u8>);

impl From<&str> for Sent {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Sent {
    fn with(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

impl Folder {
    /// Runs `siftd exec FLAGS -- sh -c SCRIPT`.
    fn exec(&self, flags: &[&str], script: &str) -> Done {
        self.siftd([&["exec"][..], flags, &["--", "sh", "-c", script]].concat())
    }

    /// Runs a script in which `$SIFTD` is siftd.
    fn shell(&self, script: &str) -> Done {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("SIFTD", siftd()).current_dir(self.path()).stdin(Stdio::null());
        Done(command.output().unwrap())
    }

    /// Waits until a file contains a text.
    fn wait_for(&self, name: &str, text: &str) {
        until(&format!("{text} in {name}"), || self.read(name).contains(text));
    }
}

/// Polls until the condition holds.
#[track_caller]
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Whether a process with this id is still running.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}
