//! What is stored of a [`Snapshot`]. It outlives this process and its rules, so it refers to entries and families by id.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::noise_block::OpenNoise;
use super::quiet::Snapshot;
use super::regions::{MAX_REGIONS, OpenRegion};
use crate::core::engine::Engine;
use crate::core::line::Position;
use crate::core::notes::{Claim, Claims};
use crate::core::transcript::Memory;
use crate::core::writer::Writer;

/// Version of the form of [`Facts`].
const VERSION: u8 = 2;

/// A [`Snapshot`] in a form that can be stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    version: u8,
    lines: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wide: Option<bool>,
    #[serde(default)]
    claimed_to: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    regions: Vec<StoredRegion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noise: Option<StoredNoise>,
    /// Number of claims made.
    #[serde(default)]
    claims: u64,
    /// First and last line of a block of status lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<(u64, u64)>,
    /// What families claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    families: Vec<StoredClaim>,
    /// What they claim by a key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<StoredKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transcript: Option<Memory>,
    /// Whether something read after the place may still become an event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    owed: bool,
}

/// An open region. What implies one is not stored: it is read again with the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredRegion {
    entry: String,
    /// How many lines it may still have.
    left: u32,
    #[serde(default, skip_serializing_if = "Writer::is_unnamed")]
    writer: Writer,
    /// Whether it was opened after a writer's name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    after_writer: bool,
    /// Whether a logger's record opened it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    logged: bool,
}

/// An open block of noise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredNoise {
    entry: String,
    left: u32,
    last_num: u64,
    #[serde(default, skip_serializing_if = "Writer::is_unnamed")]
    writer: Writer,
}

/// A [`Claim`]; what came before its latest event is not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredClaim {
    family: String,
    num: u64,
    number: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    passing: bool,
    #[serde(default, skip_serializing_if = "Writer::is_unnamed")]
    service: Writer,
}

/// A claim by the hash of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredKey {
    hash: u64,
    #[serde(flatten)]
    claim: StoredClaim,
}

impl StoredRegion {
    fn of(open: &OpenRegion, engine: &Engine) -> Self {
        Self { entry: id(engine, open.entry), left: open.left, writer: open.writer, after_writer: open.after_writer, logged: open.logged }
    }

    fn restored(&self, engine: &Engine) -> Option<OpenRegion> {
        let Self { left, writer, after_writer, logged, .. } = *self;
        Some(OpenRegion { entry: entry(engine, &self.entry)?, left, since: Position::BEFORE_ALL, writer, after_writer, logged, implied: false })
    }
}

impl StoredNoise {
    fn of(open: OpenNoise, engine: &Engine) -> Self {
        Self { entry: id(engine, open.entry), left: open.left, last_num: open.last_num, writer: open.writer }
    }

    fn restored(&self, engine: &Engine) -> Option<OpenNoise> {
        Some(OpenNoise { entry: entry(engine, &self.entry)?, left: self.left, last_num: self.last_num, writer: self.writer })
    }
}

impl StoredClaim {
    fn of(claim: &Claim, engine: &Engine) -> Self {
        let family = engine.rules.families[usize::from(claim.family)].id.clone();
        Self { family, num: claim.num, number: claim.number, passing: claim.passing, service: claim.service }
    }

    fn restored(&self, engine: &Engine) -> Option<Claim> {
        let family = engine.rules.families.iter().position(|family| family.id == self.family)? as u16;
        let Self { num, number, passing, service, .. } = *self;
        Some(Claim { family, num, first: num, number, passing, service })
    }
}

fn id(engine: &Engine, entry: u16) -> String {
    engine.rules.entries[usize::from(entry)].id.clone()
}

/// Returns the entry with an id, if the rules still have one.
fn entry(engine: &Engine, id: &str) -> Option<u16> {
    engine.rules.entries.position(id)
}

impl Snapshot {
    /// Returns the snapshot in a form that can be stored.
    #[must_use]
    pub fn facts(&self, engine: &Engine) -> Facts {
        let claims = self.claims.keys.iter().flat_map(|(hash, claims)| claims.iter().map(|claim| (*hash, claim)));
        let mut keys: Vec<(u64, &Claim)> = claims.collect();
        keys.sort_unstable_by_key(|(hash, claim)| (*hash, claim.family, claim.num, claim.number));
        Facts {
            version: VERSION,
            lines: self.lines,
            wide: self.wide,
            claimed_to: self.claimed_to,
            regions: self.regions.iter().map(|open| StoredRegion::of(open, engine)).collect(),
            noise: self.noise.map(|open| StoredNoise::of(open, engine)),
            claims: self.claims.count,
            block: self.claims.block,
            families: self.claims.families.iter().map(|claim| StoredClaim::of(claim, engine)).collect(),
            keys: keys.into_iter().map(|(hash, claim)| StoredKey { hash, claim: StoredClaim::of(claim, engine) }).collect(),
            transcript: self.transcript.as_deref().cloned(),
            owed: false,
        }
    }

    /// Restores the snapshot at `offset` from its stored form. Rules that no longer exist are left out.
    #[must_use]
    pub fn new(offset: u64, facts: &Facts, engine: &Engine) -> Self {
        let families = facts.families.iter().filter_map(|claim| claim.restored(engine)).collect();
        let mut keys: HashMap<u64, Vec<Claim>> = HashMap::new();
        for StoredKey { hash, claim } in &facts.keys {
            keys.entry(*hash).or_default().extend(claim.restored(engine));
        }
        Self {
            offset,
            lines: facts.lines,
            wide: facts.wide,
            transcript: facts.transcript.clone().map(Arc::new),
            claimed_to: facts.claimed_to,
            regions: facts.regions.iter().filter_map(|region| region.restored(engine)).take(MAX_REGIONS).collect(),
            noise: facts.noise.as_ref().and_then(|noise| noise.restored(engine)),
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
