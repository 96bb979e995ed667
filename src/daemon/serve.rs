//! The thread that decides what is read: it receives file notices, signals and finished turns, runs the timers, and
//! hands out turns. Only this thread has access to the follower.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::answers::Answers;
use super::begin::SharedLock;
use super::clock::{self, Clock, FULL_SWEEP, LOOK_AGAIN, PRUNE};
use super::commit::{self, Commits, Room};
use super::on_open::OnOpen;
use super::plan::Ended;
use super::pulse::{self, Pulse};
use super::reload::Current;
use super::sinks::Sinks;
use super::streams::Streams;
use super::wake::{Early, Stop, Wake};
use super::work::{self, CurrentWriter, Pool, Task};
use crate::core::event::Timestamp;
use crate::delivery::Batch;
use crate::sources::clock::now;
use crate::sources::discover::Spec;
use crate::sources::follow::Follower;
use crate::sources::reader::Space;
use crate::sources::silence::{Said, Silence};
use crate::sources::watch::Watch;
use crate::state::committer::Committer;
use crate::state::queue::{ControlMessage, Queue};
use crate::telemetry::metrics;

/// Most files whose marks go into one transaction at the start.
const BEGIN_FILES: usize = 500;
/// Least pause, in microseconds, between two turns of a file that is written all the time.
const REST_US: i64 = 2_000;
/// How much each active file adds to that pause.
const REST_A_FILE_US: i64 = 100;
/// Most wakes handled in one round: turns cause further wakes, and names, timers and reloads must get their chance, too.
const MAX_WAKES: usize = 256;
/// At the end, open events have at least this long to be handed over, even if the grace is over.
const LAST: Duration = Duration::from_millis(200);

/// The thread that decides.
pub(super) struct Daemon {
    pub follower: Follower,
    pub watch: Watch,
    pub streams: Streams,
    pub queue: Arc<Queue>,
    pub pool: Arc<Pool>,
    pub writer: CurrentWriter,
    pub is_durable: bool,
    pub stop: Arc<Stop>,
    /// Why the daemon ends by itself. `Some(None)`: nobody reads its output any more.
    pub failed: Option<Option<String>>,
    pub look_soon: Option<Instant>,
    /// The streams that are watched for silence.
    pub silence: Silence,
    pub sinks: Sinks,
    pub room: Arc<Mutex<Room>>,
    pub on_open: OnOpen,
    /// Time to drain.
    pub grace: Duration,
    pub current: Current,
    pub pulse: Arc<Pulse>,
    pub answers: Answers,
}

impl Daemon {
    /// Discovers the files and commits their marks before anything is read. Returns `false` if the daemon was told to stop.
    pub fn begin(&mut self, committer: &mut Committer, known: &[String], early: &mut Early) -> Result<bool, String> {
        let unwatched = self.silence.take_unwatched();
        self.say(unwatched);
        self.watch_folders();
        self.follower.discover(now());
        let at = now();
        let mut marks = self.follower.marks().map(|(uid, label, mark)| work::mark_only(uid, label, mark, at));
        loop {
            let batches: Vec<Batch> = marks.by_ref().take(BEGIN_FILES).collect();
            if batches.is_empty() {
                break;
            }
            if !commit::until_done(self.current.state.as_deref(), early, || committer.commit(&batches, &[], at))? {
                return Ok(false);
            }
        }
        let names: Vec<String> = self.follower.specs().iter().map(|spec| spec.name.clone()).filter(|name| !known.contains(name)).collect();
        self.current.sources.extend(names.iter().cloned());
        commit::until_done(self.current.state.as_deref(), early, || committer.begin(&names, &[], at))
    }

    /// Returns what the thread that commits needs.
    pub fn commits(&self, committer: Committer, lock: &SharedLock, sender: &Sender<Wake>) -> Commits {
        Commits {
            committer,
            queue: self.queue.clone(),
            room: self.room.clone(),
            folder: self.current.state.clone(),
            lock: lock.clone(),
            sender: sender.clone(),
            stop: self.stop.clone(),
            beat: self.pulse.add(pulse::COMMITTER),
            on_open: self.on_open.clone(),
        }
    }

