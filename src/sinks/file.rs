//! A file that records are appended to. Records are written whole, and no byte is ever taken back, with one exception: at the end of a run
//! without a state, half a record that nobody will complete is cut off. What was written but not yet committed as written is found again by
//! comparing the end of the file with the records. The file is rotated by size, by age, or by someone else and SIGUSR1. Each
//! step of a rotation is committed before the next, so that the file is found again under whatever name an interruption left it; it is neither
//! compressed nor removed before its successor is committed. Only one siftd writes to it (`tail::hold`); any other program may read or move it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread::JoinHandle;

use super::choose::Choose;
use super::generations as older;
use super::rest::Rest;
use super::tail::{append_to, end_line, hold, read_at};
use super::{OutboxReader, Sink, Step};
use crate::core::event::Timestamp;
use crate::delivery::{Node, SinkMark};

mod again;

/// This many bytes are synced to disk before more are written, however long `fsync_us` is: records
/// that soon no longer need to wait in the state are then never copied from its log into its tables.
const SYNC_BYTES: u64 = 2 << 20;

/// While nothing is written, the sink checks at this interval whether the file still exists.
const LOOK_US: i64 = 1_000_000;

/// After a file could not be renamed, the next rotation is tried after this time.
const ROTATE_AGAIN_US: i64 = 60_000_000;

/// How a file is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file.
    pub path: PathBuf,
    /// Which records, under which field names.
    pub choose: Choose,
    /// Size in bytes beyond which a new file is begun; 0: never.
    pub rotate_size: u64,
    /// Age in microseconds after which a new file is begun; 0: never.
    pub rotate_age_us: i64,
    /// Number of older files to keep.
    pub keep: u32,
    /// Whether older files are compressed.
    pub compress: bool,
    /// What was written is on disk after at most this many microseconds.
    pub fsync_us: i64,
}

/// The sink.
pub struct Output {
    options: Options,
    /// The last record written, and where it ends.
    mark: SinkMark,
    /// The mark last told to the outbox.
    told: SinkMark,
    file: Option<File>,
    rest: Option<Rest>,
    /// Since when written data has not been on disk.
    dirty_since: Option<Timestamp>,
    stage: Stage,
    wants_reopen: bool,
    /// When the file could not be renamed, such as one that is mounted by itself; it goes on growing.
    stuck_since: Option<Timestamp>,
    looked_at: Timestamp,
    packing: Option<JoinHandle<()>>,
    /// A sync has failed since the last one that did not.
    is_unsure: bool,
    sync_data: fn(&File) -> io::Result<()>,
}

/// Where the sink is between two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Closed,
    Open,
    /// The end of the old file has been told; once that is committed, the file gets its new name, if siftd renames it.
    Leaving {
        rename: bool,
    },
    /// The beginning of the new file has been told.
    Entering,
}

impl Output {
    /// Continues after `mark`.
    #[must_use]
    pub fn new(options: Options, mark: SinkMark) -> Self {
        Self {
            options,
            told: mark.clone(),
            mark,
            file: None,
            rest: None,
            dirty_since: None,
            stage: Stage::Closed,
            wants_reopen: false,
            stuck_since: None,
            looked_at: Timestamp(0),
            packing: None,
            is_unsure: false,
            sync_data: File::sync_data,
        }
    }

    /// Begins writing records. By now the file before this one is no longer needed to find out what was
    /// written, so it may change; if it had changed earlier, the next start could not have recognised it.
    fn begin(&mut self) {
        self.stage = Stage::Open;
        let Options { path, keep, compress, rotate_size, rotate_age_us, .. } = &self.options;
        let is_ours = *rotate_size > 0 || *rotate_age_us > 0;
        if is_ours && self.packing.is_none() && older::is_unsettled(path, *keep, *compress) {
            self.packing = Some(older::settling(path.clone(), *keep, *compress));
        }
    }

