//! Leaves records out for a sink that is behind by more than `outbox_max`, if it is configured so. The oldest records
//! the sink was not given are dropped, so that half of the room is free again; a `gap` record for this sink has the
//! count. Records it was given before stay until it is done with them, so that its file can be compared after a kill.
//! What is left out is stored until the sink has passed it: to another sink's records that stay, a restart changes nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use super::committer::Committer;
use super::outbox::Next;
use super::store::{StoreError, Tx, WaitingChunk};
use crate::core::event::Timestamp;
use crate::delivery::{Chunk, FOR_SINK, Label, Missed, Notice, SinkMark, Why, derived_id};

/// Records that a sink is not given.
#[derive(Clone, Debug)]
pub(super) struct LeftOut {
    pub sink: String,
    /// After this record …
    pub from: u64,
    /// … up to and including this one.
    pub to: u64,
    /// How many of them the sink would have written, and those of earlier gaps whose record is among them.
    pub count: u64,
    pub at: Timestamp,
    /// Number of the record that reports it; if there is nothing to report, of the last one left out.
    pub said: Option<u64>,
    /// Whether the state holds it.
    pub is_stored: bool,
}

impl LeftOut {
    pub fn notice(&self, now: Timestamp) -> (Label, Notice) {
        let id = derived_id("gap", &[self.sink.as_bytes(), &self.from.to_be_bytes(), &self.to.to_be_bytes()]);
        let gap = Notice::Gap { id, why: Why::OutboxFull, missed: Missed::Events(self.count), from: self.at, to: now };
        (Label { source: self.sink.clone(), kind: FOR_SINK, path: String::new(), ..Label::default() }, gap)
    }

    fn holds(&self, sink: &str, first: u64, last: u64) -> bool {
        self.sink == sink && self.from < first && last <= self.to
    }

    /// Whether the sink, if it is one of these, has not passed it yet.
    fn is_in_use(&self, sinks: &[SinkMark]) -> bool {
        sinks.iter().any(|sink| sink.name == self.sink && self.said.is_none_or(|said| sink.seq < said))
    }
}

