//! The daemon under load, and idle. `cargo bench --bench daemon` is a short form;
//! `cargo bench --bench daemon -- load --seconds 60`, `idle`, `latency`, `file --size 1GiB`,
//! `kill --kills 200`, `outage --events 100000` are the parts in full.
//! Exits with 1 when a promise is broken: an error lost or duplicated, too much memory or CPU, too late.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

#[allow(dead_code, clippy::unwrap_used, reason = "the tests use all of it; what fails there panics here")]
#[path = "../tests/daemon/killing.rs"]
mod killing;
#[allow(dead_code, reason = "the other benches use all of it")]
mod log;
#[allow(dead_code, clippy::unwrap_used, reason = "what fails there panics here")]
#[path = "../tests/outage/playing.rs"]
mod playing;
#[allow(dead_code, clippy::unwrap_used, reason = "the tests use all of it")]
#[path = "../tests/invariants/support.rs"]
mod support;

/// Most memory under load.
const MAX_RSS_KIB: u64 = 64 << 10;
/// With fewer errors than this, a run of `kill` shows nothing.
const MIN_ERRORS: u64 = 100;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)).cloned();
    let number = |name: &str, usual: u64| value(name).map_or(Ok(usual), |text| text.parse::<u64>().with_context(|| format!("{name} {text}")));
    match args.first().map(String::as_str) {
        Some("load") => load(number("--files", 500)?, number("--mbps", 100)?, number("--seconds", 60)?),
        Some("idle") => idle(number("--files", 10_000)?, number("--seconds", 30)?),
        Some("latency") => latency(number("--count", 100)?),
        Some("file") => file(log::size::parse(&value("--size").unwrap_or("1GiB".to_owned()))?),
        Some("kill") => kill(number("--kills", 200)?, number("--seed", u64::from(std::process::id()))?),
        Some("outage") => outage(number("--events", 100_000)? as usize, number("--pause", 2)?),
        Some(other) if !other.starts_with("--") => anyhow::bail!("unknown part {other}: load, idle, latency, file, kill, outage"),
        _ => {
            file(128 << 20)?;
            latency(30)?;
            idle(2000, 5)?;
            load(100, 50, 5)?;
            kill(40, 1)?;
            outage(5000, 1)
        }
    }
}

/// Returns the path of this build's binary, or of the one that `SIFTD_BIN` names.
fn bin() -> PathBuf {
    std::env::var_os("SIFTD_BIN").map_or_else(|| env!("CARGO_BIN_EXE_siftd").into(), PathBuf::from)
}

/// A process that is never left behind, however the bench ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Killing fails if the process has already ended, which is fine.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A daemon in its own folder.
struct Daemon {
    child: Running,
    folder: tempfile::TempDir,
}

impl Daemon {
    fn start(folder: tempfile::TempDir) -> anyhow::Result<Self> {
        let at = folder.path().display();
        let text = format!(
            "state_dir = \"{at}/state\"\n[[source]]\nname = \"agent\"\ntype = \"file\"\ninclude = [\"{at}/logs/**/*.log\"]\nstart_at = \"beginning\"\n\
             [[sink]]\nname = \"events\"\ntype = \"file\"\npath = \"{at}/out.ndjson\"\n"
        );
        fs::write(folder.path().join("siftd.toml"), text)?;
        // As the units of `systemd/` start it.
        let child =
            Command::new(bin()).env("MALLOC_ARENA_MAX", "2").arg("run").arg("--config").arg(folder.path().join("siftd.toml")).stdin(Stdio::null()).spawn()?;
        Ok(Self { child: Running(child), folder })
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out.ndjson")
    }

