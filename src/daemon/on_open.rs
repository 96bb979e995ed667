//! Runs the user's command for each breaker that has opened, one at a time, on a thread of its own.

use std::process::Command;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use crate::hook;

/// Most records that may wait.
const MAX_WAITING: usize = 64;

/// The command and the thread that runs it.
pub(super) struct OnOpen {
    sender: SyncSender<Vec<u8>>,
    thread: JoinHandle<()>,
}

impl OnOpen {
    /// Starts the thread; `None` if there is no command.
    pub fn new(argv: Vec<String>) -> Option<Self> {
        if argv.is_empty() {
            return None;
        }
        let (sender, records) = sync_channel(MAX_WAITING);
        let thread = std::thread::spawn(move || serve(&argv, &records));
        Some(Self { sender, thread })
    }

    pub fn call(&self, record: Vec<u8>) {
        if let Err(TrySendError::Full(_)) = self.sender.try_send(record) {
            tracing::warn!("on_open: {MAX_WAITING} breakers are waiting for it; one is left out");
        }
    }

    /// Waits until the command has run for all waiting records.
    pub fn finish(self) {
        drop(self.sender);
        // A panic in the thread has already been reported.
        let _ = self.thread.join();
    }
}

fn serve(argv: &[String], records: &Receiver<Vec<u8>>) {
    for record in records {
        if let Err(error) = hook::run(argv, &record, Command::spawn) {
            tracing::warn!("on_open {}: {error}", argv.first().map_or("", String::as_str));
        }
    }
}
