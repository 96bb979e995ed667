//! What is committed, and how. Each transaction holds the events of some batches and the marks that say how far their files were
//! read, so that both are stored or neither is. An event that is found again after a restart is recognised by its place and dropped.
//! `draft` is what a transaction adds, `body` its records. The committer acts only when it is called: it has no threads and no clock.

mod body;
mod draft;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::counting;
use super::leave_out::{self, LeftOut};
use super::ledger::{self, Ledger};
use super::outbox::Outbox;
use super::queue::ControlMessage;
use super::renew::Made;
use super::store::{Store, StoreError, Tx, WaitingChunk};
use super::withhold::{Rules, Withhold};
use crate::core::event::Timestamp;
use crate::core::pipeline::BEFORE_BYTES;
use crate::delivery::{Batch, Chunk, Label, Notice, Place, SinkMark, Uid, WriteSeen};
use draft::Draft;

/// Writes a notice as one NDJSON line.
pub type WriteNotice = Arc<dyn Fn(&mut Vec<u8>, &Label, &Notice, Timestamp) + Send + Sync>;

/// The committer.
pub struct Committer {
    /// `None`: nothing is stored; what waits for sinks waits in memory.
    pub(super) store: Option<Store>,
    /// Events of each stream that may be found again.
    pub(super) emitted: HashMap<Uid, BTreeSet<Place>>,
    pub(super) withhold: Withhold,
    write_notice: WriteNotice,
    pub(super) outbox: Arc<Outbox>,
    /// The chunks that wait, in order.
    pub(super) waiting: VecDeque<WaitingChunk>,
    pub(super) sinks: Vec<SinkMark>,
    /// Records that sinks are no longer given.
    pub(super) left_out: Vec<LeftOut>,
    /// Sinks of the last run that no longer exist.
    gone: Vec<String>,
    /// File sources that have been followed.
    pub(super) sources: Vec<String>,
    /// The type of each source that has sent a batch.
    kinds: HashMap<String, &'static str>,
    /// The history and the breakers; empty without a store.
    pub(super) ledger: Ledger,
    write_seen: Option<WriteSeen>,
    /// Records of breakers that have opened, for whoever must be notified.
    opened: Vec<Vec<u8>>,
    /// A new state file that could not be opened yet.
    pub(super) made: Option<Made>,
    /// Notices that belong to no batch, for the next transaction.
    pub(super) owed: Vec<(Label, Notice)>,
}

/// What one transaction is to commit.
#[derive(Clone, Copy)]
struct Work<'a> {
    batches: &'a [Batch],
    messages: &'a [ControlMessage],
}

impl Committer {
    /// Continues from what the store holds. Sinks unknown to the store begin after the last record.
    ///
    /// # Errors
    /// Those of the store.
    pub fn new(store: Option<Store>, rules: Rules, write_notice: WriteNotice, sinks: &[String]) -> Result<Self, StoreError> {
        let mut emitted: HashMap<Uid, BTreeSet<Place>> = HashMap::new();
        let (mut last, mut waiting, mut known, mut held, mut sources) = Default::default();
        let mut left_out = Vec::new();
        if let Some(store) = &store {
            store.emitted(&mut |uid, place| {
                emitted.entry(uid).or_default().insert(place);
            })?;
            (last, waiting, known, held) = (store.last()?, VecDeque::from(store.outbox()?), store.sinks()?, store.withheld()?);
            (sources, left_out) = (store.sources()?, store.left_out()?);
        }
        let mark = |name: &String| {
            let old = known.iter().find(|mark: &&SinkMark| mark.name == *name).cloned();
            old.unwrap_or_else(|| SinkMark { name: name.clone(), seq: last, ..SinkMark::default() })
        };
        let marks: Vec<SinkMark> = sinks.iter().map(mark).collect();
        let done = marks.iter().map(|mark| mark.seq).min().unwrap_or(last);
        let outbox = Arc::new(Outbox::new(last, done, WaitingChunk::sum(&waiting), store.is_none()));
        left_out.retain(|out| sinks.contains(&out.sink));
        left_out.iter().for_each(|out| outbox.left_out_before(&out.sink, out.from, out.to));
        let gone = known.into_iter().map(|mark| mark.name).filter(|name| !sinks.contains(name)).collect();
        let withhold = Withhold::new(rules, held);
        let mut committer = Self {
            store,
            emitted,
            withhold,
            write_notice,
            outbox,
            waiting,
            sinks: marks,
            left_out,
            gone,
            sources,
            kinds: HashMap::new(),
            ledger: Ledger::default(),
            write_seen: None,
            opened: Vec::new(),
            made: None,
            owed: Vec::new(),
        };
        let waiting = committer.forget_done(done);
        committer.outbox.done(done, Some(waiting));
        committer.outbox.committed(&committer.sinks);
        Ok(committer)
    }

