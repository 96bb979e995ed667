//! `run` as a whole: threads, and who tells whom. This thread decides what is read (`sources::follow`);
//! a few others read and find events (`work`); one commits them (`commit`); each sink has one (`deliver`).
//! Batches go through a queue that is bounded in bytes: a slow disk or a full outbox stops the readers.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use crate::core::engine::Engine;
use crate::core::event::Timestamp;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::delivery::{Batch, Label, Uid};
use crate::sinks::file::{Options, Output};
use crate::sinks::notice;
use crate::sinks::stdout::Stdout;
use crate::sinks::{Sink, choose::Choose};
use crate::sources::clock::now;
use crate::sources::discover::Spec;
use crate::sources::follow::{FileId, Follower, IdOf, Known, OwnOutputs};
use crate::sources::reader::Turn;
use crate::sources::watch::Watch;
use crate::state::committer::Committer;
use crate::state::lock::{Lock, LockError};
use crate::state::queue::{Queue, Word};
use crate::state::store::{Store, StoreError, StreamRow};
use crate::state::withhold::Rules;

mod commit;
mod deliver;
mod work;

use commit::Commits;
use work::Pool;
pub use work::Writer;

/// Bytes of events between readers and committer.
const MAX_QUEUE_BYTES: usize = 4 << 20;
/// Files that were active lately, in case a notice was late or lost.
const SWEEP: Duration = Duration::from_millis(250);
/// Folders that may have appeared; files without notices.
const LOOK: Duration = Duration::from_secs(1);
/// Everything.
const FULL_SWEEP: Duration = Duration::from_secs(10);
/// New folders are looked into once more after so long: files may have been made before the watch.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Rows of files that are gone.
const PRUNE: Duration = Duration::from_secs(3600);
/// A file that is written all the time is read so often at most, if it is the only one.
const REST_US: i64 = 2_000;
/// And so much less often for each further one.
const REST_A_FILE_US: i64 = 100;
const STDIN_BYTES: usize = 64 << 10;
/// Pieces of stdin under way; with their size, 1 MiB.
const STDIN_PIECES: usize = 16;

/// What is run.
pub struct Plan {
    /// Rules and limits.
    pub engine: Arc<Engine>,
    /// Files.
    pub specs: Vec<Spec>,
    /// Name of the source that is stdin, and the identity of that stream.
    pub stdin: Option<(String, Uid)>,
    /// Gives files their identity.
    pub id_of: IdOf,
    /// Where records go.
    pub sinks: Vec<SinkPlan>,
    /// Folder of the state; none: nothing is kept.
    pub state: Option<PathBuf>,
    /// What is held back.
    pub withhold: Rules,
    /// Most bytes that wait for sinks.
    pub outbox_max: u64,
    /// Time to drain.
    pub grace: Duration,
    /// Name of this machine.
    pub host: String,
    /// Longest record.
    pub max_event_bytes: usize,
    /// Files that are never read, by device and inode.
    pub own: HashSet<(u64, u64)>,
    /// Labels of each source, by its name.
    pub labels: BTreeMap<String, Vec<(String, String)>>,
}

/// One sink.
pub enum SinkPlan {
    /// An open descriptor.
    Stdout {
        /// Its name.
        name: String,
        /// The descriptor.
        file: File,
        /// Which records.
        choose: Choose,
    },
    /// A file.
    File {
        /// Its name.
        name: String,
        /// How it is written.
        options: Options,
    },
}

impl SinkPlan {
    fn name(&self) -> &str {
        match self {
            Self::Stdout { name, .. } | Self::File { name, .. } => name,
        }
    }
}

/// What ends the sleep of the deciding thread.
pub(crate) enum Wake {
    /// Some file changed; `Watch` knows which.
    Files,
    /// A turn was taken.
    Done(FileId, Box<Turn>),
    /// Bytes of stdin; none is its end.
    Stdin(Vec<u8>),
    /// SIGINT or SIGTERM.
    Stop,
    /// SIGUSR1.
    Reopen,
    /// It cannot go on; without a text nobody reads stdout any more.
    Failed(Option<String>),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything was read.
    Well,
    /// Some file could not be.
    Troubled,
}

