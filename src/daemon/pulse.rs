//! Detects a stalled pipeline: the threads that everything passes through count their rounds, and a thread here checks
//! the counts. A reader that waits for room is excused, for that is intended back-pressure from a slow sink. A thread that
//! reads, decides or commits without end is not. The service manager's watchdog is fed only while all of them move.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::wake::Wake;
use crate::state::queue::Queue;
use crate::telemetry::{metrics, notify};

/// A thread that has been at one task for this long counts as stuck. With a watchdog, the limit is half of the watchdog's
/// timeout instead.
const LIMIT: Duration = Duration::from_secs(30);
/// Longest pause between two checks.
const PAUSE: Duration = Duration::from_secs(2);

/// The sign of life of one thread.
#[derive(Debug, Default)]
pub(super) struct Beat {
    /// How often the thread has moved on to another task or to waiting.
    rounds: AtomicU64,
    /// The thread has nothing to do, or is held up by something that is excused.
    is_excused: AtomicBool,
}

impl Beat {
    /// Called when the thread begins its next task.
    pub fn moves(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.is_excused.store(false, Ordering::Relaxed);
    }

    /// Called before something that may take any length of time.
    pub fn waits(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.is_excused.store(true, Ordering::Relaxed);
    }
}

/// The threads that are checked.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    beats: Mutex<Vec<(&'static str, Arc<Beat>)>>,
    /// Checking is over: the daemon shuts down, which has a time limit of its own.
    is_over: AtomicBool,
}

impl Pulse {
    /// Adds a thread of this kind to those that are checked.
    pub fn add(&self, name: &'static str) -> Arc<Beat> {
        let beat = Arc::new(Beat::default());
        self.beats.lock().unwrap_or_else(PoisonError::into_inner).push((name, beat.clone()));
        beat
    }

    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What the last check saw of each thread.
struct Look {
    limit: Duration,
    /// The number of rounds, and since when it has not changed.
    seen: Vec<(u64, Instant)>,
}

impl Look {
    /// Returns the first thread that is stuck. `has_room` means that the queue is not full, so no reader waits for room in it.
    fn stuck(&mut self, pulse: &Pulse, has_room: bool, now: Instant) -> Option<&'static str> {
        let beats = pulse.beats.lock().unwrap_or_else(PoisonError::into_inner);
        self.seen.resize(beats.len(), (0, now));
        let mut stuck = None;
        for ((name, beat), (rounds, since)) in beats.iter().zip(&mut self.seen) {
            let count = beat.rounds.load(Ordering::Relaxed);
            let waits_for_room = !has_room && *name == READER;
            if count != *rounds || waits_for_room || beat.is_excused.load(Ordering::Relaxed) {
                (*rounds, *since) = (count, now);
            } else if now.duration_since(*since) >= self.limit {
                stuck = stuck.or(Some(*name));
            }
        }
        stuck
    }
}

/// Name of the thread that everything depends on.
pub(super) const COMMITTER: &str = "the committer";
/// Name of the threads that read: only they wait for room in the queue.
pub(super) const READER: &str = "a thread that reads";

/// Starts the thread that checks the others, reports a stall, and feeds the watchdog until the daemon shuts down.
pub(super) fn start(pulse: Arc<Pulse>, queue: Arc<Queue>, sender: Sender<Wake>) {
    let watchdog = notify::watchdog();
    let limit = watchdog.map_or(LIMIT, |time| time / 2);
    let pause = PAUSE.min(limit / 4).max(Duration::from_millis(10));
    std::thread::spawn(move || {
        let mut look = Look { limit, seen: Vec::new() };
        let mut told = String::new();
        while !pulse.is_over.load(Ordering::Relaxed) {
            let stuck = look.stuck(&pulse, !queue.is_full(), Instant::now());
            let was_stalled = metrics().is_stalled.swap(stuck.is_some(), Ordering::Relaxed);
            match stuck {
                Some(who) if !was_stalled => tracing::error!("{who} has not moved for {limit:?}; the watchdog is not fed"),
                Some(_) => {}
                None => {
                    if was_stalled {
                        tracing::warn!("everything moves again");
                    }
                    if watchdog.is_some() {
                        notify::feed_watchdog();
                    }
                }
            }
            let summary = metrics().summary();
            if summary != told {
                notify::status(&summary);
                told = summary;
            }
            queue.nudge();
            if sender.send(Wake::Files).is_err() {
                break;
            }
            std::thread::sleep(pause);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_move_is_named_unless_there_is_an_excuse() {
        let pulse = Pulse::default();
        let (committer, reader) = (pulse.add(COMMITTER), pulse.add(READER));
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut look = Look { limit: Duration::from_secs(10), seen: Vec::new() };
        let mut ask = |has_room, seconds| look.stuck(&pulse, has_room, at(seconds));
        assert_eq!(ask(true, 0), None);
        assert_eq!(ask(true, 9), None, "not long enough");
        committer.moves();
        assert_eq!(ask(true, 12), Some(READER));
        assert_eq!(ask(false, 13), None, "it waits for room");
        reader.waits();
        assert_eq!(ask(false, 30), Some(COMMITTER), "who makes the room has no such excuse");
        committer.waits();
        assert_eq!(ask(true, 90), None, "a full disk is nobody's fault");
        committer.moves();
        assert_eq!((ask(true, 91), ask(true, 100), ask(true, 101)), (None, None, Some(COMMITTER)));
    }

    #[test]
    fn room_is_an_excuse_for_those_that_read_alone() {
        let pulse = Pulse::default();
        pulse.add(READER);
        pulse.add("the thread that decides");
        let begun = Instant::now();
        let mut look = Look { limit: Duration::from_secs(10), seen: Vec::new() };
        let mut ask = |seconds| look.stuck(&pulse, false, begun + Duration::from_secs(seconds));
        assert_eq!((ask(0), ask(9), ask(10)), (None, None, Some("the thread that decides")), "it must go on hearing signals");
    }
}
