//! stdout, or any open descriptor that only takes bytes. What it did with them cannot be asked for after a
//! restart: records since the last commit may come twice.

use std::fs::File;
use std::io;

use super::choose::Choose;
use super::rest::Rest;
use super::{Desk, Sink, Step};
use crate::core::event::Timestamp;
use crate::delivery::SinkMark;

/// How often it says how far it is.
const TELL_US: i64 = 1_000_000;

/// The sink.
pub struct Stdout {
    file: File,
    choose: Choose,
    mark: SinkMark,
    told: u64,
    told_at: Timestamp,
    rest: Option<Rest>,
}

impl Stdout {
    /// Goes on after `mark`.
    #[must_use]
    pub fn new(file: File, choose: Choose, mark: SinkMark) -> Self {
        let told = mark.seq;
        Self { file, choose, mark, told, told_at: Timestamp(0), rest: None }
    }
}

impl Sink for Stdout {
    fn step(&mut self, desk: &mut dyn Desk, now: Timestamp, hurry: bool) -> io::Result<Step> {
        if let Some(rest) = &mut self.rest {
            self.mark.seq = rest.write(&self.file)?;
            self.rest = None;
            return Ok(Step::Done);
        }
        if let Some(chunk) = desk.after(self.mark.seq)? {
            self.rest = Some(Rest::new(chunk, self.mark.seq, &self.choose));
            return Ok(Step::Done);
        }
        if self.told < self.mark.seq && (hurry || now.0 - self.told_at.0 >= TELL_US) {
            desk.tell(&self.mark);
            (self.told, self.told_at) = (self.mark.seq, now);
        }
        Ok(if self.told == self.mark.seq { Step::Settled } else { Step::Idle })
    }

    fn place(&self) -> String {
        "stdout".to_owned()
    }

    fn give_up(&mut self, desk: &mut dyn Desk, _is_final: bool) {
        if let Some(rest) = self.rest.take() {
            (self.mark.seq, _) = rest.written(&self.choose);
            desk.tell(&self.mark);
        }
    }

    fn choose(&self) -> &Choose {
        &self.choose
    }

    fn deadline(&self) -> Option<Timestamp> {
        (self.told < self.mark.seq).then_some(Timestamp(self.told_at.0 + TELL_US))
    }
}
