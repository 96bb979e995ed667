//! When to retry a peer that failed: after pauses that double up to a cap, with jitter, so
//! that many daemons do not come back at the same moment. Time and randomness are arguments.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::core::event::Timestamp;
use crate::core::retry::backoff_ms;

/// The first pause.
const BASE_MS: u64 = 200;

/// Returns random numbers.
pub type Random = Box<dyn FnMut() -> u64 + Send>;

/// Returns a source of unpredictable numbers; not meant for secrets.
#[must_use]
pub fn random() -> Random {
    Box::new(|| RandomState::new().build_hasher().finish())
}

/// The pauses of one peer.
pub struct Backoff {
    max_ms: u64,
    random: Random,
    failures: u32,
    /// When the pause began, and its length in microseconds.
    pause: Option<(Timestamp, i64)>,
}

impl Backoff {
    /// Pauses are at most `max` long, unless the peer asks for more.
    #[must_use]
    pub fn new(max: Duration, random: Random) -> Self {
        Self { max_ms: u64::try_from(max.as_millis()).unwrap_or(u64::MAX), random, failures: 0, pause: None }
    }

    /// Notes a failure: the next try comes after a pause of at least `asked`.
    pub fn failed(&mut self, now: Timestamp, asked: Duration) {
        self.failures = self.failures.saturating_add(1);
        let whole = backoff_ms(self.failures, BASE_MS, self.max_ms);
        let jittered = whole / 2 + (self.random)() % (whole / 2 + 1);
        let pause = Duration::from_millis(jittered).max(asked);
        self.pause = Some((now, i64::try_from(pause.as_micros()).unwrap_or(i64::MAX)));
    }

    /// Notes a success.
    pub fn works(&mut self) {
        (self.failures, self.pause) = (0, None);
    }

    /// Returns when the pause ends; `None` if the peer may be tried now. A clock that was set back ends the pause.
    #[must_use]
    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        let (since, pause) = self.pause?;
        let until = since.0.saturating_add(pause);
        (since <= now && now.0 < until).then_some(Timestamp(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(random: u64) -> Vec<i64> {
        let mut backoff = Backoff::new(Duration::from_secs(2), Box::new(move || random));
        let pause = |n: i64| {
            let now = Timestamp(n * 10_000_000);
            assert_eq!(backoff.until(now), None);
            backoff.failed(now, Duration::ZERO);
            (backoff.until(now).unwrap().0 - now.0) / 1000
        };
        (0..6).map(pause).collect()
    }

    #[test]
    fn pauses_double_up_to_the_cap_with_jitter() {
        assert_eq!(pauses(0), [100, 200, 400, 800, 1000, 1000], "at least half");
        assert_eq!(pauses(50), [150, 250, 450, 850, 1050, 1050]);
        let whole = [200, 400, 800, 1600, 2000, 2000];
        assert!(pauses(u64::MAX).iter().zip(whole).all(|(is, most)| (most / 2..=most).contains(is)));
    }

    #[test]
    fn a_wish_of_the_peer_counts_and_success_forgets() {
        let mut backoff = Backoff::new(Duration::from_secs(2), Box::new(|| 7));
        backoff.failed(Timestamp(0), Duration::from_secs(60));
        assert_eq!(backoff.until(Timestamp(59_999_999)), Some(Timestamp(60_000_000)));
        assert_eq!(backoff.until(Timestamp(60_000_000)), None);
        assert_eq!(backoff.until(Timestamp(-1)), None, "the clock was set back");
        backoff.works();
        assert_eq!(backoff.until(Timestamp(1)), None);
    }

    #[test]
    fn random_numbers_differ() {
        let mut random = random();
        assert_ne!(random(), random());
    }
}
