//! The real binary in a folder of its own: what goes in, what comes out, and the exit code.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod commands;
mod formats;
mod run;
mod scan;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A line that is an error by its level alone.
fn error(text: &str) -> String {
    format!("2026-01-01T00:00:00Z ERROR {text}\n")
}

/// A folder that goes with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// siftd in this folder, without what the machine's user has set.
    fn command<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
        command.args(args).current_dir(self.path()).env_remove("NO_COLOR").env_remove("SIFTD_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn siftd<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Done {
        Done(self.command(args).output().unwrap())
    }

    /// The same with text on stdin.
    fn piped<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>, stdin: impl AsRef<[u8]>) -> Done {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.as_ref().to_vec();
        let writer = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        let done = Done(child.wait_with_output().unwrap());
        writer.join().unwrap();
        done
    }
}

/// A finished siftd.
struct Done(Output);

impl Done {
    fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    fn bytes(&self) -> &[u8] {
        &self.0.stdout
    }

    fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    fn records(&self) -> Vec<Value> {
        self.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// `path:line_num text` of each record.
    fn shown(&self) -> Vec<String> {
        self.records().iter().map(shown).collect()
    }

    /// Fails with what siftd said unless it ended with `code`.
    #[track_caller]
    fn ended(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "stdout: {}\nstderr: {}", self.out(), self.err());
        self
    }
}

fn shown(record: &Value) -> String {
    let path = record["source"]["path"].as_str().unwrap_or("-");
    format!("{path}:{} {}", record["line_num"], record["text"].as_str().unwrap())
}
