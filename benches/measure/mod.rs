//! Exact CPU time and peak memory of one program: the bench starts itself again as a small wrapper
//! that runs the program, waits, and asks the kernel what its only child used. (If the bench itself
//! asked, the answer would cover all children so far, and the peak would be that of the largest.)

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// First argument of the wrapper.
pub const WRAPPER: &str = "--wrapped";

/// Resources that a program used.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// User and system time.
    pub cpu: Duration,
    pub peak_kib: u64,
}

/// Runs `program args` on one core, with its stdout in the file `out`.
pub fn run(program: &str, args: &[&str], out: &Path) -> anyhow::Result<Used> {
    let output =
        Command::new(std::env::current_exe()?).args([WRAPPER, program]).args(args).stdin(Stdio::null()).stdout(File::create(out)?).output_of_stderr()?;
    let (cpu, peak) = output.trim().rsplit('\n').next().and_then(|line| line.split_once(' ')).with_context(|| format!("{program} {args:?}: {output}"))?;
    Ok(Used { cpu: Duration::from_micros(cpu.parse()?), peak_kib: peak.parse()? })
}

/// Runs as the wrapper: the usage goes to stderr as its last line, `microseconds KiB`.
pub fn wrapper(args: &[OsString]) -> anyhow::Result<()> {
    pin();
    let (program, args) = args.split_first().context("nothing to run")?;
    let status = Command::new(program).args(args).status()?;
    // 1: `rg` found nothing, or `scan --fail-on` found something.
    ensure!(matches!(status.code(), Some(0 | 1)), "{} ended with {status}", program.display());
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    // Linux counts in KiB, macOS in bytes.
    let peak_kib = if cfg!(target_os = "macos") { usage.max_rss() / 1024 } else { usage.max_rss() };
    eprintln!("{micros} {peak_kib}");
    Ok(())
}

/// Pins the process to the last core: the first has more interrupts to serve.
#[cfg(target_os = "linux")]
fn pin() {
    let core = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
    let mut set = nix::sched::CpuSet::new();
    // If the core cannot be chosen, the figures are merely less steady.
    let _ = set.set(core).and_then(|()| nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set));
}

#[cfg(not(target_os = "linux"))]
fn pin() {}

/// Returns the wall time from the start of `program args` to the first byte on its stdout.
pub fn first_byte(program: &str, args: &[&str]) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut child = Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut stdout = child.stdout.take().context("no stdout")?;
    let mut byte = [0];
    let count = std::io::Read::read(&mut stdout, &mut byte)?;
    let took = start.elapsed();
    std::io::copy(&mut stdout, &mut std::io::sink())?;
    child.wait()?;
    ensure!(count == 1, "{program} {args:?} wrote nothing");
    Ok(took)
}

/// Returns the middle value.
pub fn median<T: Copy + Ord>(values: &mut [T]) -> Option<T> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

trait OutputOfStderr {
    fn output_of_stderr(&mut self) -> anyhow::Result<String>;
}

impl OutputOfStderr for Command {
    /// Waits, and returns stderr as text; if the command failed, that text is the error.
    fn output_of_stderr(&mut self) -> anyhow::Result<String> {
        let child = self.stderr(Stdio::piped()).spawn()?.wait_with_output()?;
        let text = String::from_utf8_lossy(&child.stderr).into_owned();
        ensure!(child.status.success(), "{text}");
        Ok(text)
    }
}
