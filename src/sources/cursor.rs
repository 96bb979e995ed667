//! The cursors of a source that can be read again from a position of its own, such as the journal: which cursor belongs to which offset of the
//! stream, and the mark that is stored. Reading the same entries again gives the same bytes, so offsets, and with them ids, stay the same.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::assemble::{Facts, Snapshot};
use crate::core::engine::Engine;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::delivery::{Mark, Node, Uid};

/// Maximum positions to remember; beyond that, the oldest except the first are dropped.
const MAX_PLACES: usize = 10_000;

/// A position in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// The offset of the position in the stream.
    offset: u64,
    lines: u64,
    cursor: String,
}

/// The known cursors of one stream.
pub struct Cursors {
    uid: Uid,
    /// The position to continue from, and later ones.
    places: VecDeque<Place>,
    read: u64,
    sent: Option<Mark>,
}

impl Cursors {
    /// Starts a source that was never read: from its beginning, or after `cursor`.
    #[must_use]
    pub fn new(uid: Uid, cursor: String) -> Self {
        Self { uid, places: VecDeque::from([Place { offset: 0, lines: 0, cursor }]), read: 0, sent: None }
    }

    /// Continues a source that was read before.
    #[must_use]
    pub fn resume(uid: Uid, mark: &Mark) -> Self {
        let lines = serde_json::from_str::<Facts>(&mark.facts).map_or(0, |facts| facts.lines());
        let cursor = mark.path.to_string_lossy().into_owned();
        Self { uid, places: VecDeque::from([Place { offset: mark.safe, lines, cursor }]), read: mark.read, sent: Some(mark.clone()) }
    }

    /// Returns the identity of the stream.
    #[must_use]
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Returns the cursor to continue after; empty for the beginning.
    #[must_use]
    pub fn cursor(&self) -> &str {
        self.places.front().map_or("", |place| &place.cursor)
    }

    /// Returns the stream, from that position on.
    #[must_use]
    pub fn stream(&self, engine: Arc<Engine>) -> Stream {
        let (offset, lines) = self.places.front().map_or((0, 0), |place| (place.offset, place.lines));
        Stream::resume(engine, Origin { uid: self.uid, generation: 0 }, Snapshot::here(offset, lines, None), &[])
    }

    /// Notes that all entries up to `cursor` were handed in.
    pub fn reached(&mut self, stream: &Stream, cursor: &str) {
        self.read = stream.position();
        if self.places.len() >= MAX_PLACES {
            self.places.remove(1);
        }
        self.places.push_back(Place { offset: self.read, lines: stream.counts().lines, cursor: cursor.to_owned() });
    }

    /// Returns the mark if it has changed, or if events go with it.
    pub fn mark(&mut self, stream: &mut Stream, has_events: bool) -> Option<Mark> {
        let safe = stream.safe().offset;
        while self.places.get(1).is_some_and(|next| next.offset <= safe) {
            self.places.pop_front();
        }
        let place = self.places.front()?;
        let mark = Mark {
            node: Node::default(),
            path: PathBuf::from(&place.cursor),
            read: self.read,
            safe: place.offset,
            size: self.read,
            facts: serde_json::to_string(&Facts::plain(place.lines)).unwrap_or_default(),
            ..Mark::default()
        };
        if self.sent.as_ref() == Some(&mark) && !has_events {
            return None;
        }
        self.sent = Some(mark.clone());
        Some(mark)
    }
}
