//! `siftd exec`: runs a command as if siftd were not there, finds its errors as they are printed, and retries it
//! where that can help. `start`, `terminal` and `keys` wire the command up, `input` makes its stdin ready again,
//! `pump` passes its output on, `attempt` watches one run, `policy` decides what comes next, `journal` writes
//! records, and `results` what was asked for in the end. This module ties them together.

pub mod attempt;
mod borrowed;
mod family;
pub mod guard;
mod input;
pub mod journal;
pub mod keeper;
mod kept;
mod keys;
pub mod on_blocking;
pub mod policy;
mod pump;
mod raw_output;
pub mod relay;
pub mod reset;
mod results;
pub mod signals;
mod spoken;
mod start;
pub mod target;
pub mod terminal;
mod twin;
mod waiting;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attempt::{Attempt, Ended};
use guard::Guard;
use input::Input;
use journal::Journal;
use policy::{Next, Policy, Retries, STDIN_READ};
use pump::Pumped;
use rustix::process::Signal;
use signals::Signals;
use spoken::{later, spoken};
use target::Named;
use terminal::Around;

use crate::config::Retry as RetryConfig;
use crate::core::event::{Io, RetryClass, Severity};
use crate::core::redact::clean;
use crate::core::text::Hex;
use crate::delivery::Rerun;
use crate::digest;
use crate::sinks::human::sanitise;
use crate::sources::clock::now;
use crate::verdict::{self, Facts, Said, Status, Verdict, filtered};

/// Exit codes that siftd itself sets.
mod code {
    pub const FAIL_ON: i32 = 1;
    pub const STRICT: i32 = 65;
    /// `EX_IOERR` of sysexits.h.
    pub const LOST_OUTPUT: i32 = 74;
    pub const EXHAUSTED: i32 = 75;
    pub const TIMED_OUT: i32 = 124;
    pub const NOT_RUNNABLE: i32 = 126;
    pub const NOT_FOUND: i32 = 127;
    pub const SIGNAL: i32 = 128;
}

/// Bytes kept from the beginning and the end of each output, for the verdict.
const KEPT_BYTES: (usize, usize) = (64 << 10, 192 << 10);

/// Everything that the user asked for.
pub struct Order {
    /// The command and its arguments.
    pub argv: Vec<OsString>,
    /// The terminals that siftd was started on.
    pub around: Around,
    /// A run that takes longer is ended.
    pub timeout: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub kill_after: Duration,
    /// How often a failed run is retried.
    pub retries: Retries,
    /// Flags that override the pauses of the configuration.
    pub pauses: Pauses,
    /// Reasons that are retried even though they are not transient.
    pub also: Vec<String>,
    /// The name of the task.
    pub task: Option<String>,
    /// Where the verdict goes.
    pub verdict: Option<Named>,
    /// Where the digest goes.
    pub digest: Option<(Named, digest::Form)>,
    /// Folder for the output of a run that finally failed.
    pub keep_output: Option<PathBuf>,
    /// Real errors count as a failure, whatever the exit code.
    pub strict: bool,
    /// Errors of at least this severity count as a failure.
    pub fail_on: Option<Severity>,
    /// No errors are looked for: nobody asked for them.
    pub is_blind: bool,
    /// Identifies an output of a run.
    pub uid: fn(run: u32, io: Io) -> [u8; 16],
    /// The breaker; asked before the run, and told afterwards how it went.
    pub guard: Option<Guard>,
}

/// Pauses set by flags.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    /// `--base-delay`
    pub base: Option<Duration>,
    /// `--max-delay`
    pub max: Option<Duration>,
    /// `--max-reset-wait`
    pub reset: Option<Duration>,
}

impl Pauses {
    fn apply(self, config: &mut RetryConfig) {
        config.base_delay = self.base.unwrap_or(config.base_delay);
        config.max_delay = self.max.unwrap_or(config.max_delay.max(config.base_delay));
        config.max_reset_wait = self.reset.unwrap_or(config.max_reset_wait);
    }
}

