//! Stage one: where in a block of whole lines do the rules' literals occur?
//!
//! Literals are represented by 4-byte windows. A position of the block is examined if its window may be one of these.
//! Either `steps` looks up every second position, with two windows for each literal, one for each parity of its position;
//! or `sift` tests every position with a sieve, which needs wide registers but only one window. Positions that the hash
//! of the window does not drop are compared with the bytes that all literals of the window share, without a branch on the
//! data, and then with the whole literals, so a hit is exact. The cost per byte does not depend on the number of rules.
//!
//! The prefilter never decides what an error is, and it never misses a literal: the property test compares it with a plain search.

mod fill;
mod guarded;
mod marks;
mod plan;
mod sieve;
mod sift;
mod steps;
mod windows;

use std::borrow::Borrow;

use crate::rules::LiteralForm;
use guarded::Guarded;
pub use marks::{Bits, Marks};
use plan::Entry;
pub use plan::Plan;
pub(super) use sieve::{GROUPS, Tables};
use sift::Sift;
use steps::Steps;
use windows::KNOWN;
pub(super) use windows::SAMPLE;

/// Bytes of a window.
pub(super) const WINDOW: usize = 4;
/// Bytes that are compared at once.
const WORD: usize = 8;
/// A window lies within a word; it begins at most this many bytes after the beginning of the word.
const MAX_BACK: usize = WORD - WINDOW;
/// Up to this many moves per hit on average, insertion sort is fastest.
const MAX_MOVES: usize = 4;
/// Bits of a hash, and how many of its highest bits name a slot.
const HASH_BITS: u32 = 18;
const SLOT_BITS: u32 = 16;

/// One occurrence of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Offset of its first byte in the scanned bytes.
    pub pos: u32,
    /// Index of the literal.
    pub literal: u16,
}

/// Work space of a scan, kept between calls so that a scan does not allocate.
#[derive(Default)]
pub struct Scratch {
    /// Each step's offset, with the bits of its positions below it.
    steps: Vec<u64>,
    places: Vec<u32>,
    /// The newlines and escapes that the last scan has seen.
    pub marks: Marks,
}

/// All literals of a rule set, ready to search for.
pub struct Prefilter {
    look: Look,
    /// The hashes of all windows.
    hashes: Hashes,
    /// The slot of a window's hash, by the hash's highest bits; meaningless for the hash of no window.
    slots: Box<[u16; 1 << SLOT_BITS]>,
    plan: Plan,
    literals: Vec<Guarded>,
}

/// How positions that may hold a window are found.
enum Look {
    Steps(Steps),
    Sift(Box<Sift>),
}

/// A set of hashes, one bit each.
struct Hashes(Box<[u32; 1 << (HASH_BITS - Self::BITS)]>);

impl Hashes {
    /// Number of the lowest bits of a hash, which name a bit of a `u32`.
    const BITS: u32 = u32::BITS.ilog2();

    fn new() -> Self {
        Self(Box::new([0; 1 << (HASH_BITS - Self::BITS)]))
    }

    fn add(&mut self, hash: usize) {
        self.0[hash >> Self::BITS] |= 1 << (hash & (u32::BITS as usize - 1));
    }

    /// Returns 1 if the hash is in the set, else 0.
    #[inline(always)]
    fn count(&self, hash: usize) -> usize {
        (self.0[hash >> Self::BITS] >> (hash & (u32::BITS as usize - 1)) & 1) as usize
    }
}

/// Returns the bytes at `at`, which must exist. (Copying a slice may become a call; this becomes one load.)
#[inline(always)]
fn bytes<const N: usize>(hay: &[u8], at: usize) -> [u8; N] {
    hay[at..at + N].first_chunk().copied().unwrap_or([0; N])
}

#[inline(always)]
fn word(hay: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(hay, at))
}

#[inline(always)]
fn window(hay: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(hay, at))
}

