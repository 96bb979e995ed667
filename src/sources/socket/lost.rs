//! What peers sent and nobody took: counted until it is said, as a `gap` record.

use crate::core::event::Timestamp;
use crate::delivery::{Missed, Notice, Uid, Why, derived_id};

/// Things of one kind that were lost since they were last said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    /// How many.
    pub count: u64,
    /// The first one.
    pub from: Timestamp,
    /// The last one.
    pub to: Timestamp,
}

impl Lost {
    /// The record that says it, in a stream of that identity; `missed` says of what there were so many.
    pub fn notice(&self, uid: &Uid, why: Why, missed: fn(u64) -> Missed) -> Notice {
        let id = derived_id("gap", &[uid, why.as_str().as_bytes(), &self.from.0.to_be_bytes(), &self.to.0.to_be_bytes()]);
        Notice::Gap { id, why, missed: missed(self.count), from: self.from, to: self.to }
    }
}

/// So many more at `at`.
pub(super) fn add(lost: &mut Option<Lost>, count: u64, at: Timestamp) {
    let lost = lost.get_or_insert(Lost { count: 0, from: at, to: at });
    lost.count += count;
    lost.to = at;
}
