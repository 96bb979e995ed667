//! The command that is run when a breaker opens: a reload replaces it, the committer calls it, and the end of the run
//! waits for it.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::hook::{Hook, HookQueue};

/// The command, if there is one.
#[derive(Clone, Default)]
pub(super) struct OnOpen(Arc<Mutex<Option<HookQueue>>>);

impl OnOpen {
    fn lock(&self) -> MutexGuard<'_, Option<HookQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `argv` for the breakers that open from now on; without words, nothing.
    pub fn set(&self, argv: &[String]) {
        let tell = |text: &str| tracing::warn!("{text}");
        // A group of its own, so that nothing of it is left if it has to be ended.
        let spawn = |command: &mut Command| command.process_group(0).spawn();
        *self.lock() = (!argv.is_empty()).then(|| HookQueue::new(Hook { option: "on_open", argv: argv.to_vec(), spawn, tell }));
    }

    /// Runs it for these records, one after another, without waiting for that.
    pub fn call(&self, opened: Vec<Vec<u8>>) {
        if let Some(queue) = &*self.lock() {
            opened.into_iter().for_each(|record| queue.call(record));
        }
    }

    /// Waits until it has run for all records, but not beyond `until`: what is left then is ended or left out, and told.
    pub fn finish(&self, until: Instant) {
        let queue = self.lock().take();
        queue.into_iter().for_each(|queue| queue.finish_until(until));
    }
}