/// The last run and its verdict.
struct Outcome {
    verdict: Verdict,
    said: Said,
    stdout: Pumped,
    stderr: Pumped,
    exit: i32,
    /// The command could not be started.
    not_started: bool,
    /// siftd was told to end, so the result of the run says nothing.
    interrupted: bool,
}

/// What a command has cost so far.
#[derive(Clone, Copy)]
struct Spent {
    /// Runs made.
    runs: u32,
    /// When the first one began.
    begun: Instant,
}

impl Outcome {
    /// Turns the outcome into one whose retries are exhausted.
    fn exhausted(mut self) -> Self {
        let facts = Facts { run_status: Some(Status::TransientExhausted), ..self.verdict.facts };
        self.verdict = verdict::judge(facts, &self.said);
        self.exit = code::EXHAUSTED;
        self
    }

    /// Turns the outcome into one whose retry a signal has prevented.
    fn interrupted_by(self, signal: Signal) -> Self {
        Self { exit: code::SIGNAL + signal.as_raw(), interrupted: true, ..self }
    }

    /// Turns the outcome into one whose retries would find another stdin.
    fn without_stdin(self) -> Self {
        let mut outcome = self.exhausted();
        outcome.verdict.retry.reason = STDIN_READ.into();
        outcome
    }
}

/// Runs the command, with retries, and writes the requested results. Returns the exit code.
///
/// # Errors
/// The system refuses something that every run needs.
pub fn run(mut order: Order, journal: Journal, signals: &Signals) -> io::Result<i32> {
    let journal = Arc::new(journal);
    if order.timeout.is_some() {
        attempt::adopt_orphans();
    }
    let outcome = runs(&order, &journal, signals)?;
    let all_written = results::write(&mut order, &journal, &outcome);
    tell_guard(&order, &journal, &outcome);
    // All threads that share the journal have ended, unless a signal cut the last run short.
    if let Ok(journal) = Arc::try_unwrap(journal) {
        journal.finish();
    }
    let code = exit_code(&order, &outcome, all_written);
    if let Some(why) = why_not_zero(&order, &outcome, code) {
        tell(&why);
    }
    Ok(code)
}

/// Tells the breaker about a run, unless siftd was interrupted.
fn tell_guard(order: &Order, journal: &Journal, outcome: &Outcome) {
    let Some(guard) = order.guard.as_ref().filter(|_| !outcome.interrupted) else { return };
    let trigger = Hex::new((order.uid)(0, Io::Stdout));
    match guard.record(trigger, &outcome.verdict, &outcome.said, outcome.not_started) {
        Ok(records) => journal.write(&records),
        Err(why) => tell(&format!("this run is not counted: {why}")),
    }
}

fn runs(order: &Order, journal: &Arc<Journal>, signals: &Signals) -> io::Result<Outcome> {
    let attempt = Attempt {
        argv: &order.argv,
        around: order.around,
        timeout: order.timeout,
        kill_after: order.kill_after,
        keep: kept_bytes(order),
        journal,
        is_blind: order.is_blind,
        uid: order.uid,
    };
    let input = if order.retries == Retries::None { Input::Same } else { Input::look() };
    let begun = Instant::now();
    for run in 1.. {
        let mut ended = attempt.run(run, signals)?;
        let interrupted = ended.interrupted;
        let mut outcome = judged(order, journal, &mut ended, Spent { runs: run, begun });
        outcome.interrupted = interrupted.is_some();
        match next(order, journal, &outcome, run, interrupted) {
            Next::Stop => return Ok(outcome),
            Next::Exhausted => {
                tell(&format!("gave up after {run} runs ({})", outcome.verdict.retry.reason));
                return Ok(outcome.exhausted());
            }
            Next::Later(pause) => {
                tell(&format!("gave up ({}): {}", outcome.verdict.retry.reason, later(pause)));
                return Ok(outcome.exhausted());
            }
            Next::Again { max, delay } => {
                if let Err(why) = input.again() {
                    tell(&format!("run {run} failed ({}) and is not retried: {why}", outcome.verdict.retry.reason));
                    return Ok(outcome.without_stdin());
                }
                let (task, reason) = (order.task.clone(), outcome.verdict.retry.reason.to_string());
                journal.retry(Rerun { attempt: run, max_attempts: max, task, reason, delay_ms: delay.as_millis() as u64 });
                tell(&format!("run {run} failed ({}); retry {run} of {max} in {}", outcome.verdict.retry.reason, spoken(delay)));
                if let Some(signal) = pause(delay, signals)? {
                    return Ok(outcome.interrupted_by(signal));
                }
            }
        }
    }
    Err(io::Error::other("more runs than can be counted"))
}

