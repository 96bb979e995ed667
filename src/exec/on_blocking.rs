//! `--on-blocking`: runs a user's command for each blocking error, once for each signature. It gets the record on its
//! stdin; no text from a log ever becomes part of a command line. One runs at a time, with a time limit.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rustix::process::Pid;

use super::{signals, tell};
use crate::core::text::Hex;
use crate::hook;

/// Most records that may wait.
const MAX_WAITING: usize = 64;

/// Most signatures that it runs for.
const MAX_SEEN: usize = 1 << 16;

/// The user's command and the thread that runs it.
pub struct Hook {
    sender: SyncSender<Vec<u8>>,
    seen: Mutex<HashSet<Hex>>,
    running: Arc<AtomicI32>,
    thread: JoinHandle<()>,
}

impl Hook {
    /// Starts the thread that runs `argv`.
    #[must_use]
    pub fn new(argv: Vec<String>) -> Self {
        let (sender, records) = sync_channel(MAX_WAITING);
        let running = Arc::new(AtomicI32::new(0));
        let pid = running.clone();
        let thread = std::thread::spawn(move || serve(&argv, &records, &pid));
        Self { sender, seen: Mutex::default(), running, thread }
    }

    /// Queues a run for a record, unless there was one for that signature before.
    pub fn call(&self, signature: Hex, record: &[u8]) {
        if self.takes_note(signature) && self.sender.try_send(record.to_vec()).is_err() {
            tell("--on-blocking: too many errors are waiting for it; one was left out");
        }
    }

    /// Notes a signature. Returns `true` if it is new, and there was room for it.
    fn takes_note(&self, signature: Hex) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = seen.len() < MAX_SEEN && seen.insert(signature);
        if is_new && seen.len() == MAX_SEEN {
            tell(&format!("--on-blocking: {MAX_SEEN} different errors; it does not run for others"));
        }
        is_new
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
}

fn serve(argv: &[String], records: &Receiver<Vec<u8>>, pid: &AtomicI32) {
    for record in records {
        if let Err(error) = run(argv, &record, pid) {
            tell(&format!("--on-blocking {}: {error}", argv.first().map_or("", String::as_str)));
        }
        pid.store(0, Ordering::Relaxed);
    }
}

fn run(argv: &[String], record: &[u8], pid: &AtomicI32) -> io::Result<()> {
    // stdout belongs to the command that is watched.
    hook::run(argv, record, |command| {
        let child = signals::as_before(|| command.spawn())?;
        pid.store(i32::try_from(child.id()).unwrap_or_default(), Ordering::Relaxed);
        Ok(child)
    })
}