/// Runs until it is told to stop, or until nothing can come any more.
///
/// # Errors
/// What keeps it from starting, or from going on.
pub fn run(plan: Plan) -> Result<Ended, String> {
    let (sender, wakes) = channel();
    handle_signals(&sender)?;
    let folder = plan.state.clone();
    let (_lock, store, rows, sources) = match &folder {
        Some(folder) => open_state(folder, &wakes)?,
        None => (None, None, Vec::new(), Vec::new()),
    };
    let names: Vec<String> = plan.sinks.iter().map(|sink| sink.name().to_owned()).collect();
    let host = plan.host.clone();
    let write_notice = Arc::new(move |out: &mut Vec<u8>, label: &Label, said: &_, at| notice::write(out, &host, label, said, at));
    let mut committer = Committer::new(store, plan.withhold.clone(), write_notice, &names).map_err(|error| error.to_string())?;

    let own: OwnOutputs = Arc::new(Mutex::new(plan.own.clone()));
    let known = rows.iter().map(|row| Known { uid: row.uid, label: row.label.clone(), mark: row.mark.clone() }).collect();
    let first = |name: &str| !sources.iter().any(|known| known == name);
    let follower = Follower::new(plan.engine.clone(), plan.id_of, plan.specs, known, first).without(own.clone()).with_descriptors(descriptors());

    let queue = Arc::new(Queue::new(MAX_QUEUE_BYTES));
    let stop = Arc::new(Stop::default());
    let mut sinks = Vec::new();
    for sink in plan.sinks {
        let mark = committer.sink(sink.name()).cloned().unwrap_or_default();
        let (name, sink): (String, Box<dyn Sink + Send>) = match sink {
            SinkPlan::Stdout { name, file, choose } => (name, Box::new(Stdout::new(file, choose, mark))),
            SinkPlan::File { name, options } => (name, Box::new(Output::new(options, mark))),
        };
        sinks.push(deliver::Delivery {
            name,
            sink,
            outbox: committer.outbox(),
            queue: queue.clone(),
            folder: folder.clone(),
            own: own.clone(),
            stop: stop.clone(),
        });
    }
    // Its own outputs are known before any file is met.
    let mut threads = Vec::new();
    let ready = deliver::start(sinks, &sender, &mut threads);
    let mut daemon = Daemon {
        follower,
        watch: Watch::new(files_changed(&sender)),
        stdin: plan.stdin.map(|(name, uid)| Piped::new(name, uid, &plan.engine)),
        queue: queue.clone(),
        pool: Arc::new(Pool::default()),
        writer: Writer { host: plan.host, max_event_bytes: plan.max_event_bytes, says_all: folder.is_some(), labels: plan.labels },
        is_durable: folder.is_some(),
        grace: plan.grace,
        stop: stop.clone(),
        failed: None,
        rows,
        look_soon: None,
    };
    // Sinks that enter a new file wait for a commit: it must be possible from here on.
    let outbox = committer.outbox();
    commit::until_ready(&mut committer, &queue, &ready);
    daemon.begin(&mut committer, &sources)?;
    let commits = Commits { committer, queue: queue.clone(), outbox_max: plan.outbox_max, sinks: threads.len(), stop: stop.clone() };
    let committing = commit::start(commits, sender.clone());
    work::start(&daemon.pool, &queue, &daemon.writer, &sender);
    let credit = daemon.stdin.as_ref().map(|_| read_stdin(&sender));
    daemon.serve(&wakes, credit.as_ref());

    // From here on there is a limit to how long anything may take.
    let until = Instant::now() + plan.grace;
    daemon.drain(&wakes, until);
    queue.close();
    let settled = join_all(committing, threads, until + Duration::from_millis(500));
    if !settled {
        tracing::warn!("shutdown_grace is over: {} records wait in the state for the next start", outbox.waiting());
    }
    match daemon.failed {
        Some(Some(why)) => Err(why),
        Some(None) => Ok(Ended::Well),
        None if daemon.follower.is_troubled() => Ok(Ended::Troubled),
        None => Ok(Ended::Well),
    }
}

/// Flags for the other threads.
#[derive(Default)]
pub(crate) struct Stop {
    /// Sinks write and sync at once.
    hurry: AtomicBool,
    /// Counts SIGUSR1.
    reopen: std::sync::atomic::AtomicU64,
    /// Sinks that have ended.
    ended: std::sync::atomic::AtomicUsize,
}

type Opened = (Option<Lock>, Option<Store>, Vec<StreamRow>, Vec<String>);

