//! What peers sent and siftd did not take: counted until it is reported in a `gap` record.

use crate::core::event::Timestamp;
use crate::delivery::{Missed, Notice, Uid, Why, derived_id};

/// Losses of one kind since the last report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    /// How many datagrams, connections or bytes.
    pub count: u64,
    /// When the first was lost.
    pub from: Timestamp,
    /// When the last was lost.
    pub to: Timestamp,
}

impl Lost {
    /// Returns the record that reports the loss, in the stream `uid`; `missed` says what was counted.
    pub fn notice(&self, uid: &Uid, why: Why, missed: fn(u64) -> Missed) -> Notice {
        let id = derived_id("gap", &[uid, why.as_str().as_bytes(), &self.from.0.to_be_bytes(), &self.to.0.to_be_bytes()]);
        Notice::Gap { id, why, missed: missed(self.count), from: self.from, to: self.to }
    }
}

/// Adds `count` losses at `at`.
pub(super) fn add(lost: &mut Option<Lost>, count: u64, at: Timestamp) {
    let lost = lost.get_or_insert(Lost { count: 0, from: at, to: at });
    lost.count += count;
    lost.to = at;
}
