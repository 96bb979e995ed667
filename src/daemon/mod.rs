//! `run` as a whole: its threads and how they communicate. One thread decides what is read (`serve`); a few
//! others read and find events (`work`); one commits them (`commit`); each sink has its own (`deliver`; `sinks`
//! starts and stops them). `reload` applies a new configuration, `end` shuts down.
//! Batches pass through a queue that is bounded in bytes: a slow disk or a full outbox stops the readers.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::config::SourceConfig;
use crate::delivery::Label;
use crate::sinks::notice;
use crate::sources::clock::now;
use crate::sources::follow::{Follower, Known, OwnOutputs};
use crate::sources::service::{Around, Service};
use crate::sources::silence::{Silence, Told};
use crate::sources::watch::Watch;
use crate::state::committer::Committer;
use crate::state::queue::Queue;
use crate::state::store::Store;
use crate::telemetry::metrics::Phase;
use crate::telemetry::{metrics, notify};

mod answers;
mod begin;
mod clock;
mod commit;
mod deliver;
mod end;
mod on_open;
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
use begin::{descriptors, open_state, take_state};
use commit::{Commits, Room};
use deliver::Shared;
use end::end;
pub use plan::{Again, Ended, Plan, SinkPlan};
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
/// Says what prevents the daemon from starting or continuing.
pub fn run(mut plan: Plan) -> Result<Ended, String> {
    metrics().started_us.set(now().0.unsigned_abs());
    let (sender, wakes) = channel();
    let stop = Arc::new(Stop::default());
    handle_signals(&sender, &stop, plan.again.is_some())?;
    let folder = plan.state.clone();
    let lock = folder.as_deref().map_or(Ok(None), take_state)?;
    let mut answers = Answers::listen(plan.listen.take())?;
    let (lock, store, rows, sources) = match &folder {
        Some(folder) => open_state(folder, lock, &wakes)?,
        None => (None, None, Vec::new(), Vec::new()),
    };
    let lock = Arc::new(Mutex::new(lock));
    let silences = store.as_ref().map_or(Ok(Vec::new()), Store::silences).map_err(|error| error.to_string())?;
    let silences = silences.into_iter().map(|row| (row.uid, row.label, Told { id: row.id, since: row.since })).collect();
    if let Some(folder) = &folder {
        answers.answer_in(folder);
    }
    let (of_journals, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| !row.is_file());
    let known = |name: &str| of_journals.iter().find(|row| row.label.source == name).map(|row| (row.uid, row.mark.clone()));
    let labels = plan.sources();
    let (mut passed, nonce) = (std::mem::take(&mut plan.passed), plan.nonce);
    let services = services(plan.services.clone(), plan.grace, &mut Around { passed: &mut passed, known: &known, nonce })?;
    let mut committer = committer(store, &plan)?;
    let outbox = stop.outbox.get_or_init(|| committer.outbox()).clone();
    let own = OwnOutputs::default();
    plan.own.into_iter().for_each(|node| own.add(node));
    let known = rows.into_iter().map(|row| Known { uid: row.uid, label: row.label, mark: row.mark, seen: row.seen }).collect();
    let first = |name: &str| !sources.iter().any(|known| known == name);
    let follower = Follower::new(plan.engine.clone(), plan.id_of, plan.specs, known, first).without(own.clone()).with_descriptors(descriptors());

    let queue = Arc::new(Queue::new(MAX_QUEUE_BYTES));
    let shared = Shared { outbox: outbox.clone(), queue: queue.clone(), folder: folder.clone(), own: own.clone(), stop: stop.clone() };
    let first_sinks = plan.sinks.into_iter().map(|sink| {
        let mark = committer.sink(sink.name()).cloned().unwrap_or_default();
        (sink, mark)
    });
    // The sinks' own files must be known before any file is discovered.
    let mut sinks = Sinks::new(shared, sender.clone());
    sinks.start_first(first_sinks.collect());
    let tell = sender.clone();
    let files_changed = move || drop(tell.send(Wake::Files));
    let pool = Arc::new(Pool::default());
    let mut daemon = Daemon {
        follower,
        watch: Watch::new(files_changed),
        streams: Streams::new(plan.engine.clone(), plan.nonce, &pool, &sender, plan.services),
        queue: queue.clone(),
        pool,
        writer: CurrentWriter::new(Writer {
            host: plan.host,
            max_event_bytes: plan.max_event_bytes,
            says_all: folder.is_some(),
            labels: plan.labels,
            listened_to: plan.silence.keys().cloned().collect(),
        }),
        is_durable: folder.is_some(),
        stop: stop.clone(),
        failed: None,
        look_soon: None,
        silence: Silence::new(plan.silence, silences, now()),
        sinks,
        room: Arc::new(Mutex::new(Room { outbox_max: plan.outbox_max, dropping: plan.dropping, on_open: plan.on_open })),
        grace: plan.grace,
        pulse: Arc::default(),
        answers,
        current: Current {
            config: plan.config,
            rules_print: plan.rules_print,
            engine: plan.engine,
            state: folder.clone(),
            again: plan.again,
            sources: sources.clone(),
            silenced: BTreeMap::new(),
        },
    };
    let mut early = Early::new(&wakes);
    // A sink that starts a new file waits for a commit, so commits must be possible from here on.
    if !commit::until_ready(&mut committer, folder.as_deref(), &queue, &daemon.sinks, &mut early)? {
        return Ok(Ended::Well);
    }
    if !commit::until_done(folder.as_deref(), &mut early, || committer.say_loss(&labels, now()))? || !daemon.begin(&mut committer, &sources, &mut early)? {
        return Ok(Ended::Well);
    }
    let committing = commit::start(Commits {
        committer,
        queue: queue.clone(),
        room: daemon.room.clone(),
        folder: folder.clone(),
        lock: lock.clone(),
        sender: sender.clone(),
        stop: stop.clone(),
        beat: daemon.pulse.add(pulse::COMMITTER),
        on_open: None,
    });
    work::start(&daemon.pool, &queue, &daemon.writer, &sender, &daemon.pulse);
    services.into_iter().try_for_each(|service| daemon.streams.start(service))?;
    metrics().set_phase(Phase::Ready);
    notify::ready();
    pulse::start(daemon.pulse.clone(), queue.clone(), sender.clone());
    daemon.serve(early.kept(), &wakes);
    let ended = end(daemon, committing, &wakes, &outbox);
    drop(lock);
    ended
}

/// Makes the committer, including how it writes notices and ledger entries.
fn committer(store: Option<Store>, plan: &Plan) -> Result<Committer, String> {
    let names: Vec<String> = plan.sinks.iter().map(|sink| sink.name().to_owned()).collect();
    let host = plan.host.clone();
    let write_notice = Arc::new(move |out: &mut Vec<u8>, label: &Label, said: &_, at| notice::write(out, &host, label, said, at));
    let committer = Committer::new(store, plan.withhold.clone(), write_notice, &names).map_err(|error| error.to_string())?;
    Ok(committer.with_ledger(plan.ledger, |out, seen| notice::seen(out, seen.status.as_str(), seen.count, (seen.first, seen.last))))
}

/// Prepares the sources that are not files.
fn services(configs: Vec<SourceConfig>, grace: Duration, around: &mut Around) -> Result<Vec<Service>, String> {
    let ready = configs.into_iter().map(|config| Service::prepare(streams::within(config, grace), around)).collect::<Result<_, _>>()?;
    for name in around.passed.left() {
        tracing::warn!("socket {name:?} was passed, and no source takes it: give the source that name, or its address");
    }
    Ok(ready)
}
