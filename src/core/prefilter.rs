//! Stage one: where in a block of whole lines does a literal of any rule stand?
//!
//! A *window hash*: every literal is represented by two 4-byte windows, one for each parity of its
//! position, so that looking at every second byte finds it. A bitmap of 128 KiB, indexed by a
//! multiplicative hash of the window, answers "maybe" for eight windows at a time; the places that
//! remain are compared with the whole literal, so a hit is exact. The cost per byte does not depend
//! on the number of rules. Windows are chosen by how rare they are in ordinary logs
//! (`config/prefilter.txt` is the sample that is counted).
//!
//! It never decides what an error is, and it never misses a literal: the property test compares it
//! with a plain search.

use crate::rules::{LiteralForm, MIN_LITERAL_BYTES};

/// Bytes of a window.
const WINDOW: usize = 4;
/// Bytes of a window that must belong to its literal; the other one is written out in all values.
const KNOWN: usize = MIN_LITERAL_BYTES;
/// Distance of the places that are looked at.
const STRIDE: usize = 2;
/// Bytes that one round of the hot loop looks at.
const STEP: usize = 8 * STRIDE;
/// Bits of a hash, one for each bit of the bitmap, and those that name a bucket.
const HASH_BITS: u32 = 19;
const BUCKET_BITS: u32 = 16;
/// A window that reaches beyond its literal stands for more values than this.
const FEW_VALUES: u64 = 4;
/// How far into a literal its window may lie.
const MAX_WINDOW_OFFSET: usize = 100;
pub(super) const SAMPLE: &str = include_str!("../../config/prefilter.txt");

/// One occurrence of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Offset of its first byte in the scanned bytes.
    pub pos: u32,
    /// Index of the literal.
    pub literal: u16,
}

/// Work space of a scan, kept between calls so that a scan allocates nothing.
#[derive(Default)]
pub struct Scratch {
    steps: Vec<u32>,
    places: Vec<u32>,
}

/// All literals of a rule set, ready to be found.
pub struct Prefilter {
    /// Whether a hash belongs to a window: one bit for each of its values.
    bitmap: Box<[u32; 1 << (HASH_BITS - 5)]>,
    /// For each bucket of hashes, where its entries begin; they end where the next one's begin.
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    literals: Vec<Guarded>,
}

/// A literal that a window stands for.
#[derive(Clone, Copy)]
struct Entry {
    /// The window itself: windows that only share its place in the tables cost one comparison.
    window: u32,
    literal: u16,
    /// Distance from the start of the literal to its window; -1 when the window begins before it.
    at: i8,
}

struct Guarded {
    bytes: Box<[u8]>,
    /// The first bytes, for a comparison in one step, and which of its eight bytes count.
    head: u64,
    mask: u64,
    after: Option<Box<[bool; 256]>>,
    not_before: Option<Box<[bool; 256]>>,
    not_behind: Box<[u8]>,
}

impl Guarded {
    fn new(literal: &LiteralForm) -> Self {
        let mut head = [0; 8];
        let mut mask = [0; 8];
        for (at, &byte) in literal.bytes.iter().take(8).enumerate() {
            (head[at], mask[at]) = (byte, 0xff);
        }
        Self {
            bytes: literal.bytes.clone().into_boxed_slice(),
            head: u64::from_le_bytes(head),
            mask: u64::from_le_bytes(mask),
            after: allowed_after(literal),
            not_before: (!literal.not_before.is_empty()).then(|| set_of(&literal.not_before)),
            not_behind: literal.not_behind.clone().into_boxed_slice(),
        }
    }

    /// Whether the literal stands at `start` of `hay` with neighbours that the guard allows.
    #[inline]
    fn stands_at(&self, hay: &[u8], start: usize) -> bool {
        if start + 8 <= hay.len() && (word(hay, start) ^ self.head) & self.mask != 0 {
            return false;
        }
        hay.get(start..start + self.bytes.len()) == Some(&*self.bytes) && self.allows(hay, start)
    }

