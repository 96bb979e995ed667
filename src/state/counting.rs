//! What a transaction adds to this process's counters: gathered while it is drafted and
//! published once it is committed, so that a transaction that is retried counts once.

use super::outbox::Outbox;
use crate::delivery::{Batch, Missed, Notice, Record, SinkMark};
use crate::telemetry::metrics;
use crate::words::{Category, Severity};

/// What one transaction adds to the counters.
#[derive(Default)]
pub(super) struct Counted {
    /// Number of the batch, and the kind of the error.
    events: Vec<(u32, Category, Severity)>,
    /// Reason, bytes, and other items missing.
    gaps: Vec<(&'static str, u64, u64)>,
}

impl Counted {
    /// Counts an error that sinks will get.
    pub fn event(&mut self, batch: usize, record: &Record) {
        self.events.push((batch as u32, record.category, record.severity));
    }

    /// Counts a record that is not an error.
    pub fn notice(&mut self, notice: &Notice) {
        if let Notice::Gap { why, missed, .. } = notice {
            let (bytes, items) = match *missed {
                Missed::Unknown => (0, 0),
                Missed::Bytes(count) => (count, 0),
                Missed::Events(count) | Missed::Datagrams(count) | Missed::Connections(count) => (0, count),
            };
            self.gaps.push((why.as_str(), bytes, items));
        }
    }
}

/// Publishes the counts of a committed transaction.
pub(super) fn publish(batches: &[Batch], counted: &Counted) {
    let mut rest = &counted.events[..];
    while let Some((number, ..)) = rest.first() {
        let (of_batch, others) = rest.split_at(rest.partition_point(|(other, ..)| other == number));
        if let Some(batch) = batches.get(*number as usize) {
            let source = metrics().sources.of(&batch.label.source);
            of_batch.iter().for_each(|(_, category, severity)| source.events.add(*category, *severity, 1));
        }
        rest = others;
    }
    for (why, bytes, items) in &counted.gaps {
        let gap = metrics().gaps.of(why);
        gap.count.add(1);
        gap.bytes.add(*bytes);
        gap.items.add(*items);
    }
}

/// Publishes what waits for sinks now.
pub(super) fn outbox(outbox: &Outbox, sinks: &[SinkMark]) {
    metrics().outbox_bytes.set(outbox.waiting_bytes());
    metrics().outbox_last.set(outbox.last());
    sinks.iter().for_each(|mark| metrics().sinks.of(&mark.name).seq.set(mark.seq));
}