    /// Returns the user and system time so far.
    fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.0.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        // Linux counts in hundredths of a second here, whatever its own clock.
        Ok(Duration::from_millis(ticks * 10))
    }

    fn memory_kib(&self, name: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.0.id()))?;
        let line = status.lines().find(|line| line.starts_with(name)).context("no memory in /proc")?;
        Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
    }

    fn stop(mut self) -> anyhow::Result<tempfile::TempDir> {
        ensure!(Command::new("kill").arg(self.child.0.id().to_string()).status()?.success());
        ensure!(self.child.0.wait()?.success(), "it did not end well");
        Ok(self.folder)
    }
}

/// Counts lines of a file as it grows.
struct Tail {
    path: PathBuf,
    at: u64,
    lines: u64,
    space: Vec<u8>,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Self { path, at: 0, lines: 0, space: vec![0; 256 << 10] }
    }

    fn count(&mut self) -> u64 {
        let Ok(file) = File::open(&self.path) else { return 0 };
        while let Ok(count @ 1..) = file.read_at(&mut self.space, self.at) {
            self.at += count as u64;
            self.lines += memchr::memchr_iter(b'\n', &self.space[..count]).count() as u64;
        }
        self.lines
    }
}

fn wait_for(tail: &mut Tail, wanted: u64, longest: Duration) -> anyhow::Result<Duration> {
    wait_at(Duration::from_micros(500), tail, wanted, longest)
}

/// Waits until `tail` has `wanted` lines, looking after each `pace`: each look takes a core and its caches from the daemon.
fn wait_at(pace: Duration, tail: &mut Tail, wanted: u64, longest: Duration) -> anyhow::Result<Duration> {
    let start = Instant::now();
    while tail.count() < wanted {
        ensure!(start.elapsed() < longest, "{} records of {wanted} after {longest:?}", tail.lines);
        std::thread::sleep(pace);
    }
    Ok(start.elapsed())
}

/// Returns pieces of a log, each with its number of errors; no piece is cut within an error.
fn pieces(bytes: u64) -> anyhow::Result<Vec<(Vec<u8>, u64)>> {
    let mut text = Vec::new();
    let mut faults = Vec::new();
    log::write(log::Recipe { bytes, rate: 0.01, seed: 42, look_alikes: true }, &mut text, |fault| {
        faults.push(fault.offset as usize);
        Ok(())
    })?;
    let mut pieces = Vec::new();
    let (mut from, mut next) = (0, 0);
    while from < text.len() {
        let mut to = (from + 4096).min(text.len());
        // A piece ends right before an error, whose predecessor is an ordinary line.
        let first = faults.partition_point(|offset| *offset < to);
        to = faults.get(first).copied().unwrap_or(text.len());
        let count = first - next;
        pieces.push((text[from..to].to_vec(), count as u64));
        (from, next) = (to, first);
    }
    Ok(pieces)
}

fn load(files: u64, mbps: u64, seconds: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("logs"))?;
    let open = |n| OpenOptions::new().append(true).create(true).open(folder.path().join(format!("logs/{n}.log")));
    let mut writers: Vec<File> = (0..files).map(open).collect::<Result<_, _>>()?;
    let daemon = Daemon::start(folder)?;
    std::thread::sleep(Duration::from_secs(1));
    let pieces = pieces(16 << 20)?;
    let mut tail = Tail::new(daemon.out());
    let (start, mut written, mut wanted, mut turn) = (Instant::now(), 0, 0, 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        let (text, count) = &pieces[turn % pieces.len()];
        writers[turn % files as usize].write_all(text)?;
        (written, wanted, turn) = (written + text.len() as u64, wanted + count, turn + 1);
        let due = Duration::from_secs_f64(written as f64 / (mbps * 1_000_000) as f64);
        if due > start.elapsed() + Duration::from_millis(1) {
            std::thread::sleep(due - start.elapsed());
        }
        // Read along, as a shipper does: reading a gigabyte of records at the end would take seconds that are not the daemon's.
        if turn % 2000 == 0 {
            tail.count();
        }
    }
    // The end of a log and the beginning of the next round must not merge into one error.
    writers.iter_mut().try_for_each(|file| file.write_all(b"2026-01-01T00:00:00Z INFO the end\n"))?;
    let took = start.elapsed();
    let lag = wait_for(&mut tail, wanted, Duration::from_secs(60))?;
    std::thread::sleep(Duration::from_secs(1));
    let (rss, cpu, found) = (daemon.memory_kib("VmHWM")?, daemon.cpu()?, tail.count());
    println!(
        "load: {files} files, {:.0} MB/s for {:.0} s, {wanted} errors; {found} records, all {:.2} s after the end; {:.0} % of a core, {:.0} MiB at most",
        written as f64 / 1e6 / took.as_secs_f64(),
        took.as_secs_f64(),
        lag.as_secs_f64(),
        cpu.as_secs_f64() / took.as_secs_f64() * 100.0,
        rss as f64 / 1024.0
    );
    daemon.stop()?;
    ensure!(found == wanted, "{found} records of {wanted} errors");
    ensure!(lag < Duration::from_secs(2), "the last one came after {lag:?}");
    ensure!(rss < MAX_RSS_KIB, "{rss} KiB of memory");
    Ok(())
}

