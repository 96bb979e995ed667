//! The real daemon, killed at random moments while files are written in halves and rotated in every style,
//! and while a second process reads what it writes. `SIFTD_KILLS=200` is the long form.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::Rng;

/// Nothing here takes so long unless it is broken.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A daemon that may be killed and started again.
pub struct Daemon {
    pub folder: PathBuf,
    child: Option<Child>,
}

impl Daemon {
    pub fn new(folder: &Path, sink: &str) -> Self {
        Self::with(folder, &folder.join("state"), &folder.join("out.ndjson"), sink)
    }

    pub fn with(folder: &Path, state: &Path, out: &Path, sink: &str) -> Self {
        fs::create_dir_all(folder.join("logs")).unwrap();
        let text = format!(
            "state_dir = {state:?}\n[[source]]\nname = \"agent\"\ntype = \"file\"\ninclude = [\"{}/logs/*.log\"]\nstart_at = \"beginning\"\nrotate_wait = \"1s\"\n\
             [[sink]]\nname = \"events\"\ntype = \"file\"\npath = {out:?}\n{sink}",
            folder.display()
        );
        fs::write(folder.join("siftd.toml"), text).unwrap();
        Self { folder: folder.to_owned(), child: None }
    }

    pub fn start(&mut self) {
        let errors = OpenOptions::new().append(true).create(true).open(self.folder.join("stderr")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
        command.args(["run", "--config", "siftd.toml"]).current_dir(&self.folder).env_remove("SIFTD_LOG");
        self.child = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap());
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself: {}", self.stderr());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.pid().to_string()]).status().unwrap().success());
    }

    #[track_caller]
    pub fn stop(&mut self) {
        self.signal("-TERM");
        let status = self.child.take().unwrap().wait().unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.stderr());
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join("logs").join(name)
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

/// A second process that reads the output as it grows, as a shipper does: here a thread with descriptors
/// of its own. It fails when a byte is taken back or changed.
pub struct Shipper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<u8>>,
}

impl Shipper {
    pub fn new(path: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut seen = Vec::new();
            loop {
                let last = flag.load(Ordering::Relaxed);
                if let Ok(mut file) = fs::File::open(&path) {
                    let size = file.metadata().unwrap().len();
                    assert!(size >= seen.len() as u64, "{size} bytes after {}: bytes were taken back", seen.len());
                    // What was read last is still there.
                    let from = seen.len().saturating_sub(4096);
                    file.seek(SeekFrom::Start(from as u64)).unwrap();
                    let mut bytes = Vec::new();
                    file.read_to_end(&mut bytes).unwrap();
                    assert_eq!(&bytes[..seen.len() - from], &seen[from..], "bytes were changed");
                    seen.truncate(from);
                    seen.extend(bytes);
                }
                if last {
                    return seen;
                }
                // The pace of a shipper.
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self { stop, thread }
    }

    pub fn end(self) -> Vec<u8> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// How often each error came out, by the word that names it. Fails when a line is not whole or an id comes twice.
#[track_caller]
pub fn counts(output: &[u8]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    let mut ids = BTreeMap::new();
    assert!(output.is_empty() || output.ends_with(b"\n"));
    for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let record: Value = serde_json::from_slice(line).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(line)));
        let id = record["id"].as_str().unwrap().to_owned();
        assert_eq!(ids.insert(id, record["text"].clone()), None, "an id came twice: {record}");
        let Some(text) = record["text"].as_str() else { continue };
        let word = text.split(' ').find(|word| word.starts_with("job-")).unwrap_or(text);
        *counts.entry(word.to_owned()).or_insert(0) += 1;
    }
    counts
}

#[track_caller]
pub fn until(what: &str, done: impl FnMut() -> bool) {
    assert!(until_or(DEADLINE, done), "{what}");
}

/// Asks again and again; false: not within `longest`.
pub fn until_or(longest: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > longest {
            return false;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    true
}

/// Writes lines in halves and rotates.
struct Writer<'a> {
    daemon: &'a mut Daemon,
    rng: Rng,
    next: u32,
    rotations: u32,
}

