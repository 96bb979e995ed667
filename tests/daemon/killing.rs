//! Kills the real daemon at random moments while files are written in fragments and rotated
//! in every style, and while another process reads its output. Used by tests and a bench.

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
use siftd::core::event::Timestamp;
use siftd::sinks::record::rfc3339;
use siftd::state::history::Choice;
use siftd::state::ledger::Rules;
use siftd::state::shared::Shared;

use super::support::Rng;

/// Far longer than any wait takes unless something is broken.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A daemon that may be killed and restarted.
pub struct Daemon {
    pub folder: PathBuf,
    pub child: Option<Child>,
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
        self.start_with(Stdio::null());
    }

    pub fn start_with(&mut self, stdout: Stdio) {
        let errors = OpenOptions::new().append(true).create(true).open(self.folder.join("stderr")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
        command.args(["run", "--config", "siftd.toml"]).current_dir(&self.folder).env_remove("SIFTD_LOG");
        self.child = Some(command.stdin(Stdio::null()).stdout(stdout).stderr(errors).spawn().unwrap());
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
        if std::thread::panicking() {
            // Everything that all its runs have printed; nothing else tells how it got there.
            eprintln!("{}: it said:\n{}", self.folder.display(), self.stderr());
        }
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A second reader of the growing output, like a log shipper: here a thread
/// with descriptors of its own. It fails if a byte is removed or changed.
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
                    // The bytes that were read last are still there.
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
                // The pace of a log shipper.
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

/// Counts how often each error was reported, by the word that names it. Fails if a line is incomplete or an id occurs twice.
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

/// Polls `done`; returns `false` if it is not true within `longest`.
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

/// Whether an error has a record of its own; its line may also appear in the context of another error.
fn is_told(output: &[u8], n: u32) -> bool {
    memchr::memmem::find(output, format!("\"text\":\"ERROR job-{n} ").as_bytes()).is_some()
}

/// Writes lines in fragments and rotates files, in a thread of its own, until told to stop.
struct Writer {
    logs: PathBuf,
    out: PathBuf,
    rng: Rng,
    next: u32,
    rotations: u32,
}

impl Writer {
    fn run(mut self, stop: &AtomicBool) -> Self {
        for round in 1.. {
            let name = ["a.log", "b.log"][round % 2];
            let count = 1 + self.rng.below(6);
            self.errors(name, count);
            // At most one rotation between two checks: a file that is rotated twice without being seen cannot be found.
            if round % 3 == 0 && self.settle(stop) {
                self.rotate(name);
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        self
    }

    fn append(&mut self, name: &str, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.logs.join(name)).unwrap();
        let half = self.rng.below(text.len());
        file.write_all(&text.as_bytes()[..half]).unwrap();
        // The pace of a program that logs.
        std::thread::sleep(Duration::from_micros(self.rng.below(2000) as u64));
        file.write_all(&text.as_bytes()[half..]).unwrap();
    }

    fn errors(&mut self, name: &str, count: usize) {
        for _ in 0..count {
            self.next += 1;
            let pad = "x".repeat(self.rng.below(200));
            self.append(name, &format!("2026-09-21T10:00:00Z ERROR job-{} {pad}\nall is well\n", self.next));
        }
    }

    /// Waits until the daemon has seen everything written so far, which
    /// a later rotation could hide. Returns `false` if told to stop.
    fn settle(&self, stop: &AtomicBool) -> bool {
        let last = self.next;
        let mut is_out = false;
        until(&format!("job-{last} does not come"), || {
            is_out = is_told(&fs::read(&self.out).unwrap_or_default(), last);
            is_out || stop.load(Ordering::Relaxed)
        });
        is_out
    }

    fn rotate(&mut self, name: &str) {
        self.rotations += 1;
        let old_name = format!("{name}.{}", self.rotations);
        let (path, old) = (self.logs.join(name), self.logs.join(&old_name));
        match self.rng.below(4) {
            0 => fs::rename(&path, &old).unwrap(),
            1 => {
                fs::copy(&path, &old).unwrap();
                OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
            }
            2 => {
                // A writer that still has the old file open.
                fs::rename(&path, &old).unwrap();
                self.errors(&old_name, 1);
            }
            _ => fs::remove_file(&path).unwrap(),
        }
        self.errors(name, 1);
    }
}

/// Checks that the history matches the records exactly.
fn state_equals(folder: &Path, output: &[u8]) {
    let mut said: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let record: Value = serde_json::from_slice(line).unwrap();
        if let (Some(signature), Some(count)) = (record["signature"].as_str(), record["seen"]["count"].as_u64()) {
            let entry = said.entry(signature.to_owned()).or_default();
            assert_eq!(count, entry.0 + 1, "counts go on one by one: {record}");
            *entry = (count, record["seen"]["last"].as_str().unwrap().to_owned());
        }
    }
    let shared = Shared::open(folder, Rules::default(), DEADLINE).unwrap();
    let page = shared.list(&Choice { limit: 100_000, all: true, ..Choice::default() }, Timestamp(0)).unwrap();
    let kept = page.iter().map(|entry| (entry.sign.signature.to_string(), (entry.row.count, rfc3339(entry.row.last))));
    assert_eq!(kept.collect::<BTreeMap<_, _>>(), said);
}

/// The result of a run.
pub struct Killed {
    /// Number of errors written.
    pub errors: u32,
    /// Number of rotations.
    pub rotations: u32,
}

/// Kills a daemon this many times at random moments, while one
/// thread writes and rotates its logs and another reads its output.
///
/// # Panics
/// An error is missing or reported twice, a line is incomplete, or a byte was removed.
pub fn kill_many(kills: usize, seed: u64, sink: &str) -> Killed {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), sink);
    let out = folder.path().join("out.ndjson");
    let shipper = Shipper::new(out.clone());
    let writer = Writer { logs: folder.path().join("logs"), out: out.clone(), rng: Rng(seed), next: 0, rotations: 0 };
    let stop = AtomicBool::new(false);
    let mut rng = Rng(seed.wrapping_add(1));
    daemon.start();
    let writer = std::thread::scope(|scope| {
        let writing = scope.spawn(|| writer.run(&stop));
        for _ in 0..kills {
            // At any moment of a run, including its start.
            let longest = *rng.pick(&[20_000, 60_000, 120_000, 1_000_000]);
            std::thread::sleep(Duration::from_micros(rng.below(longest) as u64));
            daemon.kill();
            daemon.start();
        }
        stop.store(true, Ordering::Relaxed);
        writing.join().unwrap()
    });
    let last = writer.next;
    let missing = |output: &[u8]| (1..=last).filter(|n| !is_told(output, *n)).count();
    until_or(Duration::from_secs(20), || missing(&fs::read(&out).unwrap_or_default()) == 0);
    daemon.stop();
    let output = shipper.end();
    state_equals(&folder.path().join("state"), &output);
    let counts = counts(&output);
    let wrong: Vec<_> = (1..=last).map(|n| format!("job-{n}")).filter(|word| counts.get(word) != Some(&1)).map(|word| (counts.get(&word), word)).collect();
    assert!(wrong.is_empty(), "seed {seed}: of {last} errors these came not once: {wrong:?}\n{}", daemon.stderr());
    Killed { errors: last, rotations: writer.rotations }
}
