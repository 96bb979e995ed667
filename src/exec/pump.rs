//! One output of the command on its way: read, passed on at once and unchanged, and only then looked at.
//! A thread for each output, so that neither waits for the other.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::journal::Journal;
use super::kept::Kept;
use super::{relay, waiting};
use crate::core::event::{Event, Io};
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::sources::clock::now;
use crate::verdict::Said;

/// Bytes of one read before the rules are ready.
const FIRST_BYTES: usize = 64 << 10;
/// The command has ended, and who still holds its output has been silent for so long.
const QUIET: Duration = Duration::from_millis(100);
/// The longest that output is read after the command has ended.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// One output.
pub struct Pump {
    /// Which.
    pub io: Io,
    /// Where it comes from.
    pub input: File,
    /// Where it goes.
    pub output: File,
    /// What is kept of it.
    pub kept: Kept,
    /// Who is told of its errors, and in which stream they are; without it nothing is looked at.
    pub scan: Option<(Arc<Journal>, Origin)>,
}

/// Whether somebody can still write to an output when it is left.
enum Held {
    Closed,
    Open,
}

/// What came of it.
#[derive(Default)]
pub struct Pumped {
    /// Both ends of it.
    pub kept: Kept,
    /// Its errors.
    pub said: Said,
    /// Why it could not be passed on.
    pub trouble: Option<io::Error>,
}

impl Pumped {
    /// Why output was lost; a reader that has gone wanted no more.
    #[must_use]
    pub fn lost(&self) -> Option<&io::Error> {
        self.trouble.as_ref().filter(|error| error.kind() != ErrorKind::BrokenPipe)
    }
}

impl Pump {
    /// Works until the output ends, or for a moment longer than `stop` stands open.
    #[must_use]
    pub fn run(mut self, stop: &OwnedFd) -> Pumped {
        let mut look = Look { io: self.io, scan: self.scan.take(), stream: None, events: Vec::new(), said: Said::default() };
        let mut first = vec![0; FIRST_BYTES];
        let passed = self.pass(stop, &mut look, &mut first);
        let trouble = match passed {
            Ok(Held::Closed) => None,
            Ok(Held::Open) => relay::take_over(self.input, self.output).err(),
            // Closed before the last look: who writes on learns it at once.
            passed => {
                drop(self.input);
                passed.err()
            }
        };
        look.finish();
        Pumped { kept: self.kept, said: look.said, trouble }
    }

    fn pass(&mut self, stop: &OwnedFd, look: &mut Look, first: &mut [u8]) -> io::Result<Held> {
        let mut stopped: Option<Instant> = None;
        loop {
            let ready = match stopped {
                Some(since) => {
                    let left = LEFTOVERS.saturating_sub(since.elapsed()).min(QUIET);
                    if left.is_zero() || !waiting::readable([self.input.as_fd()], Some(left))?[0] {
                        return Ok(Held::Open);
                    }
                    true
                }
                None => {
                    let [ready, stops] = waiting::readable([self.input.as_fd(), stop.as_fd()], look.patience())?;
                    stopped = stops.then(Instant::now);
                    ready
                }
            };
            if !ready {
                look.tick();
                continue;
            }
            let space = look.space().unwrap_or(first);
            let count = match self.input.read(space) {
                Ok(0) => return Ok(Held::Closed),
                Ok(count) => count,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => continue,
                // A pseudo-terminal that nobody has open any more.
                Err(_) => return Ok(Held::Closed),
            };
            write_all(&mut self.output, &space[..count])?;
            self.kept.push(&space[..count]);
            look.at(count, first);
        }
    }
}

/// Writes all, also where the other end has been set not to wait.
pub fn write_all(output: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => drop(waiting::writable(output.as_fd(), output.as_fd())?),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The look at an output that has been passed on.
struct Look {
    io: Io,
    scan: Option<(Arc<Journal>, Origin)>,
    stream: Option<Stream>,
    events: Vec<Event>,
    said: Said,
}

impl Look {
    fn space(&mut self) -> Option<&mut [u8]> {
        self.stream.as_mut().map(Stream::space)
    }

    /// How long until an open error wants to be told.
    fn patience(&self) -> Option<Duration> {
        let deadline = self.stream.as_ref()?.deadline()?;
        Some(Duration::from_micros(deadline.0.saturating_sub(now().0).max(0) as u64))
    }

    /// `count` bytes were passed on; the first ones stand in `first`, later ones in [`space`](Self::space).
    fn at(&mut self, count: usize, first: &[u8]) {
        let Some((journal, origin)) = &self.scan else { return };
        match &mut self.stream {
            Some(stream) => stream.advance(count, now(), &mut self.events),
            None => {
                let mut stream = Stream::new(journal.ready().engine.clone(), origin.clone());
                stream.push(&first[..count], now(), &mut self.events);
                self.stream = Some(stream);
            }
        }
        self.tell();
    }

    fn tick(&mut self) {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.deadline().is_some_and(|at| at <= now())) {
            stream.tick(now(), &mut self.events);
            self.tell();
        }
    }

    fn finish(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.finish(now(), &mut self.events);
            self.tell();
        }
    }

    fn tell(&mut self) {
        if let Some((journal, _)) = self.scan.as_ref().filter(|_| !self.events.is_empty()) {
            self.events.retain(|event| !journal.quoted().covers(event));
            for event in &mut self.events {
                event.io.get_or_insert(self.io);
            }
            journal.errors(&self.events);
            self.said.add(self.io, std::mem::take(&mut self.events));
        }
    }
}