    /// Runs until the daemon is to end. `early` are the wakes that arrived before and were not acted on.
    pub fn serve(&mut self, early: Vec<Wake>, wakes: &Receiver<Wake>) {
        if !early.into_iter().all(|what| self.woken(what)) {
            return;
        }
        let mut clock = Clock::default();
        let beat = self.pulse.add("the thread that decides");
        loop {
            beat.moves();
            self.reload_if_asked();
            let follows = !self.follower.specs().is_empty();
            if (!follows || self.follower.is_hopeless()) && !self.streams.is_alive() {
                break;
            }
            if follows {
                self.look(&mut clock);
            }
            self.hand_out();
            let first = wakes.recv_timeout(self.sleep(follows, &clock));
            for what in first.into_iter().chain(wakes.try_iter()).take(MAX_WAKES) {
                if !self.woken(what) {
                    return;
                }
                self.hand_out();
            }
            self.tick(&mut clock);
            self.keep_gauges(&mut clock);
        }
    }

    /// Acts on a wake; returns `false` if the daemon is to end.
    fn woken(&mut self, what: Wake) -> bool {
        match what {
            Wake::Stop => return false,
            Wake::Failed(why) => {
                self.failed = Some(Some(why));
                return false;
            }
            Wake::Unread(sink) => return self.goes_on_without(&sink),
            Wake::StateLost => {
                self.say_all();
                self.current.state.iter().for_each(|folder| self.answers.answer_again(folder));
            }
            // The loop handles these.
            Wake::Files | Wake::Streams | Wake::Reload => {}
            Wake::Heard(heard) => {
                let at = now();
                let mut said = if heard.has_talked { self.silence.heard_over(heard.uid, &heard.label, at) } else { Vec::new() };
                said.extend(heard.has_ended.then(|| self.silence.ended(&heard.uid, at)).into_iter().flatten());
                self.say(said);
            }
            Wake::SinkBegins(mark) => self.sinks.begins(mark),
            Wake::SinkEnded(name, left) => self.sinks.ended(&name, left),
            Wake::Done(id, turn) => {
                let rest = REST_US + REST_A_FILE_US * self.follower.active() as i64;
                let at = now();
                let until = (!turn.more).then_some(Timestamp(at.0 + rest));
                if turn.bytes > 0
                    && let Some((uid, label)) = self.follower.name_of(id)
                {
                    let said = self.silence.heard(uid, label, at);
                    self.say(said);
                }
                self.follower.done(id, &turn, until, at);
            }
        }
        true
    }

    /// Returns `true` if there are other sinks than `sink`, which nobody reads any more.
    fn goes_on_without(&mut self, sink: &str) -> bool {
        let goes_on = self.sinks.has_others(sink);
        if goes_on {
            tracing::warn!("sink {sink}: nobody reads it any more, it is written no more; the other sinks go on");
        } else {
            self.failed = Some(None);
        }
        goes_on
    }

    /// Queues notices about silences.
    pub fn say(&self, said: Vec<Said>) {
        for (uid, label, notice) in said {
            self.queue.put(Batch { uid, label, records: Vec::new(), body: Vec::new(), notices: vec![notice], mark: None, at: now() });
        }
    }

    /// Queues the marks of all files again, because the state has lost them.
    fn say_all(&self) {
        let at = now();
        for (uid, label, mark) in self.follower.all_marks() {
            self.queue.put(work::mark_only(uid, label, mark, at));
        }
        self.queue.tell(ControlMessage::IsSaidAgain(self.current.sources.clone()));
    }

    fn hand_out(&mut self) {
        while let Some(job) = self.follower.next_job() {
            self.pool.push(Task::File(job));
        }
        for lost in self.follower.take_lost() {
            self.queue.put(Batch { notices: vec![lost.notice], ..work::mark_only(lost.uid, lost.label, lost.mark, now()) });
        }
    }

