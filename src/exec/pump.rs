//! Passes one output of the command on: reads it, forwards it at once and unchanged, and only
//! then examines it. Each output has its own thread, so that neither waits for the other.

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
use crate::verdict::{self, Said};

/// Bytes per read before the rules are ready.
const FIRST_BYTES: usize = 64 << 10;
/// Reading stops when the command has ended and its output has been silent for this long.
const QUIET: Duration = Duration::from_millis(100);
/// Maximum time that output is read after the command has ended.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// Maximum number of bytes that are still examined once an output cannot be passed on: more than a pipe holds, and no
/// end to a command that prints without one.
const MAX_DRAINED_BYTES: usize = 1 << 20;

/// One output.
pub struct Pump {
    /// Which output.
    pub io: Io,
    /// Where it comes from.
    pub input: File,
    /// Where it goes.
    pub output: File,
    /// What is kept of it.
    pub kept: Kept,
    /// The journal for its errors and the origin of the stream; without them the output is not examined.
    pub scan: Option<(Arc<Journal>, Origin)>,
    /// The command that prints it, as one writes it in a shell.
    pub command: String,
}

/// Whether another process can still write to the output when the pump stops.
enum Held {
    Closed,
    Open,
}

/// The result of a pump whose command may still run.
pub struct Unsettled {
    pumped: Pumped,
    look: Look,
}

/// The result of a pump.
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
    /// Returns why output was lost. A reader that has closed its pipe wants no more of it.
    #[must_use]
    pub fn lost(&self) -> Option<&io::Error> {
        self.trouble.as_ref().filter(|error| error.kind() != ErrorKind::BrokenPipe)
    }
}

/// Judges the outputs of a command that has ended [together](verdict::settle).
#[must_use]
pub fn settle(mut outputs: [Option<Unsettled>; 2], succeeded: bool) -> [Pumped; 2] {
    let has_said = outputs.iter().flatten().any(|output| output.look.said.errors.iter().any(|event| !event.is_status));
    let looks = outputs.iter_mut().flatten().map(|output| &mut output.look);
    let mut ends: Vec<_> = looks.filter_map(|look| Some((look.stream.as_mut()?, &mut look.events))).collect();
    let mut passed_until = verdict::settle(&mut ends, has_said, succeeded, now()).into_iter();
    outputs.map(|output| {
        let Some(Unsettled { pumped, mut look }) = output else { return Pumped::default() };
        let passed = look.stream.as_ref().and_then(|_| passed_until.next().flatten());
        look.tell();
        if let Some(until) = passed {
            look.said.acquit(until);
        }
        Pumped { said: look.said, ..pumped }
    })
}

impl Pump {
    /// Runs until the output ends, or until shortly after `stop` is closed.
    #[must_use]
    pub fn run(mut self, stop: &OwnedFd) -> Unsettled {
        let mut look =
            Look { io: self.io, scan: self.scan.take(), command: std::mem::take(&mut self.command), stream: None, events: Vec::new(), said: Said::default() };
        let mut first = vec![0; FIRST_BYTES];
        let passed = self.pass(stop, &mut look, &mut first);
        let trouble = match passed {
            Ok(Held::Closed) => None,
            Ok(Held::Open) => relay::take_over(self.input, self.output).err(),
            // Closed before the last events are handled, so that a process that still writes notices at once.
            passed => {
                drop(self.input);
                passed.err()
            }
        };
        Unsettled { pumped: Pumped { kept: self.kept, said: Said::default(), trouble }, look }
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
                // No process has the pseudo-terminal open any more.
                Err(_) => return Ok(Held::Closed),
            };
            // What nobody reads any more may still tell why the command fails.
            let passed_on = write_all(&mut self.output, &space[..count]);
            self.kept.push(&space[..count]);
            look.at(count, first);
            if let Err(error) = passed_on {
                self.drain(look, first);
                return Err(error);
            }
        }
    }

    /// Keeps and examines what the command has already printed and nobody reads any more.
    fn drain(&mut self, look: &mut Look, first: &mut [u8]) {
        let mut left = MAX_DRAINED_BYTES;
        while left > 0 && waiting::readable([self.input.as_fd()], Some(Duration::ZERO)).is_ok_and(|[ready]| ready) {
            let space = look.space().unwrap_or(first);
            let Ok(count @ 1..) = self.input.read(space) else { return };
            self.kept.push(&space[..count]);
            look.at(count, first);
            left = left.saturating_sub(count);
        }
    }
}

/// Writes all bytes, even if the descriptor is non-blocking.
pub fn write_all(output: &mut (impl Write + AsFd), mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => drop(waiting::writable(output.as_fd(), output.as_fd())?),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Examines an output that has been passed on.
struct Look {
    io: Io,
    scan: Option<(Arc<Journal>, Origin)>,
    command: String,
    stream: Option<Stream>,
    events: Vec<Event>,
    said: Said,
}

impl Look {
    fn space(&mut self) -> Option<&mut [u8]> {
        self.stream.as_mut().map(Stream::space)
    }

    /// How long until an open error has to be reported.
    fn patience(&self) -> Option<Duration> {
        let deadline = self.stream.as_ref()?.deadline()?;
        Some(Duration::from_micros(deadline.0.saturating_sub(now().0).max(0) as u64))
    }

    /// Takes `count` bytes that were passed on: the first ones are in `first`, later ones in [`space`](Self::space).
    fn at(&mut self, count: usize, first: &[u8]) {
        let Some((journal, origin)) = &self.scan else { return };
        match &mut self.stream {
            Some(stream) => stream.advance(count, now(), &mut self.events),
            None => {
                let mut stream = Stream::new(journal.ready().engine.clone(), origin.clone()).of_command(&self.command);
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

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use super::*;

    /// Takes this many bytes, and then none.
    struct Taking(File, usize);

    impl Write for Taking {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.1);
            self.1 -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl AsFd for Taking {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    #[test]
    fn an_output_that_takes_no_byte_is_a_trouble_and_not_tried_for_ever() {
        let mut output = Taking(tempfile::tempfile().unwrap(), 5);
        write_all(&mut output, b"abc").unwrap();
        assert_eq!(write_all(&mut output, b"defg").unwrap_err().kind(), ErrorKind::WriteZero);
    }
}
