//! What a transaction adds: each new event becomes a record, with what the history says of it, followed by the records that result from it.

use std::collections::BTreeSet;

use super::body::Body;
use super::{Committer, WriteNotice};
use crate::core::event::Timestamp;
use crate::core::pipeline::BEFORE_BYTES;
use crate::delivery::{Batch, Label, Mark, Missed, Notice, Place, Sighting, Uid, Why, derived_id};
use crate::state::breakers;
use crate::state::ledger;
use crate::state::store::{StoreError, Tx};

/// What one transaction is about to add.
pub(super) struct Draft {
    pub body: Body,
    pub added: Vec<(Uid, Place)>,
    pub settled: Vec<(Uid, BTreeSet<Place>)>,
    /// Index in `left_out` of each newly reported gap, and the number of its record.
    pub said: Vec<(usize, u64)>,
}

impl Draft {
    /// Begins the draft of a transaction at `now`, whose first record has the number `first`.
    pub fn new(first: u64, write_notice: &WriteNotice, now: Timestamp) -> Self {
        Self { body: Body::new(first, write_notice.clone(), now), added: Vec::new(), settled: Vec::new(), said: Vec::new() }
    }
}

impl Committer {
    /// Drafts everything that these batches add, and what is due. With a `tx`, history and breakers are updated.
    pub(super) fn draft(&mut self, tx: Option<&Tx<'_>>, draft: &mut Draft, batches: &[Batch]) -> Result<(), StoreError> {
        let tx = tx.filter(|_| self.write_seen.is_some());
        if let Some(tx) = tx {
            self.draft_changes(tx, draft)?;
        }
        for (number, batch) in batches.iter().enumerate() {
            self.draft_records(tx, draft, number, batch)?;
            batch.notices.iter().for_each(|notice| draft.body.notice(&batch.label, notice));
            self.draft_mark(draft, batch);
        }
        self.draft_withheld(draft);
        draft.body.end();
        Ok(())
    }

    /// Drafts what other processes have left, and what the passing of time has changed.
    fn draft_changes(&mut self, tx: &Tx<'_>, draft: &mut Draft) -> Result<(), StoreError> {
        if self.ledger.begin(tx)? {
            let waiting = breakers::take_waiting(tx.db())?;
            if let Some((count, since)) = waiting.left_out {
                let now = draft.body.now;
                let id = derived_id("gap", &[b"transitions", &since.0.to_be_bytes(), &now.0.to_be_bytes()]);
                let gap = Notice::Gap { id, why: Why::TransitionsFull, missed: Missed::Events(count), from: since, to: now };
                draft.body.notice(&breakers::label(), &gap);
            }
            waiting.records.iter().for_each(|record| draft.body.add(record, None));
        }
        let mut made = Vec::new();
        self.ledger.pass(draft.body.now, &mut made);
        draft.body.made(&mut made, tx)
    }

    fn draft_records(&mut self, tx: Option<&Tx<'_>>, draft: &mut Draft, number: usize, batch: &Batch) -> Result<(), StoreError> {
        if !self.kinds.contains_key(&batch.label.source) {
            self.kinds.insert(batch.label.source.clone(), batch.label.kind);
        }
        let seen = self.emitted.entry(batch.uid).or_default();
        let stream = tx.filter(|_| !batch.records.is_empty()).map(|_| ledger::stream_name(&batch.label));
        let (mut at, mut made) = (0, Vec::new());
        for record in &batch.records {
            let bytes = &batch.body[at..at + record.len as usize];
            at += record.len as usize;
            let place = record.place();
            if seen.contains(&place) {
                continue;
            }
            if batch.mark.as_ref().is_some_and(|mark| may_come_again(mark, place)) {
                seen.insert(place);
                draft.added.push((batch.uid, place));
            }
            let mut history = None;
            if let (Some(tx), Some(stream)) = (tx, &stream) {
                let sighting = Sighting { label: &batch.label, record, line: bytes };
                history = self.ledger.seen(tx, sighting)?.zip(self.write_seen);
                self.ledger.step(tx, stream, sighting, &mut made)?;
            }
            if self.withhold.passes(&batch.label, record, batch.at) {
                draft.body.error(bytes, record, history);
                draft.body.counted.event(number, record);
            }
            if let Some(tx) = tx.filter(|_| !made.is_empty()) {
                draft.body.made(&mut made, tx)?;
            }
        }
        Ok(())
    }

    /// Settles the events before the mark: they will not be found again.
    fn draft_mark(&mut self, draft: &mut Draft, batch: &Batch) {
        let seen = self.emitted.entry(batch.uid).or_default();
        if let Some(mark) = &batch.mark {
            let after = seen.split_off(&Place { generation: mark.generation, offset: mark.safe.saturating_sub(BEFORE_BYTES), inner: 0 });
            let old = std::mem::replace(seen, after);
            if !old.is_empty() {
                draft.settled.push((batch.uid, old));
            }
        }
        // Connections come and go: a stream that cannot be read again must leave nothing behind.
        if seen.is_empty() {
            self.emitted.remove(&batch.uid);
        }
    }

    fn draft_withheld(&mut self, draft: &mut Draft) {
        for (at, left_out) in self.left_out.iter().enumerate().filter(|(_, left_out)| left_out.said.is_none()) {
            let (label, notice) = left_out.notice(draft.body.now);
            draft.said.push((at, draft.body.next()));
            draft.body.notice(&label, &notice);
        }
        self.owed.iter().for_each(|(label, notice)| draft.body.notice(label, notice));
        for (source, notice) in self.withhold.due(draft.body.now) {
            let kind = self.kinds.get(&source).copied().unwrap_or("file");
            draft.body.notice(&Label { source, kind, ..Label::default() }, &notice);
        }
    }
}

/// Whether an event at `place` could be found again when its file is taken up at `mark`: a trace may begin
/// with lines before it.
fn may_come_again(mark: &Mark, place: Place) -> bool {
    place.generation == mark.generation && place.offset + BEFORE_BYTES >= mark.safe
}
