//! Replaces a state file that turns out to be damaged or gone while in use: the file is set aside, and a new one gets everything known
//! without it, before it has its name. The positions of files are taken from the open file if that is whole; otherwise their followers
//! send them again, and until then the new file says that they are lost.

use std::path::Path;

use super::committer::Committer;
use super::store::{Store, StoreError, StreamRow, Tx, WaitingChunk, file};
use crate::core::event::Timestamp;
use crate::delivery::{Chunk, Label, Missed, Notice, Why, derived_id};

/// A new file that is in its place, with all that is known.
pub(super) struct Made {
    /// What was set aside, for the user.
    said: String,
    /// Records for sinks that were in neither the old file nor memory.
    lost: u64,
}

impl Committer {
    /// Continues with a new file. The text says what was set aside.
    ///
    /// # Errors
    /// The folder may not be written, or has no room: the same call can be repeated.
    pub fn renew(&mut self, folder: &Path, why: &str, now: Timestamp) -> Result<String, StoreError> {
        let made = match self.made.take() {
            Some(made) => made,
            None => {
                let mut lost = 0;
                let said = Store::renew(folder, why, |new| {
                    lost = self.fill(new, None, now)?;
                    Ok(())
                })?;
                Made { said, lost }
            }
        };
        match reopen(folder) {
            Ok(opened) => Ok(self.go_on(opened, made, folder, now)),
            Err(error) => {
                self.made = Some(made);
                Err(error)
            }
        }
    }

    /// As [`renew`](Self::renew), for a file that was removed or replaced by another: nothing is lost, because the open file can still be read.
    ///
    /// # Errors
    /// The folder may not be written, or has no room: the open file stays in use.
    pub fn replace(&mut self, folder: &Path, now: Timestamp) -> Result<String, StoreError> {
        let mut lost = 0;
        let said = Store::replace(folder, self.store.as_ref(), |new| {
            let positions = self.store.as_ref().and_then(|old| old.streams().ok());
            lost = self.fill(new, positions, now)?;
            Ok(())
        })?;
        // What is written to the open one meanwhile would be missing in it.
        let opened = reopen(folder).inspect_err(|_| Store::remove_from(folder))?;
        Ok(self.go_on(opened, Made { said, lost }, folder, now))
    }

    /// Whether the open file is the one in the folder.
    #[must_use]
    pub fn has_its_file(&self, folder: &Path) -> bool {
        self.store.as_ref().is_none_or(|store| store.is_at(&file(folder)))
    }

    /// Writes all that is known into a new file; without the positions of files, their sources are not known and their loss is noted. The old file
    /// is still open: what waits in it may be readable. Returns how many records for sinks are in neither.
    fn fill(&self, new: &mut Store, positions: Option<Vec<StreamRow>>, now: Timestamp) -> Result<u64, StoreError> {
        let tx = new.begin()?;
        let lost = restore_chunks(&tx, self.store.as_ref(), self.done(), &self.outbox.kept())?;
        match positions {
            Some(rows) => {
                self.sources.iter().try_for_each(|name| tx.source(name))?;
                rows.iter().try_for_each(|row| tx.mark(&row.uid, &row.label, &row.mark, row.seen))?;
            }
            None => tx.note_loss(now)?,
        }
        self.sinks.iter().try_for_each(|mark| tx.sink(mark))?;
        self.left_out.iter().filter_map(|out| Some((out, out.said?))).try_for_each(|(out, said)| tx.left_out(out, said))?;
        self.withhold.all().try_for_each(|(key, held)| tx.withheld(key, Some(held)))?;
        for (uid, places) in &self.emitted {
            places.iter().try_for_each(|place| tx.emit(uid, *place))?;
        }
        tx.last(self.outbox.last())?;
        tx.commit()?;
        Ok(lost)
    }

    /// Returns the last record that no sink still needs.
    fn done(&self) -> u64 {
        self.done_by(&self.sinks).unwrap_or_else(|| self.outbox.last())
    }

    fn go_on(&mut self, opened: Reopened, made: Made, folder: &Path, now: Timestamp) -> String {
        let Made { mut said, lost } = made;
        let done = self.done();
        (self.store, self.waiting) = (Some(opened.store), opened.waiting.into());
        self.ledger.forget();
        let waiting = self.forget_done(done);
        self.outbox.done(done, Some(waiting));
        if lost > 0 {
            said += &format!("; {lost} records that waited in it for sinks are lost");
            let id = derived_id("gap", &[b"state", &done.to_be_bytes(), &lost.to_be_bytes()]);
            let gap = Notice::Gap { id, why: Why::StateLost, missed: Missed::Events(lost), from: now, to: now };
            self.owed.push((Label { source: "state".to_owned(), kind: "file", path: folder.display().to_string(), ..Label::default() }, gap));
            if let Err(error) = self.commit(&[], &[], now) {
                tracing::debug!("state: what is lost is said later: {error}");
            }
        }
        said
    }
}

/// A file that was opened again, and what waits in it for sinks.
struct Reopened {
    store: Store,
    waiting: Vec<WaitingChunk>,
}

fn reopen(folder: &Path) -> Result<Reopened, StoreError> {
    let store = Store::reopen(folder)?;
    let waiting = store.outbox()?;
    Ok(Reopened { store, waiting })
}