    /// Opens the path and tells the outbox that it is now the file; records wait until that is committed.
    fn enter(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp) -> io::Result<()> {
        let file = append_to(&self.options.path)?;
        hold(&file, &self.options.path)?;
        older::sync_folder(&self.options.path);
        end_line(&file)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            // A FIFO or device has no end to find again.
            self.mark.node = Node::default();
        } else {
            self.mark.node = Node::of(&meta);
            outbox.owns(self.mark.node);
        }
        self.mark.len = meta.len();
        (self.mark.since, self.looked_at) = (now, now);
        self.file = Some(file);
        self.stage = Stage::Entering;
        self.tell(outbox);
        Ok(())
    }

    /// Claims the sink's own files, older ones included, so that they are not read as logs.
    fn claim(&self, outbox: &mut dyn OutboxReader) {
        for path in older::own(&self.options.path) {
            if let Ok(meta) = path.metadata() {
                outbox.owns(Node::of(&meta));
            }
        }
    }

    fn tell(&mut self, outbox: &mut dyn OutboxReader) {
        outbox.tell(&self.mark);
        self.told = self.mark.clone();
    }

    fn sync(&mut self, outbox: &mut dyn OutboxReader) -> io::Result<()> {
        if let Some(file) = &self.file {
            // Pipes and devices cannot be synced.
            match (self.sync_data)(file) {
                Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
                    self.is_unsure = true;
                    return Err(error);
                }
                _ => {}
            }
        }
        self.dirty_since = None;
        if std::mem::take(&mut self.is_unsure) && self.mark.seq > self.told.seq {
            // A system that could not write a page may count it as written, so a later sync succeeds without it (fsync(2), "ERRORS").
            let (path, count) = (self.options.path.display(), self.mark.seq - self.told.seq);
            tracing::warn!("{path}: the disk could not be written for a while; the last records ({count} at most) are written again");
            self.mark.seq = self.told.seq;
        }
        if self.told != self.mark {
            self.tell(outbox);
        }
        Ok(())
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let Options { rotate_size, rotate_age_us, .. } = self.options;
        if self.stuck_since.is_some_and(|since| !since.is_past(ROTATE_AGAIN_US, now)) {
            return false;
        }
        let is_old = rotate_age_us > 0 && self.mark.since.is_past(rotate_age_us, now);
        self.mark.node.ino != 0 && self.mark.len > 0 && (rotate_size > 0 && self.mark.len >= rotate_size || is_old)
    }

    fn write_rest(&mut self, now: Timestamp) -> io::Result<()> {
        let (Some(rest), Some(file)) = (&mut self.rest, &mut self.file) else { return Ok(()) };
        // Part of it may be written even if not all of it can be.
        self.dirty_since.get_or_insert(now);
        let seq = rest.write(&*file)?;
        self.rest = None;
        let meta = file.metadata()?;
        if self.mark.node.ino != 0 && meta.nlink() == 0 {
            // Nobody can find the file any more: the records are written again into the next one.
            self.looked_at = Timestamp(0);
            return Ok(());
        }
        self.mark.seq = seq;
        if self.mark.node.ino != 0 {
            self.mark.len = meta.len();
        }
        Ok(())
    }

    /// Checks now and then whether somebody has deleted the file; returns `true` if so. A file that was only moved can still be found, and is written to until SIGUSR1 arrives.
    fn finds_it_deleted(&mut self, now: Timestamp) -> io::Result<bool> {
        let Some(file) = self.file.as_ref().filter(|_| self.mark.node.ino != 0) else { return Ok(false) };
        if !self.looked_at.is_past(LOOK_US, now) {
            return Ok(false);
        }
        if file.metadata()?.nlink() > 0 {
            self.looked_at = now;
            return Ok(false);
        }
        Ok(true)
    }

    /// Continues in a new file with what the deleted file does not hold.
    fn renew(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp) -> io::Result<()> {
        (self.rest, self.dirty_since) = (None, None);
        self.enter(outbox, now)?;
        tracing::warn!("{}: was deleted while siftd wrote to it; it goes on in a new file of that name", self.options.path.display());
        Ok(())
    }

    /// Leaves the file as it is: all whole records count as written, and a torn one is completed by the next start, if there will be one.
    fn leave_torn(&mut self, rest: &Rest, outbox: &mut dyn OutboxReader, is_final: bool) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let (seq, torn) = rest.written(&self.options.choose);
        if self.mark.node.ino != 0 {
            let size = file.metadata()?.len();
            let whole = size.saturating_sub(torn.len() as u64);
            let mut end = vec![0; torn.len()];
            // Somebody else has written after it: the next start must compare the records.
            if read_at(file, &mut end, whole)? < torn.len() || end != torn {
                return Ok(());
            }
            if is_final && whole < size {
                file.set_len(whole)?;
            }
            self.mark.len = whole;
        }
        self.mark.seq = seq;
        self.sync(outbox)
    }

    /// Moves on to the new file: the end of the old one is committed.
    fn leave(&mut self, rename: bool, outbox: &mut dyn OutboxReader, now: Timestamp) -> io::Result<()> {
        if rename {
            if let Some(packing) = self.packing.take() {
                // The names must not change while it works.
                let _ = packing.join();
            }
            let is_ours = self.options.path.metadata().is_ok_and(|meta| meta.ino() == self.mark.node.ino);
            if is_ours && let Err(error) = older::shift(&self.options.path, self.options.keep) {
                self.stay(&error, now);
                return Ok(());
            }
            self.stuck_since = None;
        }
        self.file = None;
        self.enter(outbox, now)
    }

    /// Goes on in the file that could not be renamed: a file that grows is better than records that wait.
    fn stay(&mut self, error: &io::Error, now: Timestamp) {
        if self.stuck_since.replace(now).is_none() {
            tracing::warn!("{}: cannot be rotated, and goes on growing; it is tried again: {error}", self.options.path.display());
        }
        self.stage = Stage::Open;
    }
}

