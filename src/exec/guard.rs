//! The breaker around a run: asked before the run and told afterwards. Other processes share it through the state.

use std::process::Command;

use super::{signals, tell};
use crate::core::breaker::{Breaker, State, Transition};
use crate::core::event::Timestamp;
use crate::core::text::Hex;
use crate::delivery::{Label, Notice};
use crate::hook;
use crate::memory::{Memory, PATIENCE};
use crate::sinks::human::breaker::{self as words, Telling};
use crate::sinks::notice;
use crate::sources::clock::now;
use crate::state::breakers::Kept;
use crate::state::shared::{Changed, Trigger};
use crate::verdict::counts;
use crate::verdict::{Said, Verdict};

/// A breaker's name, and how another command finds it.
pub struct BreakerName {
    /// The name.
    pub name: String,
    /// The flags that select its state, each preceded by a space.
    pub flags: String,
}

/// The breaker around a run.
pub struct Guard {
    memory: Memory,
    named: BreakerName,
    host: String,
    on_open: Vec<String>,
}

impl Guard {
    /// Creates the breaker of this name. Its records name the machine `host`; `on_open` is run when it opens.
    #[must_use]
    pub fn new(memory: Memory, named: BreakerName, host: String, on_open: Vec<String>) -> Self {
        Self { memory, named, host, on_open }
    }

    fn step(&self, trigger: Hex, step: &dyn Fn(&mut Breaker, Timestamp) -> Vec<Transition>) -> Result<Changed, String> {
        let at = now();
        let write = |out: &mut Vec<u8>, label: &Label, said: &Notice, at| notice::write(out, &self.host, label, said, at);
        self.memory.with(PATIENCE, |shared| shared.step(&self.named.name, Trigger { id: &trigger, write: &write, now: at }, &|breaker| step(breaker, at)))
    }

    /// Describes the breaker in one sentence.
    fn sentence(&self, kept: &Kept) -> String {
        let sample = words::telling(&kept.breaker).and_then(|signature| {
            let found = self.memory.with(PATIENCE, |shared| shared.begin_with(&signature)).unwrap_or_default();
            found.into_iter().next().map(|entry| entry.sample)
        });
        let telling = Telling { name: &self.named.name, flags: &self.named.flags, breaker: &kept.breaker, why: &kept.why, sample: sample.as_deref() };
        words::sentence(&telling, &self.memory.rules.breaker)
    }

    /// Asks whether a run may start; tells the user if it is refused or a probe. Returns `false` if the breaker is open.
    ///
    /// # Errors
    /// Another process holds the state; the error is worded for the user.
    pub fn ask(&self, trigger: Hex) -> Result<bool, String> {
        let limits = &self.memory.rules.breaker;
        let known = self.memory.with(PATIENCE, |shared| shared.breaker(&self.named.name))?;
        let Some(mut kept) = known else { return Ok(true) };
        if !kept.breaker.clone().pass(limits, now()).is_empty() {
            kept = self.step(trigger, &|breaker, at| breaker.pass(limits, at))?.kept;
        }
        // The run that caused a warning has already reported it.
        if kept.breaker.state == State::Open || kept.breaker.is_probe {
            tell(&format!("breaker {}", self.sentence(&kept)));
        }
        Ok(kept.breaker.state != State::Open)
    }

    /// Records how a run went. Returns the records of the changes that this caused.
    ///
    /// # Errors
    /// Another process holds the state; the run is not counted.
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
