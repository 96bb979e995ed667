//! The thread that commits: gathers what has arrived, at most fifty times a second, and retries while the disk
//! is full. Marks without events wait a little longer: losing one only means reading some bytes again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::begin::{reason, take};
use super::deliver::placed;
use super::on_open::OnOpen;
use super::pending::Pending;
use super::plan::Obstacles;
use super::pulse::Beat;
use super::sinks::Sinks;
use super::wake::{Early, Stop, Wake};
use crate::core::event::Timestamp;
use crate::delivery::{Batch, Chunk};
use crate::sinks::choose::Choose;
use crate::sources::clock::now;
use crate::state::committer::Committer;
use crate::state::lock::Lock;
use crate::state::queue::{ControlMessage, Queue};
use crate::state::store::{StoreError, file};
use crate::telemetry::metrics;

/// Least time between two transactions.
const PACE: Duration = Duration::from_millis(20);
/// Most bytes that one transaction takes from the queue: more than 1 MiB of records if syncing is slow.
const MAX_BYTES: usize = 2 << 20;
/// Between two commits of marks alone.
const MARKS: Duration = Duration::from_secs(1);
/// Between two checks for what other processes have written.
const OTHERS: Duration = Duration::from_secs(1);
/// Pause after a failed transaction.
const AGAIN: Duration = Duration::from_millis(500);

/// What a reload may change: how much may wait for sinks, and the command that is run when a breaker opens.
#[derive(Clone, Default)]
pub(super) struct Room {
    /// Most bytes that may wait for sinks.
    pub outbox_max: u64,
    /// Sinks that drop records when more than that waits.
    pub dropping: Vec<Choose>,
    /// Program and arguments to run when a breaker opens.
    pub on_open: Vec<String>,
}

/// The thread's belongings.
pub(super) struct Commits {
    pub committer: Committer,
    pub queue: Arc<Queue>,
    pub room: Arc<Mutex<Room>>,
    /// The state folder.
    pub folder: Option<PathBuf>,
    /// The lock on the state folder; kept until the process ends.
    pub lock: Arc<Mutex<Option<Lock>>>,
    pub sender: Sender<Wake>,
    pub stop: Arc<Stop>,
    pub beat: Arc<Beat>,
    /// Runs the command for breakers that have opened.
    pub on_open: OnOpen,
}