/// Returns the hash of a window. The multiplier is a multiple of 8, so of the last byte only
/// the low five bits count: a window whose last byte is arbitrary takes 32 places in the table
/// instead of 256. Of 600 multipliers tried, this one lets the least of the sample through.
#[inline(always)]
fn hash(window: u32) -> usize {
    (window.wrapping_mul(0xE888_13F8) >> (32 - HASH_BITS)) as usize
}

/// Returns the slot of a hash.
#[inline(always)]
fn slot(hash: usize) -> usize {
    hash >> (HASH_BITS - SLOT_BITS)
}

impl Prefilter {
    /// Builds the tables for `literals`, from which `plan` was made.
    #[must_use]
    pub fn new(literals: impl IntoIterator<Item: Borrow<LiteralForm>>, plan: Plan) -> Self {
        let literals = Guarded::all(literals);
        let (mut hashes, mut slots) = (Hashes::new(), Box::new([0; 1 << SLOT_BITS]));
        for (number, entries) in (0..).zip(plan.slots()) {
            slots[entries[0].slot()] = number;
            entries.iter().for_each(|entry| hashes.add(entry.hash as usize));
        }
        let look = match &plan.sieve {
            None => Look::Steps(Steps::new(&plan, &literals)),
            Some(sieve) => Look::Sift(Box::new(Sift::new(sieve))),
        };
        Self { look, hashes, slots, plan, literals }
    }

    /// Appends every guarded occurrence of every literal in `hay` to `hits`, in order of position.
    /// `hay` holds at most 4 GiB.
    pub fn scan(&self, hay: &[u8], scratch: &mut Scratch, hits: &mut Vec<Hit>) {
        let before = hits.len();
        scratch.marks.reset(hay.len());
        match &self.look {
            Look::Steps(steps) => self.step(steps, hay, scratch, hits),
            Look::Sift(sift) => self.sift(sift, hay, scratch, hits),
        }
        sort_nearly(&mut hits[before..]);
        dedup_from(hits, before);
    }

    fn step(&self, steps: &Steps, hay: &[u8], scratch: &mut Scratch, hits: &mut Vec<Hit>) {
        scratch.marks.read(hay, 0);
        let (looked, kept) = steps.mark(hay, scratch);
        self.compare_all(hay, &mut scratch.places[..kept], hits);
        let windows = (hay.len() + 1).saturating_sub(WINDOW);
        for place in steps::beside(looked, windows) {
            self.compare_near_end(hay, place, window(hay, place), hits);
        }
        // A literal at the very end may have a window that reaches one byte beyond: it
        // is looked up as if a newline followed, which is always allowed to follow.
        if let Some(&end) = hay.last_chunk::<KNOWN>() {
            let window = u32::from_le_bytes([end[0], end[1], end[2], b'\n']);
            self.compare_near_end(hay, hay.len() - KNOWN, window, hits);
        }
    }

    fn sift(&self, sift: &Sift, hay: &[u8], scratch: &mut Scratch, hits: &mut Vec<Hit>) {
        let mut from = 0;
        loop {
            let (looked, marked) = sift.mark(hay, from, scratch);
            if looked == 0 {
                break;
            }
            let places = &mut scratch.places;
            let kept = self.known(hay, &mut places[..marked]);
            let first = places[..kept].partition_point(|place| (*place as usize) < MAX_BACK);
            for &place in &places[..first] {
                self.compare_near_end(hay, place as usize, window(hay, place as usize), hits);
            }
            self.compare_all(hay, &mut places[first..kept], hits);
            from += looked;
        }
        scratch.marks.read(hay, from);
        let (end, marked) = sift.mark_end(hay, from, &mut scratch.places);
        for &place in &scratch.places[..marked] {
            self.compare_near_end(hay, from + place as usize, window(&end, place as usize), hits);
        }
    }

