//! Runs a user's command as a hook: program and arguments without a shell, a record on its stdin, its output sent to
//! stderr, and a time limit. No text from a log ever becomes part of a command line.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgid, kill_process_group};

/// Most records that may wait for a command.
const MAX_WAITING: usize = 64;
/// Longest time that a command may run.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two checks whether the command has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Runs `argv` to its end, or kills it after 30 s. `spawn` starts it.
///
/// # Errors
/// The command could not be started, failed, or took too long.
pub fn run(argv: &[String], record: &[u8], spawn: impl FnOnce(&mut Command) -> io::Result<Child>) -> io::Result<()> {
    ended(&mut start(argv, record, spawn)?, LIMIT, &AtomicBool::new(false))
}

fn start(argv: &[String], record: &[u8], spawn: impl FnOnce(&mut Command) -> io::Result<Child>) -> io::Result<Child> {
    let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    // stdout belongs to records, or to a command that is watched.
    let output: Stdio = io::stderr().as_fd().try_clone_to_owned()?.into();
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(output);
    let mut child = spawn(&mut command)?;
    if let Some(mut stdin) = child.stdin.take() {
        let record = record.to_vec();
        // A command that does not read its stdin must not hold up the next one.
        std::thread::spawn(move || drop(stdin.write_all(&record)));
    }
    Ok(child)
}

/// Waits for the end of a command; ends it after `limit`, or once `is_over`.
fn ended(child: &mut Child, limit: Duration, is_over: &AtomicBool) -> io::Result<()> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if !status.success() => return Err(io::Error::other(format!("it failed ({status})"))),
            // Err: code that reaps all children may have been first.
            Ok(Some(_)) | Err(_) => return Ok(()),
            Ok(None) if started.elapsed() > limit => {
                kill(child)?;
                return Err(io::Error::other(format!("ended after {} s", limit.as_secs())));
            }
            Ok(None) if is_over.load(Ordering::Acquire) => {
                kill(child)?;
                return Err(io::Error::other("it still ran at the end of siftd, and was ended"));
            }
            Ok(None) => std::thread::sleep(LOOK),
        }
    }
}

/// Kills a command that has not been waited for yet, and its group if it leads one.
fn kill(child: &mut Child) -> io::Result<()> {
    let pid = Pid::from_child(child);
    if getpgid(Some(pid)) == Ok(pid) {
        kill_process_group(pid, Signal::KILL)?;
    } else {
        child.kill()?;
    }
    // Otherwise it would stay a zombie as long as siftd runs.
    let _ = child.wait();
    Ok(())
}

/// What a command is run for, and how.
pub struct Hook {
    /// The option that names it, for messages.
    pub option: &'static str,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Starts it.
    pub spawn: fn(&mut Command) -> io::Result<Child>,
    /// Tells the user that a run has failed, or was left out.
    pub tell: fn(&str),
}

/// Runs a command for one record after another, on a thread of its own.
pub struct HookQueue {
    option: &'static str,
    tell: fn(&str),
    sender: SyncSender<Vec<u8>>,
    running: Arc<AtomicI32>,
    /// What runs is to be ended, and nothing more to be run.
    is_over: Arc<AtomicBool>,
    /// Returns the number of records that the command was not run for.
    thread: JoinHandle<usize>,
}

