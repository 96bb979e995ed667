//! Sources that are no files, as the daemon runs them: one thread with a runtime on which their tasks wait for peers,
//! pipes and timers. What they read goes to the threads that read files, as turns like theirs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use super::wake::Wake;
use super::work::{Pool, Task};
use crate::core::engine::Engine;
use crate::core::event::Timestamp;
use crate::sources::flow::{Hooks, Intake, Nonce};
use crate::sources::service::Service;

/// All of them.
pub(super) struct Streams {
    intake: Arc<Intake>,
    runtime: Option<Handle>,
    running: Arc<AtomicUsize>,
    stops: Mutex<BTreeMap<String, watch::Sender<bool>>>,
    sender: Sender<Wake>,
}

impl Streams {
    /// None is running yet.
    pub fn new(engine: Arc<Engine>, nonce: Nonce, pool: &Arc<Pool>, sender: &Sender<Wake>) -> Self {
        let (pool, changed) = (pool.clone(), sender.clone());
        let hooks = Hooks { enqueue: Box::new(move |flow| pool.push(Task::Flow(flow))), changed: Box::new(move || drop(changed.send(Wake::Streams))) };
        let (running, stops) = Default::default();
        Self { intake: Intake::new(engine, nonce, hooks), runtime: None, running, stops, sender: sender.clone() }
    }

    /// Runs a source until it ends, or until [`stop`](Self::stop).
    ///
    /// # Errors
    /// There is no runtime to be had.
    pub fn start(&mut self, service: Service) -> Result<(), String> {
        let runtime = self.runtime()?;
        let (stop, stopped) = watch::channel(false);
        self.lock().insert(service.name().to_owned(), stop);
        self.running.fetch_add(1, Ordering::AcqRel);
        let (intake, running, sender) = (self.intake.clone(), self.running.clone(), self.sender.clone());
        runtime.spawn(async move {
            service.run(intake, stopped).await;
            running.fetch_sub(1, Ordering::AcqRel);
            drop(sender.send(Wake::Streams));
        });
        Ok(())
    }

    /// The runtime; the first question starts it.
    fn runtime(&mut self) -> Result<Handle, String> {
        if let Some(runtime) = &self.runtime {
            return Ok(runtime.clone());
        }
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| format!("no runtime for sockets: {error}"))?;
        let handle = self.runtime.insert(runtime.handle().clone()).clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Ok(handle)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, watch::Sender<bool>>> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells one source to end, because it is configured no more.
    #[expect(dead_code, reason = "a reload asks for it")]
    pub fn stop(&self, name: &str) {
        if let Some(stop) = self.lock().remove(name) {
            stop.send_replace(true);
        }
    }

    /// Tells all of them to end.
    pub fn stop_all(&self) {
        for (_, stop) in std::mem::take(&mut *self.lock()) {
            stop.send_replace(true);
        }
    }

    /// Whether something may still come of them.
    pub fn is_alive(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0 || self.intake.open_flows() > 0
    }

    /// When something open wants to be published.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.intake.deadline()
    }

    /// What is due gets a turn.
    pub fn due(&self, now: Timestamp) {
        self.intake.due(now);
    }
}