    /// Keeps the positions whose window's hash is in the set; returns their number.
    #[inline(never)]
    fn known(&self, hay: &[u8], places: &mut [u32]) -> usize {
        let mut kept = 0;
        for index in 0..places.len() {
            let place = places[index];
            places[kept] = place;
            kept += self.hashes.count(hash(window(hay, place as usize)));
        }
        kept
    }

    /// Compares the literals at these positions, each of which must be surrounded by a whole word.
    #[inline(never)]
    fn compare_all(&self, hay: &[u8], places: &mut [u32], hits: &mut Vec<Hit>) {
        let mut kept = 0;
        for index in 0..places.len() {
            let place = places[index] as usize;
            let shared = &self.plan.shared[usize::from(self.slots[slot(hash(window(hay, place)))])];
            places[kept] = place as u32;
            kept += usize::from(shared.fits(word(hay, place - MAX_BACK + shared.from as usize)));
        }
        // In text order, so that the hits are nearly in order, too.
        places[..kept].sort_unstable();
        for &place in &places[..kept] {
            let place = place as usize;
            let slot = usize::from(self.slots[slot(hash(window(hay, place)))]);
            let word = word(hay, place - MAX_BACK + self.plan.shared[slot].from as usize);
            for entry in self.plan.entries_of(slot).iter().filter(|entry| entry.fits(word)) {
                self.compare(hay, place, entry, hits);
            }
        }
    }

    /// Compares the literals of a window that is too close to an end to be surrounded by whole words.
    fn compare_near_end(&self, hay: &[u8], place: usize, window: u32, hits: &mut Vec<Hit>) {
        let hash = hash(window);
        if self.hashes.count(hash) != 0 {
            let entries = self.plan.entries_of(usize::from(self.slots[slot(hash)])).iter();
            entries.filter(|entry| entry.hash as usize == hash).for_each(|entry| self.compare(hay, place, entry, hits));
        }
    }

    #[inline]
    fn compare(&self, hay: &[u8], place: usize, entry: &Entry, hits: &mut Vec<Hit>) {
        let Some(start) = place.checked_add_signed(-isize::from(entry.at)) else { return };
        if self.literals[usize::from(entry.literal)].stands_at(hay, start) {
            hits.push(Hit { pos: start as u32, literal: entry.literal });
        }
    }
}

