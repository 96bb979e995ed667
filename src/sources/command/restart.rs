//! How long to wait before a program is restarted. Time is an argument.

use std::time::Duration;

/// Pauses that double, up to a limit.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `first` to `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// Returns the pause after a run that lasted `ran`; a run longer than the longest pause counts as a success and resets the pauses.
    pub fn pause(&mut self, ran: Duration) -> Duration {
        if ran > self.longest {
            self.next = self.first;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_begin_anew() {
        let second = Duration::from_secs;
        let mut backoff = Backoff::new(second(1), second(10));
        let pauses: Vec<u64> = (0..6).map(|_| backoff.pause(Duration::ZERO).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff.pause(second(11)), second(1));
        assert_eq!(backoff.pause(second(9)), second(2));
    }
}
