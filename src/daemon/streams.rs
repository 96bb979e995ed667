//! Runs the sources that are not files: their tasks share one thread with a runtime, where they wait for peers, pipes
//! and timers. The threads that read files also process these sources' input, in turns of the same kind. A reload
//! stops the sources that are gone, starts new ones, and restarts changed ones; the others are not touched.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::wake::Wake;
use super::work::{Pool, Task};
use crate::config::{SourceConfig, SourceKind};
use crate::core::engine::Engine;
use crate::core::event::Timestamp;
use crate::delivery::{Mark, Uid};
use crate::sources::flow::{Hooks, Intake, Nonce};
use crate::sources::service::{Around, Service};
use crate::sources::socket::passed::Passed;
use crate::state::store::Store;
use crate::telemetry::metrics;

/// All sources that are not files.
pub(super) struct Streams {
    intake: Arc<Intake>,
    nonce: Nonce,
    runtime: Option<Handle>,
    running: Arc<AtomicUsize>,
    tasks: BTreeMap<String, (watch::Sender<bool>, JoinHandle<()>)>,
    sender: Sender<Wake>,
    configs: Vec<SourceConfig>,
    /// Sources that have changed and could not be restarted: the next reload treats them as new.
    failed: Arc<Mutex<HashSet<String>>>,
}

/// What a reload does.
pub(super) struct Changes {
    ends: Vec<String>,
    begins: Vec<Service>,
    /// Changed sources, which can be restarted only once their old task has ended.
    again: Vec<SourceConfig>,
}

/// Limits the source's `stop_timeout` so that time for SIGKILL remains within the grace.
pub(super) fn within(mut config: SourceConfig, grace: Duration) -> SourceConfig {
    config.stop_timeout = config.stop_timeout.min(grace.mul_f64(0.8));
    config
}

impl Streams {
    /// Makes the set, with no source running yet.
    pub fn new(engine: Arc<Engine>, nonce: Nonce, pool: &Arc<Pool>, sender: &Sender<Wake>, configs: Vec<SourceConfig>) -> Self {
        let (pool, changed) = (pool.clone(), sender.clone());
        let hooks = Hooks { enqueue: Box::new(move |flow| pool.push(Task::Flow(flow))), changed: Box::new(move || drop(changed.send(Wake::Streams))) };
        Self {
            intake: Intake::new(engine, nonce, hooks),
            nonce,
            runtime: None,
            running: Arc::default(),
            tasks: BTreeMap::new(),
            sender: sender.clone(),
            configs,
            failed: Arc::default(),
        }
    }

    /// Starts a source, which runs until it ends or is told to stop.
    ///
    /// # Errors
    /// The runtime could not be started.
    pub fn start(&mut self, service: Service) -> Result<(), String> {
        let name = service.name().to_owned();
        if lock(&self.failed).remove(&name) {
            metrics().sources.of(&name).trouble.clear();
        }
        let intake = self.intake.clone();
        self.spawn(name, move |stopped| async move { service.run(intake, stopped).await })
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&mut self, name: String, run: impl FnOnce(watch::Receiver<bool>) -> F) -> Result<(), String> {
        let runtime = self.runtime()?;
        let (stop, stopped) = watch::channel(false);
        self.running.fetch_add(1, Ordering::AcqRel);
        let (running, sender, run) = (self.running.clone(), self.sender.clone(), run(stopped));
        let task = runtime.spawn(async move {
            run.await;
            running.fetch_sub(1, Ordering::AcqRel);
            drop(sender.send(Wake::Streams));
        });
        self.tasks.insert(name, (stop, task));
        Ok(())
    }