/// Returns how many bytes to keep from the beginning and from the end of each output.
fn kept_bytes(order: &Order) -> (usize, usize) {
    match (order.is_blind, &order.keep_output) {
        (true, _) => (0, 0),
        (_, Some(_)) => raw_output::KEPT_BYTES,
        _ => KEPT_BYTES,
    }
}

fn next(order: &Order, journal: &Journal, outcome: &Outcome, run: u32, interrupted: Option<Signal>) -> Next {
    // A run that succeeded is not repeated, whatever it printed.
    let failed = outcome.exit != 0 || (order.strict && !outcome.verdict.is_success());
    if order.retries == Retries::None || !failed || interrupted.is_some() {
        return Next::Stop;
    }
    let mut config = journal.ready().retry.clone();
    order.pauses.apply(&mut config);
    Policy { config, retries: order.retries, also: order.also.clone() }.next(run, &outcome.verdict.retry, now())
}

fn judged(order: &Order, journal: &Journal, ended: &mut Ended, spent: Spent) -> Outcome {
    tell_trouble(order, ended);
    let (stdout, stderr) = (std::mem::take(&mut ended.stdout), std::mem::take(&mut ended.stderr));
    let mut said = Said::default();
    said.join(&stderr.said);
    said.join(&stdout.said);
    if said.errors.iter().any(|event| event.retry.class == RetryClass::Transient) {
        said.asked = verdict::asked(&said.errors, [&stderr.kept.bytes(), &stdout.kept.bytes()]);
    }
    let exit = ended.exit_code();
    if let Some(error) = &ended.failed_start {
        said.text = not_started(order, error, exit);
        tell(&format!("{}{}", said.text, line_hint(order, exit)));
    } else if !order.is_blind && stderr.kept.total() > 0 {
        // Waiting for the rules is worthwhile only if something was printed.
        (said.text, said.only_noise) = filtered(&journal.ready().engine, &stderr.kept.bytes(), now());
        said.text = journal.quoted().left_out(said.text);
    }
    if !order.is_blind && exit != 0 && said.errors.is_empty() && said.text.is_empty() && stdout.kept.total() > 0 {
        (said.printed, _) = filtered(&journal.ready().engine, &stdout.kept.bytes(), now());
        said.printed = journal.quoted().left_out(said.printed);
    }
    let facts = facts(order, ended, spent);
    let not_started = ended.failed_start.is_some();
    Outcome { verdict: verdict::judge(facts, &said), said, stdout, stderr, exit, not_started, interrupted: false }
}

/// Tells what was lost of the outputs, and that the command took too long.
fn tell_trouble(order: &Order, ended: &Ended) {
    for (io, pumped) in [(Io::Stdout, &ended.stdout), (Io::Stderr, &ended.stderr)] {
        if let Some(error) = pumped.lost() {
            tell(&format!("{io}: {error}"));
        }
    }
    if let Some(limit) = order.timeout.filter(|_| ended.timed_out) {
        let killed = if ended.killed { format!(", and with SIGKILL {} later (--kill-after)", spoken(order.kill_after)) } else { String::new() };
        let program = order.argv.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        tell(&format!("{program} was ended after {} (--timeout){killed}", spoken(limit)));
    }
}

