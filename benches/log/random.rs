//! Numbers and words from a seed.

use std::fmt::Write;

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, and the same everywhere.
pub struct Random(u64);

/// Things that the log mentions. None of them is a word that errors use.
pub const NOUNS: [&str; 48] = [
    "anchor", "basket", "beacon", "bridge", "bucket", "canvas", "carrier", "cellar", "channel", "cluster", "column", "courier", "cursor", "depot", "digest",
    "engine", "feature", "fleet", "garden", "gateway", "grid", "harbor", "invoice", "journal", "kernel", "ladder", "ledger", "lantern", "market", "meadow",
    "mirror", "module", "orchard", "parcel", "pipeline", "planner", "quarry", "ranger", "registry", "river", "saddle", "schema", "signal", "tenant", "ticket",
    "tunnel", "valley", "window",
];
pub const VERBS: [&str; 16] =
    ["build", "collect", "deliver", "fetch", "index", "merge", "open", "parse", "plan", "publish", "render", "resolve", "route", "store", "sync", "update"];
pub const PATHS: [&str; 12] = [
    "src/ledger/mod",
    "src/harbor/route",
    "lib/parcel/plan",
    "app/tenant/view",
    "pkg/courier/queue",
    "internal/grid/cell",
    "services/invoice/total",
    "core/beacon/scan",
    "web/market/cart",
    "tools/quarry/main",
    "jobs/fleet/daily",
    "tests/bridge/span",
];
const HEX: &[u8; 16] = b"0123456789abcdef";

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 ≤ x < limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// low ≤ x ≤ high.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// 0 ≤ x < 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn noun(&mut self) -> &'static str {
        self.pick(&NOUNS)
    }

    pub fn verb(&mut self) -> &'static str {
        self.pick(&VERBS)
    }

    pub fn path(&mut self) -> &'static str {
        self.pick(&PATHS)
    }

    /// `Harbor`
    pub fn title(&mut self) -> String {
        let noun = self.noun();
        noun[..1].to_uppercase() + &noun[1..]
    }

    pub fn nouns(&mut self, out: &mut String, count: u64) {
        for at in 0..count {
            if at > 0 {
                out.push(' ');
            }
            out.push_str(self.noun());
        }
    }

    pub fn hex(&mut self, out: &mut String, digits: usize) {
        let mut bits = 0;
        for at in 0..digits {
            if at % 16 == 0 {
                bits = self.next();
            }
            out.push(char::from(HEX[(bits & 15) as usize]));
            bits >>= 4;
        }
    }
}

/// `2026-03-02T09:41:07.120Z`
pub fn stamp(out: &mut String, clock_ms: u64, between: char) {
    let (day, second) = (clock_ms / 86_400_000 % 28 + 1, clock_ms / 1000);
    let (hour, minute) = (second / 3600 % 24, second / 60 % 60);
    let _ = write!(out, "2026-03-{day:02}{between}{hour:02}:{minute:02}:{:02}.{:03}", second % 60, clock_ms % 1000);
    if between == 'T' {
        out.push('Z');
    }
}