/// Repeats a step of the start until there is room for it. Returns `false` if the daemon was told to stop meanwhile.
pub(super) fn until_done(folder: Option<&Path>, early: &mut Early, mut step: impl FnMut() -> Result<(), StoreError>) -> Result<bool, String> {
    let mut said = false;
    loop {
        match step() {
            Ok(()) => return Ok(true),
            Err(error @ (StoreError::Later(_) | StoreError::Busy(_))) if !std::mem::replace(&mut said, true) => {
                let why = reason(folder, &error);
                tracing::warn!("state: {why}; nothing is lost, reading waits until it can be written");
            }
            Err(StoreError::Later(_) | StoreError::Busy(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
        if !early.wait(AGAIN)? {
            return Ok(false);
        }
    }
}

/// Commits what sinks report until all of them have begun. If sinks cannot begin, the start fails before anything is
/// read. Returns `false` if the daemon was told to stop.
pub(super) fn until_ready(committer: &mut Committer, folder: Option<&Path>, queue: &Queue, sinks: &Sinks, early: &mut Early) -> Result<bool, Obstacles> {
    while !sinks.is_ready() {
        let arrived = queue.take(false, Duration::from_millis(50), None, MAX_BYTES);
        if !arrived.messages.is_empty() && !until_done(folder, early, || committer.commit(&[], &arrived.messages, now()))? {
            return Ok(false);
        }
    }
    let failed = sinks.failed();
    if failed.is_empty() { Ok(true) } else { Err(Obstacles(failed)) }
}

pub(super) fn start(mut commits: Commits) -> JoinHandle<()> {
    std::thread::spawn(move || {
        if let Err(error) = commits.run() {
            let why = format!("the state cannot be written: {error}; what was read since is read again after the next start");
            drop(commits.sender.send(Wake::Failed(why)));
        }
        commits.queue.close();
        commits.committer.outbox().close();
    })
}

impl Commits {
    /// Commits what arrives, until the queue is closed and all sinks have ended.
    fn run(&mut self) -> Result<(), StoreError> {
        let mut pending = Pending::new();
        let (mut committed, mut looked) = (Instant::now(), Instant::now());
        let (mut is_full, mut is_closed, mut has_more) = (false, false, false);
        let mut on_open = Vec::new();
        loop {
            self.beat.moves();
            let room = self.adopt_room(&mut on_open);
            self.drop_beyond(&room, &mut pending)?;
            self.heed_outbox_max(&room, &mut is_full);
            // During shutdown what was read is committed even so: it is no more than the queue holds, and some of it cannot be read again.
            let takes = !is_full || self.stop.hurry.load(Ordering::Relaxed);
            let arrived = self.queue.take(takes, self.timeout(has_more, &pending), Some(committed + PACE), MAX_BYTES);
            pending.take_in(arrived.messages);
            let mut batches = pending.put_off(arrived.batches);
            is_closed |= arrived.closed;
            let is_due = self.committer.deadline().is_some_and(|at| at <= now()) || self.look_at_others(&mut looked)?;
            if is_closed || pending.waited() >= MARKS {
                batches.extend(pending.let_go(arrived.drained));
                has_more = self.tidies_up();
            }
            if is_due || !batches.is_empty() || !pending.due.is_empty() {
                self.commit(&batches, &mut pending)?;
                committed = Instant::now();
            }
            if is_closed && self.ends(&mut pending) {
                return Ok(());
            }
        }
    }

    /// Sets whether reading waits because more than `outbox_max` waits for sinks, and says so when that begins.
    fn heed_outbox_max(&self, room: &Room, is_full: &mut bool) {
        let is_over = self.committer.outbox().waiting_bytes() > room.outbox_max;
        if is_over && !*is_full {
            tracing::warn!("outbox_max is reached: reading waits until sinks have caught up");
        }
        *is_full = is_over;
    }

    /// Lets the sinks end, now that nothing more is read; returns whether they have, and all that they told is committed.
    fn ends(&self, pending: &mut Pending) -> bool {
        let outbox = self.committer.outbox();
        // Only once, because closing wakes all sinks.
        if !outbox.is_closed() {
            outbox.close();
        }
        all_is_told(&self.stop.running, &self.queue, pending)
    }

    /// Takes over what a reload has changed, and returns what applies now. `told` is the `on_open` command now in use.
    fn adopt_room(&mut self, told: &mut Vec<String>) -> Room {
        let room = self.room.lock().unwrap_or_else(PoisonError::into_inner).clone();
        metrics().outbox_max_bytes.set(room.outbox_max);
        if room.on_open != *told {
            told.clone_from(&room.on_open);
            self.on_open.set(told);
        }
        room
    }

    /// Drops records for the sinks that allow it while more than `outbox_max` waits.
    fn drop_beyond(&mut self, room: &Room, pending: &mut Pending) -> Result<(), StoreError> {
        if self.committer.outbox().waiting_bytes() <= room.outbox_max || room.dropping.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = room.dropping.iter().map(|choose| choose.name.clone()).collect();
        let count = |sink: &str, chunk: &Chunk, seq| room.dropping.iter().filter(|choose| choose.name == sink).map(|choose| choose.count(chunk, seq)).sum();
        self.committer.leave_out(&names, &count, room.outbox_max, now());
        self.commit(&[], pending)
    }

    /// Gives back disk space that the state does not need, and returns `true` if there is more to give back. A full disk or
    /// a held lock does not matter here: the next write that is needed reports it and waits.
    fn tidies_up(&mut self) -> bool {
        self.committer.shrink().unwrap_or_else(|error| {
            tracing::debug!("state: no room is given back for now: {error}");
            false
        })
    }

    /// Looks after the state folder, at most once per [`OTHERS`], and returns whether another process has written there.
    fn look_at_others(&mut self, looked: &mut Instant) -> Result<bool, StoreError> {
        let is_time = looked.elapsed() >= OTHERS;
        if is_time {
            *looked = Instant::now();
            self.look_after_folder()?;
        }
        Ok(is_time && self.committer.is_stale())
    }

    /// Recreates the state if somebody has removed it: an unlinked file disappears with the process, and the next process
    /// would start from nothing.
    fn look_after_folder(&mut self) -> Result<(), StoreError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours = lock.as_ref().is_some_and(|lock| lock.is_of(folder));
        // A file of the same name may be another one: what is written to the open one is then lost with the process.
        let is_there = file(folder).try_exists().is_err() || self.committer.has_its_file(folder);
        if is_ours && is_there {
            return Ok(());
        }
        let mut again = || -> Result<String, StoreError> {
            if !is_ours {
                *lock = Some(take(folder)?);
            }
            if is_there {
                Ok(format!("the lock in {} was removed while it is in use; it was taken again", folder.display()))
            } else {
                self.committer.replace(folder, now())
            }
        };
        match again() {
            Ok(said) => {
                metrics().state_trouble.clear();
                tracing::error!("{said}; nothing is lost, reading goes on where it was");
                drop(self.sender.send(Wake::StateLost));
                Ok(())
            }
            Err(error @ (StoreError::Later(_) | StoreError::Busy(_))) => {
                let why = reason(Some(folder), &error);
                let why = format!("the folder {} was removed while it is in use, and cannot be made anew: {why}", folder.display());
                if metrics().state_trouble.get().is_none() {
                    tracing::warn!("state: {why}; trying again");
                }
                metrics().state_trouble.set(why);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns how long to wait for more. `has_more`: there is more disk space to give back.
    fn timeout(&self, has_more: bool, pending: &Pending) -> Duration {
        let held = self.committer.deadline().map(|at: Timestamp| Duration::from_micros(at.0.saturating_sub(now().0).max(0) as u64));
        let longest = if self.folder.is_some() { OTHERS } else { Duration::from_secs(60) };
        let mut timeout = if has_more || pending.holds_back() { MARKS.saturating_sub(pending.waited()) } else { longest };
        if self.stop.hurry.load(Ordering::Relaxed) {
            timeout = timeout.min(Duration::from_millis(5));
        }
        timeout.min(held.unwrap_or(timeout)).max(Duration::from_millis(1))
    }

    /// Commits. While there is no room it waits, and so does everything queued behind it.
    fn commit(&mut self, batches: &[Batch], pending: &mut Pending) -> Result<(), StoreError> {
        let (mut said, mut renewed) = (false, false);
        loop {
            let done = match self.try_commit(batches, pending) {
                // Once there is room for a new file, what failed is done again.
                Err(StoreError::Unreadable(why)) if self.folder.is_some() && !renewed => {
                    let made = self.renew(&why);
                    if made.is_ok() {
                        renewed = true;
                        continue;
                    }
                    made
                }
                done => done,
            };
            match done {
                Ok(()) => {
                    if said {
                        metrics().state_trouble.clear();
                        tracing::warn!("state: it can be written again");
                    }
                    self.tell_committed(pending);
                    return Ok(());
                }
                Err(error @ (StoreError::Later(_) | StoreError::Busy(_))) => {
                    if matches!(error, StoreError::Later(_)) {
                        // A restart would not help, so the watchdog must not cause one.
                        self.beat.waits();
                    }
                    if !std::mem::replace(&mut said, true) {
                        self.say_trouble(&error);
                    }
                    if self.stop.hurry.load(Ordering::Relaxed) {
                        return Err(error);
                    }
                    self.committer.make_room();
                    pending.take_in(self.queue.take(false, AGAIN, None, MAX_BYTES).messages);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Commits, or fails at once.
    fn try_commit(&mut self, batches: &[Batch], pending: &Pending) -> Result<(), StoreError> {
        let begun = Instant::now();
        let done = self.committer.commit(batches, &pending.due, now());
        metrics().commit.observe(begun.elapsed());
        metrics().commit_failures.add(u64::from(done.is_err()));
        done
    }

    /// Tells those whom it concerns what a commit has made true, and forgets the messages that it holds.
    fn tell_committed(&mut self, pending: &mut Pending) {
        for message in pending.due.drain(..) {
            if let ControlMessage::SinkBegins { name, .. } = message
                && let Some(mark) = self.committer.sink(&name)
            {
                drop(self.sender.send(Wake::SinkBegins(mark.clone())));
            }
        }
        self.on_open.call(self.committer.take_opened());
    }

    fn say_trouble(&self, error: &StoreError) {
        let mut why = reason(self.folder.as_deref(), error);
        if let Some(folder) = &self.folder {
            why = placed(&folder.display().to_string(), &why);
        }
        tracing::warn!("state: {why}; nothing is lost, reading waits until it can be written");
        metrics().state_trouble.set(why);
    }

    /// Replaces a damaged state file by a new one, and asks the deciding thread to report all marks again.
    fn renew(&mut self, why: &str) -> Result<(), StoreError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let said = self.committer.renew(folder, why, now())?;
        tracing::error!("{said}; reading goes on where it was");
        drop(self.sender.send(Wake::StateLost));
        Ok(())
    }
}

/// Whether all sinks have ended and nothing that they told is left to commit. The order matters: a sink tells its last
/// mark before it counts as ended, perhaps while a transaction ran that does not hold it.
fn all_is_told(running: &AtomicUsize, queue: &Queue, pending: &mut Pending) -> bool {
    if running.load(Ordering::Acquire) > 0 {
        return false;
    }
    pending.take_in(queue.take(false, Duration::ZERO, None, MAX_BYTES).messages);
    pending.has_no_message()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_mark_told_during_the_last_commit_is_committed_as_well() {
        let (queue, running, mut pending) = (Queue::new(1), AtomicUsize::new(1), Pending::new());
        queue.close();
        assert!(queue.take(true, Duration::ZERO, None, 1).closed);
        assert!(!all_is_told(&running, &queue, &mut pending), "a sink still writes");
        queue.tell(ControlMessage::Sink(crate::delivery::SinkMark::default()));
        running.store(0, Ordering::Release);
        assert!(!all_is_told(&running, &queue, &mut pending));
        assert!(matches!(&pending.due[..], [ControlMessage::Sink(_)]));
        pending.due.clear();
        assert!(all_is_told(&running, &queue, &mut pending));
    }

    #[test]
    fn what_is_heard_while_the_start_waits_for_room_is_kept() {
        let (sender, wakes) = channel();
        let full = || Err(StoreError::Later("no room".to_owned()));
        let mut early = Early::new(&wakes);
        sender.send(Wake::Unread("out".to_owned())).unwrap();
        sender.send(Wake::SinkEnded("out".to_owned(), 0)).unwrap();
        let mut tries = 0;
        let third = || {
            tries += 1;
            if tries < 3 { full() } else { Ok(()) }
        };
        assert_eq!(until_done(None, &mut early, third), Ok(true));
        sender.send(Wake::Stop).unwrap();
        assert_eq!(until_done(None, &mut early, full), Ok(false));
        sender.send(Wake::Failed("a sink".to_owned())).unwrap();
        assert_eq!(until_done(None, &mut early, full), Err("a sink".to_owned()));
        let kept = early.kept();
        assert!(matches!(&kept[..], [Wake::Unread(sink), Wake::SinkEnded(ended, 0)] if sink == "out" && ended == sink));
    }
}
