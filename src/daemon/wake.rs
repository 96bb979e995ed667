//! What wakes the deciding thread, including signals. A sender that may repeat itself sends one wake until that
//! has been received: a full disk can keep the thread from receiving for a long time.

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

/// What wakes the deciding thread.
pub(crate) enum Wake {
    /// Files have changed; `Watch` knows which.
    Files,
    /// A file's turn is done.
    Done(FileId, Box<Turn>),
    /// A source that is not a file, or one of its streams, has ended, or is due earlier than was known.
    Streams,
    /// A stream that is not a file has sent something or has ended; only for sources that are watched for silence.
    Heard(Heard),
    /// SIGINT or SIGTERM; also SIGHUP if there is no configuration to reload.
    Stop,
    /// SIGHUP; the flag is `Stop::reload`.
    Reload,
    /// The committer has said where a sink begins.
    SinkBegins(SinkMark),
    /// The thread of a sink has ended and left this many records unwritten.
    SinkEnded(String, u64),
    /// The state was recreated: the marks of all files must be queued again.
    StateLost,
    /// Nobody reads what this sink writes any more.
    Unread(String),
    /// A thread has failed for this reason, and the daemon must end.
    Failed(String),
}

/// The wakes that arrive before the daemon can act on them. Until then only [`Wake::Stop`] and [`Wake::Failed`] count; the
/// others are kept in order, because no sender repeats them.
pub(crate) struct Early<'a> {
    wakes: &'a Receiver<Wake>,
    kept: Vec<Wake>,
}

impl<'a> Early<'a> {
    pub fn new(wakes: &'a Receiver<Wake>) -> Self {
        Self { wakes, kept: Vec::new() }
    }

    /// Waits for a wake, at most `longest`. Returns `false` if the daemon was told to stop.
    ///
    /// # Errors
    /// Why the daemon cannot continue.
    pub fn wait(&mut self, longest: Duration) -> Result<bool, String> {
        match self.wakes.recv_timeout(longest) {
            Ok(Wake::Stop) => return Ok(false),
            Ok(Wake::Failed(why)) => return Err(why),
            Ok(other) => self.kept.push(other),
            Err(_) => {}
        }
        Ok(true)
    }

    /// Returns the wakes that have yet to be acted on.
    pub fn kept(self) -> Vec<Wake> {
        self.kept
    }
}

/// What happened on a stream that is not a file.
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
    /// When the time to write what is left is over; set only at shutdown.
    pub until: OnceLock<Instant>,
    /// The outbox, on which sinks wait.
    pub outbox: OnceLock<Arc<Outbox>>,
    /// How many sinks have not ended.
    pub running: AtomicUsize,
    /// SIGHUP has arrived and has not been acted on yet.
    pub reload: AtomicBool,
    /// A signal has told the daemon to end: another one ends it at once.
    pub is_asked: AtomicBool,
}

impl Stop {
    /// Whether the time to write what is left is over.
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

/// A second signal within this time counts as the same request: a tool that ends a process group often signals
/// the process itself as well, as `timeout` of the GNU coreutils does.
const SAME_WISH: Duration = Duration::from_secs(1);

/// Handles signals: the first one drains, a later one ends the process at once. SIGHUP reloads. If there is nothing to
/// reload, SIGHUP means that a terminal was closed and counts like the others, unless it is ignored (`nohup`).
/// SIGINT counts even if it is ignored: a script ignores it for all that it runs with `&`, a daemon above all, and a
/// daemon that could not be ended as documented would hang whoever waits for it.
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
                        // One wake for all SIGHUPs that arrive before it is acted on.
                        if !stop.reload.swap(true, Ordering::AcqRel) {
                            drop(sender.send(Wake::Reload));
                        }
                    }
                    (_, Some(first)) if first.elapsed() < SAME_WISH => {}
                    (_, Some(_)) => std::process::exit(128 + number),
                    (_, None) => {
                        first = Some(Instant::now());
                        stop.is_asked.store(true, Ordering::Release);
                        drop(sender.send(Wake::Stop));
                    }
                }
            }
        });
    });
    Ok(())
}