fn facts(order: &Order, ended: &Ended, spent: Spent) -> Facts {
    Facts {
        exit_code: ended.signal.is_none().then_some(i64::from(ended.code.unwrap_or_else(|| ended.exit_code()))),
        signal: ended.signal,
        signal_was_ours: ended.signal_was_ours,
        timed_out: ended.timed_out,
        run_status: None,
        unknown_status: None,
        duration_ms: Some(spent.begun.elapsed().as_millis() as u64),
        attempts: spent.runs,
        task: order.task.clone(),
        operation: None,
    }
}

impl Ended {
    /// The exit code that a shell would report.
    fn exit_code(&self) -> i32 {
        match (&self.failed_start, self.timed_out, self.signal, self.code) {
            (Some(error), ..) if error.kind() == io::ErrorKind::NotFound => code::NOT_FOUND,
            (Some(_), ..) => code::NOT_RUNNABLE,
            (_, true, ..) => code::TIMED_OUT,
            (_, _, Some(signal), _) => code::SIGNAL + signal,
            (.., code) => code.unwrap_or_default(),
        }
    }
}

fn not_started(order: &Order, error: &io::Error, exit: i32) -> String {
    let program = order.argv.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    if exit == code::NOT_FOUND { format!("{program}: command not found") } else { format!("{program}: cannot be run: {error}") }
}

/// Returns what to do if the command is a whole command line in one word, which only a shell splits.
fn line_hint(order: &Order, exit: i32) -> String {
    let line = order.argv.first().and_then(|word| word.to_str()).filter(|word| order.argv.len() == 1 && exit == code::NOT_FOUND && word.contains(' '));
    line.and_then(|line| shlex::try_quote(line).ok()).map_or_else(String::new, |line| format!("; for a whole command line: siftd exec -- sh -c {line}"))
}

/// Sleeps for `delay`. A signal that tells siftd to end cuts the sleep short and is returned.
fn pause(delay: Duration, signals: &Signals) -> io::Result<Option<Signal>> {
    let until = Instant::now() + delay;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        waiting::readable([signals.as_fd()], Some(left))?;
        while let Some(came) = signals.next()? {
            if [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].contains(&came.signal) {
                return Ok(Some(came.signal));
            }
        }
    }
}

fn exit_code(order: &Order, outcome: &Outcome, all_written: bool) -> i32 {
    match outcome.exit {
        0 if order.strict && !outcome.verdict.is_success() => code::STRICT,
        0 if order.fail_on.is_some_and(|least| outcome.said.count(least) > 0) => code::FAIL_ON,
        // The command itself would have failed on a full disk, and a
        // caller must not mistake a truncated result for a complete one.
        0 if !all_written || [&outcome.stdout, &outcome.stderr].iter().any(|pumped| pumped.lost().is_some()) => code::LOST_OUTPUT,
        exit => exit,
    }
}

/// Returns why the exit code is not the command's 0; `None` if it is, or if that was told where it happened.
fn why_not_zero(order: &Order, outcome: &Outcome, code: i32) -> Option<String> {
    match (outcome.exit, code) {
        (0, code::STRICT) => Some(format!("the command exited with 0, but stderr holds a real error: exit code {code} (--strict)")),
        (0, code::FAIL_ON) => order.fail_on.map(|least| {
            let count = outcome.said.count(least);
            let errors = if count == 1 { "1 error" } else { &format!("{count} errors") };
            format!("the command exited with 0, but there is {errors} of severity {least} or worse: exit code {code} (--fail-on)")
        }),
        _ => None,
    }
}

/// Writes one line of siftd's own to stderr, without secrets. If stderr is closed or full, the line is lost.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "siftd: {}", sanitise(&clean(text)));
}