fn kill(kills: u64, seed: u64) -> anyhow::Result<()> {
    println!("kill: seed {seed}");
    let killed = killing::kill_many(kills as usize, seed, "");
    // A daemon killed before it found anything shows nothing.
    let least = kills.max(MIN_ERRORS);
    ensure!(u64::from(killed.errors) >= least, "only {} errors were written in {kills} lives, which shows nothing: {least} at least", killed.errors);
    println!("kill: SIGKILL {kills} times, {} errors in halves, {} rotations: each error once, no byte taken back", killed.errors, killed.rotations);
    Ok(())
}

fn outage(events: usize, pause: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let seen = playing::play(folder.path(), events, Duration::from_secs(pause), Duration::from_secs(600));
    println!(
        "outage: {events} errors while a tcp and an http peer refuse, hang, reset, talk garbage, answer 429 and 500, and break off; 2 kills: \
         all arrive at both in order, {} and {} of them twice, {:.1} s after the end of it; {:.0} MiB at most",
        seen.tcp_twice,
        seen.http_twice,
        seen.took.as_secs_f64(),
        seen.rss_kib as f64 / 1024.0
    );
    ensure!(seen.rss_kib < MAX_RSS_KIB, "{} KiB of memory", seen.rss_kib);
    Ok(())
}

fn idle(files: u64, seconds: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    for n in 0..files {
        let path = folder.path().join(format!("logs/{}/{n}.log", n % 100));
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(path, "2026-01-01T00:00:00Z INFO begun\n")?;
    }
    let path = |n: u64| PathBuf::from(format!("logs/{}/{n}.log", n % 100));
    let daemon = Daemon::start(folder)?;
    // Until all files are read and idle.
    std::thread::sleep(Duration::from_secs(25));
    let before = daemon.cpu()?;
    let start = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds));
    let share = (daemon.cpu()? - before).as_secs_f64() / start.elapsed().as_secs_f64();
    let mut tail = Tail::new(daemon.out());
    let mut times = Vec::new();
    for n in 1..=20 {
        let mut file = OpenOptions::new().append(true).open(daemon.folder.path().join(path(n * files / 21)))?;
        file.write_all(format!("curl: (7) Failed to connect to db-{n} port 5432: Connection refused\n").as_bytes())?;
        times.push(wait_for(&mut tail, n, Duration::from_secs(10))?);
    }
    times.sort();
    let rss = daemon.memory_kib("VmRSS")?;
    println!(
        "idle: {files} files in 100 folders; {:.2} % of a core, {:.0} MiB; a line in one of them is an event after {:.0} ms (median), {:.0} ms (worst of 20)",
        share * 100.0,
        rss as f64 / 1024.0,
        times[10].as_secs_f64() * 1000.0,
        times[19].as_secs_f64() * 1000.0
    );
    daemon.stop()?;
    ensure!(share < 0.01, "{share} of a core");
    ensure!(times[10] < Duration::from_millis(200), "{:?}", times[10]);
    Ok(())
}

