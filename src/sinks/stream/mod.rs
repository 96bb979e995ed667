//! A peer that takes records as lines, over tcp or a unix socket. It sends no acknowledgements, so a record is done when as many
//! bytes were written after it as our send buffer holds: the peer's kernel then has it. A peer that hangs has not
//! read it yet; so the record must also be older than any hang that we wait for, or have as many bytes after it as a receive
//! buffer holds. What is not done is sent again after a reconnect. At an orderly end we close our side first; if the peer then
//! closes its side, it has read everything, and nothing is sent again. What the peer did with the bytes, nobody can know.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::{Backoff, Random};
use super::choose::Choose;
use super::{OutboxReader, Sink, Step};
use crate::core::event::Timestamp;
use crate::delivery::{Chunk, SinkMark};
use crate::telemetry::metrics;
use crate::telemetry::metrics::SinkMetrics;

mod connection;
#[cfg(test)]
mod tests;

use connection::Connection;
pub use connection::Target;

/// How often the sink tells the outbox how far it is, and checks whether the peer is still there.
const TELL_US: i64 = 1_000_000;
/// A connection that lived this long does not count as a failed try.
const LIVED_US: i64 = 10_000_000;
/// How long a step waits for a peer that takes nothing.
const STEP_WAIT: Duration = Duration::from_millis(200);
/// A peer that hangs for less than this may recover, or disconnect without having read everything.
const MAX_HANG: Duration = Duration::from_secs(60);
/// How long a peer may take to close its side after ours.
const LINGER_US: i64 = 2_000_000;

/// More than a peer's kernel holds unread: Linux lets a receive buffer grow to 6 MiB.
pub const MAX_UNREAD_BYTES: u64 = 8 << 20;

/// How a peer is reached.
#[derive(Clone)]
pub struct Options {
    /// The peer's address.
    pub target: Target,
    /// Which records, under which field names.
    pub choose: Choose,
    /// Maximum time for connecting, and for the peer to take no byte.
    pub timeout: Duration,
    /// Maximum pause between two tries.
    pub max_delay: Duration,
    /// The peer has read whatever was written before the last `unread_max` bytes; at most [`MAX_UNREAD_BYTES`].
    pub unread_max: u64,
}

/// The sink.
pub struct Stream {
    options: Options,
    /// The last record that is done.
    mark: SinkMark,
    told: u64,
    told_at: Timestamp,
    link: Option<Link>,
    backoff: Backoff,
    counted: Arc<SinkMetrics>,
    stage: Stage,
    /// Whether one more try was made after the end was announced.
    has_hurried: bool,
    connects: u64,
    /// When the sink was last stepped.
    looked_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No start waits for a peer.
    New,
    Open,
    /// Our side is closed, since then.
    Finishing(Timestamp),
    Finished,
}

/// A connection and what was written to it.
struct Link {
    connection: Connection,
    since: Timestamp,
    /// Bytes of records that the peer has taken.
    written: u64,
    took_at: Timestamp,
    /// Records that are not done, in order.
    ends: VecDeque<End>,
    /// The last record taken from the outbox.
    read: u64,
    rest: Option<Rest>,
}

/// A record that was handed over.
struct End {
    number: u64,
    /// Where the record ends in `written`.
    at: u64,
    when: Timestamp,
}

/// Bytes of a chunk that are not written yet.
struct Rest {
    bytes: Vec<u8>,
    at: usize,
}

impl Stream {
    /// Continues after `mark`.
    #[must_use]
    pub fn new(options: Options, mark: SinkMark, random: Random) -> Self {
        let backoff = Backoff::new(options.max_delay, random);
        let counted = metrics().sinks.of(&mark.name);
        let (told, told_at, looked_at) = (mark.seq, Timestamp(0), Timestamp(0));
        Self { options, mark, told, told_at, link: None, backoff, counted, stage: Stage::New, has_hurried: false, connects: 0, looked_at }
    }

    fn connect(&mut self, now: Timestamp) -> io::Result<()> {
        let connection = Connection::open(&self.options.target, self.options.timeout)?;
        self.counted.reconnects.add(u64::from(self.connects > 0));
        self.connects += 1;
        let (since, took_at, read) = (now, now, self.mark.seq);
        self.link = Some(Link { connection, since, written: 0, took_at, ends: VecDeque::new(), read, rest: None });
        Ok(())
    }