    /// Looks after files: acts on notices, and does what is due by time.
    fn look(&mut self, clock: &mut Clock) {
        let at = now();
        let changes = self.watch.take();
        if changes.overflowed {
            self.watch_folders();
        }
        self.follower.changed(&changes.written, false, at);
        self.follower.changed(&changes.named, true, at);
        let has_folders = changes.named.iter().any(|path| path.is_dir());
        if has_folders {
            self.look_soon = Some(Instant::now() + LOOK_AGAIN);
        }
        let is_soon = self.look_soon.take_if(|soon| *soon <= Instant::now()).is_some();
        if clock.look.ticks(clock::look(self.follower.len())) {
            let is_new = self.watch_folders();
            let is_blind =
                self.watch.is_partial() || self.follower.specs().iter().flat_map(Spec::folders).any(|(folder, _)| !self.watch.sees(&folder.join("x")));
            if is_new || is_blind {
                self.follower.discover(at);
            }
            let unwatched = |path: &Path| !self.watch.sees(path);
            self.follower.sweep(is_blind.then_some(&unwatched as &dyn Fn(&_) -> bool), at);
        } else if clock.sweep.ticks(clock::sweep(self.follower.active())) {
            self.follower.sweep(None, at);
        }
        if clock.full.ticks(FULL_SWEEP) || changes.lost {
            self.follower.discover(at);
            self.follower.sweep(Some(&|_| true), at);
        } else if has_folders || is_soon {
            self.follower.discover(at);
        }
        if clock.prune.ticks(PRUNE) {
            self.prune(at);
        }
        self.follower.due(at);
    }

    pub fn watch_folders(&mut self) -> bool {
        let mut is_new = false;
        for (folder, recursive) in self.follower.specs().iter().flat_map(Spec::folders) {
            is_new |= self.watch.folder(folder, recursive);
        }
        is_new
    }

    /// Forgets files that were not seen for `forget_after`.
    fn prune(&mut self, at: Timestamp) {
        self.queue.tell(ControlMessage::Seen(self.follower.present()));
        for uid in self.follower.forget(at) {
            self.queue.tell(ControlMessage::Forget(uid));
        }
    }

    fn sleep(&self, follows: bool, clock: &Clock) -> Duration {
        let deadline = self.follower.deadline().into_iter().chain(self.streams.deadline()).min();
        // If nothing has happened for a while, looking four times a second is not needed.
        let longest = if follows { clock.next(self.follower.len(), self.follower.active()) } else { FULL_SWEEP };
        let deadline = deadline.into_iter().chain(self.silence.deadline()).min();
        deadline.map_or(longest, |at| Duration::from_micros(at.0.saturating_sub(now().0).max(0) as u64).min(longest))
    }

    /// Sets the gauges from time to time, and once more when what was left to read then is read.
    fn keep_gauges(&self, clock: &mut Clock) {
        clock.gauges(self.follower.len(), self.follower.is_busy(), || self.tell());
    }

    /// Sets the gauges; returns how many bytes are left to read.
    fn tell(&self) -> u64 {
        let lag_bytes = self.follower.tell_levels();
        for (rule, count) in self.current.engine.silenced() {
            metrics().noise.of(rule).set(count + self.current.silenced.get(rule).copied().unwrap_or(0));
        }
        lag_bytes
    }

    fn tick(&mut self, clock: &mut Clock) {
        let at = now();
        self.follower.due(at);
        self.streams.due(at);
        if self.silence.is_idle() {
            return;
        }
        // Before a silence is reported, the list of present streams must be current.
        if clock.silence.ticks(clock::LOOK) || self.silence.deadline().is_some_and(|due| due <= at) {
            let said = self.silence.keep(&self.follower.voices().collect(), at);
            self.say(said);
        }
        let said = self.silence.due(at);
        self.say(said);
    }

