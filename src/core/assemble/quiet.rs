//! Where a stream can be resumed after a restart: a place between two lines that no trace spans, and what is known there.
//! Everything after such a place is found again, with the same ids, from the bytes that follow and its facts alone.
//!
//! If nothing is open, the place is the current one. Otherwise a *cut* is tried: it holds once everything
//! that was open has ended without taking a line after it. What was claimed until then is added to its facts.

use std::sync::Arc;

use super::Assembler;
use super::noise_block::OpenNoise;
use super::regions::OpenRegion;
use crate::core::notes::{Claimant, Claims};
use crate::core::transcript::Memory;

/// What is known at a place where nothing is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Offset of the first byte of a line.
    pub offset: u64,
    /// Number of lines before it.
    pub lines: u64,
    /// Set if the stream is UTF-16: whether it is big-endian.
    pub wide: Option<bool>,
    /// What a transcript remembers; `None` for text.
    pub transcript: Option<Arc<Memory>>,
    pub(super) claimed_to: u64,
    pub(super) regions: Vec<OpenRegion>,
    pub(super) noise: Option<OpenNoise>,
    pub(super) claims: Arc<Claims>,
}

/// A place that is being tried as a cut.
pub(super) struct Cut {
    at: Snapshot,
    crossed: bool,
}

impl Cut {
    /// Records that something open here became an event, which owns the lines up to `num`.
    pub(super) fn claimed(&mut self, num: u64) {
        self.at.claimed_to = self.at.claimed_to.max(num);
    }

    pub(super) fn claim(&mut self, who: Claimant, key: Option<&[u8]>, num: u64) {
        Arc::make_mut(&mut self.at.claims).add(who, key, num);
    }

    pub(super) fn take_back(&mut self, who: Claimant, key: &[u8], num: u64) {
        Arc::make_mut(&mut self.at.claims).add_told(who, key, num);
    }
}

impl Assembler {
    /// Continues from a place where nothing was open.
    pub fn restore(&mut self, from: &Snapshot) {
        self.regions.clone_from(&from.regions);
        self.noise = from.noise;
        self.claimed_to = from.claimed_to;
        self.notes.restore(from.claims.clone());
    }

    /// Returns the newest place that is known to hold when the stream is at `here`, between two lines;
    /// `None` if there is no newer one than before. `here` needs only offset, lines, encoding and transcript.
    pub fn quiet(&mut self, here: &Snapshot) -> Option<Snapshot> {
        let oldest = self.oldest().unwrap_or(u64::MAX);
        let mut found = None;
        if let Some(cut) = self.cut.take_if(|cut| cut.crossed || oldest >= cut.at.offset)
            && !cut.crossed
        {
            found = Some(cut.at);
        }
        if oldest >= here.offset {
            self.cut = None;
            return Some(self.snapshot(here));
        }
        if self.cut.is_none() && self.again.is_empty() {
            self.cut = Some(Cut { at: self.snapshot(here), crossed: false });
        }
        found
    }

    fn snapshot(&self, here: &Snapshot) -> Snapshot {
        Snapshot {
            claimed_to: self.claimed_to,
            regions: self.regions.clone(),
            noise: self.noise,
            claims: self.notes.claimed(),
            transcript: here.transcript.clone(),
            ..Snapshot::here(here.offset, here.lines, here.wide)
        }
    }

    /// Returns the offset of the first line that something open holds.
    pub(in crate::core) fn oldest(&self) -> Option<u64> {
        let open = self.open.iter().map(|trace| trace.anchor());
        open.chain(self.again.iter().map(|line| line.place.offset)).chain(self.notes.oldest()).chain(self.held.oldest()).min()
    }

    /// Notes that a trace which began at `from` takes the line at `to`.
    pub(super) fn note_crossing(&mut self, from: u64, to: u64) {
        if let Some(cut) = &mut self.cut {
            cut.crossed |= from < cut.at.offset && to >= cut.at.offset;
        }
    }

    /// Notes that a line is processed again: its effects now are missing in the cut's snapshot.
    pub(super) fn note_reread(&mut self, offset: u64) {
        if let Some(cut) = &mut self.cut {
            cut.crossed |= offset < cut.at.offset;
        }
    }

    /// Returns the cut if it lies after `offset`.
    pub(super) fn cut_after(&mut self, offset: u64) -> Option<&mut Cut> {
        self.cut.as_mut().filter(|cut| offset < cut.at.offset)
    }
}

impl Snapshot {
    /// Creates a snapshot of a place about which nothing else is known.
    #[must_use]
    pub fn here(offset: u64, lines: u64, wide: Option<bool>) -> Self {
        Self { offset, lines, wide, ..Self::default() }
    }
}