fn latency(count: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("logs"))?;
    fs::write(folder.path().join("logs/a.log"), "begun\n")?;
    let mut log = OpenOptions::new().append(true).open(folder.path().join("logs/a.log"))?;
    let daemon = Daemon::start(folder)?;
    std::thread::sleep(Duration::from_secs(1));
    let mut tail = Tail::new(daemon.out());
    let mut measure = |text: &dyn Fn(u64) -> String, from: u64, count: u64| -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::new();
        for n in from..from + count {
            std::thread::sleep(Duration::from_millis(37 + n % 29));
            log.write_all(text(n).as_bytes())?;
            times.push(wait_for(&mut tail, n, Duration::from_secs(10))?);
        }
        times.sort();
        Ok(times)
    };
    let own = measure(&|n| format!("curl: (7) Failed to connect to db-{n} port 5432: Connection refused\n"), 1, count)?;
    let open = measure(&|n| format!("2026-01-01T00:00:00Z ERROR job {n} failed\n"), count + 1, count / 5)?;
    let (middle, pause) = (own[own.len() / 2], open[open.len() / 2]);
    println!(
        "latency: an error that its own line closes {:.1} ms (median), {:.1} ms (worst of {count}); one that a pause closes {:.0} ms, of which trace_idle is 500 ms",
        middle.as_secs_f64() * 1000.0,
        own[own.len() - 1].as_secs_f64() * 1000.0,
        pause.as_secs_f64() * 1000.0
    );
    daemon.stop()?;
    ensure!(middle < Duration::from_millis(20), "{middle:?}");
    ensure!(pause < Duration::from_millis(520 + 20), "{pause:?}");
    Ok(())
}

fn file(bytes: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("logs"))?;
    let path = folder.path().join("logs/big.log");
    let mut out = std::io::BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let written = log::write(log::Recipe { bytes, rate: 0.01, seed: 42, look_alikes: true }, &mut out, |_| Ok(()))?;
    drop(out);
    let scan = scan(&path)?;
    let daemon = Daemon::start(folder)?;
    let mut tail = Tail::new(daemon.out());
    // This measures CPU time, not latency.
    wait_at(Duration::from_millis(50), &mut tail, written.faults - 1, Duration::from_secs(300))?;
    std::thread::sleep(Duration::from_secs(2));
    let (run, rss) = (daemon.cpu()?, daemon.memory_kib("VmHWM")?);
    println!(
        "file: {} MiB, {} errors; scan {:.2} s of CPU, run {:.2} s ({:.2} times), {:.0} MiB at most",
        written.bytes >> 20,
        written.faults,
        scan.as_secs_f64(),
        run.as_secs_f64(),
        run.as_secs_f64() / scan.as_secs_f64(),
        rss as f64 / 1024.0
    );
    let folder = daemon.stop()?;
    let found = Tail::new(folder.path().join("out.ndjson")).count();
    ensure!(found == written.faults, "{found} records of {} errors", written.faults);
    // The time includes the start, which dominates on a small file.
    ensure!(run < scan.mul_f64(1.5) + Duration::from_millis(300), "{run:?} and {scan:?}");
    Ok(())
}

/// Returns the CPU time of `scan` on one thread, as the difference in children's CPU time.
fn scan(path: &Path) -> anyhow::Result<Duration> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let used = || -> anyhow::Result<i64> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        Ok(usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
    };
    let before = used()?;
    let status = Command::new(bin()).args(["scan", "--jobs", "1", "--format", "ndjson"]).arg(path).stdout(Stdio::null()).status()?;
    ensure!(status.success());
    Ok(Duration::from_micros((used()? - before) as u64))
}