    /// Reads what is there until `until`. If marks are kept, open events are published as they stand and continue at the next
    /// start; otherwise they are finished. Returns how many files were still being read when time ran out.
    pub fn drain(&mut self, wakes: &Receiver<Wake>, until: Instant) -> usize {
        self.streams.stop_all();
        self.follower.discover(now());
        self.follower.queue_all();
        loop {
            self.hand_out();
            let left = until.saturating_duration_since(Instant::now());
            // A sink that a reload has planned is to begin: what is committed from then on is its own.
            let is_busy = self.follower.is_busy() || self.streams.is_alive() || self.sinks.is_planning();
            if !is_busy || left.is_zero() || self.failed.is_some() {
                break;
            }
            if let Ok(what) = wakes.recv_timeout(left) {
                self.woken_at_end(what);
            }
        }
        self.pool.close();
        // From here on what was read is committed, no matter how much waits for sinks.
        self.stop.hurry.store(true, Ordering::Relaxed);
        self.queue.nudge();
        let left = self.hand_over_open(until.max(Instant::now() + LAST));
        self.queue.tell(ControlMessage::Seen(self.follower.present()));
        left
    }

    /// Acts on a wake while what is there is read for the last time.
    fn woken_at_end(&mut self, what: Wake) {
        match what {
            Wake::Done(id, turn) => self.follower.done(id, &turn, None, now()),
            Wake::Failed(why) => self.failed = Some(Some(why)),
            Wake::Unread(sink) => drop(self.goes_on_without(&sink)),
            Wake::SinkBegins(mark) => self.sinks.begins(mark),
            // A reload has taken it out; what it could not write must be said in this run, too.
            Wake::SinkEnded(name, left) => self.sinks.ended(&name, left),
            Wake::StateLost => self.say_all(),
            // The run ends already, with the configuration that it has; all files are read, and nobody waits for a silence any more.
            Wake::Stop | Wake::Reload | Wake::Files | Wake::Streams | Wake::Heard(_) => {}
        }
    }

    /// Hands over the open events of all files. Returns how many files were not read to their end, or whose last events found no room.
    fn hand_over_open(&mut self, until: Instant) -> usize {
        let (mut space, mut left) = (Space::default(), 0);
        for job in self.follower.all() {
            // A file that is still being read is left alone; if marks are kept, reading resumes at the next start.
            let Ok(mut reader) = job.reader.try_lock() else {
                left += 1;
                continue;
            };
            let turn = if self.is_durable { reader.pause(&mut space, now()) } else { reader.finish(&mut space, now()) };
            drop(reader);
            let Some(batch) = self.writer.get().batch(job.uid, &job.label, turn) else { continue };
            left += usize::from(!is_handed_over(&self.queue, batch, until, self.is_durable));
        }
        left
    }

    /// Returns the sinks, to wait for, and how the run ended.
    pub fn ended(self) -> (Sinks, Result<Ended, String>) {
        let ended = match self.failed {
            Some(Some(why)) => Err(why),
            Some(None) => Ok(Ended::Well),
            None if self.follower.is_troubled() || self.streams.has_failed() => Ok(Ended::Troubled),
            None => Ok(Ended::Well),
        };
        (self.sinks, ended)
    }
}

/// Hands over the last events of a file; returns `false`, and reports it, if there was no room in time. If marks are kept,
/// the file's was not committed either, so the next start reads these events again.
fn is_handed_over(queue: &Queue, batch: Batch, until: Instant, is_durable: bool) -> bool {
    let (count, label) = (batch.records.len(), batch.label.clone());
    let is_taken = queue.send_until(batch, until);
    if !is_taken && is_durable {
        tracing::warn!("{}: its last {count} events found no room in time; the next start reads them again", label.path.escape_debug());
    } else if !is_taken {
        tracing::error!("{}: its last {count} events found no room in time and are lost", label.path.escape_debug());
    }
    is_taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::{Label, Uid};

    #[test]
    fn last_events_that_find_no_room_are_not_taken_for_handed_over() {
        let batch = || Batch {
            uid: Uid::default(),
            label: Arc::new(Label::default()),
            records: Vec::new(),
            body: vec![b'x'; 9],
            notices: Vec::new(),
            mark: None,
            at: Timestamp(0),
        };
        let queue = Queue::new(1);
        assert!(is_handed_over(&queue, batch(), Instant::now(), false));
        assert!(!is_handed_over(&queue, batch(), Instant::now(), false), "it is full");
    }
}
