//! How refused records are logged: the first at once, later ones with their number once an interval is over, or at the
//! end. A server that refuses everything does not flood the log, and the logged numbers add up. Time is an argument.

use crate::core::event::Timestamp;

/// Minimum interval between two mentions.
const EVERY_US: i64 = 60_000_000;

/// What has been mentioned, and what has not.
#[derive(Default)]
pub(super) struct Mentions {
    at: Option<Timestamp>,
    /// Records refused since the last mention.
    count: usize,
    /// Why the first of them was refused.
    why: String,
}

impl Mentions {
    /// Adds refused records.
    pub fn add(&mut self, count: usize, why: &str) {
        if self.count == 0 {
            why.clone_into(&mut self.why);
        }
        self.count += count;
    }

    /// Returns what is to be mentioned now, if anything: how many were refused, and why the first of them was. `is_last`: there will be no later call.
    pub fn take(&mut self, now: Timestamp, is_last: bool) -> Option<(usize, String)> {
        let is_due = is_last || self.at.is_none_or(|at| at.is_past(EVERY_US, now));
        if self.count == 0 || !is_due {
            return None;
        }
        self.at = Some(now);
        Some((std::mem::take(&mut self.count), std::mem::take(&mut self.why)))
    }

    /// Returns when the next mention is due.
    pub fn deadline(&self) -> Option<Timestamp> {
        let at = self.at.filter(|_| self.count > 0)?;
        Some(Timestamp(at.0 + EVERY_US))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = EVERY_US;

    #[test]
    fn the_first_is_mentioned_at_once_and_the_others_with_their_number() {
        let mut mentions = Mentions::default();
        assert_eq!((mentions.take(Timestamp(0), true), mentions.deadline()), (None, None));
        mentions.add(1, "400 bad");
        assert_eq!(mentions.take(Timestamp(7), false), Some((1, "400 bad".to_owned())));
        assert_eq!(mentions.deadline(), None, "all is said");
        mentions.add(1, "400 worse");
        mentions.add(3, "413 large");
        assert_eq!(mentions.take(Timestamp(8), false), None);
        assert_eq!(mentions.deadline(), Some(Timestamp(7 + MINUTE)));
        assert_eq!(mentions.take(Timestamp(7 + MINUTE), false), Some((4, "400 worse".to_owned())), "without another one");
        mentions.add(2, "400 bad");
        assert_eq!(mentions.take(Timestamp(8 + MINUTE), false), None);
        assert_eq!(mentions.take(Timestamp(8 + MINUTE), true), Some((2, "400 bad".to_owned())), "at the end");
        mentions.add(1, "400 bad");
        assert_eq!(mentions.take(Timestamp(0), false), Some((1, "400 bad".to_owned())), "a clock that was set back keeps nothing");
    }
}