    fn allows(&self, hay: &[u8], start: usize) -> bool {
        let next = hay.get(start + self.bytes.len());
        if let (Some(set), Some(&next)) = (&self.after, next)
            && !set[usize::from(next)]
        {
            return false;
        }
        if !self.not_behind.is_empty() && hay[..start].ends_with(&self.not_behind) {
            return false;
        }
        match (&self.not_before, start.checked_sub(1)) {
            (Some(set), Some(left)) if set[usize::from(hay[left])] => hay[start.saturating_sub(12)..start].iter().any(|&b| b == b'\\' || b == 0x1b),
            _ => true,
        }
    }
}

fn set_of(bytes: &[u8]) -> Box<[bool; 256]> {
    let mut set = Box::new([false; 256]);
    bytes.iter().for_each(|&b| set[usize::from(b)] = true);
    set
}

/// Which bytes may follow a literal; `None` when all may. The end of a line and what stands for it
/// in a JSON string (`\\n`, the closing quote) always may.
fn allowed_after(literal: &LiteralForm) -> Option<Box<[bool; 256]>> {
    if literal.after.is_empty() && literal.not_after.is_empty() {
        return None;
    }
    let mut set = if literal.after.is_empty() { Box::new([true; 256]) } else { set_of(&literal.after) };
    literal.not_after.iter().for_each(|&b| set[usize::from(b)] = false);
    b"\n\r\\\"\x1b".iter().for_each(|&b| set[usize::from(b)] = true);
    Some(set)
}

