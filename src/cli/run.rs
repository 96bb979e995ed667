//! `siftd run`: wires sources to sinks. One thread owns every stream; notices, stdin and signals come to
//! it through one bounded channel, and it sleeps until the next of them, deadline or sweep.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use super::args::RunArgs;
use super::{Exit, Failure, identity, out, setup};
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::sinks::record::Envelope;
use crate::sources::clock::now;
use crate::sources::follow::{Follower, Label};
use crate::sources::watch::Watch;

mod output;
mod plan;

use output::Output;
use plan::Plan;

/// Messages under way to the thread that owns the streams; with 64 KiB each, 1 MiB.
const MAX_WAKES: usize = 16;
const STDIN_BYTES: usize = 64 << 10;
/// Files that may have changed without a notice.
const SWEEP: Duration = Duration::from_millis(250);
/// New files in folders without notices.
const DISCOVER: Duration = Duration::from_secs(1);
/// All files.
const FULL_SWEEP: Duration = Duration::from_secs(10);

/// What ends the sleep.
enum Wake {
    /// Some file changed; `Watch` knows which.
    Files,
    /// Bytes of stdin; none is its end.
    Stdin(Vec<u8>),
    /// SIGINT or SIGTERM.
    Stop,
}

pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    crate::telemetry::init();
    let setup = setup::load(&args.setup, args.context)?;
    let plan = Plan::new(args, &setup.config)?;
    let mut output = Output::open(args, &setup.config)?;
    let (sender, wakes) = sync_channel(MAX_WAKES);
    stop_on_signal(sender.clone())?;
    let stdin = plan.stdin.map(|name| {
        read_stdin(sender.clone());
        Piped {
            envelope: Envelope { host: identity::host(), labels: output.labels_of(&name), name, kind: "stdin", path: None },
            stream: Stream::new(setup.engine.clone(), Origin { uid: identity::nonce(), generation: 0 }),
        }
    });
    let follower = Follower::new(setup.engine.clone(), identity::of_followed, plan.specs, output.identities());
    let watch = Watch::new(move || drop(sender.try_send(Wake::Files)));
    let mut daemon = Daemon { follower, watch, stdin, grace: setup.config.delivery.shutdown_grace };
    let ended = daemon.serve(&wakes, &mut output);
    out::quiet_on_closed_pipe(ended)?;
    Ok(if daemon.follower.is_troubled() { Exit::Trouble } else { Exit::Done })
}

/// A stream without a file.
struct Piped {
    envelope: Envelope,
    stream: Stream,
}

/// The thread that owns the streams.
struct Daemon {
    follower: Follower,
    watch: Watch,
    stdin: Option<Piped>,
    grace: Duration,
}

impl Daemon {
    fn serve(&mut self, wakes: &Receiver<Wake>, output: &mut Output) -> io::Result<()> {
        let mut clock = Clock::new();
        let follows = !self.follower.specs().is_empty();
        while (follows && !self.follower.is_hopeless()) || self.stdin.is_some() {
            if follows {
                self.look(&mut clock, output)?;
            }
            match wakes.recv_timeout(self.sleep(follows)) {
                Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(Wake::Stdin(bytes)) => self.piped(&bytes, output)?,
                Ok(Wake::Files) | Err(RecvTimeoutError::Timeout) => {}
            }
            self.tick(output)?;
        }
        self.drain(output)
    }

    /// Files: what notices say, and what the time says.
    fn look(&mut self, clock: &mut Clock, output: &mut Output) -> io::Result<()> {
        if clock.discover.is_due(DISCOVER) {
            for (folder, recursive) in self.follower.specs().iter().flat_map(|spec| spec.folders()) {
                self.watch.folder(folder, recursive);
            }
            self.follower.discover();
        }
        let changed: HashSet<PathBuf> = self.watch.take();
        let emit = &mut |label: &Label, events: &mut Vec<_>| output.followed(label, events);
        self.follower.changed(&changed, emit)?;
        if clock.sweep.is_due(SWEEP) {
            let all = clock.full.is_due(FULL_SWEEP);
            let watch = &self.watch;
            self.follower.sweep(all, |path| watch.sees(path), emit)?;
        }
        Ok(())
    }

    /// Until the next deadline, or the next sweep where there are files.
    fn sleep(&self, follows: bool) -> Duration {
        let deadline = self.follower.deadline().into_iter().chain(self.stdin.as_ref().and_then(|piped| piped.stream.deadline())).min();
        let longest = if follows { SWEEP } else { FULL_SWEEP };
        deadline.map_or(longest, |at| Duration::from_micros(at.0.saturating_sub(now().0).max(0) as u64).min(longest))
    }

    fn piped(&mut self, bytes: &[u8], output: &mut Output) -> io::Result<()> {
        let Some(piped) = &mut self.stdin else { return Ok(()) };
        let mut events = Vec::new();
        if bytes.is_empty() {
            piped.stream.finish(now(), &mut events);
            output.write(&piped.envelope, &mut events)?;
            self.stdin = None;
            return Ok(());
        }
        piped.stream.push(bytes, now(), &mut events);
        output.write(&piped.envelope, &mut events)
    }

    fn tick(&mut self, output: &mut Output) -> io::Result<()> {
        if let Some(piped) = self.stdin.as_mut().filter(|piped| piped.stream.deadline().is_some_and(|at| at <= now())) {
            let mut events = Vec::new();
            piped.stream.tick(now(), &mut events);
            output.write(&piped.envelope, &mut events)?;
        }
        self.follower.tick(&mut |label, events| output.followed(label, events))
    }

    /// Finishes what was read: every file to its end, every open trace.
    fn drain(&mut self, output: &mut Output) -> io::Result<()> {
        self.piped(&[], output)?;
        self.follower.drain(Instant::now() + self.grace, &mut |label, events| output.followed(label, events))
    }
}

/// What is due when.
struct Clock {
    discover: Every,
    sweep: Every,
    full: Every,
}

impl Clock {
    fn new() -> Self {
        Self { discover: Every(None), sweep: Every(None), full: Every(None) }
    }
}

/// Something that is done from time to time.
struct Every(Option<Instant>);

impl Every {
    fn is_due(&mut self, pause: Duration) -> bool {
        let due = self.0.is_none_or(|last| last.elapsed() >= pause);
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }
}

/// The first signal drains, the second one ends at once.
fn stop_on_signal(sender: SyncSender<Wake>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    drop(entered);
    std::thread::spawn(move || {
        runtime.block_on(async {
            let mut next = async || tokio::select! { _ = interrupt.recv() => 2, _ = terminate.recv() => 15 };
            next().await;
            let first = std::thread::spawn(move || drop(sender.send(Wake::Stop)));
            let number = next().await;
            drop(first);
            std::process::exit(128 + number);
        });
    });
    Ok(())
}

/// A thread that reads stdin, blocking; a full channel makes it wait, and so the writer.
fn read_stdin(sender: SyncSender<Wake>) {
    std::thread::spawn(move || {
        let mut space = vec![0; STDIN_BYTES];
        loop {
            let count = match io::stdin().read(&mut space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::warn!("stdin: {error}");
                    0
                }
                Ok(count) => count,
            };
            if sender.send(Wake::Stdin(space[..count].to_vec())).is_err() || count == 0 {
                break;
            }
        }
    });
}

/// Whether stdin is something to read when nothing was named.
fn stdin_is_given() -> bool {
    !io::stdin().is_terminal()
}
