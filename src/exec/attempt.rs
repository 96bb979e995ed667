//! One run of the command from start to end: pumps both outputs, forwards signals, enforces the time limit, and ends
//! what is left of it. It reports how the run ended; others decide whether that is good.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, wait};

use super::family::Family;
use super::journal::Journal;
use super::keeper::Fate;
use super::kept::Kept;
use super::pump::{self, Pump, Pumped, Unsettled};
use super::signals::{Came, Signals};
use super::start::{Started, start};
use super::terminal::{Around, Wiring};
use super::waiting;
use crate::core::event::Io;
use crate::core::extract::Origin;

/// Between two checks whether all processes that were told to end have ended.
const LOOK: Duration = Duration::from_millis(20);

/// Programs that run the argument after `-c`.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];

/// What to run, and how.
pub struct Attempt<'a> {
    /// Command and arguments.
    pub argv: &'a [OsString],
    /// The terminals around it.
    pub around: Around,
    /// Longest run; a longer one is ended.
    pub timeout: Option<Duration>,
    /// Time after SIGTERM until processes that have not ended get SIGKILL.
    pub kill_after: Duration,
    /// How many bytes are kept from the beginning and from the end of each output.
    pub keep: (usize, usize),
    /// Receives the errors.
    pub journal: &'a Arc<Journal>,
    /// Errors are not wanted: the outputs are not scanned.
    pub is_blind: bool,
    /// Returns the identity of an output.
    pub uid: fn(run: u32, io: Io) -> [u8; 16],
}

/// How a run ended.
#[derive(Default)]
pub struct Ended {
    /// Exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// siftd sent or forwarded that signal.
    pub signal_was_ours: bool,
    /// The run took too long.
    pub timed_out: bool,
    /// It took too long and did not end on SIGTERM, so it got SIGKILL.
    pub killed: bool,
    /// The signal that told siftd to end: then nothing is retried.
    pub interrupted: Option<Signal>,
    /// Why the command could not be started.
    pub failed_start: Option<io::Error>,
    /// What it wrote.
    pub stdout: Pumped,
    /// What it wrote.
    pub stderr: Pumped,
}