impl Writer<'_> {
    fn append(&self, name: &str, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.daemon.log(name)).unwrap();
        let half = text.len() / 2;
        file.write_all(&text.as_bytes()[..half]).unwrap();
        file.write_all(&text.as_bytes()[half..]).unwrap();
    }

    fn errors(&mut self, name: &str, count: usize) {
        for _ in 0..count {
            self.next += 1;
            let pad = "x".repeat(self.rng.below(200));
            self.append(name, &format!("2026-09-21T10:00:00Z ERROR job-{} {pad}\nall is well\n", self.next));
        }
    }

    fn is_out(&self, last: u32) -> bool {
        let text = fs::read(self.daemon.folder.join("out.ndjson")).unwrap_or_default();
        memchr::memmem::find(&text, format!("ERROR job-{last} ").as_bytes()).is_some()
    }

    /// Until the daemon has seen all that was written: what follows could hide it otherwise.
    fn settle(&mut self) {
        let last = self.next;
        until(&format!("job-{last} does not come\n{}", self.daemon.stderr()), || self.is_out(last));
    }

    fn rotate(&mut self, name: &str) {
        self.rotations += 1;
        let (path, old) = (self.daemon.log(name), self.daemon.log(&format!("{name}.{}", self.rotations)));
        match self.rng.below(4) {
            0 => {
                fs::rename(&path, &old).unwrap();
                self.errors(name, 1);
            }
            1 => {
                fs::copy(&path, &old).unwrap();
                OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
                self.errors(name, 1);
            }
            2 => {
                // A writer that still has the old one.
                fs::rename(&path, &old).unwrap();
                self.errors(&format!("{name}.{}", self.rotations), 1);
                self.errors(name, 1);
            }
            _ => {
                fs::remove_file(&path).unwrap();
                self.errors(name, 1);
            }
        }
    }
}

fn kill_many(kills: usize, seed: u64, sink: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), sink);
    let shipper = Shipper::new(folder.path().join("out.ndjson"));
    daemon.start();
    let mut writer = Writer { daemon: &mut daemon, rng: Rng(seed), next: 0, rotations: 0 };
    for kill in 0..kills {
        let name = ["a.log", "b.log"][kill % 2];
        let count = 1 + writer.rng.below(6);
        writer.errors(name, count);
        if kill % 2 == 1 || kill % 7 == 0 {
            // One rotation between two looks: what is written and rotated twice unseen, nobody can find.
            writer.settle();
            let count = 1 + writer.rng.below(3);
            if writer.rng.one_in(2) {
                writer.errors(name, count);
                writer.settle();
            }
            writer.rotate(name);
        }
        // Any moment of its life, its start included.
        let wait = writer.rng.below(40_000) as u64;
        std::thread::sleep(Duration::from_micros(wait));
        writer.daemon.kill();
        writer.daemon.start();
    }
    writer.errors("a.log", 1);
    writer.settle();
    let last = writer.next;
    let missing = |output: &[u8]| (1..=last).filter(|n| memchr::memmem::find(output, format!("ERROR job-{n} ").as_bytes()).is_none()).count();
    let out = folder.path().join("out.ndjson");
    until_or(Duration::from_secs(15), || missing(&fs::read(&out).unwrap()) == 0);
    daemon.stop();
    let counts = counts(&shipper.end());
    let wrong: Vec<_> = (1..=last).map(|n| format!("job-{n}")).filter(|word| counts.get(word) != Some(&1)).map(|word| (counts.get(&word), word)).collect();
    assert!(wrong.is_empty(), "seed {seed}: of {last} errors these came not once: {wrong:?}\n{}", daemon.stderr());
}

#[test]
fn killed_at_random_moments_it_loses_and_doubles_nothing() {
    let kills = std::env::var("SIFTD_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12);
    let seed = u64::from(std::process::id());
    eprintln!("seed {seed}");
    kill_many(kills, seed, "");
}

#[test]
fn sigusr1_opens_the_output_anew_although_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    let out = folder.path().join("out.ndjson");
    daemon.start();
    until("it does not begin", || out.exists());
    let old = folder.path().join("out.ndjson.1");
    fs::rename(&out, &old).unwrap();
    // Many at once are one.
    (0..20).for_each(|_| daemon.signal("-USR1"));
    assert!(until_or(Duration::from_secs(10), || out.exists()), "{}", daemon.stderr());
    fs::write(daemon.log("a.log"), "2026-09-21T10:00:00Z ERROR job-1 failed\nfine\n").unwrap();
    until("it is not in the new file", || fs::read_to_string(&out).unwrap().contains("job-1"));
    assert_eq!(fs::metadata(&old).unwrap().len(), 0);
    daemon.stop();
}