impl Sink for Output {
    fn step(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) -> io::Result<Step> {
        match self.stage {
            Stage::Closed => {
                self.open(outbox, now)?;
                return Ok(Step::Done);
            }
            Stage::Leaving { .. } | Stage::Entering if !outbox.is_committed(&self.told) => return Ok(Step::Idle),
            Stage::Leaving { rename } => {
                self.leave(rename, outbox, now)?;
                return Ok(Step::Done);
            }
            Stage::Entering => self.begin(),
            Stage::Open => {}
        }
        if self.finds_it_deleted(now)? {
            self.renew(outbox, now)?;
            return Ok(Step::Done);
        }
        if self.rest.is_some() {
            self.write_rest(now)?;
            return Ok(Step::Done);
        }
        if self.wants_reopen || self.is_due(now) {
            self.sync(outbox)?;
            self.tell(outbox);
            self.stage = Stage::Leaving { rename: !std::mem::take(&mut self.wants_reopen) };
            return Ok(Step::Done);
        }
        if self.mark.len.saturating_sub(self.told.len) >= SYNC_BYTES {
            self.sync(outbox)?;
            return Ok(Step::Done);
        }
        if let Some(chunk) = outbox.after(self.mark.seq)? {
            self.rest = Some(Rest::new(chunk, self.mark.seq, &self.options.choose));
            return Ok(Step::Done);
        }
        if self.dirty_since.is_some_and(|since| hurry || since.is_past(self.options.fsync_us, now)) {
            self.sync(outbox)?;
            return Ok(Step::Done);
        }
        let is_settled = self.dirty_since.is_none() && outbox.is_committed(&self.told);
        Ok(if is_settled { Step::Settled } else { Step::Idle })
    }

    fn reopen(&mut self) {
        self.wants_reopen = true;
    }

    fn give_up(&mut self, outbox: &mut dyn OutboxReader, is_final: bool) {
        if let Some(rest) = self.rest.take()
            && let Err(error) = self.leave_torn(&rest, outbox, is_final)
        {
            tracing::warn!("{}: {error}", self.options.path.display());
        }
    }

    fn written(&self) -> u64 {
        self.rest.as_ref().map_or(self.mark.seq, |rest| rest.written(&self.options.choose).0)
    }

    fn place(&self) -> String {
        self.options.path.display().to_string()
    }

    fn choose(&self) -> &Choose {
        &self.options.choose
    }