impl Attempt<'_> {
    /// Runs the command; `run` counts from 1.
    ///
    /// # Errors
    /// The system refuses a resource that every run needs.
    pub fn run(&self, run: u32, signals: &Signals) -> io::Result<Ended> {
        let (stop, stopper) = io::pipe()?;
        let stop = Arc::new(OwnedFd::from(stop));
        let mut started = match start(self.argv, self.around, &stop) {
            Ok(started) => started,
            Err(error) => return Ok(Ended { failed_start: Some(error), ..Ended::default() }),
        };
        let (done, writer) = io::pipe()?;
        let (stdout, stderr) = started.outputs.take().ok_or_else(|| io::Error::other("no outputs"))?;
        let stdout = Output { io: Io::Stdout, from: stdout, to: io::stdout().as_fd().try_clone_to_owned()?.into(), done: writer.try_clone() };
        let stderr = Output { io: Io::Stderr, from: stderr, to: io::stderr().as_fd().try_clone_to_owned()?.into(), done: Ok(writer) };
        let pumps = [stdout, stderr].map(|output| self.pump(run, output, stop.clone()));
        let mut watch = Watch::new(self, &started, signals);
        let fate = watch.until_ended()?;
        drop(stopper);
        let passed_on = watch.until_passed_on(done.as_fd())?;
        let (timed_out, killed, interrupted, sent) = (watch.timed_out, watch.killed, watch.interrupted, watch.sent);
        let signal = if let Fate::Signalled(signal) = fate { Some(signal) } else { None };
        let signal_was_ours = signal.is_some_and(|signal| sent.iter().any(|sent| sent.as_raw() == signal));
        let code = if let Fate::Exited(code) = fate { Some(code) } else { None };
        let outputs = pumps.map(|pump| passed_on.then(|| pump.join().ok()).flatten());
        let [stdout, stderr] = pump::settle(outputs, code == Some(0));
        let failed_start = if let Fate::NotStarted(reason) = fate { Some(io::Error::from_raw_os_error(reason)) } else { None };
        Ok(Ended { code, signal, signal_was_ours, timed_out, killed, interrupted, failed_start, stdout, stderr })
    }

    /// Returns the command as one writes it in a shell. An argument of several words is left out unless a shell
    /// runs it: what an agent is asked to do (`claude -p 'run npm test'`) is no command.
    fn command(&self) -> String {
        let words: Vec<_> = self.argv.iter().map(|word| word.to_string_lossy()).collect();
        let is_shell = |word: &Cow<str>| SHELLS.contains(&word.rsplit('/').next().unwrap_or_default());
        let runs = |at: usize| words[..at].last().is_some_and(|flag| flag.starts_with('-') && flag.ends_with('c')) && words[..at].iter().any(is_shell);
        let kept = words.iter().enumerate().filter(|(at, word)| !word.contains(char::is_whitespace) || runs(*at));
        shlex::try_join(kept.map(|(_, word)| &**word)).unwrap_or_default()
    }

    /// Starts the thread that passes an output on, until it ends or `stop` is closed.
    fn pump(&self, run: u32, output: Output, stop: Arc<OwnedFd>) -> JoinHandle<Unsettled> {
        let Output { io, from, to, done } = output;
        let origin = Origin { uid: (self.uid)(run, io), generation: 0 };
        let scan = (!self.is_blind).then(|| (self.journal.clone(), origin));
        let pump = Pump { io, input: from, output: to, kept: Kept::new(self.keep.0, self.keep.1), scan, command: self.command() };
        std::thread::spawn(move || {
            let pumped = pump.run(&stop);
            drop(done);
            pumped
        })
    }
}

/// An output of a run that is to be passed on.
struct Output {
    io: Io,
    from: File,
    to: File,
    /// Closed once the output is passed on. Without one, nobody can tell that, and the wait for it ends early.
    done: io::Result<io::PipeWriter>,
}

/// The state of the thread that waits.
struct Watch<'a> {
    attempt: &'a Attempt<'a>,
    started: &'a Started,
    signals: &'a Signals,
    ended: Option<Fate>,
    deadline: Option<Instant>,
    kill_at: Option<Instant>,
    killed: bool,
    timed_out: bool,
    interrupted: Option<Signal>,
    sent: Vec<Signal>,
}

impl<'a> Watch<'a> {
    fn new(attempt: &'a Attempt<'a>, started: &'a Started, signals: &'a Signals) -> Self {
        let deadline = attempt.timeout.and_then(|limit| Instant::now().checked_add(limit));
        let (ended, kill_at, killed, timed_out, interrupted, sent) = (None, None, false, false, None, Vec::new());
        Self { attempt, started, signals, ended, deadline, kill_at, killed, timed_out, interrupted, sent }
    }

    /// Waits until the command has ended, and after a timeout also everything that it started.
    fn until_ended(&mut self) -> io::Result<Fate> {
        loop {
            // Signals first: if SIGCHLD were consumed after the children are checked, the end of a child could be missed.
            while let Some(came) = self.signals.next()? {
                self.hand_on(came)?;
            }
            self.listen()?;
            self.reap()?;
            self.keep_limit();
            let is_alone = !self.timed_out || self.killed || self.family().members().is_empty();
            if let Some(status) = self.ended.filter(|_| is_alone) {
                return Ok(status);
            }
            let fate = self.started.fate.as_ref().filter(|_| self.ended.is_none()).map_or(self.signals.as_fd(), AsFd::as_fd);
            waiting::readable([self.signals.as_fd(), fate], self.patience())?;
        }
    }

