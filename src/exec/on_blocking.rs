//! `--on-blocking`: runs a user's command for each blocking error, once for each signature.

use std::collections::HashSet;
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;

use rustix::process::Pid;

use super::{signals, tell};
use crate::core::text::Hex;
use crate::hook::{Hook, HookQueue};

/// Most signatures that it runs for.
const MAX_SEEN: usize = 1 << 16;

/// The user's command, and what it has run for.
pub struct OnBlocking {
    queue: HookQueue,
    seen: Mutex<HashSet<Hex>>,
}

impl OnBlocking {
    /// Starts the thread that runs `argv`.
    #[must_use]
    pub fn new(argv: Vec<String>) -> Self {
        let spawn = |command: &mut Command| signals::as_before(|| command.spawn());
        Self { queue: HookQueue::new(Hook { option: "--on-blocking", argv, spawn, tell }), seen: Mutex::default() }
    }

    /// Queues a run for a record, unless there was one for that signature before.
    pub fn call(&self, signature: Hex, record: &[u8]) {
        if self.takes_note(signature) {
            self.queue.call(record.to_vec());
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
        self.queue.running()
    }

    /// Waits until the command has run for all waiting records.
    pub fn finish(self) {
        self.queue.finish();
    }
}
