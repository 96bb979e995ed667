//! stdin as a source: a thread that reads it, and the stream that its bytes go through. What was read and
//! not committed cannot be read again.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};

use super::wake::Wake;
use crate::core::engine::Engine;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::delivery::{Label, Uid};
use crate::sources::clock::now;
use crate::sources::reader::Turn;

/// Bytes of one read.
const STDIN_BYTES: usize = 64 << 10;
/// Pieces under way; with their size, 1 MiB.
const STDIN_PIECES: usize = 16;

/// A stream without a file.
pub(super) struct Piped {
    pub label: Arc<Label>,
    pub uid: Uid,
    pub stream: Stream,
}

impl Piped {
    pub fn new(name: String, uid: Uid, engine: &Arc<Engine>) -> Self {
        let label = Arc::new(Label { source: name, kind: "stdin", path: String::new() });
        Self { label, uid, stream: Stream::new(engine.clone(), Origin { uid, generation: 0 }) }
    }

    /// The next bytes; none: it has ended.
    pub fn take(&mut self, bytes: &[u8]) -> Turn {
        let mut events = Vec::new();
        match bytes.is_empty() {
            true => self.stream.finish(now(), &mut events),
            false => self.stream.push(bytes, now(), &mut events),
        }
        Turn { events: events.into_iter().map(|event| (0, event)).collect(), ..Turn::default() }
    }

    /// What a pause publishes, if there was one.
    pub fn tick(&mut self) -> Option<Turn> {
        self.stream.deadline().filter(|at| *at <= now())?;
        let mut events = Vec::new();
        self.stream.tick(now(), &mut events);
        Some(Turn { events: events.into_iter().map(|event| (0, event)).collect(), ..Turn::default() })
    }
}

/// A thread that reads stdin, blocking; without credit it waits, and so does the writer.
pub(super) fn read(sender: &Sender<Wake>) -> Receiver<()> {
    let (ask, credit): (SyncSender<()>, _) = sync_channel(STDIN_PIECES);
    let sender = sender.clone();
    std::thread::spawn(move || {
        let mut space = vec![0; STDIN_BYTES];
        loop {
            let count = match io::stdin().read(&mut space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::warn!("stdin: {error}");
                    0
                }
                Ok(count) => count,
            };
            if ask.send(()).is_err() || sender.send(Wake::Stdin(space[..count].to_vec())).is_err() || count == 0 {
                break;
            }
        }
    });
    credit
}
