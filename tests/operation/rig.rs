//! The binary as a service manager runs it: with a configuration in a folder of its own,
//! and a socket that receives what the daemon tells its manager. Every wait has a deadline.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::wait::{DEADLINE, wait};

/// A source that reads `a*.log` and a sink that writes `one.ndjson`; `@` stands for the folder.
pub const ONE: &str = r#"
[[source]]
name = "a"
type = "file"
include = ["@/a*.log"]
start_at = "beginning"
[[sink]]
name = "one"
type = "file"
path = "@/one.ndjson"
"#;

/// A folder with a configuration, logs and outputs.
pub struct World {
    pub folder: tempfile::TempDir,
    manager: UnixDatagram,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        manager.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { folder, manager }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the configuration; `@` in it stands for the folder.
    pub fn configure(&self, text: &str) {
        let folder = self.folder.path().display().to_string();
        fs::write(self.path("siftd.toml"), format!("state_dir = \"@/state\"\n{text}").replace('@', &folder)).unwrap();
    }

    pub fn append(&self, name: &str, text: &str) {
        OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Starts the daemon, and waits until it has reported that it is ready.
    pub fn start(&self, settings: &[(&str, &str)]) -> Daemon {
        let daemon = self.spawn(settings);
        self.hears("READY=1");
        daemon
    }

    pub fn spawn(&self, settings: &[(&str, &str)]) -> Daemon {
        let said = fs::File::create(self.path("said.txt")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
        command.arg("run").arg("--config").arg(self.path("siftd.toml")).env("NOTIFY_SOCKET", self.path("notify"));
        command.envs(settings.iter().copied()).current_dir(self.folder.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn().unwrap();
        Daemon { child }
    }

    /// Returns the next message to the manager.
    #[track_caller]
    pub fn heard(&self) -> String {
        let mut space = [0; 4096];
        let len = self.manager.recv(&mut space).expect("the manager hears nothing");
        String::from_utf8_lossy(&space[..len]).into_owned()
    }

    /// Waits for a message that contains this.
    #[track_caller]
    pub fn hears(&self, wanted: &str) -> String {
        let until = Instant::now() + DEADLINE;
        loop {
            let heard = self.heard();
            if heard.lines().any(|line| line.starts_with(wanted)) {
                return heard;
            }
            assert!(Instant::now() < until, "{wanted} was not heard");
        }
    }

    /// Returns everything received so far.
    pub fn heard_now(&self) -> String {
        self.manager.set_nonblocking(true).unwrap();
        let (mut all, mut space) = (String::new(), [0; 4096]);
        while let Ok(len) = self.manager.recv(&mut space) {
            all += &String::from_utf8_lossy(&space[..len]);
        }
        self.manager.set_nonblocking(false).unwrap();
        all
    }

    /// Discards the messages received so far.
    pub fn hear_no_more(&self) {
        self.heard_now();
    }

    /// Returns the `text` of each record of an output, without its level.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.records(name).iter().map(|record| record["text"].as_str().unwrap_or_default().trim_start_matches("ERROR ").to_owned()).collect()
    }

    pub fn records(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect()
    }

    /// Waits until an output has this many records, and returns their texts.
    #[track_caller]
    pub fn written(&self, name: &str, count: usize) -> Vec<String> {
        wait(&format!("record {count} of {name}"), || Some(self.texts(name)).filter(|texts| texts.len() >= count))
    }

    /// Returns what the daemon has printed on stderr.
    pub fn said(&self) -> String {
        fs::read_to_string(self.path("said.txt")).unwrap_or_default()
    }
}

/// Returns a line that is an error by its level alone.
pub fn error(text: &str) -> String {
    format!("2026-09-21T10:00:00Z ERROR {text}\n")
}

/// A running daemon; killed if the test ends first.
pub struct Daemon {
    pub child: Child,
}

impl Daemon {
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Ends the daemon as a service manager does; returns its exit code.
    #[track_caller]
    pub fn stop(mut self) -> Option<i32> {
        self.signal(Signal::SIGTERM);
        let status = wait("the end", || self.child.try_wait().unwrap());
        status.code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The daemon may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program under test.
pub fn siftd(arguments: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_siftd")).args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}
