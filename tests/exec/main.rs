//! `siftd exec` and its kin, as a user meets them: the real binary, real commands, real signals, real terminals.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod digests;
mod pass;
mod results;
mod retries;
mod signals;
mod tables;
mod terminals;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes for stdin.
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

/// A folder that goes with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn records(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn command<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(siftd());
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn siftd<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Done {
        Done(self.command(args).output().unwrap())
    }

    /// `siftd exec FLAGS -- sh -c SCRIPT`
    fn exec(&self, flags: &[&str], script: &str) -> Done {
        self.siftd([&["exec"][..], flags, &["--", "sh", "-c", script]].concat())
    }

    /// A script in which `$SIFTD` is siftd.
    fn shell(&self, script: &str) -> Done {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("SIFTD", siftd()).current_dir(self.0.path()).stdin(Stdio::null());
        Done(command.output().unwrap())
    }

    fn piped<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>, stdin: impl AsRef<[u8]>) -> Done {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.as_ref().to_vec();
        let writer = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        let done = Done(child.wait_with_output().unwrap());
        writer.join().unwrap();
        done
    }

    /// Waits until a file holds a text.
    fn wait_for(&self, name: &str, text: &str) {
        until(&format!("{text} in {name}"), || self.read(name).contains(text));
    }
}

fn siftd() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_siftd"))
}

/// Asks until it is so.
#[track_caller]
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Whether a process with this id still runs.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

/// A finished program.
struct Done(Output);

impl Done {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    fn records(&self) -> Vec<Value> {
        self.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    fn ended(self, code: i32) -> Self {
        assert_eq!(self.0.status.code(), Some(code), "stdout: {}\nstderr: {}", self.out(), self.err());
        self
    }
}