    /// Enables history and breakers, and lets records include them.
    #[must_use]
    pub fn with_ledger(mut self, rules: ledger::Rules, write_seen: WriteSeen) -> Self {
        (self.ledger, self.write_seen) = (Ledger::of_many(rules), Some(write_seen));
        self
    }

    /// Takes the records of breakers that have opened since the last call.
    pub fn take_opened(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.opened)
    }

    /// Whether another process has written the state since the last transaction.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.store.as_ref().is_some_and(|store| self.ledger.is_stale(store))
    }

    /// Returns the outbox, where sinks find what was committed.
    #[must_use]
    pub fn outbox(&self) -> Arc<Outbox> {
        self.outbox.clone()
    }

    /// Returns how far a sink is known to have got.
    #[must_use]
    pub fn sink(&self, name: &str) -> Option<&SinkMark> {
        self.sinks.iter().find(|mark| mark.name == name)
    }

    /// Returns when a withheld summary is due, or a breaker changes by itself.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.withhold.deadline().into_iter().chain(self.ledger.deadline()).min()
    }

    /// Stores what holds from this start on: its sinks, and the file sources that begin with it.
    ///
    /// # Errors
    /// Those of the store: the same call can be repeated.
    pub fn begin(&mut self, sources: &[String], batches: &[Batch], now: Timestamp) -> Result<(), StoreError> {
        self.commit(batches, &[], now)?;
        let Some(store) = &mut self.store else { return Ok(()) };
        let tx = store.begin()?;
        self.sources.iter().chain(sources).try_for_each(|name| tx.source(name))?;
        self.gone.iter().try_for_each(|name| tx.no_sink(name))?;
        self.sinks.iter().try_for_each(|mark| tx.sink(mark))?;
        tx.done(self.sinks.iter().map(|mark| mark.seq).min().unwrap_or_else(|| self.outbox.last()))?;
        tx.commit()?;
        self.follows(sources);
        Ok(())
    }

    /// Notes that these sources are followed.
    fn follows(&mut self, names: &[String]) {
        let new: Vec<String> = names.iter().filter(|name| !self.sources.contains(name)).cloned().collect();
        self.sources.extend(new);
    }

    /// Commits everything, or nothing.
    ///
    /// # Errors
    /// Those of the store: nothing has changed, and the same call can be repeated.
    pub fn commit(&mut self, batches: &[Batch], messages: &[ControlMessage], now: Timestamp) -> Result<(), StoreError> {
        self.withhold.begin();
        let mut draft = Draft::new(self.outbox.last() + 1, &self.write_notice, now);
        let mut store = self.store.take();
        let done = self.transact(store.as_mut(), &mut draft, Work { batches, messages }, now);
        self.store = store;
        match done {
            Ok(()) => {
                draft.said.iter().for_each(|(at, number)| self.left_out[*at].said = Some(*number));
                self.left_out.iter_mut().for_each(|out| out.is_stored = true);
                self.opened.append(&mut draft.body.opened);
                self.owed.clear();
                counting::publish(batches, &draft.body.counted);
                self.publish(draft.body.chunks, messages);
                counting::outbox(&self.outbox, &self.sinks);
            }
            Err(_) => {
                self.withhold.take_back();
                self.ledger.forget();
                self.undo(draft);
            }
        }
        done
    }

    fn transact(&mut self, store: Option<&mut Store>, draft: &mut Draft, work: Work, now: Timestamp) -> Result<(), StoreError> {
        let tx = store.map(Store::begin).transpose()?;
        self.draft(tx.as_ref(), draft, work.batches)?;
        let Some(tx) = tx else { return Ok(()) };
        self.withhold.changed().try_for_each(|(key, held)| tx.withheld(key, held))?;
        self.ledger.end(&tx, now)?;
        self.write(&tx, work, draft, now)?;
        tx.commit()
    }

    fn write(&self, tx: &Tx<'_>, work: Work, draft: &Draft, now: Timestamp) -> Result<(), StoreError> {
        let Work { batches, messages } = work;
        for (uid, place) in &draft.added {
            tx.emit(uid, *place)?;
        }
        write_marks(tx, batches, draft, now)?;
        draft.body.chunks.iter().try_for_each(|chunk| tx.chunk(chunk))?;
        write_silences(tx, batches)?;
        let sinks = sinks_after(&self.sinks, messages, self.outbox.last());
        messages.iter().try_for_each(|message| write_message(tx, message, &sinks, now))?;
        if messages.iter().any(concerns_sinks) {
            tx.done(self.done_by(&sinks).unwrap_or(u64::MAX >> 1))?;
        }
        leave_out::store(tx, &self.left_out, &draft.said, &sinks)?;
        for first in leave_out::needless(&self.waiting, &self.with_held(sinks), &self.left_out) {
            tx.drop_chunk(first)?;
        }
        Ok(())
    }

    /// Makes committed chunks and messages available: from now on sinks may take them.
    fn publish(&mut self, chunks: Vec<Chunk>, messages: &[ControlMessage]) {
        self.sinks = sinks_after(&self.sinks, messages, self.outbox.last());
        for chunk in chunks {
            self.waiting.push_back(WaitingChunk { first: chunk.first, last: chunk.last(), bytes: chunk.body.len() as u64 });
            self.outbox.push(Arc::new(chunk));
        }
        for message in messages {
            match message {
                ControlMessage::Forget(uid) => drop(self.emitted.remove(uid)),
                ControlMessage::Sources(names) => self.follows(names),
                ControlMessage::Withhold(rules) => self.withhold.set_rules(rules.clone()),
                ControlMessage::Ledger(rules) => self.ledger.set_rules(*rules),
                ControlMessage::SinkBegins { name, .. } => self.outbox.let_go(name),
                ControlMessage::Sink(_) | ControlMessage::SinkEnds(_) | ControlMessage::Seen(_) => {}
                ControlMessage::LossIsSaid | ControlMessage::IsSaidAgain(_) => {}
            }
        }
        let done = self.done_by(&self.sinks).unwrap_or_else(|| self.outbox.last());
        if messages.iter().any(concerns_sinks) || self.sinks.is_empty() {
            let waiting = self.forget_done(done);
            self.outbox.done(done, Some(waiting));
            self.outbox.committed(&self.sinks);
        }
        self.forget_left_out();
    }

    /// Returns the last record that no sink still needs: neither one of these, nor one that is about to begin.
    pub(super) fn done_by(&self, sinks: &[SinkMark]) -> Option<u64> {
        sinks.iter().map(|mark| mark.seq).chain(self.outbox.held()).min()
    }

    /// Returns these sinks, plus one that stands for what is held for sinks about to begin.
    pub(super) fn with_held(&self, mut sinks: Vec<SinkMark>) -> Vec<SinkMark> {
        sinks.extend(self.outbox.held().map(|seq| SinkMark { seq, ..SinkMark::default() }));
        sinks
    }

    pub(super) fn forget_done(&mut self, done: u64) -> u64 {
        while self.waiting.front().is_some_and(|chunk| chunk.last <= done) {
            self.waiting.pop_front();
        }
        WaitingChunk::sum(&self.waiting)
    }

    /// Checkpoints the log after a transaction found no room: the space that frees may be enough.
    pub fn make_room(&mut self) {
        if let Some(Err(error)) = self.store.as_ref().map(Store::empty_log) {
            tracing::debug!("state: the log stays as it is: {error}");
        }
    }

    /// Returns unused space in the file to the file system; `true` if there is more.
    ///
    /// # Errors
    /// Those of the store.
    pub fn shrink(&mut self) -> Result<bool, StoreError> {
        self.store.as_ref().map_or(Ok(false), Store::shrink)
    }

    fn undo(&mut self, draft: Draft) {
        for (uid, old) in draft.settled {
            self.emitted.entry(uid).or_default().extend(old);
        }
        for (uid, place) in draft.added {
            if let Some(seen) = self.emitted.get_mut(&uid) {
                seen.remove(&place);
            }
        }
    }
}