/// Sorts hits that were found in the order of their windows: each is out of place by at most the length of
/// a literal, so it moves only a little. Where many hits are close together, an ordinary sort is faster.
fn sort_nearly(hits: &mut [Hit]) {
    let key = |hit: &Hit| u64::from(hit.pos) << 16 | u64::from(hit.literal);
    let mut moves = 0;
    for at in 1..hits.len() {
        let hit = hits[at];
        let mut place = at;
        while place > 0 && key(&hits[place - 1]) > key(&hit) {
            hits[place] = hits[place - 1];
            place -= 1;
        }
        hits[place] = hit;
        moves += at - place;
        if moves > MAX_MOVES * hits.len() {
            hits.sort_unstable_by_key(key);
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> LiteralForm {
        LiteralForm { bytes: text.into(), ..LiteralForm::default() }
    }

    /// Returns a prefilter that looks up every second position, and one that has a sieve.
    fn both(literals: &[LiteralForm]) -> [Prefilter; 2] {
        [Plan::stepping, Plan::sifting].map(|plan| Prefilter::new(literals, plan(literals)))
    }

    fn found(filter: &Prefilter, hay: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        filter.scan(hay, &mut Scratch::default(), &mut hits);
        hits
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

    /// Returns how many hits both have.
    fn count(filters: &[Prefilter; 2], hay: &str) -> usize {
        let [one, other] = filters.each_ref().map(|filter| found(filter, hay.as_bytes()).len());
        assert_eq!(one, other, "{hay}");
        one
    }

    #[test]
    fn finds_every_literal_that_a_plain_search_finds() {
        let literals: Vec<_> = ["abc", "abcd", "bcda", "dabcd", "bcdab", "rror: ", "error:", "aaaaaa", "ab\ncd"].map(literal).to_vec();
        let filters = both(&literals);
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
            for filter in &filters {
                assert_eq!(found(filter, &hay), plain(&literals, &hay), "round {round}: {:?}", String::from_utf8_lossy(&hay));
            }
        }
    }

    #[test]
    fn without_literals_nothing_is_found() {
        for filter in both(&[]) {
            for length in [0, 1, 3, 4, 5, 28, 43, 44, 45, 47, 48, 49, 63, 64, 71, 72, 73, 100, 135, 136, 1000] {
                assert!(found(&filter, &vec![b'x'; length]).is_empty());
            }
        }
    }

    #[test]
    fn a_class_stands_for_its_members() {
        let class =
            |text: &str, classes: &[(u8, &str)]| LiteralForm { classes: classes.iter().map(|(at, set)| (*at, (*set).into())).collect(), ..literal(text) };
        let mut literals = vec![class("E01 x", &[(0, "EF"), (1, "01"), (2, "0123456789")]), class("0 E", &[(0, "0123456789"), (2, "EF")]), literal("F12 x")];
        literals[1].after = b"Tt".to_vec();
        literals[0].not_before = b"0123456789".to_vec();
        let filters = both(&literals);
        let pieces = ["E05 x", "F12 x", "E1", " x", "7 F", "7 E", "T", "\n", "0", " "];
        let mut seed = 3_u64;
        for round in 0..2000 {
            let mut hay = String::new();
            for _ in 0..round % 40 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                hay.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            let hits = plain(&literals, hay.as_bytes());
            for filter in &filters {
                assert_eq!(found(filter, hay.as_bytes()), hits, "round {round}: {hay:?}");
            }
            let of_the_class = |at: &usize| matches!(&hay.as_bytes()[*at..*at + 5], [b'E' | b'F', b'0' | b'1', b'0'..=b'9', b' ', b'x']);
            let free = |at: &usize| *at == 0 || !hay.as_bytes()[*at - 1].is_ascii_digit();
            let wanted = (0..hay.len().saturating_sub(4)).filter(of_the_class).filter(free).count();
            assert_eq!(hits.iter().filter(|hit| hit.literal == 0).count(), wanted, "{hay:?}");
        }
    }

    #[test]
    fn a_guard_looks_at_the_neighbours() {
        let filters = both(&[LiteralForm {
            bytes: b"Error:".to_vec(),
            after: Vec::new(),
            not_after: b":".to_vec(),
            not_before: b"_n".to_vec(),
            ..LiteralForm::default()
        }]);
        let count = |hay| count(&filters, hay);
        assert_eq!(count("TypeError: x"), 1);
        assert_eq!(count("ParseError::Eof"), 0);
        assert_eq!(count("my_Error: x"), 0);
        assert_eq!(count("{\"log\":\"a\\nError: x\"}"), 1);
    }

    #[test]
    fn a_guard_looks_behind_a_number_and_behind_a_word() {
        let filters = both(&[LiteralForm { after_number: b":".to_vec(), ..literal(".go:") }, LiteralForm { after_word: b" '".to_vec(), ..literal("=> ") }]);
        let count = |hay| count(&filters, hay);
        assert_eq!(count("I0302 12:00:00.000001       1 till.go:60] opened"), 0);
        assert_eq!(count("till.go:60 is the line"), 0);
        assert_eq!(count("=> Read(till.rs)"), 0);
        for text in [
            "=> It's",
            "=> Now it opens",
            "=> Done",
            "=> 7(a)",
            "till.go:60:2: no",
            "till.go:60",
            "till.go:60\n",
            "till.go:x",
            "{\"log\":\"till.go:60\"}",
            "\x1b[1mtill.go:60\x1b[0m",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
    }
}