#[inline(always)]
fn word(hay: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hay[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Hash of the window in the low 32 bits of `bytes`; what stands above them does not count.
#[inline(always)]
fn hash(bytes: u64) -> u32 {
    (bytes as u32).wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)
}

/// The bucket of a hash.
#[inline(always)]
fn bucket(hash: u32) -> usize {
    (hash >> (HASH_BITS - BUCKET_BITS)) as usize
}

/// The lowest bit of the result says whether the bitmap knows `hash`.
#[inline(always)]
fn known(bitmap: &[u32; 1 << (HASH_BITS - 5)], hash: u32) -> u32 {
    // The mask lets the compiler see that the index is in bounds; the shift counts modulo 32.
    bitmap[(hash >> 5) as usize & ((1 << (HASH_BITS - 5)) - 1)].wrapping_shr(hash)
}

/// The window at `at`, which may lie near the end.
#[inline(always)]
fn window_at(hay: &[u8], at: usize) -> u64 {
    if at + 8 <= hay.len() {
        return word(hay, at);
    }
    let mut bytes = [0; 8];
    bytes[..WINDOW].copy_from_slice(&hay[at..at + WINDOW]);
    u64::from_le_bytes(bytes)
}

impl Prefilter {
    /// Builds the tables for `literals`.
    #[must_use]
    pub fn new(literals: &[LiteralForm]) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let weights = sample_weights();
        for (index, literal) in literals.iter().enumerate().filter(|(_, literal)| literal.bytes.len() >= KNOWN) {
            for remainder in 0..STRIDE {
                let at = best_offset(literal, remainder, &weights);
                entries.extend(window_values(literal, at).into_iter().map(|window| Entry { window: window as u32, literal: index as u16, at: at as i8 }));
            }
        }
        entries.sort_unstable_by_key(|entry| (hash(entry.window.into()), entry.window, entry.literal, entry.at));
        let mut bitmap = Box::new([0; 1 << (HASH_BITS - 5)]);
        let mut buckets = vec![0_u32; (1 << BUCKET_BITS) + 1];
        for entry in &entries {
            let hash = hash(entry.window.into());
            bitmap[(hash >> 5) as usize] |= 1 << (hash & 31);
            buckets[bucket(hash) + 1] += 1;
        }
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        Self { bitmap, buckets, entries, literals: literals.iter().map(Guarded::new).collect() }
    }

    /// Appends every guarded occurrence of every literal in `hay` to `hits`, in order of position.
    /// `hay` holds at most 4 GiB.
    pub fn scan(&self, hay: &[u8], scratch: &mut Scratch, hits: &mut Vec<Hit>) {
        let before = hits.len();
        let (scanned, marked) = self.mark_steps(hay, &mut scratch.steps);
        let places = self.mark_places(hay, &scratch.steps[..marked], &mut scratch.places);
        for &place in &scratch.places[..places] {
            self.resolve(hay, place as usize, hits);
        }
        for place in (scanned..hay.len().saturating_sub(WINDOW - 1)).step_by(STRIDE) {
            self.resolve(hay, place, hits);
        }
        self.resolve_end(hay, hits);
        if hits.len() > before + 1 {
            hits[before..].sort_unstable();
            dedup_from(hits, before);
        }
    }

    /// The hot loop: which 16-byte steps may hold a window. Returns where it stopped and how many
    /// steps it marked.
    #[inline(never)]
    fn mark_steps(&self, hay: &[u8], steps: &mut Vec<u32>) -> (usize, usize) {
        let bitmap = &*self.bitmap;
        let mut at = 0;
        let mut kept = 0;
        // Room for every step: the append below has no branch on the data.
        if steps.len() <= hay.len() / STEP {
            steps.resize(hay.len() / STEP + 1, 0);
        }
        while at + STEP + 8 <= hay.len() {
            let bytes: &[u8] = &hay[at..at + STEP + 8];
            let lookup = |offset: usize| known(bitmap, hash(word(bytes, offset)));
            let maybe = lookup(0) | lookup(2) | lookup(4) | lookup(6) | lookup(8) | lookup(10) | lookup(12) | lookup(14);
            steps[kept] = at as u32;
            kept += (maybe & 1) as usize;
            at += STEP;
        }
        (at, kept)
    }

    /// Which places of the marked steps may hold a window.
    fn mark_places(&self, hay: &[u8], steps: &[u32], places: &mut Vec<u32>) -> usize {
        let bitmap = &*self.bitmap;
        if places.len() < steps.len() * 8 + 8 {
            places.resize(steps.len() * 8 + 8, 0);
        }
        let mut kept = 0;
        for &step in steps {
            let bytes = &hay[step as usize..step as usize + STEP + 8];
            for offset in (0..STEP).step_by(STRIDE) {
                places[kept] = step + offset as u32;
                kept += (known(bitmap, hash(word(bytes, offset))) & 1) as usize;
            }
        }
        kept
    }

    #[inline]
    fn resolve(&self, hay: &[u8], place: usize, hits: &mut Vec<Hit>) {
        self.compare(hay, place, window_at(hay, place), hits);
    }

    #[inline]
    fn compare(&self, hay: &[u8], place: usize, window: u64, hits: &mut Vec<Hit>) {
        let bucket = bucket(hash(window));
        let entries = &self.entries[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize];
        for entry in entries.iter().filter(|entry| entry.window == window as u32) {
            let Some(start) = place.checked_add_signed(-isize::from(entry.at)) else { continue };
            if self.literals[usize::from(entry.literal)].stands_at(hay, start) {
                hits.push(Hit { pos: start as u32, literal: entry.literal });
            }
        }
    }

    /// A literal at the very end may have a window that would reach beyond it: there it is looked up
    /// as if a newline followed, which may always follow.
    fn resolve_end(&self, hay: &[u8], hits: &mut Vec<Hit>) {
        let Some(place) = hay.len().checked_sub(KNOWN) else { return };
        let window = u64::from_le_bytes([hay[place], hay[place + 1], hay[place + 2], b'\n', 0, 0, 0, 0]);
        self.compare(hay, place, window, hits);
    }
}

fn dedup_from(hits: &mut Vec<Hit>, from: usize) {
    let mut kept = from;
    for at in from..hits.len() {
        if at == from || hits[at] != hits[kept - 1] {
            hits[kept] = hits[at];
            kept += 1;
        }
    }
    hits.truncate(kept);
}

/// Where in a literal to look, for one remainder of its position: the window that ordinary logs show
/// least. A window may reach one byte beyond the literal, at the price of more table entries.
fn best_offset(literal: &LiteralForm, remainder: usize, weights: &[u16]) -> isize {
    let last = (literal.bytes.len() - KNOWN).min(MAX_WINDOW_OFFSET) as isize;
    let offsets = (-1..=last).filter(|at| at.rem_euclid(STRIDE as isize) as usize == remainder);
    let cost = |at: isize, enough: u64| match whole_window(literal, at) {
        Some(window) => 4 * u64::from(weights[hash(window) as usize]) + 1,
        // One that reaches beyond costs an entry for each byte: mostly it need not be counted.
        None if enough <= FEW_VALUES => u64::MAX,
        None => {
            let values = window_values(literal, at);
            values.iter().map(|window| 4 * u64::from(weights[hash(*window) as usize]) + 1).sum()
        }
    };
    let inside = offsets.clone().filter(|at| whole_window(literal, *at).is_some());
    let enough = inside.map(|at| cost(at, 0)).min().unwrap_or(u64::MAX);
    offsets.min_by_key(|at| cost(*at, enough)).unwrap_or(0)
}

