//! What `siftd exec` costs a command: `cargo bench --bench exec` is a short form;
//! `cargo bench --bench exec -- start`, `terminal` and `pass --size 1GiB` are the parts in full.
//! Exits with 1 when a promise is broken: a noticeable start, or more CPU than looking and passing on cost by themselves.

use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

#[allow(dead_code, reason = "the other benches use all of it")]
mod log;
#[allow(dead_code, reason = "the other benches use all of it")]
mod measure;

/// Most wall time that `exec` adds to a command.
const MAX_ADDED: Duration = Duration::from_millis(10);
/// Runs of a command that starts and ends.
const STARTS: usize = 20;
/// Runs of each way to pass a log through.
const ROUNDS: usize = 5;
const NOWHERE: &str = "/dev/null";

fn main() -> anyhow::Result<()> {
    let all: Vec<OsString> = std::env::args_os().skip(1).collect();
    if all.first().is_some_and(|first| first == measure::WRAPPER) {
        return measure::wrapper(&all[1..]);
    }
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.first().map(String::as_str) {
        Some("start") => start(),
        Some("terminal") => terminal(),
        Some("pass") => {
            let size = args.iter().position(|arg| arg == "--size").and_then(|at| args.get(at + 1)).map_or("1GiB", String::as_str);
            pass(log::size::parse(size)?)
        }
        Some(other) => anyhow::bail!("unknown part {other}: start, terminal, pass"),
        None => {
            start()?;
            terminal()?;
            pass(128 << 20)
        }
    }
}

/// Returns the path of this build's binary, or of the one that `SIFTD_BIN` names.
fn bin() -> String {
    std::env::var("SIFTD_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_siftd").to_owned())
}

fn start() -> anyhow::Result<()> {
    let siftd = bin();
    let ways: [(&str, Vec<&str>); 4] = [
        ("true", vec!["true"]),
        ("exec -- true", vec![&siftd, "exec", "--", "true"]),
        ("exec --verdict FILE -- true", vec![&siftd, "exec", "--verdict", NOWHERE, "--", "true"]),
        ("exec --verdict FILE -- echo", vec![&siftd, "exec", "--verdict", NOWHERE, "--", "echo", "x"]),
    ];
    let took = medians(&ways, once)?;
    let added = took[1].saturating_sub(took[0]);
    ensure!(added < MAX_ADDED, "exec -- true adds {added:?}");
    Ok(())
}

/// Measures the same on a terminal, where the command has two pseudo-terminals, and a session with a keeper.
fn terminal() -> anyhow::Result<()> {
    let siftd = bin();
    let ways = [
        ("true, on a terminal", vec!["true"]),
        ("exec -- true, on a terminal", vec![&*siftd, "exec", "--", "true"]),
        ("exec -- sh -c 'echo x'", vec![&*siftd, "exec", "--", "sh", "-c", "echo x"]),
    ];
    medians(&ways, once_on_a_terminal).map(drop)
}

/// Returns the median time of each way; the ways take turns.
fn medians(ways: &[(&str, Vec<&str>)], once: impl Fn(&[&str]) -> anyhow::Result<Duration>) -> anyhow::Result<Vec<Duration>> {
    let mut took = vec![Vec::new(); ways.len()];
    for _ in 0..STARTS {
        for (took, (_, argv)) in took.iter_mut().zip(ways) {
            took.push(once(argv)?);
        }
    }
    let took: Vec<Duration> = took.iter_mut().filter_map(|took| measure::median(took)).collect();
    for ((name, _), took) in ways.iter().zip(&took) {
        println!("{name:30} {:6.2} ms (median of {STARTS})", took.as_secs_f64() * 1e3);
    }
    Ok(took)
}

/// Returns the wall time of a command on its own terminal.
fn once_on_a_terminal(argv: &[&str]) -> anyhow::Result<Duration> {
    let (screen, terminal) = pty_process::blocking::open()?;
    let started = Instant::now();
    let status = pty_process::blocking::Command::new(argv[0]).args(&argv[1..]).spawn(terminal)?.wait()?;
    let took = started.elapsed();
    drop(screen);
    ensure!(status.success(), "{argv:?} ended with {status}");
    Ok(took)
}

/// Returns the wall time of a command whose output is discarded.
fn once(argv: &[&str]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let status = Command::new(argv[0]).args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let took = started.elapsed();
    ensure!(status.success(), "{argv:?} ended with {status}");
    Ok(took)
}

fn pass(bytes: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("agent.log");
    for (name, rate) in [("1 % error lines", 0.01), ("no errors", 0.0)] {
        let recipe = log::Recipe { bytes, rate, seed: 42, look_alikes: true };
        log::write(recipe, &mut BufWriter::new(File::create(&path)?), |_| Ok(()))?;
        let file = path.to_str().context("a folder with a name in UTF-8")?;
        compare(name, file)?;
    }
    Ok(())
}

fn compare(name: &str, file: &str) -> anyhow::Result<()> {
    let siftd = bin();
    let ways: [(&str, &str, &[&str]); 4] = [
        ("scan FILE", &siftd, &["scan", file]),
        ("cat FILE | tee", "sh", &["-c", "cat \"$0\" | tee /dev/null", file]),
        ("exec --events F -- cat FILE", &siftd, &["exec", "--events", NOWHERE, "--", "cat", file]),
        ("exec -- cat FILE", &siftd, &["exec", "--", "cat", file]),
    ];
    let mut used = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (used, (_, program, args)) in used.iter_mut().zip(&ways) {
            used.push(measure::run(program, args, Path::new(NOWHERE))?.cpu);
        }
    }
    let used: Vec<Duration> = used.iter_mut().filter_map(|used| measure::median(used)).collect();
    for ((way, ..), used) in ways.iter().zip(&used) {
        println!("{name:16} {way:30} {:6.2} s of CPU (median of {ROUNDS})", used.as_secs_f64());
    }
    ensure!(used[2] <= used[0] + used[1], "{name}: exec takes {:?}, scan and cat | tee {:?}", used[2], used[0] + used[1]);
    Ok(())
}
