//! A server that takes batches by POST and responds. A record is done when the server confirms it, says that it has the record already, or when the
//! record is on disk as a dead letter. Everything else is retried, one request at a time and in order. Each failure halves the batch
//! size, down to one record, and each success doubles it again: this isolates a record that spoils a batch, and finds a size that the server accepts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::{Backoff, Random};
use super::choose::Choose;
use super::{OutboxReader, Sink, Step};
use crate::config::HttpFormat;
use crate::core::event::Timestamp;
use crate::delivery::{Chunk, SinkMark};
use crate::telemetry::metrics;
use crate::telemetry::metrics::SinkMetrics;

mod answer;
mod batch;
mod client;
mod dead_letter;
mod mention;
#[cfg(test)]
mod tests;

pub use answer::Answer;
use answer::{Fate, Refusal, Verdict, verdict};
use batch::{Batch, Row, body, id_of, squeezed};
pub use client::{Client, Post, Token, Way};
pub use dead_letter::DeadLetter;
use mention::Mentions;

/// How often the sink tells the outbox how far it is.
const TELL_US: i64 = 1_000_000;

/// What is sent, and how.
#[derive(Clone)]
pub struct Options {
    /// The URL for messages, without the part after `?`.
    pub place: String,
    /// Which records, under which field names.
    pub choose: Choose,
    /// The form of a body.
    pub format: HttpFormat,
    /// Whether bodies are compressed.
    pub gzip: bool,
    /// Maximum records per request.
    pub batch_rows: usize,
    /// Maximum bytes per request.
    pub batch_bytes: u64,
    /// How long a record waits for others.
    pub batch_wait: Duration,
    /// Maximum pause of our own.
    pub max_delay: Duration,
    /// Maximum pause that the server may ask for.
    pub max_reset_wait: Duration,
    /// Where refused records go.
    pub dead_letter: DeadLetter,
}

/// Returns the headers that describe bodies of these options.
#[must_use]
pub fn own_headers(options: &Options) -> Vec<(String, String)> {
    let mut headers = vec![("content-type".to_owned(), batch::content_type(options.format).to_owned())];
    headers.extend(options.gzip.then(|| ("content-encoding".to_owned(), "gzip".to_owned())));
    headers
}

/// The sink.
pub struct Http {
    options: Options,
    client: Box<dyn Post>,
    /// The last record that is done.
    mark: SinkMark,
    told: u64,
    told_at: Timestamp,
    /// The chunk taken last, and its last record that is in the batch or not wanted.
    chunk: Option<Arc<Chunk>>,
    read: u64,
    batch: Batch,
    /// Number of records in the next request.
    size: usize,
    backoff: Backoff,
    counted: Arc<SinkMetrics>,
    is_new: bool,
    has_hurried: bool,
    mentions: Mentions,
    looked_at: Timestamp,
}

impl Http {
    /// Continues after `mark`.
    #[must_use]
    pub fn new(options: Options, client: Box<dyn Post>, mark: SinkMark, random: Random) -> Self {
        let backoff = Backoff::new(options.max_delay, random);
        let counted = metrics().sinks.of(&mark.name);
        let (read, size, told) = (mark.seq, options.batch_rows, mark.seq);
        let (told_at, looked_at, mentions, chunk, batch) = (Timestamp(0), Timestamp(0), Mentions::default(), None, Batch::default());
        Self { options, client, mark, told, told_at, chunk, read, batch, size, backoff, counted, is_new: true, has_hurried: false, mentions, looked_at }
    }

    /// Takes records until the batch is full or there are no more.
    fn fill(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp) -> io::Result<()> {
        let Options { batch_rows, batch_bytes, .. } = self.options;
        let mut bytes = Vec::new();
        while !self.batch.is_full(batch_rows, batch_bytes) {
            if self.chunk.as_ref().is_none_or(|chunk| chunk.last() <= self.read) {
                self.chunk = outbox.after(self.read)?;
            }
            let Some(chunk) = self.chunk.clone() else { break };
            for (number, head, record) in chunk.after(self.read) {
                bytes.clear();
                self.options.choose.write(head, record, &mut bytes);
                if !bytes.is_empty() {
                    if !self.batch.has_room(bytes.len(), batch_bytes) || self.batch.rows.len() >= batch_rows {
                        return Ok(());
                    }
                    let row = Row { number, id: id_of(record), bytes: bytes.trim_ascii_end().to_owned() };
                    self.batch.add(row, now);
                }
                self.read = number;
            }
        }
        Ok(())
    }

    /// Whether to send the batch now.
    fn is_due(&self, now: Timestamp, hurry: bool) -> bool {
        let Options { batch_rows, batch_bytes, batch_wait, .. } = self.options;
        let waits_since = |since: Timestamp| since.is_past(batch_wait.as_micros() as i64, now);
        hurry || self.size < batch_rows || self.batch.is_full(batch_rows, batch_bytes) || self.holds_more() || self.batch.since.is_some_and(waits_since)
    }

