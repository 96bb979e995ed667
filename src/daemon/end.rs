//! The end of a run: reads and writes what is there within `shutdown_grace`, and reports what could not be.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::plan::Ended;
use super::serve::Daemon;
use super::wake::{Stop, Wake};
use crate::state::outbox::Outbox;
use crate::telemetry::metrics::Phase;
use crate::telemetry::{metrics, notify};

/// An end that takes longer than this is explained.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads what is there already, writes what was read, and returns how the run ended. From here on everything has a
/// time limit.
pub(super) fn end(mut daemon: Daemon, committing: JoinHandle<()>, wakes: &Receiver<Wake>, outbox: &Arc<Outbox>) -> Result<Ended, String> {
    metrics().set_phase(Phase::Stopping);
    notify::stopping();
    daemon.pulse.end();
    let until = *daemon.stop.until.get_or_init(|| Instant::now() + daemon.grace);
    let (stop, on_open, written) = (daemon.stop.clone(), daemon.on_open.clone(), outbox.clone());
    let explained = explain_wait(stop.clone(), until, move || unfinished(&written));
    let unread = daemon.drain(wakes, until);
    daemon.queue.close();
    let is_durable = daemon.is_durable;
    // After a failure or a closed pipe, unread files are no reason to complain.
    let is_cut = unread > 0 && !is_durable && daemon.failed.is_none();
    if is_cut {
        let files = if unread == 1 { "1 file was".to_owned() } else { format!("{unread} files were") };
        tracing::error!("shutdown_grace is over: {files} not read to the end; with --state-dir the next start would go on there");
    }
    let (sinks, ended) = daemon.ended();
    let late = until + Duration::from_millis(500);
    let has_joined = join_all(committing, sinks.into_threads(), late);
    drop(explained);
    let last = LastWords::of(wakes);
    let is_whole = has_joined && last.left.is_empty() && !is_cut;
    for (sink, count) in &last.left {
        left(sink, *count, is_durable);
    }
    match (has_joined, is_durable) {
        (true, _) => {}
        (false, true) => tracing::warn!("shutdown_grace is over: {} records wait in the state for the next start", outbox.waiting()),
        (false, false) => {
            tracing::error!("shutdown_grace is over: up to {} records are lost; with --state-dir they would wait for the next start", outbox.waiting());
        }
    }
    let _explained = explain_wait(stop, until, || "the command of on_open still runs".to_owned());
    on_open.finish(late);
    match last.failed {
        Some(why) => ended.and(Err(why)),
        None if is_whole || is_durable => ended,
        None => ended.map(|_| Ended::Troubled),
    }
}

/// Says what has not been done yet.
fn unfinished(outbox: &Outbox) -> String {
    match outbox.waiting() {
        0 => "what is there is still being read".to_owned(),
        1 => "1 record is not written yet".to_owned(),
        waiting => format!("{waiting} records are not written yet"),
    }
}

/// Says what is waited for, if the end takes long; not any more once the returned sender is dropped.
fn explain_wait(stop: Arc<Stop>, until: Instant, what: impl FnOnce() -> String + Send + 'static) -> Sender<()> {
    let (ended, ends) = channel();
    std::thread::spawn(move || {
        if ends.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let seconds = until.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
        let sooner = if stop.is_asked.load(Ordering::Acquire) { "; another signal (Ctrl-C) ends it now" } else { "" };
        tracing::warn!("ending: {}; it ends in {seconds} s at the latest (shutdown_grace){sooner}", what());
    });
    ended
}

/// What the threads reported when they ended.
#[derive(Default)]
struct LastWords {
    /// Sinks that could not write everything, with the number of records left.
    left: Vec<(String, u64)>,
    /// Why not everything that was read is in the state.
    failed: Option<String>,
}

impl LastWords {
    fn of(wakes: &Receiver<Wake>) -> Self {
        let mut last = Self::default();
        for wake in wakes.try_iter() {
            match wake {
                Wake::SinkEnded(name, count) if count > 0 => last.left.push((name, count)),
                Wake::Failed(why) => last.failed = Some(why),
                _ => {}
            }
        }
        last
    }
}

/// Logs how many records a sink could not write.
fn left(sink: &str, count: u64, is_durable: bool) {
    let records = if count == 1 { "1 record".to_owned() } else { format!("{count} records") };
    if is_durable {
        tracing::warn!("sink {sink}: {records} could not be written by now and {} in the state for the next start", if count == 1 { "waits" } else { "wait" });
    } else {
        let are = if count == 1 { "is lost; with --state-dir it" } else { "are lost; with --state-dir they" };
        tracing::error!("sink {sink}: {records} could not be written within shutdown_grace and {are} would wait for the next start");
    }
}

/// Waits for the threads; returns `false` if time runs out first.
fn join_all(committing: JoinHandle<()>, sinks: Vec<JoinHandle<()>>, until: Instant) -> bool {
    for thread in sinks.into_iter().chain([committing]) {
        while !thread.is_finished() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    true
}
