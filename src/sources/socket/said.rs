//! Rate limit for messages about peers: the first of a kind at once, then one a minute with the number of occurrences.

use std::time::{Duration, Instant};

/// Minimum time between two messages of one kind.
const PAUSE: Duration = Duration::from_secs(60);

/// One kind of message.
#[derive(Debug, Default)]
pub struct Said {
    last: Option<Instant>,
    since: u64,
}

impl Said {
    /// Counts an occurrence; returns the number since the last message if one is due.
    pub fn happened(&mut self, now: Instant) -> Option<u64> {
        self.since += 1;
        if self.last.is_some_and(|last| now.duration_since(last) < PAUSE) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_at_once_then_one_a_minute() {
        let (mut said, start) = (Said::default(), Instant::now());
        assert_eq!(said.happened(start), Some(1));
        let counts: Vec<u64> = (1..=120).filter_map(|second| said.happened(start + Duration::from_secs(second))).collect();
        assert_eq!(counts, [60, 60]);
    }
}