impl HookQueue {
    /// Starts the thread.
    #[must_use]
    pub fn new(hook: Hook) -> Self {
        let (option, tell) = (hook.option, hook.tell);
        let (sender, records) = sync_channel(MAX_WAITING);
        let running = Arc::new(AtomicI32::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let (pid, ends) = (running.clone(), is_over.clone());
        let thread = std::thread::spawn(move || serve(&hook, &records, &pid, &ends));
        Self { option, tell, sender, running, is_over, thread }
    }

    /// Queues a run for a record; if too many wait, this one is left out, which is told.
    pub fn call(&self, record: Vec<u8>) {
        if let Err(TrySendError::Full(_)) = self.sender.try_send(record) {
            (self.tell)(&format!("{}: {MAX_WAITING} records are waiting for it; one is left out", self.option));
        }
    }

    /// The process of the command that runs now, if any.
    #[must_use]
    pub fn running(&self) -> Option<Pid> {
        Pid::from_raw(self.running.load(Ordering::Relaxed))
    }

    /// Waits until the command has run for all waiting records.
    pub fn finish(self) {
        drop(self.sender);
        // A panic in the thread has already been reported.
        let _ = self.thread.join();
    }

    /// Waits like [`finish`](Self::finish), but not beyond `until`: a command that still runs then is ended, and the records
    /// that still wait are left out, which is told.
    pub fn finish_until(self, until: Instant) {
        drop(self.sender);
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        self.is_over.store(true, Ordering::Release);
        if let Ok(left @ 1..) = self.thread.join() {
            let records = if left == 1 { "1 record is".to_owned() } else { format!("{left} records are") };
            (self.tell)(&format!("{}: {records} left out, because siftd ends", self.option));
        }
    }
}

/// Runs the command for each record, and returns how many are left once `is_over`.
fn serve(hook: &Hook, records: &Receiver<Vec<u8>>, running: &AtomicI32, is_over: &AtomicBool) -> usize {
    let spawn = |command: &mut Command| {
        let child = (hook.spawn)(command)?;
        running.store(i32::try_from(child.id()).unwrap_or_default(), Ordering::Relaxed);
        Ok(child)
    };
    let mut left = 0;
    for record in records {
        if is_over.load(Ordering::Acquire) {
            left += 1;
            continue;
        }
        let done = start(&hook.argv, &record, spawn).and_then(|mut child| ended(&mut child, LIMIT, is_over));
        if let Err(error) = done {
            (hook.tell)(&format!("{} {}: {error}", hook.option, hook.argv.first().map_or("", String::as_str)));
        }
        running.store(0, Ordering::Relaxed);
    }
    left
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn one_runs_for_each_record_in_order_before_the_queue_ends() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let argv = ["sh", "-c", "cat >> \"$0\"", out.to_str().unwrap()].map(str::to_owned).to_vec();
        let queue = HookQueue::new(Hook { option: "test", argv, spawn: Command::spawn, tell: |text| panic!("{text}") });
        for record in ["a\n", "b\n", "c\n"] {
            queue.call(record.into());
        }
        queue.finish();
        assert_eq!(std::fs::read_to_string(out).unwrap(), "a\nb\nc\n");
    }

    #[test]
    fn what_finds_no_room_is_left_out_and_told() {
        static TOLD: AtomicI32 = AtomicI32::new(0);
        let tell = |text: &str| {
            assert_eq!(text, "--on-blocking: 64 records are waiting for it; one is left out");
            TOLD.fetch_add(1, Ordering::Relaxed);
        };
        let (sender, records) = sync_channel(MAX_WAITING);
        let queue = HookQueue { option: "--on-blocking", tell, sender, running: Arc::default(), is_over: Arc::default(), thread: std::thread::spawn(|| 0) };
        (0..MAX_WAITING + 2).for_each(|_| queue.call(Vec::new()));
        assert_eq!((TOLD.load(Ordering::Relaxed), records.try_iter().count()), (2, MAX_WAITING));
    }

    #[test]
    fn at_the_end_the_one_that_runs_is_ended_with_its_group_and_the_others_are_told() {
        static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let argv = ["sh", "-c", "sleep 600 & echo $! > \"$0\"; wait", out.to_str().unwrap()].map(str::to_owned).to_vec();
        let tell = |text: &str| TOLD.lock().unwrap().push(text.to_owned());
        let queue = HookQueue::new(Hook { option: "on_open", argv, spawn: |command| command.process_group(0).spawn(), tell });
        (0..3).for_each(|_| queue.call(Vec::new()));
        let begun = Instant::now();
        let pid = || std::fs::read_to_string(&out).unwrap_or_default();
        while !pid().ends_with('\n') {
            assert!(begun.elapsed() < LIMIT, "it does not begin");
            std::thread::sleep(LOOK);
        }
        queue.finish_until(Instant::now());
        assert_eq!(
            *TOLD.lock().unwrap(),
            ["on_open sh: it still ran at the end of siftd, and was ended", "on_open: 2 records are left out, because siftd ends"]
        );
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid().trim()));
        while state().is_ok_and(|stat| !stat.contains(") Z")) {
            assert!(begun.elapsed() < LIMIT, "it has left something");
            std::thread::sleep(LOOK);
        }
    }

    fn ran(argv: &[&str], record: &[u8]) -> io::Result<()> {
        run(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), record, Command::spawn)
    }

    #[test]
    fn one_that_fails_is_an_error() {
        ran(&["true"], b"{}\n").unwrap();
        ran(&["grep", "-q", "here"], b"here\n").unwrap();
        assert!(ran(&["false"], b"{}\n").unwrap_err().to_string().contains("exit status: 1"));
        assert!(ran(&["/nowhere/at/all"], b"").is_err());
    }

    #[test]
    fn one_that_takes_too_long_is_ended_and_leaves_nothing() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = format!("/proc/{}", child.id());
        assert!(ended(&mut child, Duration::ZERO, &AtomicBool::new(false)).unwrap_err().to_string().contains("ended after"));
        assert!(!std::path::Path::new(&process).exists(), "it is a zombie");
    }
}