    /// Whether the chunk holds a record that did not fit.
    fn holds_more(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| chunk.last() > self.read)
    }

    /// Sends one request.
    fn send(&mut self, now: Timestamp) -> io::Result<()> {
        let count = self.size.min(self.batch.rows.len());
        let mut bytes = body(self.options.format, &self.batch.rows, count);
        if self.options.gzip {
            bytes = squeezed(&bytes)?;
        }
        let answer = self.client.post(&bytes).map_err(|why| self.failed(&why.to_string(), Duration::ZERO, now))?;
        self.counted.bytes.add(bytes.len() as u64);
        match verdict(self.options.format, &answer, count, now) {
            Verdict::Done => drop(self.batch.take(count, |_| true)),
            Verdict::Again(why, asked) => return Err(self.failed(&why, asked, now)),
            // The server works, but not with this many records.
            Verdict::Fewer(_) => {
                self.size = count.div_ceil(2);
                return Ok(());
            }
            Verdict::Refused(refusal) => {
                let refused = vec![Some(refusal); count];
                self.bury(&refused, now)?;
            }
            Verdict::Each(fates) => self.each(fates, now)?,
        }
        self.backoff.works();
        self.size = (self.size * 2).min(self.options.batch_rows);
        Ok(())
    }

    fn each(&mut self, fates: Vec<Fate>, now: Timestamp) -> io::Result<()> {
        let count = fates.len();
        let again = fates.iter().find_map(|fate| if let Fate::Again(status) = fate { Some(*status) } else { None });
        let is_left = |fate: &Fate| *fate != Fate::Done;
        let left: Vec<Fate> = fates.iter().filter(|fate| is_left(fate)).cloned().collect();
        drop(self.batch.take(count, |at| !is_left(&fates[at])));
        let refused: Vec<Option<Refusal>> = left.into_iter().map(|fate| if let Fate::Refused(refusal) = fate { Some(refusal) } else { None }).collect();
        self.bury(&refused, now)?;
        match again {
            Some(status) => Err(self.failed(&format!("{status} for some records"), Duration::ZERO, now)),
            None => Ok(()),
        }
    }

    /// Turns those of the batch's first records that have a reason into dead letters.
    fn bury(&mut self, reasons: &[Option<Refusal>], now: Timestamp) -> io::Result<()> {
        let rows = self.batch.rows.iter().zip(reasons);
        let refused: Vec<(Row, Refusal)> = rows.filter_map(|(row, reason)| Some((row.clone(), reason.clone()?))).collect();
        let Some((_, first)) = refused.first() else { return Ok(()) };
        let count = match self.options.dead_letter.append(&self.mark.name, &refused, now) {
            Ok(count) => count,
            // They stay in the batch and are sent again: the server may accept them by then.
            Err(why) => return Err(self.failed(&format!("{}: {why}", first.shown()), self.options.max_delay, now)),
        };
        let mut left = count;
        let is_buried = |at: usize| {
            let is = reasons[at].is_some() && left > 0;
            left -= usize::from(is);
            is
        };
        drop(self.batch.take(reasons.len(), is_buried));
        self.counted.dead_letters.add(count as u64);
        self.mentions.add(count, &first.shown());
        self.mention(now, false);
        Ok(())
    }

    /// Logs the refused records, if due.
    fn mention(&mut self, now: Timestamp, is_last: bool) {
        let Some((count, why)) = self.mentions.take(now, is_last) else { return };
        let (name, path) = (&self.mark.name, self.options.dead_letter.path.display());
        let (records, they_are) = if count == 1 { ("record", "it is") } else { ("records", "they are") };
        tracing::warn!("sink {name}: the server refused {count} {records} ({why}); {they_are} in {path}");
    }

    fn failed(&mut self, why: &str, asked: Duration, now: Timestamp) -> io::Error {
        self.size = self.size.min(self.batch.rows.len()).div_ceil(2).max(1);
        self.backoff.failed(now, asked.min(self.options.max_reset_wait));
        // The caller would misread any other kind, such as `BrokenPipe`.
        io::Error::other(format!("{}: {why}", self.options.place))
    }

    fn advance(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) {
        self.mark.seq = self.batch.rows.front().map_or(self.read, |row| row.number - 1).max(self.mark.seq);
        if self.told < self.mark.seq && (hurry || self.told_at.is_past(TELL_US, now)) {
            outbox.tell(&self.mark);
            (self.told, self.told_at) = (self.mark.seq, now);
        }
    }
}

impl Sink for Http {
    fn step(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp, hurry: bool) -> io::Result<Step> {
        self.looked_at = now;
        self.mention(now, false);
        if std::mem::take(&mut self.is_new) {
            return Ok(Step::Done);
        }
        if self.backoff.until(now).is_some() {
            if !hurry || self.has_hurried {
                return Ok(Step::Paused);
            }
            self.has_hurried = true;
        }
        self.fill(outbox, now)?;
        let goes = !self.batch.rows.is_empty() && self.is_due(now, hurry);
        if goes {
            self.send(now)?;
        }
        self.advance(outbox, now, hurry);
        let is_settled = self.batch.rows.is_empty() && self.told == self.mark.seq && outbox.is_committed(&self.mark);
        if hurry && is_settled {
            self.mention(now, true);
        }
        Ok(if goes {
            Step::Done
        } else if is_settled {
            Step::Settled
        } else {
            Step::Idle
        })
    }

    fn paces_itself(&self) -> bool {
        true
    }

    fn give_up(&mut self, _outbox: &mut dyn OutboxReader, _is_final: bool) {
        self.mention(self.looked_at, true);
    }

    fn place(&self) -> String {
        self.options.place.clone()
    }

    fn choose(&self) -> &Choose {
        &self.options.choose
    }

    fn deadline(&self) -> Option<Timestamp> {
        let wait = self.options.batch_wait.as_micros() as i64;
        let send = self.batch.since.map(|since| Timestamp(since.0 + wait));
        let tell = (self.told < self.mark.seq).then_some(Timestamp(self.told_at.0 + TELL_US));
        self.backoff.until(self.looked_at).or_else(|| send.into_iter().chain(tell).chain(self.mentions.deadline()).min())
    }
}