fn concerns_sinks(message: &ControlMessage) -> bool {
    matches!(message, ControlMessage::Sink(_) | ControlMessage::SinkBegins { .. } | ControlMessage::SinkEnds(_))
}

/// Stores the last mark of each stream, and forgets the events before it.
fn write_marks(tx: &Tx<'_>, batches: &[Batch], draft: &Draft, now: Timestamp) -> Result<(), StoreError> {
    let mut newest: HashMap<&Uid, &Batch> = HashMap::new();
    for batch in batches.iter().filter(|batch| batch.mark.is_some()) {
        newest.insert(&batch.uid, batch);
    }
    for (uid, batch) in newest {
        let Some(mark) = &batch.mark else { continue };
        tx.mark(uid, &batch.label, mark, now)?;
        if draft.settled.iter().any(|(settled, _)| settled == uid) {
            tx.settle(uid, mark.generation, mark.safe.saturating_sub(BEFORE_BYTES))?;
        }
    }
    Ok(())
}

/// Stores which streams are silent, and which are no longer.
fn write_silences(tx: &Tx<'_>, batches: &[Batch]) -> Result<(), StoreError> {
    for (batch, notice) in batches.iter().flat_map(|batch| batch.notices.iter().map(move |notice| (batch, notice))) {
        if let Notice::Silence { id, since, ended, .. } = notice {
            tx.silence(&batch.uid, &batch.label, (id, *since), ended.is_some())?;
        }
    }
    Ok(())
}

