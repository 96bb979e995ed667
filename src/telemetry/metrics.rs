//! Counters and gauges of this process: plain atomics, updated once per read, batch or transaction, never per line.
//! The group of a source or sink is looked up by name once and then kept. The values outlive a reload, so that a
//! counter never falls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::words::{Category, Severity};

/// Returns the counters of this process.
#[must_use]
pub fn metrics() -> &'static Metrics {
    static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::default);
    &METRICS
}

/// A value that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the count so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value that may rise and fall.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Raises the value.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Lowers the value, but not below 0.
    pub fn sub(&self, less: u64) {
        // The closure never returns `None`, so this cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |value| Some(value.saturating_sub(less)));
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the buckets of a [`Histogram`], in microseconds.
pub const BOUNDS_US: [u64; 12] = [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000, 30_000_000];

/// The distribution of how long an operation took.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    /// Adds one duration.
    pub fn observe(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS_US.partition_point(|bound| *bound < micros);
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns how many durations were at most each of [`BOUNDS_US`], and how many there were in all.
    #[must_use]
    pub fn cumulative(&self) -> [u64; BOUNDS_US.len() + 1] {
        let mut sum = 0;
        std::array::from_fn(|at| {
            sum += self.buckets[at].load(Ordering::Relaxed);
            sum
        })
    }

    /// Returns the sum of all durations, in microseconds.
    #[must_use]
    pub fn sum_us(&self) -> u64 {
        self.sum_us.load(Ordering::Relaxed)
    }
}

/// A short text that changes rarely, such as the last error. It never contains text from a log.
#[derive(Debug, Default)]
pub struct Note(Mutex<Option<String>>);

impl Note {
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the text.
    pub fn set(&self, text: impl Into<String>) {
        *self.lock() = Some(text.into());
    }

    /// Removes the text.
    pub fn clear(&self) {
        self.lock().take();
    }

    /// Returns the text, if there is one.
    #[must_use]
    pub fn get(&self) -> Option<String> {
        self.lock().clone()
    }
}

/// Groups of counters, by name.
#[derive(Debug, Default)]
pub struct Named<T>(Mutex<BTreeMap<String, Arc<T>>>);

impl<T: Default> Named<T> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the group with this name; the first call creates it. A caller that counts often should keep it.
    pub fn of(&self, name: &str) -> Arc<T> {
        let mut all = self.lock();
        match all.get(name) {
            Some(known) => known.clone(),
            None => all.entry(name.to_owned()).or_default().clone(),
        }
    }

    /// Removes the group with this name.
    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Returns all groups, in the order of their names.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Arc<T>)> {
        self.lock().iter().map(|(name, group)| (name.clone(), group.clone())).collect()
    }
}

/// Events by category and severity.
#[derive(Debug, Default)]
pub struct Events([[Counter; Severity::ALL.len()]; Category::ALL.len()]);

impl Events {
    /// Adds `count` events of one kind.
    pub fn add(&self, category: Category, severity: Severity, count: u64) {
        self.0[category as usize][severity as usize].add(count);
    }

    /// Returns the count of one kind.
    #[must_use]
    pub fn get(&self, category: Category, severity: Severity) -> u64 {
        self.0[category as usize][severity as usize].get()
    }

    /// Returns the kinds that have occurred, with their counts.
    pub fn seen(&self) -> impl Iterator<Item = (Category, Severity, u64)> {
        let kinds = Category::ALL.iter().flat_map(|&category| Severity::ALL.iter().map(move |&severity| (category, severity)));
        kinds.map(|(category, severity)| (category, severity, self.get(category, severity))).filter(|(.., count)| *count > 0)
    }
}

/// The counters of one source.
#[derive(Debug, Default)]
pub struct SourceMetrics {
    /// Bytes that were read.
    pub bytes: Counter,
    /// Lines that were read.
    pub lines: Counter,
    /// Lines that passed the first stage and were examined closely.
    pub candidates: Counter,
    /// Lines that were cut.
    pub truncated: Counter,
    /// Lines without an event for which not every rule was tried.
    pub unasked: Counter,
    /// Sections of tools' outputs that were not followed to their end.
    pub cut_sections: Counter,
    /// Records of transcripts that are too long to be read.
    pub unread: Counter,
    /// Events that were committed.
    pub events: Events,
    /// Bytes that are available but not read yet.
    pub lag_bytes: Gauge,
    /// Files that are followed.
    pub files: Gauge,
    /// Connections that are open.
    pub connections: Gauge,
    /// Connections that were accepted.
    pub accepted: Counter,
    /// Connections that were turned away or ended by a limit, by the reason: a word such as `too_many`.
    pub refused: Named<Counter>,
    /// Datagrams that were received.
    pub datagrams: Counter,
    /// How often a command was restarted.
    pub restarts: Counter,
    /// Its type, as the configuration has it.
    pub kind: Note,
    /// What is wrong with it now.
    pub trouble: Note,
}