#[test]
fn an_end_that_is_asked_for_twice_at_once_drains_as_well() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let mut daemon = Daemon::new(folder.path(), "");
        daemon.start();
        let word = format!("job-{round}");
        fs::write(daemon.log(&format!("{round}.log")), format!("2026-09-21T10:00:00Z ERROR {word} failed\nfine\n")).unwrap();
        until("its error does not come out", || fs::read_to_string(folder.path().join("out.ndjson")).is_ok_and(|out| out.contains(&word)));
        // The second one may come too late.
        daemon.signal("-TERM");
        drop(Command::new("kill").args(["-TERM", &daemon.pid().to_string()]).stderr(Stdio::null()).status());
        let status = daemon.child.take().unwrap().wait().unwrap();
        assert_eq!(status.code(), Some(0), "{}", daemon.stderr());
    }
}

fn said(daemon: &Daemon, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
    let output = command.args(args).args(["--config", "siftd.toml"]).current_dir(&daemon.folder).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_state_can_be_looked_at_while_it_runs_and_forgotten_when_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "");
    let line = "2026-09-21T10:00:00Z ERROR job-1 failed\nfine\n";
    fs::write(daemon.log("a.log"), line).unwrap();
    let (code, dry) = said(&daemon, &["run", "--dry-run"]);
    assert!(code == Some(0) && dry.contains("a.log  from its beginning, 45 B to read") && !folder.path().join("state").exists(), "{dry}");
    daemon.start();
    let read = || said(&daemon, &["state", "list"]).1.contains("45 B  0 B");
    until("the position is not kept", read);
    let path = daemon.log("a.log").display().to_string();
    let (code, shown) = said(&daemon, &["state", "show", &path]);
    assert!(code == Some(0) && shown.contains("goes on at  byte 45, line 3"), "{shown}");
    let (code, refused) = said(&daemon, &["state", "forget", &path]);
    assert!(code == Some(2) && refused.contains(&format!("process {}", daemon.pid())), "{refused}");
    let (code, second) = said(&daemon, &["run"]);
    assert!(code == Some(2) && second.contains(&format!("in use by process {}", daemon.pid())), "{second}");
    let (_, json) = said(&daemon, &["state", "list", "--format", "json"]);
    let rows: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((rows[0]["read"].as_u64(), rows[0]["left"].as_u64()), (Some(45), Some(0)));
    daemon.stop();
    let (_, dry) = said(&daemon, &["run", "--dry-run"]);
    assert!(dry.contains("from its end, 0 B to read"), "{dry}");
    assert_eq!(said(&daemon, &["state", "forget", &path]).0, Some(0));
    assert_eq!(said(&daemon, &["state", "show", &path]).0, Some(2));
}

#[test]
fn without_inotify_it_says_how_to_raise_the_limit_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::new(folder.path(), "");
    let script = format!("echo 0 > /proc/sys/user/max_inotify_instances && exec {:?} run --config siftd.toml", env!("CARGO_BIN_EXE_siftd"));
    let errors = fs::File::create(folder.path().join("stderr")).unwrap();
    let mut command = Command::new("unshare");
    let child = command.args(["--user", "--map-root-user", "sh", "-c", &script]).current_dir(folder.path()).stdin(Stdio::null()).stderr(errors).spawn();
    let Ok(child) = child else { return println!("skipped: needs unshare") };
    let mut daemon = daemon;
    daemon.child = Some(child);
    let mut has_ended = false;
    let said = until_or(DEADLINE, || {
        has_ended = daemon.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some());
        has_ended || daemon.stderr().contains("sysctl")
    });
    if has_ended || !said {
        daemon.child = None;
        return println!("skipped: needs the right to make a user namespace with limits of its own: {}", daemon.stderr());
    }
    assert!(daemon.stderr().contains("sysctl fs.inotify.max_user_instances="), "{}", daemon.stderr());
    fs::write(daemon.log("later.log"), "2026-09-21T10:00:00Z ERROR job-1 failed\nfine\n").unwrap();
    until("polling does not find it", || fs::read_to_string(folder.path().join("out.ndjson")).unwrap_or_default().contains("job-1"));
}
