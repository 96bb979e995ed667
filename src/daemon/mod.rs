//! `run` as a whole: its threads and how they communicate. One thread decides what is read (`serve`); a few
//! others read and find events (`work`); one commits them (`commit`); each sink has its own (`deliver`; `sinks`
//! starts and stops them). `reload` applies a new configuration, `end` shuts down.
//! Batches pass through a queue that is bounded in bytes: a slow disk or a full outbox stops the readers.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use crate::delivery::Label;
use crate::sinks::{notice, record};
use crate::sources::clock::now;
use crate::sources::follow::{Follower, Known, OwnOutputs};
use crate::sources::service::{Around, Service};
use crate::sources::silence::Silence;
use crate::sources::watch::Watch;
use crate::state::committer::Committer;
use crate::state::queue::Queue;
use crate::state::store::{Store, StreamRow};
use crate::telemetry::metrics::Phase;
use crate::telemetry::{metrics, notify};

mod answers;
mod begin;
mod clock;
mod commit;
mod deliver;
mod end;
mod on_open;
mod pending;
mod plan;
mod pulse;
mod reload;
mod serve;
mod sinks;
mod streams;
mod wake;
mod work;

use answers::Answers;
pub use answers::SOCKET;
use begin::{Restored, descriptors, take_state};
use commit::Room;
use deliver::Shared;
use end::end;
use on_open::OnOpen;
pub use plan::{Again, Ended, Obstacles, Plan, SinkPlan};
use reload::Current;
use serve::Daemon;
use sinks::Sinks;
use streams::Streams;
use wake::{Early, Stop, Wake, handle_signals};
pub use work::Writer;
use work::{CurrentWriter, Pool};

/// Most bytes of events queued between the readers and the committer.
const MAX_QUEUE_BYTES: usize = 2 << 20;

/// Runs until it is told to stop, or until no more input can arrive.
///
/// # Errors
/// All that prevents the daemon from starting, or what prevents it from continuing.
pub fn run(mut plan: Plan) -> Result<Ended, Obstacles> {
    metrics().started_us.set(now().0.unsigned_abs());
    let (sender, wakes) = channel();
    let stop = Arc::new(Stop::default());
    handle_signals(&sender, &stop, plan.again.is_some())?;
    let folder = plan.state.clone();
    let lock = folder.as_deref().map_or(Ok(None), take_state)?;
    let mut answers = Answers::listen(plan.listen.take())?;
    let (lock, mut restored) = Restored::open(folder.as_deref(), lock, &wakes)?;
    folder.iter().for_each(|folder| answers.answer_in(folder));
    let services = services(&mut plan, &restored)?;
    let mut committer = committer(restored.store.take(), &plan)?;
    let outbox = stop.outbox.get_or_init(|| committer.outbox()).clone();
    let queue = Arc::new(Queue::new(MAX_QUEUE_BYTES));
    let shared = Shared { outbox: outbox.clone(), queue: queue.clone(), folder: folder.clone(), own: own_outputs(&plan), stop };
    let (labels, known) = (plan.sources(), restored.sources.clone());
    let mut daemon = daemon(plan, restored, Channels { committer: &committer, shared, sender: &sender }, answers);
    let mut early = Early::new(&wakes);
    // A sink that starts a new file waits for a commit, so commits must be possible from here on.
    if !commit::until_ready(&mut committer, folder.as_deref(), &queue, &daemon.sinks, &mut early)?
        || !commit::until_done(folder.as_deref(), &mut early, || committer.say_loss(&labels, now()))?
        || !daemon.begin(&mut committer, &known, &mut early)?
    {
        return Ok(Ended::Well);
    }
    let committing = commit::start(daemon.commits(committer, &lock, &sender));
    start_reading(&mut daemon, services, &sender)?;
    daemon.serve(early.kept(), &wakes);
    let ended = end(daemon, committing, &wakes, &outbox);
    drop(lock);
    Ok(ended?)
}

/// Prepares the sources that are not files; journals go on where earlier runs have left them.
fn services(plan: &mut Plan, restored: &Restored) -> Result<Vec<Service>, Obstacles> {
    let known = |name: &str| restored.journals.iter().find(|row| row.label.source == name).map(|row| (row.uid, row.mark.clone()));
    let mut passed = std::mem::take(&mut plan.passed);
    let around = &mut Around { passed: &mut passed, known: &known, nonce: plan.nonce };
    let (mut ready, mut wrong) = (Vec::new(), Vec::new());
    for config in plan.services.iter().cloned() {
        match Service::prepare(streams::within(config, plan.grace), around) {
            Ok(service) => ready.push(service),
            Err(why) => wrong.push(why),
        }
    }
    if !wrong.is_empty() {
        return Err(Obstacles(wrong));
    }
    for name in around.passed.left() {
        tracing::warn!("socket {name:?} was passed, and no source takes it: give the source that name, or its address");
    }
    Ok(ready)
}

