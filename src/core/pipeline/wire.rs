//! Streams whose lines may be syslog messages. The header is removed like any envelope.
//! Its severity decides, as a level field does in a record: error and above is an event
//! whatever the text says; below, only a warning is one, if warnings are wanted.

use super::{DRESSED, Stream};
use crate::core::decode;
use crate::core::engine::{Candidate, Engine};
use crate::core::event::{Sender, Timestamp};
use crate::core::frame::Buffer;
use crate::core::line::Place;
use crate::core::prefilter::Hit;
use crate::rules::FactKind;
use crate::words::Level;

/// The entries that severities lead to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    /// The entry for errors by level.
    error: Option<u16>,
    /// The entry for warnings, if they are wanted.
    warning: Option<u16>,
}

impl Wire {
    fn new(engine: &Engine) -> Self {
        Self { error: engine.rules.fact(FactKind::Level), warning: engine.rules.fact(FactKind::Warning) }
    }

    /// Returns the entry that a level leads to by itself.
    fn entry(self, level: Level) -> Option<u16> {
        match level {
            Level::Warn => self.warning,
            Level::Error | Level::Fatal => self.error,
            _ => None,
        }
    }
}

impl Stream {
    /// Cuts lines longer than `most` bytes, if that is less than the limit for all streams.
    #[must_use]
    pub fn with_max_line_bytes(mut self, most: usize) -> Self {
        self.buffer = Buffer::new(most.min(self.engine.limits.max_line_bytes));
        self
    }

    /// Treats lines that begin with `<PRI>` as syslog messages.
    #[must_use]
    pub fn with_syslog(mut self) -> Self {
        self.wire = Some(Wire::new(&self.engine));
        self
    }

    /// Marks messages that are events by their severity, so that they are looked at whatever their text is.
    pub(super) fn mark_stated(&self, block: &[u8], hits: &mut Vec<Hit>) {
        let Some(wire) = self.wire else { return };
        let (mut at, known) = (0, hits.len());
        while at < block.len() {
            let end = memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |length| at + length);
            let is_stated = || decode::syslog(&block[at..end], Timestamp(0)).and_then(|said| wire.entry(said.level?)).is_some();
            if block[at] == b'<' && is_stated() {
                hits.push(Hit { pos: at as u32, literal: DRESSED });
            }
            at = end + 1;
        }
        if hits.len() > known {
            hits.sort_unstable();
        }
    }

    /// Returns the text of a syslog message and puts what its header says into `place`.
    pub(super) fn message(&self, raw: &[u8], now: Timestamp, place: &mut Place) -> Option<(Vec<u8>, bool)> {
        self.wire?;
        let said = decode::syslog(raw, now)?;
        let part = |(from, to): (usize, usize)| String::from_utf8_lossy(&raw[from..to]).into_owned();
        let sender = Sender { host: part(said.host), app: part(said.app) };
        let process = part(said.process);
        let mut key = sender.host.clone();
        if !sender.app.is_empty() {
            key += if key.is_empty() { "" } else { " " };
            key += &sender.app;
        }
        if !process.is_empty() {
            key += &format!("[{process}]");
        }
        (place.level, place.time) = (said.level, said.time);
        place.key = Some(key).filter(|key| !key.is_empty());
        place.sender = Some(sender).filter(|sender| *sender != Sender::default()).map(Box::new);
        Some((raw[said.text.min(raw.len())..].to_vec(), false))
    }

    /// Lets the severity, which a message or an entry of the journal states, override what the literals of the text
    /// say. A JSON record in the text has a level of its own.
    pub(super) fn decide(&self, place: &Place, text: &[u8], candidates: &mut Vec<Candidate>) {
        let Some(level) = place.level else { return };
        let wire = self.wire.unwrap_or_else(|| Wire::new(&self.engine));
        if level < Level::Error && !text.trim_ascii_start().starts_with(b"{") {
            candidates.clear();
        }
        if let Some(entry) = wire.entry(level).filter(|entry| candidates.iter().all(|candidate| candidate.entry != *entry)) {
            candidates.push(Candidate { entry, at: 0, len: 0 });
            candidates.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::engine::Limits;
    use crate::core::event::Event;
    use crate::core::extract::Origin;
    use crate::rules::RuleSet;

    /// The events of syslog messages of one program.
    fn events(messages: &[(u8, &str)]) -> Vec<Event> {
        let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
        let (mut stream, mut out) = (Stream::new(engine, Origin::default()).with_syslog(), Vec::new());
        let bytes: String = messages.iter().map(|(priority, text)| format!("<{priority}>Nov 22 10:00:00 web01 shop[7]: {text}\n")).collect();
        stream.push(bytes.as_bytes(), Timestamp(1_795_000_000_000_000), &mut out);
        stream.finish(Timestamp(1_795_000_000_000_000), &mut out);
        out
    }

    #[test]
    fn an_indented_message_belongs_to_the_record_before_it_unless_its_severity_is_another() {
        let record = "2026-11-22 10:00:00,000 ERROR the cart is gone";
        for (severities, line_end) in [([11, 11], 2), ([11, 14], 1), ([14, 14], 1), ([13, 13], 2), ([13, 14], 1)] {
            let found = events(&[(severities[0], record), (severities[1], "  it held 3 things")]);
            let ends: Vec<u64> = found.iter().map(|event| event.line_end).collect();
            let wanted = if severities[0] == 14 { vec![] } else { vec![line_end] };
            assert_eq!(ends, wanted, "{severities:?}");
        }
    }
}