/// The counters of one sink.
#[derive(Debug, Default)]
pub struct SinkMetrics {
    /// Number of the last record that it has passed on or left out.
    pub seq: Gauge,
    /// Bytes that it has written.
    pub bytes: Counter,
    /// Writes or requests that failed and are retried.
    pub retries: Counter,
    /// Records that the peer has refused for good.
    pub dead_letters: Counter,
    /// How often it had to reconnect.
    pub reconnects: Counter,
    /// Its type, as the configuration has it.
    pub kind: Note,
    /// Why it cannot write now.
    pub trouble: Note,
}

/// What was missed, for one reason.
#[derive(Debug, Default)]
pub struct GapMetrics {
    /// `gap` records with this reason.
    pub count: Counter,
    /// Bytes missed, as far as is known.
    pub bytes: Counter,
    /// Events or datagrams missed, as far as is known.
    pub items: Counter,
}

/// The phase that the process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not everything is open yet.
    Starting,
    /// It is running.
    Ready,
    /// It writes what it has read, and ends.
    Stopping,
}

impl Phase {
    const ALL: [Self; 3] = [Self::Starting, Self::Ready, Self::Stopping];

    /// Returns the word for this phase.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Stopping => "stopping",
        }
    }
}

/// How often the configuration was reloaded, and with which outcome.
#[derive(Debug, Default)]
pub struct Reloads {
    /// Reloads that put a new configuration in force.
    pub succeeded: Counter,
    /// Reloads that failed, so that the old configuration stayed in force.
    pub failed: Counter,
    /// Time of the last reload, in microseconds since 1970; 0: never.
    pub at_us: Gauge,
    /// Why the last reload failed.
    pub error: Note,
}

impl Reloads {
    /// Counts a reload that succeeded.
    pub fn succeed(&self, at_us: i64) {
        self.succeeded.add(1);
        self.at_us.set(at_us.unsigned_abs());
        self.error.clear();
    }

    /// Counts a reload that failed.
    pub fn fail(&self, at_us: i64, why: &str) {
        self.failed.add(1);
        self.at_us.set(at_us.unsigned_abs());
        self.error.set(why);
    }
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By the name of the source.
    pub sources: Named<SourceMetrics>,
    /// By the name of the sink.
    pub sinks: Named<SinkMetrics>,
    /// By the word in the record, such as `rotated_away`.
    pub gaps: Named<GapMetrics>,
    /// Lines that a noise rule silenced, by its id.
    pub noise: Named<Gauge>,
    /// Bytes of records that at least one sink has not done.
    pub outbox_bytes: Gauge,
    /// Number of the last record that was committed.
    pub outbox_last: Gauge,
    /// Most bytes that may wait for sinks.
    pub outbox_max_bytes: Gauge,
    /// Descriptors that followed files hold.
    pub open_files: Gauge,
    /// How long transactions took.
    pub commit: Histogram,
    /// Transactions that failed.
    pub commit_failures: Counter,
    /// Why the state cannot be written now.
    pub state_trouble: Note,
    /// Whether the last check found that the pipeline does not move.
    pub is_stalled: AtomicBool,
    /// Reloads of the configuration.
    pub reloads: Reloads,
    /// When the process started, in microseconds since 1970.
    pub started_us: Gauge,
    phase: AtomicU8,
}

impl Metrics {
    /// Sets the phase.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Returns the phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Acquire)) % Phase::ALL.len()]
    }

    /// Why the process is unhealthy, if it is: only reasons that a restart may cure.
    #[must_use]
    pub fn illness(&self) -> Option<&'static str> {
        self.is_stalled.load(Ordering::Relaxed).then_some("the pipeline does not move")
    }

    /// Why the pipeline makes no progress, whether or not a restart may cure it.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.illness().map(str::to_owned).or_else(|| self.state_trouble.get().map(|why| format!("state: {why}")))
    }

    /// Returns the phase in a word, except that what makes no progress is not ready, whatever it has begun.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self.phase() {
            Phase::Ready if self.trouble().is_some() => "not_ready",
            phase => phase.as_str(),
        }
    }

    /// Returns how many errors were committed, over all sources.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.sources.all().iter().flat_map(|(_, source)| source.events.seen().map(|(.., count)| count).collect::<Vec<_>>()).sum()
    }

    /// Returns a one-line summary for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let sources = self.sources.all();
        let files: u64 = sources.iter().map(|(_, source)| source.files.get()).sum();
        let lag: u64 = sources.iter().map(|(_, source)| source.lag_bytes.get()).sum();
        let mut text =
            format!("{} sources, {files} files, {} errors found, {lag} B to read, {} B to write", sources.len(), self.events(), self.outbox_bytes.get());
        for (name, sink) in self.sinks.all().iter().filter(|(_, sink)| sink.trouble.get().is_some()) {
            text += &format!("; sink {name}: {}", sink.trouble.get().unwrap_or_default());
        }
        if self.reloads.error.get().is_some() {
            text += "; the configuration has mistakes, the old one goes on";
        }
        if let Some(trouble) = self.trouble() {
            text += &format!("; {trouble}");
        }
        text
    }
}
