//! A source that can be read again from a place of its own, as the journal can from a cursor: which cursor stands
//! where in the stream, and the mark that is kept of it. The stream's bytes are made anew from the same entries, so
//! offsets, and with them ids, are the same.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::assemble::{Facts, Snapshot};
use crate::core::engine::Engine;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::delivery::{Mark, Node, Uid};

/// Most places that are remembered; beyond it the oldest but the first go.
const MAX_PLACES: usize = 10_000;

/// A place of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// Where it stands in the stream.
    offset: u64,
    lines: u64,
    cursor: String,
}

/// Where the cursors stand.
pub struct Cursors {
    uid: Uid,
    /// The one to go on from, and those behind it.
    places: VecDeque<Place>,
    read: u64,
    sent: Option<Mark>,
}

impl Cursors {
    /// A source that was never read: from its beginning, or from behind `cursor`.
    #[must_use]
    pub fn new(uid: Uid, cursor: String) -> Self {
        Self { uid, places: VecDeque::from([Place { offset: 0, lines: 0, cursor }]), read: 0, sent: None }
    }

    /// A source that was read before.
    #[must_use]
    pub fn resume(uid: Uid, mark: &Mark) -> Self {
        let lines = serde_json::from_str::<Facts>(&mark.facts).map_or(0, |facts| facts.lines());
        let cursor = mark.path.to_string_lossy().into_owned();
        Self { uid, places: VecDeque::from([Place { offset: mark.safe, lines, cursor }]), read: mark.read, sent: Some(mark.clone()) }
    }

    /// Identity of the stream.
    #[must_use]
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Where to go on; empty: from the beginning.
    #[must_use]
    pub fn cursor(&self) -> &str {
        self.places.front().map_or("", |place| &place.cursor)
    }

    /// The stream from there on.
    #[must_use]
    pub fn stream(&self, engine: Arc<Engine>) -> Stream {
        let (offset, lines) = self.places.front().map_or((0, 0), |place| (place.offset, place.lines));
        Stream::resume(engine, Origin { uid: self.uid, generation: 0 }, Snapshot::here(offset, lines, None), &[])
    }

    /// All entries up to `cursor` were handed in.
    pub fn reached(&mut self, stream: &Stream, cursor: &str) {
        self.read = stream.position();
        if self.places.len() >= MAX_PLACES {
            self.places.remove(1);
        }
        self.places.push_back(Place { offset: self.read, lines: stream.counts().lines, cursor: cursor.to_owned() });
    }

    /// The mark, if it has changed, or if events go with it.
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