/// Restores what sinks are not done with: from the old file as far as it can be read, the newest from memory. Returns how many records are in neither.
fn restore_chunks(tx: &Tx<'_>, old: Option<&Store>, done: u64, kept: &[std::sync::Arc<Chunk>]) -> Result<u64, StoreError> {
    let first = kept.first().map(|chunk| chunk.first);
    let mut seq = done;
    while let (Some(old), true) = (old, first.is_none_or(|first| seq + 1 < first)) {
        let Ok(Some(chunk)) = old.chunk_after(seq) else { break };
        if chunk.heads.is_empty() || chunk.heads.iter().map(|head| head.len as usize).sum::<usize>() != chunk.body.len() {
            break;
        }
        seq = chunk.last();
        tx.chunk(&chunk)?;
    }
    kept.iter().filter(|chunk| chunk.first > seq).try_for_each(|chunk| tx.chunk(chunk))?;
    Ok(first.map_or(0, |first| (first - 1).saturating_sub(seq)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::delivery::{Batch, Mark, Node, Uid};
    use crate::state::committer::WriteNotice;
    use crate::state::queue::ControlMessage;
    use crate::state::store::with_end;
    use crate::state::withhold::Rules;

    fn batch() -> Batch {
        let label = Arc::new(Label { source: "agent".into(), kind: "file", path: "a.log".into(), ..Label::default() });
        Batch { uid: Uid::default(), label, records: Vec::new(), body: Vec::new(), notices: Vec::new(), mark: None, at: Timestamp(4) }
    }

    /// Returns a committer whose state holds the positions of a file and of a journal, with its folder.
    fn with_positions() -> (tempfile::TempDir, Committer) {
        let folder = tempfile::tempdir().unwrap();
        let write: WriteNotice = Arc::new(|_: &mut Vec<u8>, _: &Label, _: &Notice, _| {});
        let store = Store::open(folder.path()).unwrap().0;
        let mut committer = Committer::new(Some(store), Rules::default(), write, &[]).unwrap();
        let file = Mark { node: Node { dev: 1, ino: 2, born: 3 }, path: "a.log".into(), read: 70, safe: 60, size: 80, ..Mark::default() };
        let journal = Mark { path: "cursor".into(), read: 9, ..Mark::default() };
        let batches = [(1, file), (2, journal)].map(|(uid, mark)| Batch { uid: [uid; 16], mark: Some(mark), ..batch() });
        committer.begin(&["agent".to_owned()], &batches, Timestamp(4)).unwrap();
        (folder, committer)
    }

    /// Returns what a start finds in a folder: the positions, the sources, and whether their loss is to be reported.
    fn found(folder: &Path) -> (Vec<StreamRow>, Vec<String>, bool) {
        let (store, said) = Store::open(folder).unwrap();
        assert_eq!(said, None);
        (store.streams().unwrap(), store.sources().unwrap(), store.loss().unwrap().is_some())
    }

    #[test]
    fn a_kill_just_after_a_file_was_replaced_loses_no_position() {
        let (folder, mut committer) = with_positions();
        let before = found(folder.path());
        assert_eq!((before.0.len(), before.1.len(), before.2), (2, 1, false));
        std::fs::remove_file(file(folder.path())).unwrap();
        committer.replace(folder.path(), Timestamp(5)).unwrap();
        drop(committer);
        assert_eq!(found(folder.path()), before);
    }

    #[test]
    fn the_loss_of_positions_is_noted_until_all_are_sent_again() {
        let (folder, mut committer) = with_positions();
        committer.renew(folder.path(), "it is damaged", Timestamp(5)).unwrap();
        assert_eq!(found(folder.path()), (vec![], vec![], true));
        committer.commit(&[], &[ControlMessage::IsSaidAgain(vec!["agent".to_owned()])], Timestamp(6)).unwrap();
        assert_eq!(found(folder.path()), (vec![], vec!["agent".to_owned()], false));
    }

    #[test]
    fn a_silence_that_was_reported_is_known_to_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let write: WriteNotice = Arc::new(|out: &mut Vec<u8>, _: &Label, _: &Notice, _| out.push(b'\n'));
        let store = Store::open(folder.path()).unwrap().0;
        let mut committer = Committer::new(Some(store), Rules::default(), write, &[]).unwrap();
        let silence = Notice::Silence { id: "a".repeat(32), since: Timestamp(3), seconds: 1, ended: None };
        committer.commit(&[Batch { notices: vec![silence], ..batch() }], &[], Timestamp(4)).unwrap();
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
        // As on a disk that fails in the middle.
        let fails = |_: &mut Store| Err(StoreError::Later("no room".to_owned()));
        assert!(Store::replace(folder.path(), committer.store.as_ref(), fails).is_err());
        assert!(!committer.has_its_file(folder.path()), "the next look tries again");
        for end in ["", ".new", ".next"] {
            assert!(!with_end(&file(folder.path()), end).exists(), "nothing half-made is left: {end}");
        }
        committer.replace(folder.path(), Timestamp(1)).unwrap();
        assert!(committer.has_its_file(folder.path()));
    }
}
