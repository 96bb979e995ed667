//! How refused records are mentioned in the log: the first at once, what comes then with its number when a while is over,
//! or at the end. A server that refuses everything fills no log, and the numbers in it add up. It knows no clock.

use crate::core::event::Timestamp;

/// How often they are mentioned.
const EVERY_US: i64 = 60_000_000;

/// What was mentioned, and what was not.
#[derive(Default)]
pub(super) struct Mentions {
    at: Option<Timestamp>,
    /// So many were refused since.
    count: usize,
    /// Why the first of them was.
    why: String,
}

impl Mentions {
    /// So many more were refused.
    pub fn add(&mut self, count: usize, why: &str) {
        if self.count == 0 {
            why.clone_into(&mut self.why);
        }
        self.count += count;
    }

    /// What is to be mentioned now, if anything is: how many, and why the first of them was refused. `is_last`: there will
    /// be no other occasion.
    pub fn take(&mut self, now: Timestamp, is_last: bool) -> Option<(usize, String)> {
        let is_due = is_last || self.at.is_none_or(|at| at.is_past(EVERY_US, now));
        if self.count == 0 || !is_due {
            return None;
        }
        self.at = Some(now);
        Some((std::mem::take(&mut self.count), std::mem::take(&mut self.why)))
    }

    /// When something is to be mentioned.
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
