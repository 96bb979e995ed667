//! Runs the real binary in a folder of its own: input, output and exit code. Included by the tests of the command line.

#![allow(dead_code, reason = "no test uses all of it")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

/// How long a program may take: far longer than any does, on a busy machine as well.
const PATIENCE: Duration = Duration::from_secs(240);

pub fn siftd() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_siftd"))
}

/// A temporary folder, removed at the end of the test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of a file of this name.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Returns the content of a file; empty if the file does not exist.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    pub fn records(&self, name: &str) -> Vec<Value> {
        parsed(&self.read(name))
    }

    /// Returns a command that runs siftd in this folder, independent of the user's settings.
    pub fn command<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Command {
        self.run(siftd(), args)
    }

    /// Returns the same, for a test that sends signals: they have their default action, even if the tests themselves were
    /// started to ignore some, as a script does with what it runs in the background.
    pub fn heedful<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Command {
        let mut command = self.run("env", [OsStr::new("--default-signal"), siftd().as_os_str()]);
        command.args(args);
        command
    }

    pub fn run<I: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, args: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path()).env_remove("NO_COLOR").env_remove("SIFTD_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn siftd<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Done {
        Done::of(self.command(args).spawn().unwrap())
    }

    /// Runs siftd with text on stdin.
    pub fn piped<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>, stdin: impl AsRef<[u8]>) -> Done {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.as_ref().to_vec();
        let writer = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        let done = Done::of(child);
        writer.join().unwrap();
        done
    }
}

/// A finished program.
pub struct Done(pub Output);

impl Done {
    /// Waits for the end of a program. Fails, and ends it, if it goes on for too long.
    #[track_caller]
    pub fn of(child: Child) -> Self {
        let id = child.id().to_string();
        let (sender, ended) = channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        ended.recv_timeout(PATIENCE).map_or_else(
            |_| {
                drop(Command::new("kill").args(["-KILL", &id]).status());
                panic!("it does not end")
            },
            |output| Self(output.unwrap()),
        )
    }

    pub fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    pub fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0.stdout
    }

    pub fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    pub fn records(&self) -> Vec<Value> {
        parsed(&self.out())
    }

    /// Fails with the program's output unless it ended with `code`.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        let [out, err] = [&self.0.stdout, &self.0.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!(self.code(), Some(code), "stdout: {out}\nstderr: {err}");
        self
    }
}

fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
