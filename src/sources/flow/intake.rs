//! All streams that are no files: opens them, bounds what waits to be looked at in all of them together, and knows which of
//! them is due next. What a stream does with what it is given is [`Flow`]'s.

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

/// Gives a stream an identity that no other one has.
pub type Nonce = fn() -> Uid;

/// How the bytes of a stream are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Lines may be syslog messages.
    pub syslog: bool,
    /// A longer line is cut; none: the limit of all streams.
    pub max_line_bytes: Option<usize>,
}

/// What streams need of the one who runs them.
pub struct Hooks {
    /// Sees to it that a thread takes the stream's turn.
    pub enqueue: Box<dyn Fn(Arc<Flow>) + Send + Sync>,
    /// Something has ended, or is due earlier than was known.
    pub changed: Box<dyn Fn() + Send + Sync>,
}

/// All streams that are no files.
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
    /// None yet.
    #[must_use]
    pub fn new(engine: Arc<Engine>, nonce: Nonce, hooks: Hooks) -> Arc<Self> {
        let (timers, count, open, has_failed) = Default::default();
        Arc::new(Self { engine: Mutex::new(engine), nonce, hooks, budget: Arc::new(Semaphore::new(MAX_WAITING_BYTES)), timers, count, open, has_failed })
    }

    /// Streams that are opened from now on have these rules and limits.
    pub fn set_engine(&self, engine: Arc<Engine>) {
        *lock(&self.engine) = engine;
    }

    /// How streams are read that are opened now.
    #[must_use]
    pub fn mode(&self) -> Mode {
        lock(&self.engine).limits.mode
    }

    /// A new stream.
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

    /// A stream that goes on where `cursors` says.
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

    /// Streams that have not ended, or whose end was not looked at.
    #[must_use]
    pub fn open_flows(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Whether some stream could not be read to its end.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// When something open wants to be published.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        lock(&self.timers).first_key_value().map(|((at, _), _)| *at)
    }

    /// Streams whose deadline has come get a turn.
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