/// Stores what a message tells; `sinks` are the sinks as they are once all messages are heeded.
fn write_message(tx: &Tx<'_>, message: &ControlMessage, sinks: &[SinkMark], now: Timestamp) -> Result<(), StoreError> {
    match message {
        ControlMessage::Sink(mark) => tx.sink(mark),
        ControlMessage::SinkBegins { name, .. } => sinks.iter().filter(|mark| mark.name == *name).try_for_each(|mark| tx.sink(mark)),
        ControlMessage::SinkEnds(name) => tx.no_sink(name),
        ControlMessage::Seen(uids) => uids.iter().try_for_each(|uid| tx.seen(uid, now)),
        ControlMessage::Forget(uid) => tx.forget(uid),
        ControlMessage::Sources(names) => names.iter().try_for_each(|name| tx.source(name)),
        ControlMessage::LossIsSaid => tx.no_loss(),
        ControlMessage::IsSaidAgain(names) => {
            names.iter().try_for_each(|name| tx.source(name))?;
            tx.no_loss()
        }
        ControlMessage::Withhold(_) | ControlMessage::Ledger(_) => Ok(()),
    }
}

/// Returns the sinks as these messages leave them. A sink that begins says where, at most at the `last` record.
fn sinks_after(sinks: &[SinkMark], messages: &[ControlMessage], last: u64) -> Vec<SinkMark> {
    let mut sinks = sinks.to_vec();
    for message in messages {
        match message {
            ControlMessage::Sink(mark) => sinks.iter_mut().filter(|known| known.name == mark.name).for_each(|known| known.clone_from(mark)),
            ControlMessage::SinkBegins { name, after } if !sinks.iter().any(|known| known.name == *name) => {
                sinks.push(SinkMark { name: name.clone(), seq: *after.min(&last), ..SinkMark::default() });
            }
            ControlMessage::SinkEnds(name) => sinks.retain(|known| known.name != *name),
            _ => {}
        }
    }
    sinks
}