/// Makes the committer, including how it writes notices and ledger entries.
fn committer(store: Option<Store>, plan: &Plan) -> Result<Committer, String> {
    let names: Vec<String> = plan.sinks.iter().map(|sink| sink.name().to_owned()).collect();
    let host = plan.host.clone();
    let write_notice = Arc::new(move |out: &mut Vec<u8>, label: &Label, said: &_, at| notice::write(out, &host, label, said, at));
    let committer = Committer::new(store, plan.withhold.clone(), write_notice, &names).map_err(|error| error.to_string())?;
    Ok(committer.with_ledger(plan.ledger, record::seen))
}

/// The files that must never be read; sinks add theirs.
fn own_outputs(plan: &Plan) -> OwnOutputs {
    let own = OwnOutputs::default();
    plan.own.into_iter().for_each(|node| own.add(node));
    own
}

/// How the thread that decides communicates with the others.
struct Channels<'a> {
    committer: &'a Committer,
    shared: Shared,
    sender: &'a Sender<Wake>,
}

/// Makes the thread that decides, with everything that it decides on; the sinks run from here on.
fn daemon(mut plan: Plan, restored: Restored, channels: Channels, answers: Answers) -> Daemon {
    let Channels { committer, shared, sender } = channels;
    let (queue, stop, folder) = (shared.queue.clone(), shared.stop.clone(), shared.folder.clone());
    let Restored { files, sources, silences, .. } = restored;
    let follower = follower(&mut plan, files, &sources, shared.own.clone());
    // The sinks' own files must be known before any file is discovered.
    let sinks = first_sinks(&mut plan, committer, shared, sender);
    let tell = sender.clone();
    let files_changed = move || drop(tell.send(Wake::Files));
    let pool = Arc::new(Pool::default());
    Daemon {
        follower,
        watch: Watch::new(files_changed),
        streams: Streams::new(plan.engine.clone(), plan.nonce, &pool, sender, plan.services),
        queue,
        pool,
        writer: CurrentWriter::new(Writer {
            host: plan.host,
            max_event_bytes: plan.max_event_bytes,
            says_all: folder.is_some(),
            labels: plan.labels,
            listened_to: plan.silence.keys().cloned().collect(),
        }),
        is_durable: folder.is_some(),
        stop,
        failed: None,
        look_soon: None,
        silence: Silence::new(plan.silence, silences, now()),
        sinks,
        room: Arc::new(Mutex::new(Room { outbox_max: plan.outbox_max, dropping: plan.dropping, on_open: plan.on_open })),
        on_open: OnOpen::default(),
        grace: plan.grace,
        pulse: Arc::default(),
        answers,
        current: Current {
            config: plan.config,
            rules_print: plan.rules_print,
            engine: plan.engine,
            state: folder,
            again: plan.again,
            sources,
            silenced: BTreeMap::new(),
        },
    }
}

/// Makes the follower, which goes on where the files' rows say.
fn follower(plan: &mut Plan, files: Vec<StreamRow>, sources: &[String], own: OwnOutputs) -> Follower {
    let known = files.into_iter().map(|row| Known { uid: row.uid, label: row.label, mark: row.mark, seen: row.seen }).collect();
    let first = |name: &str| !sources.iter().any(|known| known == name);
    let specs = std::mem::take(&mut plan.specs);
    Follower::new(plan.engine.clone(), plan.id_of, specs, known, first).without(own).with_descriptors(descriptors())
}

/// Starts the sinks that must begin for the daemon to start, each at its mark.
fn first_sinks(plan: &mut Plan, committer: &Committer, shared: Shared, sender: &Sender<Wake>) -> Sinks {
    let first = std::mem::take(&mut plan.sinks).into_iter().map(|sink| {
        let mark = committer.sink(sink.name()).cloned().unwrap_or_default();
        (sink, mark)
    });
    let mut sinks = Sinks::new(shared, sender.clone());
    sinks.start_first(first.collect());
    sinks
}

/// Starts the threads that read, and says that the daemon is ready.
fn start_reading(daemon: &mut Daemon, services: Vec<Service>, sender: &Sender<Wake>) -> Result<(), String> {
    work::start(&daemon.pool, &daemon.queue, &daemon.writer, sender, &daemon.pulse);
    services.into_iter().try_for_each(|service| daemon.streams.start(service))?;
    metrics().set_phase(Phase::Ready);
    notify::ready();
    pulse::start(daemon.pulse.clone(), daemon.queue.clone(), sender.clone());
    Ok(())
}