    /// Waits until the last byte of the outputs is passed on; returns `false` if siftd is told to end first.
    fn until_passed_on(&mut self, done: impl AsFd) -> io::Result<bool> {
        loop {
            let [_, done] = waiting::readable([self.signals.as_fd(), done.as_fd()], None)?;
            if done {
                return Ok(true);
            }
            // All pending signals are looked at, whatever ended the wait: one that was consumed and not looked at would be lost.
            while let Some(came) = self.signals.next()? {
                if ends(came.signal) {
                    self.interrupted = Some(came.signal);
                    // A key press was meant for the command, which has ended.
                    if !came.from_key {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Takes over the keeper's report of how the command ended, if it has come.
    fn listen(&mut self) -> io::Result<()> {
        if let Some(fate) = self.started.fate.as_ref().filter(|_| self.ended.is_none())
            && waiting::readable([fate.as_fd()], Some(Duration::ZERO))?[0]
        {
            self.ended = Fate::heard(fate);
        }
        Ok(())
    }

    /// Reaps the processes that have ended, and records how the command ended if it is one of them.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.started.pid => {
                    // The keeper's report may have come in between.
                    self.listen()?;
                    self.ended.get_or_insert(Fate::of(ExitStatus::from_raw(status.as_raw())));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn patience(&self) -> Option<Duration> {
        let next = if self.timed_out { self.kill_at } else { self.deadline };
        let left = next.map(|at| at.saturating_duration_since(Instant::now()));
        // The end of a grandchild causes no signal, so poll.
        if self.timed_out { Some(left.unwrap_or(LOOK).min(LOOK)) } else { left }
    }

    fn hand_on(&mut self, came: Came) -> io::Result<()> {
        let signal = came.signal;
        if ends(signal) {
            self.interrupted = Some(signal);
        }
        let wiring = self.started.wiring();
        match signal {
            Signal::CHILD => {}
            // The command already got this signal from its own terminal.
            _ if came.from_key => self.sent.push(signal),
            Signal::WINCH => {
                self.started.resize();
                if wiring != Wiring::Session {
                    self.started.signal(signal);
                }
            }
            // The terminal has already sent it to the whole group.
            _ if wiring == Wiring::Shared && came.from_terminal => self.sent.push(signal),
            Signal::TSTP if wiring != Wiring::Shared => self.started.stop()?,
            _ => {
                self.sent.push(signal);
                self.started.signal(signal);
            }
        }
        Ok(())
    }

    fn keep_limit(&mut self) {
        let now = Instant::now();
        if !self.timed_out && self.ended.is_none() && self.deadline.is_some_and(|at| at <= now) {
            self.timed_out = true;
            self.kill_at = now.checked_add(self.attempt.kill_after);
            self.end_all(Signal::TERM);
            // A stopped process does not act on SIGTERM.
            self.family().signal(Signal::CONT);
        }
        if !self.killed && self.kill_at.is_some_and(|at| at <= now) {
            self.killed = true;
            self.end_all(Signal::KILL);
        }
    }

    fn end_all(&mut self, signal: Signal) {
        self.sent.push(signal);
        self.family().signal(signal);
        if signal == Signal::KILL {
            // Again, for processes that were started in between.
            self.family().signal(signal);
        }
    }

    fn family(&self) -> Family {
        let leads = self.started.wiring() != Wiring::Shared;
        Family { head: self.started.pid, leads, adopts: self.attempt.timeout.is_some(), stranger: self.attempt.journal.stranger() }
    }
}

/// Whether a signal tells siftd, and the command, to end.
fn ends(signal: Signal) -> bool {
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].contains(&signal)
}

/// Makes siftd the parent of orphaned descendants, so that it can end them, too, when the time limit is over.
pub fn adopt_orphans() {
    // If this fails, only processes in the command's own group are found.
    let _ = rustix::process::set_child_subreaper(Some(own()));
}

fn own() -> Pid {
    getpid()
}
