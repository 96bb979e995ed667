//! What ends the sleep of the deciding thread, and the signals among it. Whoever may say something often
//! says it once until it was heard: the thread may be kept waiting for long, by a disk that is full.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::delivery::{Label, SinkMark, Uid};
use crate::sources::follow::FileId;
use crate::sources::interrupt::is_ignored;
use crate::sources::reader::Turn;
use crate::state::outbox::Outbox;

/// What ends the sleep of the deciding thread.
pub(crate) enum Wake {
    /// Some file changed; `Watch` knows which.
    Files,
    /// A turn was taken.
    Done(FileId, Box<Turn>),
    /// A source that is no file, or a stream of one, has ended; or one is due earlier than was known.
    Streams,
    /// A stream that is no file has talked or ended; only where its source is listened to.
    Heard(Heard),
    /// SIGINT or SIGTERM; or SIGHUP where there is nothing to read anew.
    Stop,
    /// SIGHUP; `Stop` has the flag.
    Reload,
    /// The committer knows where a sink begins.
    SinkBegins(SinkMark),
    /// The thread of a sink has ended, and has left so many records undone.
    SinkEnded(String, u64),
    /// The state was begun anew: what is known of files is to be said again.
    StateLost,
    /// Nobody reads what this sink writes any more.
    Unread(String),
    /// It cannot go on.
    Failed(String),
}

/// The wakes before there is somebody who acts on them: until then only an end counts. The others are kept in their order,
/// for nobody says them twice.
pub(crate) struct Early<'a> {
    wakes: &'a Receiver<Wake>,
    kept: Vec<Wake>,
}

impl<'a> Early<'a> {
    pub fn new(wakes: &'a Receiver<Wake>) -> Self {
        Self { wakes, kept: Vec::new() }
    }

    /// Waits for a wake, so long at most. False: it was told to stop.
    ///
    /// # Errors
    /// Why it cannot go on.
    pub fn wait(&mut self, longest: Duration) -> Result<bool, String> {
        match self.wakes.recv_timeout(longest) {
            Ok(Wake::Stop) => return Ok(false),
            Ok(Wake::Failed(why)) => return Err(why),
            Ok(other) => self.kept.push(other),
            Err(_) => {}
        }
        Ok(true)
    }

    /// Those that somebody has yet to act on.
    pub fn kept(self) -> Vec<Wake> {
        self.kept
    }
}

/// Of a stream that is no file.
pub(crate) struct Heard {
    pub uid: Uid,
    pub label: Arc<Label>,
    pub has_talked: bool,
    pub has_ended: bool,
}

/// Flags for the other threads.
#[derive(Default)]
pub(crate) struct Stop {
    /// Sinks write and sync at once.
    pub hurry: AtomicBool,
    /// Counts SIGUSR1.
    pub reopen: AtomicU64,
    /// When the time to write what is there is over; only at the end.
    pub until: OnceLock<Instant>,
    /// Where sinks sleep.
    pub outbox: OnceLock<Arc<Outbox>>,
    /// Sinks that have not ended.
    pub running: AtomicUsize,
    /// SIGHUP came, and was not heard yet.
    pub reload: AtomicBool,
}

impl Stop {
    /// Whether the time to write what is there is over.
    pub fn is_late(&self) -> bool {
        self.until.get().is_some_and(|until| Instant::now() >= *until)
    }

    fn reopen(&self) {
        self.reopen.fetch_add(1, Ordering::Relaxed);
        if let Some(outbox) = self.outbox.get() {
            outbox.nudge();
        }
    }
}

/// A second signal so soon after the first is the same wish: who ends a process group often signals the
/// process itself as well (`timeout` of the GNU coreutils does).
const SAME_WISH: Duration = Duration::from_secs(1);

/// The first signal drains, a later one ends at once. SIGHUP is a wish to reload; where there is nothing to read anew a
/// terminal was closed, which ends it like the others, unless it was started to outlive that (`nohup`).
pub(super) fn handle_signals(sender: &Sender<Wake>, stop: &Arc<Stop>, can_reload: bool) -> Result<(), String> {
    let fault = |error: io::Error| format!("signals cannot be handled: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(fault)?;
    let entered = runtime.enter();
    let of = |kind| signal(kind).map_err(fault);
    let (mut interrupt, mut terminate, mut reopen) = (of(SignalKind::interrupt())?, of(SignalKind::terminate())?, of(SignalKind::user_defined1())?);
    let mut hangup = (can_reload || !is_ignored(Signal::SIGHUP)).then(|| of(SignalKind::hangup())).transpose()?;
    drop(entered);
    let (sender, stop) = (sender.clone(), stop.clone());
    std::thread::spawn(move || {
        runtime.block_on(async {
            let mut first: Option<Instant> = None;
            loop {
                let hung_up = async {
                    match &mut hangup {
                        Some(hangup) => hangup.recv().await,
                        None => std::future::pending().await,
                    }
                };
                let number = tokio::select! { _ = interrupt.recv() => 2, _ = terminate.recv() => 15, _ = reopen.recv() => 0, _ = hung_up => 1 };
                match (number, first) {
                    (0, _) => stop.reopen(),
                    (1, _) if can_reload => {
                        // Once for all that come before it is heard.
                        if !stop.reload.swap(true, Ordering::AcqRel) {
                            drop(sender.send(Wake::Reload));
                        }
                    }
                    (_, Some(first)) if first.elapsed() < SAME_WISH => {}
                    (_, Some(_)) => std::process::exit(128 + number),
                    (_, None) => {
                        first = Some(Instant::now());
                        drop(sender.send(Wake::Stop));
                    }
                }
            }
        });
    });
    Ok(())
}