    /// Whether nothing is in progress: everything read from the outbox is done.
    fn is_clear(&self) -> bool {
        self.link.as_ref().is_none_or(|link| link.ends.is_empty() && link.rest.is_none())
    }

    /// Drops a connection that has failed.
    fn lost(&mut self, why: &io::Error, now: Timestamp) -> io::Error {
        if self.link.take().is_some_and(|link| now.0 - link.since.0 >= LIVED_US) {
            self.backoff.works();
        }
        self.backoff.failed(now, Duration::ZERO);
        self.stage = Stage::Open;
        // The caller would misread any other kind, such as `BrokenPipe`.
        io::Error::other(format!("{}: {why}", self.options.target.shown()))
    }

    /// Handles a step while nothing has ended: finishes what was begun, then takes the next records.
    fn open_step(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) -> io::Result<Step> {
        if let Some(step) = self.tend(now)? {
            return Ok(step);
        }
        let read = self.link.as_ref().map_or(self.mark.seq, |link| link.read);
        let Some(chunk) = outbox.after(read)? else { return self.rest_step(outbox, now, hurry) };
        let (bytes, ends) = self.chosen(&chunk, read, now);
        if bytes.is_empty() && self.is_clear() {
            self.mark.seq = chunk.last();
            self.link.iter_mut().for_each(|link| link.read = chunk.last());
            return Ok(Step::Done);
        }
        if self.link.is_none() {
            self.connect(now)?;
        }
        if let Some(link) = &mut self.link {
            link.take(chunk.last(), bytes, ends, now);
        }
        Ok(Step::Done)
    }

    /// Looks after the connection, if there is one: whether the peer has ended it, and whether something is left to write.
    /// Returns the result of the step if that was all there is to do.
    fn tend(&mut self, now: Timestamp) -> io::Result<Option<Step>> {
        let Some(link) = &mut self.link else { return Ok(None) };
        if link.connection.hear()? {
            if self.is_clear() {
                // Nothing is outstanding: the next record makes a new connection.
                self.link = None;
                return Ok(Some(Step::Done));
            }
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the peer ended the connection"));
        }
        if link.rest.is_some() {
            return link.push(&self.options, &self.counted, now).map(Some);
        }
        if !link.connection.flush()? {
            link.connection.wait(true, STEP_WAIT);
        }
        Ok(None)
    }

    /// Returns the bytes of the chosen records after number `read`, and where each record ends.
    fn chosen(&self, chunk: &Chunk, read: u64, now: Timestamp) -> (Vec<u8>, VecDeque<End>) {
        let (mut bytes, mut ends): (Vec<u8>, VecDeque<End>) = Default::default();
        let from = self.link.as_ref().map_or(0, |link| link.written);
        for (number, head, record) in chunk.after(read) {
            self.options.choose.write(head, record, &mut bytes);
            let at = from + bytes.len() as u64;
            // A record that is not chosen is done together with the one before.
            match ends.back_mut().filter(|last| last.at == at) {
                Some(last) => last.number = number,
                None => ends.push_back(End { number, at, when: now }),
            }
        }
        (bytes, ends)
    }

    /// Handles a step with nothing to write.
    fn rest_step(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) -> io::Result<Step> {
        if !(hurry && outbox.is_over()) {
            return Ok(if self.is_clear() && self.told == self.mark.seq { Step::Settled } else { Step::Idle });
        }
        if let Some(link) = &mut self.link
            && !link.connection.flush()?
        {
            link.connection.wait(true, STEP_WAIT);
            return Ok(Step::Done);
        }
        match &mut self.link {
            Some(link) if !link.ends.is_empty() => {
                link.connection.finish()?;
                self.stage = Stage::Finishing(now);
            }
            _ => self.stage = Stage::Finished,
        }
        Ok(Step::Done)
    }

    /// Waits until the peer has closed its side.
    fn finish_step(&mut self, since: Timestamp, now: Timestamp) -> io::Result<Step> {
        let Some(link) = &mut self.link else { return Ok(Step::Done) };
        if link.connection.hear()? {
            self.mark.seq = link.read;
            self.link = None;
            self.stage = Stage::Finished;
        } else if since.is_past(LINGER_US, now) {
            // It may have everything; what is uncertain is sent again.
            self.link = None;
            self.stage = Stage::Finished;
        } else {
            link.connection.wait(false, STEP_WAIT);
        }
        Ok(Step::Done)
    }

