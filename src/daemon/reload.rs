//! Reload on SIGHUP: the configuration is read and checked as a whole, then only what differs is changed. An invalid
//! configuration changes nothing: the old one stays in force, and the log and status say why.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::commit::Room;
use super::plan::{Again, Plan};
use super::serve::Daemon;
use super::streams::Changes;
use super::work::{self, Writer};
use crate::config::Config;
use crate::core::engine::Engine;
use crate::sources::clock::now;
use crate::state::queue::ControlMessage;
use crate::telemetry::{metrics, notify};

/// The parts of what runs that a new plan is compared with.
pub(super) struct Current {
    pub config: Config,
    pub rules_print: [u8; 16],
    pub engine: Arc<Engine>,
    pub state: Option<std::path::PathBuf>,
    pub again: Option<Again>,
    /// Names of all sources of files that were ever followed.
    pub sources: Vec<String>,
    /// Lines that noise rules of earlier engines silenced, by the rule's id.
    pub silenced: BTreeMap<String, u64>,
}

impl Current {
    /// Why a running process cannot switch to the new plan, if it cannot.
    fn refusal(&self, plan: &Plan) -> Option<&'static str> {
        match (&self.state, &plan.state) {
            (None, None) => None,
            (Some(old), Some(new)) if old == new => None,
            // Without any source siftd reads stdin, for which no state is kept.
            (Some(_), None) => Some("it has no source any more, and what runs with a state cannot go on without one"),
            (None, Some(_)) => Some("it has sources now, and what runs without a state cannot begin one"),
            (Some(_), Some(_)) => Some("state_dir cannot change while siftd runs"),
        }
    }
}

impl Daemon {
    /// Reloads the configuration if SIGHUP has asked for it.
    pub fn reload_if_asked(&mut self) {
        if !self.stop.reload.swap(false, Ordering::AcqRel) {
            return;
        }
        let Some(again) = &mut self.current.again else { return };
        notify::reloading();
        let made = again().and_then(|plan| match self.current.refusal(&plan) {
            Some(why) => Err(format!("{why}: restart it for that")),
            None => {
                let server = self.answers.other(plan.listen.as_ref())?;
                let changes = self.streams.changes(&plan.services, plan.grace, self.current.state.as_deref())?;
                Ok((plan, server, changes))
            }
        });
        match made {
            Ok((mut plan, server, changes)) => {
                self.answers.change(plan.listen.take(), server);
                self.apply(plan, changes);
                tracing::info!("the configuration was read anew");
                metrics().reloads.succeed(now().0);
            }
            Err(why) => {
                tracing::error!("the configuration was not read anew, the old one goes on: {why}");
                metrics().reloads.fail(now().0, &why);
            }
        }
        notify::ready();
    }

    fn apply(&mut self, mut plan: Plan, changes: Changes) {
        let at = now();
        let until = Instant::now() + plan.grace;
        self.grace = plan.grace;
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = Room { outbox_max: plan.outbox_max, dropping: plan.dropping, on_open: plan.on_open };
        self.queue.tell(ControlMessage::Withhold(plan.withhold));
        self.queue.tell(ControlMessage::Ledger(plan.ledger));
        self.writer.set(Writer {
            host: plan.host,
            max_event_bytes: plan.max_event_bytes,
            says_all: self.is_durable,
            labels: plan.labels,
            listened_to: plan.silence.keys().cloned().collect(),
        });
        let said = self.silence.set_limits(plan.silence, at);
        self.say(said);
        let engine = if plan.rules_print == self.current.rules_print { self.current.engine.clone() } else { plan.engine };
        self.streams.apply(changes, std::mem::take(&mut plan.services), &engine);

        let names: Vec<String> = plan.specs.iter().map(|spec| spec.name.clone()).filter(|name| !self.current.sources.contains(name)).collect();
        let new = self.follower.reconfigure(&engine, plan.specs, |name| names.iter().any(|new| new == name), at);
        for (uid, label, mark) in new {
            self.queue.put(work::mark_only(uid, label, mark, at));
        }
        if !names.is_empty() {
            self.queue.tell(ControlMessage::Sources(names.clone()));
        }
        self.watch_folders();
        self.look_soon = Some(Instant::now());

        let old = std::mem::replace(&mut self.current.config, plan.config);
        let new = &self.current.config;
        let of = |config: &Config, name: &str| config.sinks.iter().find(|sink| sink.name == name).cloned();
        self.sinks.change(plan.sinks, |name| of(&old, name) == of(new, name), until);
        self.forget_sources(&old);

        self.current.sources.extend(names);
        if !Arc::ptr_eq(&engine, &self.current.engine) {
            for (rule, count) in self.current.engine.silenced() {
                *self.current.silenced.entry(rule.to_owned()).or_default() += count;
            }
        }
        (self.current.engine, self.current.rules_print) = (engine, plan.rules_print);
    }

    /// Removes the counters of sources that are no longer configured.
    fn forget_sources(&self, old: &Config) {
        let gone = old.sources.iter().filter(|source| !self.current.config.sources.iter().any(|other| other.name == source.name));
        gone.for_each(|source| metrics().sources.remove(&source.name));
    }
}
