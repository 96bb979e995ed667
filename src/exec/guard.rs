//! The breaker around a run: asked before, told after. It is shared with other processes through the state.

use std::process::Command;

use super::{signals, tell};
use crate::core::breaker::{Breaker, State, Transition};
use crate::core::event::Timestamp;
use crate::core::text::Hex;
use crate::delivery::{Label, Notice};
use crate::hook;
use crate::memory::{Memory, PATIENCE};
use crate::sinks::human::breaker as words;
use crate::sinks::notice;
use crate::sources::clock::now;
use crate::state::breakers::Kept;
use crate::state::shared::Changed;
use crate::verdict::counts;
use crate::verdict::{Said, Verdict};

/// The breaker around a run.
pub struct Guard {
    memory: Memory,
    name: String,
    /// The flags that lead to its state.
    flags: String,
    host: String,
    on_open: Vec<String>,
}

impl Guard {
    /// The breaker `name`. `flags`: those that lead another command to its state, with a space before each.
    #[must_use]
    pub fn new(memory: Memory, (name, flags): (String, String), host: String, on_open: Vec<String>) -> Self {
        Self { memory, name, flags, host, on_open }
    }

    fn step(&self, trigger: Hex, step: &dyn Fn(&mut Breaker, Timestamp) -> Vec<Transition>) -> Result<Changed, String> {
        let at = now();
        let write = |out: &mut Vec<u8>, label: &Label, said: &Notice, at| notice::write(out, &self.host, label, said, at);
        self.memory.with(PATIENCE, |shared| shared.step(&self.name, &trigger, (&write, at), &|breaker| step(breaker, at)))
    }

    /// The breaker in one sentence.
    fn sentence(&self, kept: &Kept) -> String {
        let sample = words::telling(&kept.breaker).and_then(|signature| {
            let found = self.memory.with(PATIENCE, |shared| shared.begin_with(&signature)).unwrap_or_default();
            found.into_iter().next().map(|entry| entry.sample)
        });
        words::sentence((&self.name, &self.flags), &kept.breaker, &kept.why, &self.memory.rules.breaker, sample.as_deref())
    }

    /// Asks before a run, and says so if that is refused or a probe; false: it is open.
    ///
    /// # Errors
    /// The state is held, in words for the user.
    pub fn ask(&self, trigger: Hex) -> Result<bool, String> {
        let limits = &self.memory.rules.breaker;
        let known = self.memory.with(PATIENCE, |shared| shared.breaker(&self.name))?;
        let Some(mut kept) = known else { return Ok(true) };
        if !kept.breaker.clone().pass(limits, now()).is_empty() {
            kept = self.step(trigger, &|breaker, at| breaker.pass(limits, at))?.kept;
        }
        // A warning was said by who brought it about, after that run.
        if kept.breaker.state == State::Open || kept.breaker.is_probe {
            tell(&format!("breaker {}", self.sentence(&kept)));
        }
        Ok(kept.breaker.state != State::Open)
    }

    /// Tells it how a run went. Returns the records of what that changed.
    ///
    /// # Errors
    /// The state is held; the run is not counted then.
    pub fn record(&self, trigger: Hex, verdict: &Verdict, said: &Said, not_started: bool) -> Result<Vec<u8>, String> {
        let limits = &self.memory.rules.breaker;
        let failure = counts::of_run(verdict, said, not_started);
        let changed = self.step(trigger, &|breaker, at| match &failure {
            Some(failure) => breaker.failure(failure, limits, at),
            None => breaker.success(limits, at),
        })?;
        if !changed.records.is_empty() {
            tell(&format!("breaker {}", self.sentence(&changed.kept)));
        }
        if let Some(record) = changed.opened.as_ref().filter(|_| !self.on_open.is_empty())
            && let Err(error) = hook::run(&self.on_open, record, |command: &mut Command| signals::as_before(|| command.spawn()))
        {
            tell(&format!("on_open {}: {error}", self.on_open[0]));
        }
        Ok(changed.records.concat())
    }
}
