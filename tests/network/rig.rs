//! The real daemon with the sources of a test; its events are written to a file.

use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Far longer than any wait takes unless something is broken.
pub const DEADLINE: Duration = Duration::from_secs(40);

pub struct Daemon {
    pub folder: tempfile::TempDir,
    pub child: Option<Child>,
}

impl Daemon {
    /// Creates a daemon in a folder of its own, which `sources` may name as `FOLDER`.
    pub fn new(sources: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let daemon = Self { folder, child: None };
        daemon.configure(sources);
        daemon
    }

    pub fn started(sources: &str) -> Self {
        let mut daemon = Self::new(sources);
        daemon.start();
        daemon
    }

    pub fn configure(&self, sources: &str) {
        let at = self.folder.path().display().to_string();
        let sources = sources.replace("FOLDER", &at);
        let text = format!("state_dir = \"{at}/state\"\n{sources}\n[[sink]]\nname = \"out\"\ntype = \"file\"\npath = \"{at}/out.ndjson\"\n");
        fs::write(self.path("siftd.toml"), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
        command.args(["run", "--config", "siftd.toml"]);
        self.dressed(command)
    }

    pub fn dressed(&self, mut command: Command) -> Command {
        let errors = File::options().append(true).create(true).open(self.path("stderr")).unwrap();
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).env("SIFTD_LOG", "info");
        command
    }

    pub fn start(&mut self) {
        self.child = Some(self.command().spawn().unwrap());
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    /// Returns the address that a source last reported to listen on.
    pub fn address(&self, source: &str) -> SocketAddr {
        let mark = format!("source {source}: listens on ");
        let said = || self.stderr().rsplit_once(&mark).and_then(|(_, rest)| rest.lines().next()?.parse().ok());
        self.until("it does not listen", || said().is_some());
        said().unwrap()
    }

    pub fn connect(&self, source: &str) -> TcpStream {
        TcpStream::connect(self.address(source)).unwrap()
    }

    /// Sends all bytes and closes the connection.
    pub fn send(&self, source: &str, bytes: impl AsRef<[u8]>) {
        self.connect(source).write_all(bytes.as_ref()).unwrap();
    }

    pub fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("out.ndjson")).unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        text[..whole].lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.records().into_iter().filter(|record| record["kind"] == kind).collect()
    }

    /// Returns the texts of all errors, sorted.
    pub fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self.of_kind("error").iter().map(|record| record["text"].as_str().unwrap().to_owned()).collect();
        texts.sort();
        texts
    }

    #[track_caller]
    pub fn wait_for(&self, wanted: &[&str]) {
        self.until(&format!("wants {wanted:?}"), || self.texts().len() >= wanted.len());
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        assert_eq!(self.texts(), wanted);
    }

    #[track_caller]
    pub fn until(&self, what: &str, done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < DEADLINE, "{what}; {:?}\n{}", self.records(), self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.pid().to_string()]).status().unwrap().success());
    }

    /// Ends the daemon and returns its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.take().unwrap().wait().unwrap().code()
    }

    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Returns the resident memory in KiB.
    pub fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Returns a message of RFC 5424, octet-counted.
pub fn counted(priority: u8, text: &str) -> String {
    let message = format!("<{priority}>1 - web01 shop 12 - - {text}");
    format!("{} {message}", message.len())
}

/// Whether a process runs; one that nobody has waited for does not.
pub fn is_alive(pid: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    status.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}