    fn tell(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) {
        if self.told < self.mark.seq && (hurry || self.told_at.is_past(TELL_US, now)) {
            outbox.tell(&self.mark);
            (self.told, self.told_at) = (self.mark.seq, now);
        }
    }

    /// Whether the connection has proved to work: one that has just begun proves nothing.
    fn is_proven(&self, now: Timestamp) -> bool {
        self.link.as_ref().is_none_or(|link| link.written > link.connection.in_flight_max || link.since.is_past(TELL_US, now))
    }
}

impl Link {
    /// Takes over records up to number `last`, to be written from now on.
    fn take(&mut self, last: u64, bytes: Vec<u8>, mut ends: VecDeque<End>, now: Timestamp) {
        self.read = last;
        if self.ends.back().is_some_and(|last| ends.front().is_some_and(|first| first.at == last.at)) {
            self.ends.pop_back();
        }
        self.ends.append(&mut ends);
        self.rest = Some(Rest { bytes, at: 0 });
        self.took_at = now;
    }

    /// Continues writing.
    fn push(&mut self, options: &Options, counted: &SinkMetrics, now: Timestamp) -> io::Result<Step> {
        let Some(rest) = &mut self.rest else { return Ok(Step::Done) };
        while rest.at < rest.bytes.len() {
            let taken = self.connection.write(&rest.bytes[rest.at..])?;
            if taken == 0 {
                break;
            }
            rest.at += taken;
            self.written += taken as u64;
            self.took_at = now;
            counted.bytes.add(taken as u64);
        }
        if rest.at == rest.bytes.len() {
            self.rest = None;
        } else if self.took_at.is_past(options.timeout.as_micros() as i64, now) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("the peer took nothing for {:?}", options.timeout)));
        } else {
            self.connection.wait(true, STEP_WAIT);
        }
        Ok(Step::Done)
    }

    /// Returns the last record that is done by now.
    fn done(&mut self, options: &Options, now: Timestamp) -> Option<u64> {
        let old = now.0.saturating_sub(MAX_HANG.max(options.timeout * 2).as_micros() as i64);
        let is_done = |end: &End| {
            let after = self.written.saturating_sub(end.at);
            after >= self.connection.in_flight_max && (after >= options.unread_max || end.when.0 <= old)
        };
        let count = self.ends.iter().take_while(|end| is_done(end)).count();
        self.ends.drain(..count).next_back().map(|end| end.number)
    }
}

impl Sink for Stream {
    fn step(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) -> io::Result<Step> {
        self.looked_at = now;
        if self.backoff.until(now).is_some() {
            if !hurry || self.has_hurried {
                return Ok(Step::Paused);
            }
            self.has_hurried = true;
        }
        let step = match self.stage {
            Stage::New => {
                self.stage = Stage::Open;
                return Ok(Step::Done);
            }
            Stage::Open => self.open_step(outbox, now, hurry),
            Stage::Finishing(since) => self.finish_step(since, now),
            Stage::Finished => Ok(if outbox.is_committed(&self.mark) { Step::Settled } else { Step::Idle }),
        };
        let step = step.map_err(|why| self.lost(&why, now))?;
        if let Some(done) = self.link.as_mut().and_then(|link| link.done(&self.options, now)) {
            self.mark.seq = done;
            self.backoff.works();
        }
        self.tell(outbox, now, hurry);
        Ok(match step {
            Step::Done if !hurry && !self.is_proven(now) => Step::Trying,
            Step::Idle if !hurry && !self.is_proven(now) => Step::Paused,
            step => step,
        })
    }

    fn paces_itself(&self) -> bool {
        true
    }

    fn place(&self) -> String {
        self.options.target.shown()
    }

    fn choose(&self) -> &Choose {
        &self.options.choose
    }

    fn deadline(&self) -> Option<Timestamp> {
        let look = self.link.as_ref().filter(|link| !link.ends.is_empty()).map(|_| Timestamp(self.looked_at.0 + TELL_US));
        let tell = (self.told < self.mark.seq).then_some(Timestamp(self.told_at.0 + TELL_US));
        self.backoff.until(self.looked_at).or_else(|| look.into_iter().chain(tell).min())
    }
}