/// The window of a literal at an offset, when it lies within.
fn whole_window(literal: &LiteralForm, at: isize) -> Option<u64> {
    let from = usize::try_from(at).ok()?;
    let bytes = literal.bytes.get(from..from + WINDOW)?;
    Some(u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
}

/// The windows of a literal at an offset: one, or one for each byte that may stand where the window
/// reaches beyond the literal.
fn window_values(literal: &LiteralForm, at: isize) -> Vec<u64> {
    if let Some(window) = whole_window(literal, at) {
        return vec![window];
    }
    let byte = |i: isize| usize::try_from(at + i).ok().and_then(|i| literal.bytes.get(i).copied());
    let window = |value: u8| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| byte(i).unwrap_or(value))));
    let all = 0..=u8::MAX;
    match allowed_after(literal) {
        Some(set) if at >= 0 => all.filter(|value| set[usize::from(*value)]).map(window).collect(),
        _ => all.map(window).collect(),
    }
}

/// How often the windows of each hash stand in the sample: what the bitmap would let through.
fn sample_weights() -> Vec<u16> {
    let mut weights = vec![0_u16; 1 << HASH_BITS];
    for window in SAMPLE.as_bytes().windows(WINDOW) {
        let weight = &mut weights[hash(window_at(window, 0)) as usize];
        *weight = weight.saturating_add(1);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> LiteralForm {
        LiteralForm { bytes: text.into(), ..LiteralForm::default() }
    }

    fn plain(literals: &[LiteralForm], hay: &[u8]) -> Vec<Hit> {
        let guarded: Vec<_> = literals.iter().map(Guarded::new).collect();
        let mut hits = Vec::new();
        for start in 0..hay.len() {
            for (index, literal) in guarded.iter().enumerate() {
                if literal.stands_at(hay, start) {
                    hits.push(Hit { pos: start as u32, literal: index as u16 });
                }
            }
        }
        hits.sort_unstable();
        hits
    }

    #[test]
    fn finds_every_literal_that_a_plain_search_finds() {
        let literals: Vec<_> = ["abc", "abcd", "bcda", "dabcd", "bcdab", "rror: ", "error:", "aaaaaa", "ab\ncd"].map(literal).to_vec();
        let filter = Prefilter::new(&literals);
        let mut seed = 7_u64;
        for round in 0..2000 {
            let mut hay = Vec::new();
            for _ in 0..(round % 90) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                match (seed >> 33) % 9 {
                    8 => hay.extend_from_slice(b"error: "),
                    k => hay.push(b"abcda\nb:"[k as usize]),
                }
            }
            let mut hits = Vec::new();
            filter.scan(&hay, &mut Scratch::default(), &mut hits);
            assert_eq!(hits, plain(&literals, &hay), "round {round}: {:?}", String::from_utf8_lossy(&hay));
        }
    }

    #[test]
    fn a_guard_looks_at_the_neighbours() {
        let filter = Prefilter::new(&[LiteralForm {
            bytes: b"Error:".to_vec(),
            after: Vec::new(),
            not_after: b":".to_vec(),
            not_before: b"_n".to_vec(),
            ..LiteralForm::default()
        }]);
        let count = |hay: &str| {
            let mut hits = Vec::new();
            filter.scan(hay.as_bytes(), &mut Scratch::default(), &mut hits);
            hits.len()
        };
        assert_eq!(count("TypeError: x"), 1);
        assert_eq!(count("ParseError::Eof"), 0);
        assert_eq!(count("my_Error: x"), 0);
        assert_eq!(count("{\"log\":\"a\\nError: x\"}"), 1);
    }
}