/// Takes the state folder; waits where its disk is full.
fn open_state(folder: &std::path::Path, wakes: &Receiver<Wake>) -> Result<Opened, String> {
    let mut said = false;
    loop {
        let why = match try_open_state(folder) {
            Ok(opened) => return Ok(opened),
            Err(StoreError::Later(why)) => why,
            Err(error) => return Err(format!("state folder {}: {error}", folder.display())),
        };
        if !std::mem::replace(&mut said, true) {
            tracing::warn!("state folder {}: {why}; waiting until it can be written", folder.display());
        }
        match wakes.recv_timeout(Duration::from_secs(1)) {
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return Err(format!("state folder {}: {why}", folder.display())),
            _ => {}
        }
    }
}

fn try_open_state(folder: &std::path::Path) -> Result<Opened, StoreError> {
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Later(error.to_string()),
        _ => StoreError::Fatal(format!("{error}: make it, or name another one with state_dir or --state-dir")),
    };
    std::fs::create_dir_all(folder).map_err(io)?;
    let lock = Lock::take(folder).map_err(|error| match error {
        LockError::Held { pid } => {
            StoreError::Fatal(format!("is in use by process {pid}: stop that one, or give this one a state folder of its own with --state-dir"))
        }
        LockError::Io(error) => io(error),
    })?;
    let (store, said) = Store::open(folder)?;
    if let Some(said) = said {
        tracing::error!("{said}");
    }
    let (rows, sources) = (store.streams()?, store.sources()?);
    Ok((Some(lock), Some(store), rows, sources))
}

/// A stream without a file.
struct Piped {
    label: Arc<Label>,
    uid: Uid,
    stream: Stream,
}

impl Piped {
    fn new(name: String, uid: Uid, engine: &Arc<Engine>) -> Self {
        let label = Arc::new(Label { source: name, kind: "stdin", path: String::new() });
        Self { label, uid, stream: Stream::new(engine.clone(), Origin { uid, generation: 0 }) }
    }
}

/// The thread that decides.
struct Daemon {
    follower: Follower,
    watch: Watch,
    stdin: Option<Piped>,
    queue: Arc<Queue>,
    pool: Arc<Pool>,
    writer: Writer,
    is_durable: bool,
    grace: Duration,
    stop: Arc<Stop>,
    failed: Option<Option<String>>,
    rows: Vec<StreamRow>,
    look_soon: Option<Instant>,
}

