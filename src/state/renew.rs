//! Replaces a state file that turns out to be damaged or gone while in use: the file is set aside, and a new one
//! gets everything known without it. Marks of files are not known here; the followers of the files send them again.

use std::path::Path;

use super::committer::Committer;
use super::store::{Store, StoreError, file};
use crate::core::event::Timestamp;
use crate::delivery::{Chunk, Label, Missed, Notice, Why, derived_id};

impl Committer {
    /// Continues with a new file. The text says what was set aside.
    ///
    /// # Errors
    /// The folder may not be written, or has no room.
    pub fn renew(&mut self, folder: &Path, why: &str, now: Timestamp) -> Result<String, StoreError> {
        let made = Store::renew(folder, why)?;
        self.go_on(made, folder, now)
    }

    /// As [`renew`](Self::renew), for a file that was removed or replaced by another: nothing is lost, because the open file can still be read.
    ///
    /// # Errors
    /// The folder may not be written, or has no room.
    pub fn replace(&mut self, folder: &Path, now: Timestamp) -> Result<String, StoreError> {
        let made = Store::replace(folder, self.store.as_ref())?;
        self.go_on_or_stay(made, folder, now)
    }

    /// Continues with a new file, or else with the open one: a half-made file must not look like the state to the next try.
    fn go_on_or_stay(&mut self, made: (Store, String), folder: &Path, now: Timestamp) -> Result<String, StoreError> {
        let done = self.go_on(made, folder, now);
        if done.is_err() && !self.has_its_file(folder) {
            Store::remove_from(folder);
        }
        done
    }

    /// Whether the open file is the one in the folder.
    #[must_use]
    pub fn has_its_file(&self, folder: &Path) -> bool {
        self.store.as_ref().is_none_or(|store| store.is_at(&file(folder)))
    }

    fn go_on(&mut self, (mut store, mut said): (Store, String), folder: &Path, now: Timestamp) -> Result<String, StoreError> {
        let done = self.done_by(&self.sinks).unwrap_or_else(|| self.outbox.last());
        // The old file is still open, under its new name: what waits in it may be readable. It stays in use until the new one is complete.
        let lost = restore_chunks(&mut store, self.store.as_ref(), done, &self.outbox.kept())?;
        let tx = store.begin()?;
        self.sources.iter().try_for_each(|name| tx.source(name))?;
        self.sinks.iter().try_for_each(|mark| tx.sink(mark))?;
        self.withhold.all().try_for_each(|(key, held)| tx.withheld(key, Some(held)))?;
        for (uid, places) in &self.emitted {
            places.iter().try_for_each(|place| tx.emit(uid, *place))?;
        }
        tx.last(self.outbox.last())?;
        tx.commit()?;
        self.waiting = store.outbox()?.into();
        self.store = Some(store);
        self.ledger.forget();
        let waiting = self.forget_done(done);
        self.outbox.done(done, Some(waiting));
        if lost > 0 {
            said += &format!("; {lost} records that waited in it for sinks are lost");
            let id = derived_id("gap", &[b"state", &done.to_be_bytes(), &lost.to_be_bytes()]);
            let gap = Notice::Gap { id, why: Why::StateLost, missed: Missed::Events(lost), from: now, to: now };
            self.say(&Label { source: "state".to_owned(), kind: "file", path: folder.display().to_string(), ..Label::default() }, &gap, now)?;
        }
        Ok(said)
    }
}

/// Restores what sinks are not done with: from the old file as far as it can be read, the newest from memory. Returns how many records are in neither.
fn restore_chunks(store: &mut Store, old: Option<&Store>, done: u64, kept: &[std::sync::Arc<Chunk>]) -> Result<u64, StoreError> {
    let first = kept.first().map(|chunk| chunk.first);
    let mut seq = done;
    while let (Some(old), true) = (old, first.is_none_or(|first| seq + 1 < first)) {
        let Ok(Some(chunk)) = old.chunk_after(seq) else { break };
        if chunk.heads.is_empty() || chunk.heads.iter().map(|head| head.len as usize).sum::<usize>() != chunk.body.len() {
            break;
        }
        seq = chunk.last();
        let tx = store.begin()?;
        tx.chunk(&chunk)?;
        tx.commit()?;
    }
    let tx = store.begin()?;
    kept.iter().filter(|chunk| chunk.first > seq).try_for_each(|chunk| tx.chunk(chunk))?;
    tx.commit()?;
    Ok(first.map_or(0, |first| (first - 1).saturating_sub(seq)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::state::committer::WriteNotice;
    use crate::state::withhold::Rules;

    #[test]
    fn a_silence_that_was_reported_is_known_to_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let write: WriteNotice = Arc::new(|out: &mut Vec<u8>, _: &Label, _: &Notice, _| out.push(b'\n'));
        let store = Store::open(folder.path()).unwrap().0;
        let mut committer = Committer::new(Some(store), Rules::default(), write, &[]).unwrap();
        let silence = Notice::Silence { id: "a".repeat(32), since: Timestamp(3), seconds: 1, ended: None };
        committer.say(&Label { source: "agent".into(), kind: "file", path: "a.log".into(), ..Label::default() }, &silence, Timestamp(4)).unwrap();
        let known = |committer: &Committer| committer.store.as_ref().unwrap().silences().unwrap();
        let before = known(&committer);
        assert_eq!(before.len(), 1);
        std::fs::remove_file(file(folder.path())).unwrap();
        committer.replace(folder.path(), Timestamp(5)).unwrap();
        assert_eq!(known(&committer), before);
        committer.renew(folder.path(), "it is damaged", Timestamp(6)).unwrap();
        assert_eq!(known(&committer), before);
    }

    #[test]
    fn a_state_that_cannot_be_made_anew_is_still_the_one_that_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let write: WriteNotice = Arc::new(|_: &mut Vec<u8>, _: &Label, _: &Notice, _| {});
        let store = Store::open(folder.path()).unwrap().0;
        let mut committer = Committer::new(Some(store), Rules::default(), write, &["out".to_owned()]).unwrap();
        std::fs::remove_file(file(folder.path())).unwrap();
        let (new, said) = Store::replace(folder.path(), committer.store.as_ref()).unwrap();
        // As on a disk that fails in the middle.
        new.db().execute_batch("PRAGMA query_only = ON").unwrap();
        assert!(committer.go_on_or_stay((new, said), folder.path(), Timestamp(0)).is_err());
        assert!(committer.store.is_some() && !committer.has_its_file(folder.path()), "the next look tries again");
        assert!(!file(folder.path()).exists(), "nothing half-made is left");
        committer.replace(folder.path(), Timestamp(1)).unwrap();
        assert!(committer.has_its_file(folder.path()));
    }
}