    fn deadline(&self) -> Option<Timestamp> {
        let sync = self.dirty_since.map(|since| since.0 + self.options.fsync_us);
        let due = self.mark.since.0.saturating_add(self.options.rotate_age_us);
        let again = self.stuck_since.map(|since| since.0.saturating_add(ROTATE_AGAIN_US));
        let rotate = (self.options.rotate_age_us > 0).then_some(again.map_or(due, |again| again.max(due)));
        let look = (self.stage == Stage::Open && self.mark.node.ino != 0).then_some(self.looked_at.0.saturating_add(LOOK_US));
        sync.into_iter().chain(rotate.filter(|_| self.mark.len > 0)).chain(look).min().map(Timestamp)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(packing) = self.packing.take() {
            let _ = packing.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::book::{Book, everything};

    const SECOND: i64 = 1_000_000;
    const HOUR: i64 = 3600 * SECOND;

    #[test]
    fn a_clock_that_is_set_back_puts_off_neither_the_disk_nor_the_next_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e.ndjson");
        let options =
            Options { path: path.clone(), choose: everything(), rotate_size: 0, rotate_age_us: 24 * HOUR, keep: 9, compress: false, fsync_us: SECOND };
        let mut sink = Output::new(options, SinkMark::default());
        let mut book = Book::default();
        let mut play = |book: &mut Book, now: i64| while sink.step(book, Timestamp(now), false).unwrap() == Step::Done {};
        book.add(1, 10);
        play(&mut book, 72 * HOUR);
        assert_eq!(book.told.last().map(|mark| mark.seq), Some(0), "it is not on disk yet");
        play(&mut book, 71 * HOUR);
        assert_eq!(book.told.last().map(|mark| mark.seq), Some(1));
        assert!(!older::name(&path, 1, false).exists());
        play(&mut book, 47 * HOUR);
        assert!(older::name(&path, 1, false).exists() && path.exists());
    }

    #[test]
    fn what_a_failed_sync_may_have_lost_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e.ndjson");
        let options = Options { path: path.clone(), choose: everything(), rotate_size: 0, rotate_age_us: 0, keep: 1, compress: false, fsync_us: SECOND };
        let mut sink = Output::new(options, SinkMark::default());
        let mut book = Book::default();
        let play = |sink: &mut Output, book: &mut Book, now: i64| -> io::Result<()> {
            while sink.step(book, Timestamp(now), true)? == Step::Done {}
            Ok(())
        };
        play(&mut sink, &mut book, HOUR).unwrap();
        book.add(1, 10);
        sink.sync_data = |_| Err(io::Error::other("the disk is gone"));
        for _ in 0..2 {
            play(&mut sink, &mut book, HOUR).unwrap_err();
            assert_eq!(book.told.last().map(|mark| mark.seq), Some(0));
        }
        sink.sync_data = File::sync_data;
        play(&mut sink, &mut book, HOUR).unwrap();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!((book.told.last().map(|mark| mark.seq), lines), (Some(1), 2));
    }

    #[test]
    fn a_file_that_cannot_be_renamed_is_written_to_until_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e.ndjson");
        let options = Options { path: path.clone(), choose: everything(), rotate_size: 0, rotate_age_us: HOUR, keep: 1, compress: false, fsync_us: SECOND };
        let mut sink = Output::new(options, SinkMark::default());
        let mut book = Book::default();
        let play = |sink: &mut Output, book: &mut Book, now: i64| while sink.step(book, Timestamp(now), true).unwrap() == Step::Done {};
        book.add(1, 10);
        play(&mut sink, &mut book, 10 * HOUR);
        // What is in the way of the new name cannot be removed.
        let in_the_way = older::name(&path, 1, false);
        std::fs::create_dir(&in_the_way).unwrap();
        play(&mut sink, &mut book, 12 * HOUR);
        book.add(1, 10);
        play(&mut sink, &mut book, 12 * HOUR + 1);
        assert_eq!((book.told.last().map(|mark| mark.seq), std::fs::read_to_string(&path).unwrap().lines().count()), (Some(2), 2));
        assert!(sink.deadline().is_none_or(|at| at.0 > 12 * HOUR + 1), "it does not spin");
        std::fs::remove_dir(&in_the_way).unwrap();
        play(&mut sink, &mut book, 12 * HOUR + ROTATE_AGAIN_US - 1);
        assert!(!in_the_way.exists());
        play(&mut sink, &mut book, 12 * HOUR + ROTATE_AGAIN_US);
        assert!(in_the_way.is_file() && path.exists());
    }
}