impl Daemon {
    /// The first look: what is there now is known before anything is read.
    fn begin(&mut self, committer: &mut Committer, known: &[String]) -> Result<(), String> {
        self.watch_folders();
        self.follower.discover(now());
        let at = now();
        let batches: Vec<Batch> = self.follower.marks().map(|(uid, label, mark)| work::mark_only(uid, label, mark, at)).collect();
        let names: Vec<String> = self.follower.specs().iter().map(|spec| spec.name.clone()).filter(|name| !known.contains(name)).collect();
        loop {
            match committer.begin(&names, &batches, at) {
                Ok(()) => return Ok(()),
                Err(StoreError::Later(why)) => {
                    tracing::warn!("state: {why}; waiting until it can be written");
                    std::thread::sleep(Duration::from_secs(1));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn serve(&mut self, wakes: &Receiver<Wake>, credit: Option<&Receiver<()>>) {
        let follows = !self.follower.specs().is_empty();
        let mut clock = Clock::default();
        self.prune();
        while (follows && !self.follower.is_hopeless()) || self.stdin.is_some() {
            if follows {
                self.look(&mut clock);
            }
            self.hand_out();
            let mut wake = wakes.recv_timeout(self.sleep(follows, &clock));
            while let Ok(what) = wake {
                let was_stdin = matches!(what, Wake::Stdin(_));
                if !self.woken(what) {
                    return;
                }
                if let Some(credit) = credit.filter(|_| was_stdin) {
                    let _ = credit.try_recv();
                }
                self.hand_out();
                wake = wakes.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            self.tick();
        }
    }

    /// Whether to go on.
    fn woken(&mut self, what: Wake) -> bool {
        match what {
            Wake::Stop => return false,
            Wake::Failed(why) => {
                self.failed = Some(why);
                return false;
            }
            Wake::Reopen => {
                self.stop.reopen.fetch_add(1, Ordering::Relaxed);
            }
            Wake::Stdin(bytes) => self.piped(&bytes),
            Wake::Files => {}
            Wake::Done(id, turn) => {
                let rest = REST_US + REST_A_FILE_US * self.follower.active() as i64;
                let at = now();
                let until = (!turn.more).then_some(Timestamp(at.0 + rest));
                self.follower.done(id, &turn, until, at);
            }
        }
        true
    }

    fn hand_out(&mut self) {
        while let Some(job) = self.follower.next_job() {
            self.pool.push(job);
        }
        for (uid, label, notice) in self.follower.take_lost() {
            let batch = Batch { uid, label, records: Vec::new(), body: Vec::new(), notices: vec![notice], mark: None, at: now() };
            self.queue.send(batch);
        }
    }

    /// Files: what notices say, and what the time says.
    fn look(&mut self, clock: &mut Clock) {
        let at = now();
        let changes = self.watch.take();
        self.follower.changed(&changes.written, false, at);
        self.follower.changed(&changes.named, true, at);
        let has_folders = changes.named.iter().any(|path| path.is_dir());
        if has_folders {
            self.look_soon = Some(Instant::now() + LOOK_AGAIN);
        }
        let is_soon = self.look_soon.take_if(|soon| *soon <= Instant::now()).is_some();
        if clock.look.is_due(LOOK.mul_f64(1.0 + self.follower.len() as f64 / 2000.0)) {
            let is_new = self.watch_folders();
            let is_blind = self.follower.specs().iter().flat_map(Spec::folders).any(|(folder, _)| !self.watch.sees(&folder.join("x")));
            if is_new || is_blind {
                self.follower.discover(at);
            }
            let unwatched = |path: &std::path::Path| !self.watch.sees(path);
            self.follower.sweep(is_blind.then_some(&unwatched as &dyn Fn(&_) -> bool), at);
        } else if clock.sweep.is_due(SWEEP.mul_f64(1.0 + self.follower.active() as f64 / 1000.0)) {
            self.follower.sweep(None, at);
        }
        if clock.full.is_due(FULL_SWEEP) || changes.lost {
            self.follower.discover(at);
            self.follower.sweep(Some(&|_| true), at);
        } else if has_folders || is_soon {
            self.follower.discover(at);
        }
        if clock.prune.is_due(PRUNE) {
            self.queue.tell(Word::Seen(self.follower.present()));
            self.prune();
        }
        self.follower.due(at);
    }

    fn watch_folders(&mut self) -> bool {
        let mut is_new = false;
        for (folder, recursive) in self.follower.specs().iter().flat_map(Spec::folders) {
            is_new |= self.watch.folder(folder, recursive);
        }
        is_new
    }

    /// Drops what is known of files that were not seen for `forget_after`.
    fn prune(&mut self) {
        let present: HashSet<Uid> = self.follower.present().into_iter().collect();
        let at = now();
        let forget_after = |source: &str| self.follower.specs().iter().find(|spec| spec.name == source).map(|spec| spec.forget_after);
        self.rows.retain(|row| {
            // Of a source that is not configured any more nobody says how long; a month is long.
            let after = forget_after(&row.label.source).unwrap_or(Duration::from_secs(30 * 86_400));
            let is_old = at.0 - row.seen.0 > after.as_micros() as i64 && !present.contains(&row.uid);
            if is_old {
                self.queue.tell(Word::Forget(row.uid));
            }
            !is_old
        });
    }

    fn sleep(&self, follows: bool, clock: &Clock) -> Duration {
        let deadline = self.follower.deadline().into_iter().chain(self.stdin.as_ref().and_then(|piped| piped.stream.deadline())).min();
        // Where nothing happened for a while, nobody needs to look four times a second.
        let longest = if follows { clock.next(self.follower.active() > 0) } else { FULL_SWEEP };
        deadline.map_or(longest, |at| Duration::from_micros(at.0.saturating_sub(now().0).max(0) as u64).min(longest))
    }

    fn piped(&mut self, bytes: &[u8]) {
        let Some(piped) = &mut self.stdin else { return };
        let mut turn = Turn::default();
        let mut events = Vec::new();
        match bytes.is_empty() {
            true => piped.stream.finish(now(), &mut events),
            false => piped.stream.push(bytes, now(), &mut events),
        }
        turn.events = events.into_iter().map(|event| (0, event)).collect();
        if let Some(batch) = self.writer.batch(piped.uid, &piped.label, turn) {
            self.queue.send(batch);
        }
        if bytes.is_empty() {
            self.stdin = None;
        }
    }

    fn tick(&mut self) {
        self.follower.due(now());
        let Some(piped) = self.stdin.as_mut().filter(|piped| piped.stream.deadline().is_some_and(|at| at <= now())) else { return };
        let mut events = Vec::new();
        piped.stream.tick(now(), &mut events);
        let turn = Turn { events: events.into_iter().map(|event| (0, event)).collect(), ..Turn::default() };
        if let Some(batch) = self.writer.batch(piped.uid, &piped.label, turn) {
            self.queue.send(batch);
        }
    }

    /// Reads what is there, as long as there is time. Where positions are kept, what is open is published
    /// as it stands and goes on with the next start; else it is finished.
    fn drain(&mut self, wakes: &Receiver<Wake>, until: Instant) {
        self.piped(&[]);
        self.follower.discover(now());
        self.follower.queue_all();
        loop {
            self.hand_out();
            let left = until.saturating_duration_since(Instant::now());
            if !self.follower.is_busy() || left.is_zero() || self.failed.is_some() {
                break;
            }
            match wakes.recv_timeout(left) {
                Ok(Wake::Done(id, turn)) => self.follower.done(id, &turn, None, now()),
                Ok(Wake::Failed(why)) => self.failed = Some(why),
                _ => {}
            }
        }
        self.pool.close();
        let mut space = crate::sources::reader::Space::default();
        for job in self.follower.all() {
            // One that is still read is left; it goes on with the next start.
            let Ok(mut reader) = job.reader.try_lock() else { continue };
            let turn = if self.is_durable { reader.pause() } else { reader.finish(&mut space, now()) };
            drop(reader);
            if let Some(batch) = self.writer.batch(job.uid, &job.label, turn) {
                self.queue.send(batch);
            }
        }
        self.queue.tell(Word::Seen(self.follower.present()));
        self.stop.hurry.store(true, Ordering::Relaxed);
        let _ = self.grace;
    }
}

/// What is due when.
#[derive(Default)]
struct Clock {
    look: Every,
    sweep: Every,
    full: Every,
    prune: Every,
}

impl Clock {
    fn next(&self, is_active: bool) -> Duration {
        let quick = if is_active { self.sweep.left(SWEEP) } else { LOOK };
        quick.min(self.look.left(LOOK)).max(Duration::from_millis(5))
    }
}

/// Something that is done from time to time.
#[derive(Default)]
struct Every(Option<Instant>);

impl Every {
    fn is_due(&mut self, pause: Duration) -> bool {
        let due = self.left(pause).is_zero();
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }

    fn left(&self, pause: Duration) -> Duration {
        self.0.map_or(Duration::ZERO, |last| pause.saturating_sub(last.elapsed()))
    }
}

/// Waits for the threads; false: the time is over.
fn join_all(committing: std::thread::JoinHandle<()>, sinks: Vec<std::thread::JoinHandle<()>>, until: Instant) -> bool {
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

/// Descriptors that files may take: half of what the system allows.
fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(65_536).min(65_536);
    // Without more, fewer files stay open.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    let have = if raised.is_ok() { wanted } else { limit.current.unwrap_or(1024) };
    (have / 2).clamp(64, 1024) as usize
}

fn files_changed(sender: &Sender<Wake>) -> impl Fn() + Send + 'static {
    let sender = sender.clone();
    move || drop(sender.send(Wake::Files))
}

/// The first signal drains, the second one ends at once.
fn handle_signals(sender: &Sender<Wake>) -> Result<(), String> {
    let fault = |error: io::Error| format!("signals cannot be handled: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(fault)?;
    let entered = runtime.enter();
    let of = |kind| signal(kind).map_err(fault);
    let (mut interrupt, mut terminate, mut reopen) = (of(SignalKind::interrupt())?, of(SignalKind::terminate())?, of(SignalKind::user_defined1())?);
    drop(entered);
    let sender = sender.clone();
    std::thread::spawn(move || {
        runtime.block_on(async {
            let mut is_stopping = false;
            loop {
                let number = tokio::select! { _ = interrupt.recv() => 2, _ = terminate.recv() => 15, _ = reopen.recv() => 0 };
                match number {
                    0 => drop(sender.send(Wake::Reopen)),
                    _ if is_stopping => std::process::exit(128 + number),
                    _ => {
                        is_stopping = true;
                        drop(sender.send(Wake::Stop));
                    }
                }
            }
        });
    });
    Ok(())
}

/// A thread that reads stdin, blocking; without credit it waits, and so does the writer.
fn read_stdin(sender: &Sender<Wake>) -> Receiver<()> {
    let (ask, credit): (SyncSender<()>, _) = sync_channel(STDIN_PIECES);
    let sender = sender.clone();
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
            if ask.send(()).is_err() || sender.send(Wake::Stdin(space[..count].to_vec())).is_err() || count == 0 {
                break;
            }
        }
    });
    credit
}
