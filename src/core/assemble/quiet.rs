//! Where a stream can be resumed after a restart: a place between two lines that no trace spans, and what is known there.
//! Everything after such a place is found again, with the same ids, from the bytes that follow and its facts alone.
//!
//! If nothing is open, the place is the current one. Otherwise a *cut* is tried: it holds once everything
//! that was open has ended without taking a line after it. What was claimed until then is added to its facts.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Assembler;
use super::noise_block::OpenNoise;
use super::regions::{MAX_REGIONS, OpenRegion};
use crate::core::engine::Engine;
use crate::core::line::Position;
use crate::core::notes::{Claim, Claimant, Claims};
use crate::core::transcript::Memory;
use crate::core::writer::Writer;

/// Version of the form of [`Facts`].
const VERSION: u8 = 1;

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
    claimed_to: u64,
    regions: Vec<OpenRegion>,
    noise: Option<OpenNoise>,
    claims: Arc<Claims>,
}

/// A [`Snapshot`] that outlives this process and its rules: it refers to entries and families by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    version: u8,
    lines: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wide: Option<bool>,
    #[serde(default)]
    claimed_to: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    regions: Vec<(String, u32)>,
    /// Who opened each of them, if anybody has a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writers: Vec<Writer>,
    /// Those regions that were opened after a writer's name, by their places in `regions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after_writer: Vec<usize>,
    /// Those that a logger's record opened.
    #[serde(default, rename = "of_logger", skip_serializing_if = "Vec::is_empty")]
    logged: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noise: Option<(String, u32, u64)>,
    #[serde(default, skip_serializing_if = "Writer::is_unnamed")]
    noise_writer: Writer,
    #[serde(default)]
    claims: u64,
    /// First and last line of a block of status lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<(u64, u64)>,
    /// Families of claims: family, line, number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    families: Vec<(String, u64, u64)>,
    /// The same for faults that may have passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    passing: Vec<(String, u64, u64)>,
    /// Hash of the key, family, line, number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<(u64, String, u64, u64)>,
    /// The services that made the claims of `families`, of `passing` and of `keys`, one after the other, if anybody has a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    claim_services: Vec<Writer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transcript: Option<Memory>,
    /// Whether something read after the place may still become an event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    owed: bool,
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

    /// Returns the snapshot in a form that can be stored.
    #[must_use]
    pub fn facts(&self, engine: &Engine) -> Facts {
        let id = |entry: u16| engine.rules.entries[usize::from(entry)].id.clone();
        let family = |claim: &Claim| engine.rules.families[usize::from(claim.family)].id.clone();
        let (passing, families): (Vec<Claim>, Vec<Claim>) = self.claims.families.iter().partition(|claim| claim.passing);
        let mut keys: Vec<(u64, Claim)> = self.claims.keys.iter().flat_map(|(hash, claims)| claims.iter().map(move |claim| (*hash, *claim))).collect();
        keys.sort_unstable_by_key(|(hash, claim)| (*hash, claim.family, claim.num, claim.number));
        let claim_services = families.iter().chain(&passing).chain(keys.iter().map(|(_, claim)| claim)).map(|claim| claim.service);
        let stored = |claims: &[Claim]| claims.iter().map(|claim| (family(claim), claim.num, claim.number)).collect();
        let places = |is_so: fn(&OpenRegion) -> bool| (0..self.regions.len()).filter(|&at| is_so(&self.regions[at])).collect();
        Facts {
            version: VERSION,
            lines: self.lines,
            wide: self.wide,
            claimed_to: self.claimed_to,
            regions: self.regions.iter().map(|open| (id(open.entry), open.left)).collect(),
            writers: if_named(self.regions.iter().map(|open| open.writer)),
            after_writer: places(|open| open.after_writer),
            logged: places(|open| open.logged),
            noise: self.noise.map(|open| (id(open.entry), open.left, open.last_num)),
            noise_writer: self.noise.map(|open| open.writer).unwrap_or_default(),
            claims: self.claims.count,
            block: self.claims.block,
            families: stored(&families),
            passing: stored(&passing),
            keys: keys.iter().map(|(hash, claim)| (*hash, family(claim), claim.num, claim.number)).collect(),
            claim_services: if_named(claim_services),
            transcript: self.transcript.as_deref().cloned(),
            owed: false,
        }
    }

    /// Restores the snapshot at `offset` from its stored form. Rules that no longer exist are left out.
    #[must_use]
    pub fn new(offset: u64, facts: &Facts, engine: &Engine) -> Self {
        let entry = |id: &str| engine.rules.entries.position(id);
        let family = |name: &str| engine.rules.families.iter().position(|family| family.id == name).map(|at| at as u16);
        let mut services = facts.claim_services.iter().copied().chain(std::iter::repeat(Writer::default()));
        let mut claim = |name: &str, num: u64, number: u64, passing: bool| {
            let service = services.next().unwrap_or_default();
            family(name).map(|family| Claim { family, num, first: num, number, passing, service })
        };
        let mut families: Vec<Claim> = facts.families.iter().filter_map(|(name, num, number)| claim(name, *num, *number, false)).collect();
        families.extend(facts.passing.iter().filter_map(|(name, num, number)| claim(name, *num, *number, true)));
        let mut keys: HashMap<u64, Vec<Claim>> = HashMap::new();
        for (hash, name, num, number) in &facts.keys {
            keys.entry(*hash).or_default().extend(claim(name, *num, *number, false));
        }
        let writers = facts.writers.iter().copied().chain(std::iter::repeat(Writer::default()));
        let region = |(at, ((id, left), writer)): (usize, (&(String, u32), Writer))| {
            let (after_writer, logged) = (facts.after_writer.contains(&at), facts.logged.contains(&at));
            Some(OpenRegion { entry: entry(id)?, left: *left, since: Position::BEFORE_ALL, writer, after_writer, logged, implied: false })
        };
        let regions = facts.regions.iter().zip(writers).enumerate().filter_map(region);
        Self {
            offset,
            lines: facts.lines,
            wide: facts.wide,
            transcript: facts.transcript.clone().map(Arc::new),
            claimed_to: facts.claimed_to,
            regions: regions.take(MAX_REGIONS).collect(),
            noise: facts
                .noise
                .as_ref()
                .and_then(|(id, left, last_num)| Some(OpenNoise { entry: entry(id)?, left: *left, last_num: *last_num, writer: facts.noise_writer })),
            claims: Arc::new(Claims { families, keys, count: facts.claims, block: facts.block }),
        }
    }
}

impl Facts {
    /// Creates the facts of a place after `lines` lines about which nothing else is known.
    #[must_use]
    pub fn plain(lines: u64) -> Self {
        Self { version: VERSION, lines, ..Self::default() }
    }

    /// Sets what a transcript remembers.
    #[must_use]
    pub fn with_transcript(self, transcript: Option<Memory>) -> Self {
        Self { transcript, ..self }
    }

    /// Sets whether something read after the place may still become an event.
    pub fn owe(&mut self, owed: bool) {
        self.owed = owed;
    }

    /// Whether something read after the place may still become an event.
    #[must_use]
    pub fn is_owing(&self) -> bool {
        self.owed
    }

    /// Whether this version can read the facts.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.version == VERSION
    }

    /// Number of lines before the place.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Whether the stream is UTF-16.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.wide.is_some()
    }
}

/// Returns the writers, or none if nobody has a name.
fn if_named(writers: impl Iterator<Item = Writer>) -> Vec<Writer> {
    let writers: Vec<Writer> = writers.collect();
    if writers.iter().all(Writer::is_unnamed) { Vec::new() } else { writers }
}