    /// Returns the runtime; the first call starts it.
    fn runtime(&mut self) -> Result<Handle, String> {
        if let Some(runtime) = &self.runtime {
            return Ok(runtime.clone());
        }
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| format!("no runtime for sockets: {error}"))?;
        let handle = self.runtime.insert(runtime.handle().clone()).clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Ok(handle)
    }

    /// Whether some stream could not be read to its end.
    pub fn has_failed(&self) -> bool {
        self.intake.has_failed()
    }

    /// Returns what a reload would do, and prepares what can be prepared; nothing running is changed yet.
    ///
    /// # Errors
    /// A source could not begin, or cannot change while siftd runs.
    pub fn changes(&self, new: &[SourceConfig], grace: Duration, state: Option<&Path>) -> Result<Changes, String> {
        let failed = lock(&self.failed);
        let old_of = |name: &str| self.configs.iter().find(|old| old.name == name && !failed.contains(name));
        let mut changes = Changes { ends: Vec::new(), begins: Vec::new(), again: Vec::new() };
        changes.ends.extend(self.configs.iter().filter(|old| !new.iter().any(|new| new.name == old.name)).map(|old| old.name.clone()));
        let of_stdin = |source: &&SourceConfig| source.kind == SourceKind::Stdin;
        if self.configs.iter().find(of_stdin) != new.iter().find(of_stdin) {
            return Err("a source that reads stdin cannot come, go or change while siftd runs: restart it for that".to_owned());
        }
        for source in new.iter().filter(|new| old_of(&new.name) != Some(new)) {
            let source = within(source.clone(), grace);
            match old_of(&source.name) {
                Some(old) if SourceKind::Journald == old.kind || SourceKind::Journald == source.kind => {
                    return Err(format!("source {:?} reads the journal and cannot change while siftd runs: restart it for that", source.name));
                }
                Some(_) => match Service::check(&source, self.nonce) {
                    // `true`: the address is taken, most likely by this source's old task.
                    Ok(()) | Err((_, true)) => changes.again.push(source),
                    Err((why, false)) => return Err(why),
                },
                None => {
                    let known = |name: &str| journal(state, name);
                    let mut around = Around { passed: &mut Passed::default(), known: &known, nonce: self.nonce };
                    changes.begins.push(Service::prepare(source, &mut around)?);
                }
            }
        }
        Ok(changes)
    }

    /// Applies the changes. Open streams continue with the rules that they began with.
    pub fn apply(&mut self, changes: Changes, configs: Vec<SourceConfig>, engine: &Arc<Engine>) {
        self.intake.set_engine(engine.clone());
        changes.ends.iter().for_each(|name| drop(self.end(name)));
        let mut done: Vec<Result<(), String>> = changes.begins.into_iter().map(|service| self.start(service)).collect();
        for source in changes.again {
            done.push(self.start_again(source));
        }
        done.into_iter().filter_map(Result::err).for_each(|why| tracing::error!("{why}"));
        self.configs = configs;
    }

    /// Restarts a changed source once its old task has ended.
    fn start_again(&mut self, source: SourceConfig) -> Result<(), String> {
        let (before, intake, nonce, failed) = (self.end(&source.name), self.intake.clone(), self.nonce, self.failed.clone());
        self.spawn(source.name.clone(), move |stopped| async move {
            if let Some(before) = before
                && let Err(error) = before.await
            {
                tracing::error!("source {}: {error}", source.name);
            }
            let name = source.name.clone();
            let ready = Service::prepare(source, &mut Around { passed: &mut Passed::default(), known: &|_| None, nonce });
            match ready {
                Ok(service) => {
                    lock(&failed).remove(&name);
                    service.run(intake, stopped).await;
                }
                Err(why) => {
                    lock(&failed).insert(name.clone());
                    metrics().sources.of(&name).trouble.set(&why);
                    tracing::error!("{why}");
                }
            }
        })
    }

    /// Tells one source to stop, and returns its task, to be awaited.
    fn end(&mut self, name: &str) -> Option<JoinHandle<()>> {
        let (stop, task) = self.tasks.remove(name)?;
        stop.send_replace(true);
        Some(task)
    }

    /// Tells all sources to stop.
    pub fn stop_all(&self) {
        for (stop, _) in self.tasks.values() {
            stop.send_replace(true);
        }
    }

    /// Whether any source or stream is still open, so that more input may come.
    pub fn is_alive(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0 || self.intake.open_flows() > 0
    }

    /// When an open event is next due to be published.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.intake.deadline()
    }

    /// Gives a turn to each stream that is due.
    pub fn due(&self, now: Timestamp) {
        self.intake.due(now);
    }
}

/// Looks up how far a source had read its journal.
fn journal(state: Option<&Path>, name: &str) -> Option<(Uid, Mark)> {
    let rows = Store::look(state?).ok()??.streams().ok()?;
    rows.into_iter().find(|row| !row.is_file() && row.label.source == name).map(|row| (row.uid, row.mark))
}

fn lock(failed: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
    failed.lock().unwrap_or_else(PoisonError::into_inner)
}