/// Brings the state up to date with what is left out. `said`: index of each that this transaction reports, and the number of that record.
pub(super) fn store(tx: &Tx<'_>, left_out: &[LeftOut], said: &[(usize, u64)], sinks: &[SinkMark]) -> Result<(), StoreError> {
    for (at, out) in left_out.iter().enumerate() {
        let number = out.said.or_else(|| said.iter().find(|(index, _)| *index == at).map(|(_, number)| *number));
        match (out.is_in_use(sinks), number) {
            (true, Some(number)) if !out.is_stored => tx.left_out(out, number)?,
            (false, _) if out.is_stored => tx.no_left_out(out)?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns the chunks that no sink needs, by their first record: every sink has either passed or left out each of them.
pub(super) fn needless(waiting: &VecDeque<WaitingChunk>, sinks: &[SinkMark], left_out: &[LeftOut]) -> Vec<u64> {
    if left_out.is_empty() {
        return Vec::new();
    }
    let is_needed = |first: u64, last: u64| sinks.iter().any(|sink| last > sink.seq && !left_out.iter().any(|out| out.holds(&sink.name, first, last)));
    waiting.iter().filter(|chunk| !is_needed(chunk.first, chunk.last)).map(|chunk| chunk.first).collect()
}

/// Counts the records of a chunk after a number that a sink of this name would write.
pub type CountWanted<'a> = &'a dyn Fn(&str, &Chunk, u64) -> u64;

impl Committer {
    /// Makes these sinks leave out the excess: afterwards at most half of `max_bytes`
    /// waits, unless another sink needs more. Takes effect with the next commit.
    pub fn leave_out(&mut self, sinks: &[String], wanted: CountWanted<'_>, max_bytes: u64, now: Timestamp) {
        let mut kept = 0;
        let newest = self.waiting.iter().rev().take_while(|chunk| {
            kept += chunk.bytes;
            kept <= max_bytes / 2
        });
        let Some(to) = newest.last().map(|chunk| chunk.first - 1).or_else(|| self.waiting.back().map(|chunk| chunk.last)) else { return };
        for sink in self.sinks.iter().filter(|sink| sinks.contains(&sink.name) && sink.seq < to) {
            let from = self.outbox.leave_out(&sink.name, to).max(sink.seq);
            if from >= to {
                continue;
            }
            let count = self.count(from, to, |chunk, seq| wanted(&sink.name, chunk, seq));
            let said = (count == 0).then_some(to);
            let mut new = LeftOut { sink: sink.name.clone(), from, to, count, at: now, said, is_stored: false };
            // If an earlier `gap` record is itself left out, this one includes its count.
            let is_among = |out: &&LeftOut| out.sink == sink.name && out.said.is_some_and(|said| from < said && said <= to);
            for old in self.left_out.iter().filter(is_among) {
                (new.count, new.at) = (new.count + old.count - 1, new.at.min(old.at));
            }
            if count > 0 {
                tracing::warn!("sink {}: outbox_max is reached; {count} records are left out", sink.name);
            }
            self.left_out.push(new);
        }
    }

    /// Counts records after `from`, up to and including `to`. One that cannot be read counts, as it may be wanted.
    fn count(&self, from: u64, to: u64, wanted: impl Fn(&Chunk, u64) -> u64) -> u64 {
        let (mut count, mut seq) = (0, from);
        while seq < to {
            let Some(chunk) = self.chunk_after(seq).filter(|chunk| chunk.first <= to && chunk.last() > seq) else { return count + (to - seq) };
            count += chunk.first - (seq + 1).min(chunk.first) + wanted(&chunk, seq);
            seq = chunk.last();
        }
        count
    }

    fn chunk_after(&self, seq: u64) -> Option<Arc<Chunk>> {
        match self.outbox.next(seq) {
            Next::Chunk(chunk) => Some(chunk),
            Next::InFile => self.store.as_ref()?.chunk_after(seq).ok().flatten().map(Arc::new),
            Next::Nothing | Next::End => None,
        }
    }

    /// Forgets, after a commit, the left-out chunks that no sink needs.
    pub(super) fn forget_left_out(&mut self) {
        if self.left_out.is_empty() {
            return;
        }
        let gone = needless(&self.waiting, &self.with_held(self.sinks.clone()), &self.left_out);
        self.waiting.retain(|chunk| !gone.contains(&chunk.first));
        self.outbox.forget(&gone, WaitingChunk::sum(&self.waiting));
        let sinks = &self.sinks;
        self.left_out.retain(|out| out.is_in_use(sinks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{Category, Severity};
    use crate::delivery::{Batch, Record};
    use crate::state::outbox::Outbox;
    use crate::state::queue::ControlMessage;
    use crate::state::store::Store;
    use crate::state::withhold::Rules;

    /// A batch of one record of 1000 bytes.
    fn batch(n: u64) -> Batch {
        let (severity, category) = (Severity::High, Category::ALL[0]);
        let (signature, at, seen_at, weight, session) = Default::default();
        let id = format!("{n:032x}");
        let record = Record { len: 1000, generation: 0, offset: n, inner: 0, id, signature, severity, category, at, seen_at, weight, session };
        let label = Arc::new(Label { source: "agent".into(), kind: "file", path: "a".into(), ..Label::default() });
        Batch { uid: [1; 16], label, records: vec![record], body: vec![b'x'; 1000], notices: Vec::new(), mark: None, at: Timestamp(0) }
    }

    fn all(_: &str, chunk: &Chunk, seq: u64) -> u64 {
        chunk.after(seq).count() as u64
    }

    fn take(outbox: &Outbox, sink: &str, seq: u64) -> Option<Arc<Chunk>> {
        match outbox.next(outbox.goes_on(sink, seq)) {
            Next::Chunk(chunk) => outbox.give(sink, &chunk).then_some(chunk),
            _ => None,
        }
    }

    fn played(store: Option<Store>) {
        let write = Arc::new(|out: &mut Vec<u8>, label: &Label, notice: &Notice, _| out.extend(format!("{} {notice:?}\n", label.source).bytes()));
        let mut committer = Committer::new(store, Rules::default(), write, &["slow".to_owned(), "good".to_owned()]).unwrap();
        let outbox = committer.outbox();
        for n in 1..=3 {
            committer.commit(&[batch(n)], &[], Timestamp(0)).unwrap();
        }
        let given = take(&outbox, "slow", 0).unwrap();
        assert_eq!(given.last(), 1);
        for n in 4..=20 {
            committer.commit(&[batch(n)], &[], Timestamp(0)).unwrap();
        }
        // Twice: the record about the first ones is left out with the second ones.
        committer.leave_out(&["slow".to_owned()], &all, 10_000, Timestamp(7));
        committer.commit(&[], &[], Timestamp(7)).unwrap();
        for n in 21..=30 {
            committer.commit(&[batch(n)], &[], Timestamp(0)).unwrap();
        }
        // The other one is behind by three.
        let good = SinkMark { name: "good".into(), seq: 28, ..SinkMark::default() };
        committer.commit(&[], &[ControlMessage::Sink(good)], Timestamp(0)).unwrap();
        committer.leave_out(&["slow".to_owned()], &all, 10_000, Timestamp(7));
        committer.commit(&[], &[], Timestamp(7)).unwrap();
        assert!(outbox.waiting_bytes() < 7000, "{}", outbox.waiting_bytes());
        let next = take(&outbox, "slow", given.last()).unwrap();
        assert_eq!(next.first, 27, "2 to 20, a record about 2 to 15, and 22 to 26 are left out");
        let (mut seq, mut text) = (next.last(), Vec::new());
        while let Some(chunk) = take(&outbox, "slow", seq) {
            seq = chunk.last();
            text.clone_from(&chunk.body);
        }
        let text = String::from_utf8(text).unwrap();
        assert!(seq == 32 && text.starts_with("slow Gap") && text.contains("OutboxFull") && text.contains("Events(24)"), "{text}");
        assert_eq!(take(&outbox, "good", 28).unwrap().first, 29, "the other one misses nothing");
        // It has done what it was given before: nothing of that is said again.
        for name in ["slow", "good"] {
            committer.commit(&[], &[ControlMessage::Sink(SinkMark { name: name.into(), seq: 32, ..SinkMark::default() })], Timestamp(8)).unwrap();
        }
        assert_eq!((outbox.waiting_bytes(), outbox.waiting()), (0, 0));
        assert!(committer.left_out.is_empty());
    }

    /// A sink whose peer may not have read what it was given asks for it again.
    #[test]
    fn what_was_given_can_be_had_again_until_it_is_done() {
        let mut committer =
            Committer::new(None, Rules::default(), Arc::new(|out: &mut Vec<u8>, _: &Label, _: &Notice, _| out.push(b'\n')), &["slow".to_owned()]).unwrap();
        let outbox = committer.outbox();
        for n in 1..=12 {
            committer.commit(&[batch(n)], &[], Timestamp(0)).unwrap();
        }
        let mut had = Vec::new();
        for seq in 0..3 {
            had.push(take(&outbox, "slow", seq).unwrap().last());
        }
        committer.leave_out(&["slow".to_owned()], &all, 10_000, Timestamp(7));
        committer.commit(&[], &[], Timestamp(7)).unwrap();
        // Its connection breaks, and only the first one is done.
        let done = SinkMark { name: "slow".into(), seq: 1, ..SinkMark::default() };
        committer.commit(&[], &[ControlMessage::Sink(done)], Timestamp(8)).unwrap();
        let (mut seq, mut again) = (1, Vec::new());
        while let Some(chunk) = take(&outbox, "slow", seq) {
            seq = chunk.last();
            again.push(seq);
        }
        assert_eq!((had, again), (vec![1, 2, 3], vec![2, 3, 8, 9, 10, 11, 12, 13]));
    }

    /// A sink that takes every third record misses only those.
    #[test]
    fn what_the_sink_would_not_have_written_is_not_counted() {
        let folder = tempfile::tempdir().unwrap();
        for store in [None, Some(Store::open(folder.path()).unwrap().0)] {
            let write = Arc::new(|out: &mut Vec<u8>, _: &Label, notice: &Notice, _| out.extend(format!("{notice:?}\n").bytes()));
            let names = ["some".to_owned(), "none".to_owned()];
            let mut committer = Committer::new(store, Rules::default(), write, &names).unwrap();
            for n in 1..=20 {
                committer.commit(&[batch(n)], &[], Timestamp(0)).unwrap();
            }
            let count = |name: &str, chunk: &Chunk, seq| chunk.after(seq).filter(|(number, ..)| name == "some" && number % 3 == 0).count() as u64;
            committer.leave_out(&names, &count, 10_000, Timestamp(7));
            committer.commit(&[], &[], Timestamp(7)).unwrap();
            let outbox = committer.outbox();
            assert_eq!(outbox.last(), 21, "nothing is said of the sink that misses nothing");
            let text = String::from_utf8(outbox.kept().last().unwrap().body.clone()).unwrap();
            assert!(text.contains("Events(5)"), "3, 6, 9, 12, 15 of 1 to 15: {text}");
            for name in names {
                assert_eq!(take(&outbox, &name, 0).unwrap().first, 16);
                committer.commit(&[], &[ControlMessage::Sink(SinkMark { name, seq: 21, ..SinkMark::default() })], Timestamp(8)).unwrap();
            }
            assert!(committer.left_out.is_empty());
        }
    }

    /// The records stay in the state, because another sink needs them.
    #[test]
    fn what_was_left_out_stays_left_out_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let started = || {
            let write = Arc::new(|out: &mut Vec<u8>, _: &Label, notice: &Notice, _| out.extend(format!("{notice:?}\n").bytes()));
            Committer::new(Some(Store::open(folder.path()).unwrap().0), Rules::default(), write, &["slow".to_owned(), "good".to_owned()]).unwrap()
        };
        let done = |name: &str, seq| ControlMessage::Sink(SinkMark { name: name.to_owned(), seq, ..SinkMark::default() });
        let mut committer = started();
        committer.begin(&[], &[], Timestamp(0)).unwrap();
        for n in 1..=20 {
            committer.commit(&[batch(n)], &[], Timestamp(0)).unwrap();
        }
        committer.leave_out(&["slow".to_owned()], &all, 10_000, Timestamp(7));
        committer.commit(&[], &[], Timestamp(7)).unwrap();
        drop(committer);

        let mut committer = started();
        assert_eq!(take(&committer.outbox(), "good", 0), None, "its records are in the file");
        for n in 21..=30 {
            committer.commit(&[batch(n)], &[], Timestamp(8)).unwrap();
        }
        // Of 1 to 15, the record 21 that says so, and 16 to 26, only what was not counted before is counted.
        committer.leave_out(&["slow".to_owned()], &all, 10_000, Timestamp(8));
        committer.commit(&[], &[], Timestamp(8)).unwrap();
        let outbox = committer.outbox();
        let text = String::from_utf8(outbox.kept().last().unwrap().body.clone()).unwrap();
        let missed = outbox.goes_on("slow", 0) - 1;
        assert!(missed > 15 && text.contains(&format!("missed: Events({missed})")), "{missed}: {text}");

        // Once it has passed them, nothing is stored of it.
        committer.commit(&[], &[done("slow", outbox.last())], Timestamp(9)).unwrap();
        assert!(committer.store.as_ref().unwrap().left_out().unwrap().is_empty() && committer.left_out.is_empty());
    }

    #[test]
    fn the_oldest_are_left_out_and_counted_for_one_sink() {
        let folder = tempfile::tempdir().unwrap();
        played(Some(Store::open(folder.path()).unwrap().0));
        played(None);
    }
}
