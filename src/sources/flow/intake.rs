//! All streams that are not files: opens them, bounds their unprocessed bytes, and knows
//! which of them is due next. What a stream does with its bytes is up to [`Flow`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, Semaphore};

use super::{Flow, MAX_WAITING_BYTES, Work, lock};
use crate::core::engine::Engine;
use crate::core::event::Timestamp;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::core::transcript::Mode;
use crate::delivery::{Label, Uid};
use crate::sources::cursor::Cursors;

/// Gives a stream a unique identity.
pub type Nonce = fn() -> Uid;

/// How the bytes of a stream are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Whether lines may be syslog messages.
    pub syslog: bool,
    /// Maximum length of a line, beyond which it is cut; `None`: the limit of all streams.
    pub max_line_bytes: Option<usize>,
}

/// What streams need from the process that runs them.
pub struct Hooks {
    /// Makes a thread take the stream's turn.
    pub enqueue: Box<dyn Fn(Arc<Flow>) + Send + Sync>,
    /// Called when a stream has ended, or is due earlier than was known.
    pub changed: Box<dyn Fn() + Send + Sync>,
}

/// All streams that are not files.
pub struct Intake {
    engine: Mutex<Arc<Engine>>,
    nonce: Nonce,
    pub(super) hooks: Hooks,
    pub(super) budget: Arc<Semaphore>,
    pub(super) timers: Mutex<BTreeMap<(Timestamp, u64), Arc<Flow>>>,
    count: AtomicUsize,
    pub(super) open: AtomicUsize,
    pub(super) has_failed: AtomicBool,
}

impl Intake {
    /// Starts without streams.
    #[must_use]
    pub fn new(engine: Arc<Engine>, nonce: Nonce, hooks: Hooks) -> Arc<Self> {
        Arc::new(Self {
            engine: Mutex::new(engine),
            nonce,
            hooks,
            budget: Arc::new(Semaphore::new(MAX_WAITING_BYTES)),
            timers: Mutex::default(),
            count: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Sets the rules and limits of streams opened from now on.
    pub fn set_engine(&self, engine: Arc<Engine>) {
        *lock(&self.engine) = engine;
    }

    /// Returns how streams opened now are read.
    #[must_use]
    pub fn mode(&self) -> Mode {
        lock(&self.engine).limits.mode
    }

    /// Opens a new stream.
    #[must_use]
    pub fn open(self: &Arc<Self>, label: Label, reading: Reading) -> Arc<Flow> {
        let uid = (self.nonce)();
        let mut stream = Stream::new(lock(&self.engine).clone(), Origin { uid, generation: 0 });
        if let Some(most) = reading.max_line_bytes {
            stream = stream.with_max_line_bytes(most);
        }
        if reading.syslog {
            stream = stream.with_syslog();
        }
        self.add(label, uid, stream, None)
    }

    /// Opens a stream that continues where `cursors` says.
    #[must_use]
    pub fn resume(self: &Arc<Self>, label: Label, cursors: Cursors) -> Arc<Flow> {
        let stream = cursors.stream(lock(&self.engine).clone()).with_syslog();
        self.add(label, cursors.uid(), stream, Some(cursors))
    }

    fn add(self: &Arc<Self>, label: Label, uid: Uid, stream: Stream, cursors: Option<Cursors>) -> Arc<Flow> {
        self.open.fetch_add(1, Ordering::AcqRel);
        Arc::new(Flow {
            id: self.count.fetch_add(1, Ordering::Relaxed) as u64,
            label: Arc::new(label),
            uid,
            intake: self.clone(),
            state: Mutex::default(),
            work: Mutex::new(Work { stream: Some(Box::new(stream)), cursors }),
            room: Notify::new(),
            over: Notify::new(),
        })
    }

    /// Returns the number of streams that have not ended, or whose end was not yet processed.
    #[must_use]
    pub fn open_flows(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Whether some stream could not be read to its end.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Returns when the next stream is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        lock(&self.timers).first_key_value().map(|((at, _), _)| *at)
    }

    /// Gives a turn to each stream whose deadline has passed.
    pub fn due(&self, now: Timestamp) {
        loop {
            let mut timers = lock(&self.timers);
            let Some(first) = timers.first_entry().filter(|first| first.key().0 <= now) else { return };
            let flow = first.remove();
            drop(timers);
            flow.tick();
        }
    }
}
