//! stdout, or any open descriptor that only takes bytes. After a restart nobody can
//! ask what became of those bytes, so records since the last commit may come twice.

use std::fs::File;
use std::io::{self, ErrorKind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};

use super::choose::Choose;
use super::rest::Rest;
use super::{OutboxReader, Sink, Step};
use crate::core::event::Timestamp;
use crate::delivery::SinkMark;

/// How often the sink tells the outbox how far it is.
const TELL_US: i64 = 1_000_000;
/// How often the sink checks, while there is nothing to write, whether the reader of a pipe is still there.
const LOOK_US: i64 = 1_000_000;

/// The sink.
pub struct Stdout {
    file: File,
    choose: Choose,
    mark: SinkMark,
    told: u64,
    told_at: Timestamp,
    rest: Option<Rest>,
    /// The output has a reader that may go away.
    is_read: bool,
    looked_at: Timestamp,
}

impl Stdout {
    /// Continues after `mark`.
    #[must_use]
    pub fn new(file: File, choose: Choose, mark: SinkMark) -> Self {
        let told = mark.seq;
        let is_read = fstat(&file).is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket));
        Self { file, choose, mark, told, told_at: Timestamp(0), rest: None, is_read, looked_at: Timestamp(0) }
    }

    /// Fails if the reader has gone. A write would show that, but the next record may be
    /// hours away, and whoever waits for the end of the pipeline would wait that long.
    fn check_reader(&mut self, now: Timestamp) -> io::Result<()> {
        if !self.is_read || !self.looked_at.is_past(LOOK_US, now) {
            return Ok(());
        }
        self.looked_at = now;
        let mut polled = [PollFd::new(&self.file, PollFlags::empty())];
        let is_gone = poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP);
        if is_gone { Err(ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl Sink for Stdout {
    fn step(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) -> io::Result<Step> {
        if let Some(rest) = &mut self.rest {
            self.mark.seq = rest.write(&self.file)?;
            self.rest = None;
            return Ok(Step::Done);
        }
        if let Some(chunk) = outbox.after(self.mark.seq)? {
            self.rest = Some(Rest::new(chunk, self.mark.seq, &self.choose));
            return Ok(Step::Done);
        }
        if self.told < self.mark.seq && (hurry || self.told_at.is_past(TELL_US, now)) {
            outbox.tell(&self.mark);
            (self.told, self.told_at) = (self.mark.seq, now);
        }
        self.check_reader(now)?;
        // Before that, the end of the process would lose the mark, and the records would come again.
        Ok(if self.told == self.mark.seq && outbox.is_committed(&self.mark) { Step::Settled } else { Step::Idle })
    }

    fn place(&self) -> String {
        "stdout".to_owned()
    }

    fn written(&self) -> u64 {
        self.rest.as_ref().map_or(self.mark.seq, |rest| rest.written(&self.choose).0)
    }

    fn give_up(&mut self, outbox: &mut dyn OutboxReader, _is_final: bool) {
        if let Some(rest) = self.rest.take() {
            (self.mark.seq, _) = rest.written(&self.choose);
            outbox.tell(&self.mark);
        }
    }

    fn choose(&self) -> &Choose {
        &self.choose
    }

    fn deadline(&self) -> Option<Timestamp> {
        let tell = (self.told < self.mark.seq).then_some(self.told_at.0 + TELL_US);
        let look = self.is_read.then_some(self.looked_at.0 + LOOK_US);
        tell.into_iter().chain(look).min().map(Timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::book::{Book, everything};

    const HOUR: i64 = 3600 * TELL_US;

    #[test]
    fn a_clock_that_is_set_back_keeps_nothing_from_being_done() {
        let mut sink = Stdout::new(tempfile::tempfile().unwrap(), everything(), SinkMark::default());
        let mut book = Book::default();
        for (done, now) in [(1, 2 * HOUR), (2, HOUR), (3, HOUR + TELL_US)] {
            book.add(1, 10);
            while sink.step(&mut book, Timestamp(now), false).unwrap() == Step::Done {}
            assert_eq!(book.told.last().map(|mark| mark.seq), Some(done), "{now}");
        }
    }
}
