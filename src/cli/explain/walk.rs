//! What a stream makes of each line of a text, and of the whole text.

use std::io::{self, Read};
use std::sync::Arc;

use super::message_of;
use crate::core::engine::Engine;
use crate::core::event::Event;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::core::redact::KeyBlock;
use crate::core::visible::visible;
use crate::sources::clock::now;
use crate::sources::input;

/// What is open after a line: the ids of regions and traces.
#[derive(Default)]
pub(super) struct Behind {
    pub(super) regions: Vec<String>,
    pub(super) traces: Vec<String>,
    /// The line is part of a private key.
    pub(super) is_key: bool,
}

/// Runs a stream line by line, to see what is open after each line.
pub(super) struct Walk<'a> {
    engine: &'a Arc<Engine>,
    stream: Stream,
    /// Number of lines so far.
    pub(super) lines: u64,
    key: KeyBlock,
    is_key: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(engine: &'a Arc<Engine>) -> Self {
        Self { engine, stream: Stream::new(engine.clone(), Origin::default()), lines: 0, key: KeyBlock::default(), is_key: false }
    }

    pub(super) fn step(&mut self, text: &[u8]) {
        let mut events = Vec::new();
        self.stream.push(text, now(), &mut events);
        self.stream.push(b"\n", now(), &mut events);
        self.lines += 1;
        let text = visible(text, None);
        let may_be_key = self.key.is_open() || memchr::memmem::find(&text, b"PRIVATE KEY").is_some();
        self.is_key = may_be_key && self.key.takes(&message_of(&text));
    }

    pub(super) fn behind(&self) -> Behind {
        let (regions, traces) = self.stream.opened();
        let ids = |entries: Vec<u16>| entries.iter().map(|&entry| self.engine.rules.entries[usize::from(entry)].id.clone()).collect();
        Behind { regions: ids(regions), traces: ids(traces), is_key: self.is_key }
    }
}

/// Returns the events that `wanted` accepts.
pub(super) fn events(engine: &Arc<Engine>, mut bytes: impl Read, wanted: impl Fn(&Event) -> bool) -> io::Result<Vec<Event>> {
    let (mut stream, mut events) = (Stream::new(engine.clone(), Origin::default()), Vec::new());
    loop {
        match input::fill(&mut bytes, stream.space())? {
            0 => break,
            count => stream.advance(count, now(), &mut events),
        }
        events.retain(&wanted);
    }
    stream.finish(now(), &mut events);
    events.retain(&wanted);
    Ok(events)
}
