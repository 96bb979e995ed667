//! Stage one: where in a block of whole lines does a literal of any rule stand?
//!
//! A *window hash*: every literal is represented by two 4-byte windows, one for each parity of its
//! position, so that looking at every second byte finds it. A table of 256 KiB, indexed by a
//! multiplicative hash of the window, answers "maybe" for sixteen windows at a time. What remains is
//! looked up by a second hash, which drops what only shares the first one, and compared with the bytes
//! that all literals of the window share, both without a branch on the data, and then with the whole
//! literals, so a hit is exact. The cost per byte does not depend on the number of rules.
//!
//! It never decides what an error is, and it never misses a literal: the property test compares it
//! with a plain search.

mod guarded;
mod plan;
mod windows;

use super::simd::widest;
use crate::rules::LiteralForm;
use guarded::{Guarded, Head};
pub use plan::Plan;
use windows::KNOWN;
pub(super) use windows::SAMPLE;

/// Bytes of a window.
const WINDOW: usize = 4;
/// Distance of the places that are looked at.
const STRIDE: usize = 2;
/// Places of a step: one bit each.
const LANES: usize = 16;
/// Bytes that one round of the hot loop looks at.
const STEP: usize = LANES * STRIDE;
/// Bytes that are compared at once.
const WORD: usize = 8;
/// A window lies within a word; it begins at most so far behind the beginning of the word.
const MAX_BACK: usize = WORD - WINDOW;
/// The bytes of a step with the words around its windows, in a round number.
const AROUND: usize = STEP + 2 * WORD;
/// Bits of a hash, and the highest of them, which name a slot.
const HASH_BITS: u32 = 18;
const SLOT_BITS: u32 = 16;
/// The lowest bits of a second hash, which name a bit of a `u32`.
const WORD_BITS: u32 = 5;

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
    /// Where a step begins, and below it the bits of its places.
    steps: Vec<u64>,
    places: Vec<u32>,
}

/// All literals of a rule set, ready to be found.
pub struct Prefilter {
    /// By hash, 1 where it belongs to a window.
    table: Box<[u8; 1 << HASH_BITS]>,
    /// By the second hash, a bit where it belongs to a window.
    second: Box<[u32; 1 << (HASH_BITS - WORD_BITS)]>,
    /// By the highest bits of a hash, the slot of its windows; what no window has says nothing.
    slots: Box<[u16; 1 << SLOT_BITS]>,
    plan: Plan,
    literals: Vec<Guarded>,
    /// How each of them begins, close together: most comparisons end there.
    heads: Box<[Head]>,
}

/// The bytes at `at`, which must be there. (A copy of a slice may become a call; this becomes one load.)
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

/// The multiplier is a multiple of 8: of the last byte the low five bits count, so that a window whose
/// last byte may be any has 32 places in the table instead of 256. Of 600 that were tried it is the one
/// with which the table lets least of the sample through.
#[inline(always)]
fn hash(window: u32) -> usize {
    (window.wrapping_mul(0xE888_13F8) >> (32 - HASH_BITS)) as usize
}

/// Another hash, of which the same bits of a window count: what only shares the first one with a window rarely shares both.
#[inline(always)]
fn second_hash(window: u32) -> usize {
    (window.wrapping_mul(0x9E37_79B8) >> (32 - HASH_BITS)) as usize
}

/// The slot of a hash.
#[inline(always)]
fn slot(hash: usize) -> usize {
    hash >> (HASH_BITS - SLOT_BITS)
}

/// Appends the steps in which a place may hold a window, with these places; returns where it stopped and how many steps it kept.
/// All of it is inlined: it is compiled for what the processor has.
#[inline(always)]
fn keep_steps(table: &[u8; 1 << HASH_BITS], hay: &[u8], steps: &mut [u64]) -> (usize, usize) {
    let (mut at, mut kept) = (MAX_BACK, 0);
    while let Some(bytes) = hay.get(at..at + AROUND - MAX_BACK) {
        let lanes = four(table, bytes, 0) + 16 * four(table, bytes, 4) + 256 * (four(table, bytes, 8) + 16 * four(table, bytes, 12));
        steps[kept] = (at as u64) << LANES | lanes;
        kept += usize::from(lanes != 0);
        at += STEP;
    }
    (at, kept)
}

/// Whether a place may hold a window.
#[inline(always)]
fn known(table: &[u8; 1 << HASH_BITS], bytes: &[u8], lane: usize) -> u64 {
    u64::from(table[hash(window(bytes, lane * STRIDE))])
}

/// A bit for each of four places, from `lane` on, that may hold a window.
#[inline(always)]
fn four(table: &[u8; 1 << HASH_BITS], bytes: &[u8], lane: usize) -> u64 {
    known(table, bytes, lane) + 2 * known(table, bytes, lane + 1) + 4 * (known(table, bytes, lane + 2) + 2 * known(table, bytes, lane + 3))
}

impl Prefilter {
    /// Builds the tables for `literals`.
    #[must_use]
    pub fn new(literals: &[LiteralForm]) -> Self {
        Self::with_plan(literals, Plan::new(literals))
    }

    /// [`new`](Self::new) with a plan that was made of `literals` before.
    #[must_use]
    pub fn with_plan(literals: &[LiteralForm], plan: Plan) -> Self {
        let literals: Vec<Guarded> = literals.iter().map(Guarded::new).collect();
        let mut table = Box::new([0; 1 << HASH_BITS]);
        let mut slots = Box::new([0; 1 << SLOT_BITS]);
        for (number, entries) in (0..).zip(plan.slots()) {
            slots[entries[0].slot()] = number;
            entries.iter().for_each(|entry| table[entry.hash as usize] = 1);
        }
        let second = second_table(&plan, &literals);
        let heads = literals.iter().map(Guarded::head).collect();
        Self { table, second, slots, plan, literals, heads }
    }

    /// Appends every guarded occurrence of every literal in `hay` to `hits`, in order of position.
    /// `hay` holds at most 4 GiB.
    pub fn scan(&self, hay: &[u8], scratch: &mut Scratch, hits: &mut Vec<Hit>) {
        let before = hits.len();
        let (from, to, marked) = self.mark_steps(hay, &mut scratch.steps);
        let kept = self.mark_places(hay, &mut scratch.steps[..marked], &mut scratch.places);
        for &place in &scratch.places[..kept] {
            self.compare(hay, place as usize, window(hay, place as usize), hits);
        }
        let windows = (hay.len() + 1).saturating_sub(WINDOW);
        for place in (0..from.min(windows)).chain(to..windows).step_by(STRIDE) {
            self.compare(hay, place, window(hay, place), hits);
        }
        self.compare_end(hay, hits);
        if hits.len() > before + 1 {
            hits[before..].sort_unstable_by_key(|hit| u64::from(hit.pos) << 16 | u64::from(hit.literal));
            dedup_from(hits, before);
        }
    }

    /// The hot loop: which places may hold a window. Returns from where and to where it looked, and in
    /// how many steps it found any.
    #[inline(never)]
    fn mark_steps(&self, hay: &[u8], steps: &mut Vec<u64>) -> (usize, usize, usize) {
        // Room for every step: the append below has no branch on the data.
        if steps.len() <= hay.len() / STEP {
            steps.resize(hay.len() / STEP + 1, 0);
        }
        let table = &*self.table;
        let steps = steps.as_mut_slice();
        let (at, kept) = widest(
            #[inline(always)]
            || keep_steps(table, hay, steps),
        );
        (MAX_BACK, at, kept)
    }

    /// Which of these places have the second hash of a window, too, and what all literals of their window share.
    #[inline(never)]
    fn mark_places(&self, hay: &[u8], steps: &mut [u64], places: &mut Vec<u32>) -> usize {
        if places.len() < steps.len() * LANES {
            places.resize(steps.len() * LANES, 0);
        }
        let (mut marked, mut left) = (0, steps.len());
        // One place of each step, then the second one of those that have more, and so on: how many a step has, no branch can foretell.
        while left > 0 {
            let mut more = 0;
            for index in 0..left {
                let step = steps[index];
                // The mask changes nothing; it lets the compiler see that the index is in bounds.
                let place = (step >> LANES) as usize + (step.trailing_zeros() as usize & (LANES - 1)) * STRIDE;
                let second = second_hash(window(hay, place));
                places[marked] = place as u32;
                marked += (self.second[second >> WORD_BITS] >> (second & (u32::BITS as usize - 1)) & 1) as usize;
                let rest = step & (step - 1);
                steps[more] = rest;
                more += usize::from(rest & ((1 << LANES) - 1) != 0);
            }
            left = more;
        }
        let mut kept = 0;
        for index in 0..marked {
            let place = places[index] as usize;
            let shared = &self.plan.shared[usize::from(self.slots[slot(hash(window(hay, place)))])];
            places[kept] = place as u32;
            kept += usize::from(shared.fits(word(hay, place - MAX_BACK + shared.from as usize)));
        }
        kept
    }

    #[inline]
    fn compare(&self, hay: &[u8], place: usize, window: u32, hits: &mut Vec<Hit>) {
        let hash = hash(window);
        if self.table[hash] == 0 {
            return;
        }
        for entry in self.plan.entries_of(usize::from(self.slots[slot(hash)])) {
            let Some(start) = place.checked_add_signed(-isize::from(entry.at)) else { continue };
            let literal = usize::from(entry.literal);
            if entry.hash as usize == hash && self.heads[literal].may_stand_at(hay, start) && self.literals[literal].stands_at(hay, start) {
                hits.push(Hit { pos: start as u32, literal: entry.literal });
            }
        }
    }

    /// A literal at the very end may have a window that would reach beyond it: there it is looked up
    /// as if a newline followed, which may always follow.
    fn compare_end(&self, hay: &[u8], hits: &mut Vec<Hit>) {
        if let Some(&end) = hay.last_chunk::<KNOWN>() {
            let window = u32::from_le_bytes([end[0], end[1], end[2], b'\n']);
            self.compare(hay, hay.len() - KNOWN, window, hits);
        }
    }
}

/// The second hashes of the windows of a plan.
fn second_table(plan: &Plan, literals: &[Guarded]) -> Box<[u32; 1 << (HASH_BITS - WORD_BITS)]> {
    let mut table = Box::new([0; 1 << (HASH_BITS - WORD_BITS)]);
    let mut add = |window: u32| {
        let hash = second_hash(window);
        table[hash >> WORD_BITS] |= 1 << (hash & (u32::BITS as usize - 1));
    };
    // One that is written out in many windows has an entry for each, and one offset for each parity.
    let mut done = vec![[false; STRIDE]; literals.len()];
    for entry in plan.slots().flatten() {
        let (literal, at) = (&literals[usize::from(entry.literal)], isize::from(entry.at));
        match literal.window(at) {
            Some(window) => add(window),
            None if std::mem::replace(&mut done[usize::from(entry.literal)][at.rem_euclid(STRIDE as isize) as usize], true) => {}
            None => windows::windows(literal, at).into_iter().for_each(&mut add),
        }
    }
    table
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
    fn without_literals_nothing_is_found() {
        let mut hits = Vec::new();
        for length in [0, 1, 3, 4, 5, 28, 43, 44, 45, 47, 48, 49, 100, 1000] {
            Prefilter::new(&[]).scan(&vec![b'x'; length], &mut Scratch::default(), &mut hits);
        }
        assert!(hits.is_empty());
    }

    #[test]
    fn a_class_stands_for_its_members() {
        let class =
            |text: &str, classes: &[(u8, &str)]| LiteralForm { classes: classes.iter().map(|(at, set)| (*at, (*set).into())).collect(), ..literal(text) };
        let mut literals = vec![class("E01 x", &[(0, "EF"), (1, "01"), (2, "0123456789")]), class("0 E", &[(0, "0123456789"), (2, "EF")]), literal("F12 x")];
        literals[1].after = b"Tt".to_vec();
        literals[0].not_before = b"0123456789".to_vec();
        let filter = Prefilter::new(&literals);
        let pieces = ["E05 x", "F12 x", "E1", " x", "7 F", "7 E", "T", "\n", "0", " "];
        let mut seed = 3_u64;
        for round in 0..2000 {
            let mut hay = String::new();
            for _ in 0..round % 40 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                hay.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            let mut hits = Vec::new();
            filter.scan(hay.as_bytes(), &mut Scratch::default(), &mut hits);
            assert_eq!(hits, plain(&literals, hay.as_bytes()), "round {round}: {hay:?}");
            let of_the_class = |at: &usize| matches!(&hay.as_bytes()[*at..*at + 5], [b'E' | b'F', b'0' | b'1', b'0'..=b'9', b' ', b'x']);
            let free = |at: &usize| *at == 0 || !hay.as_bytes()[*at - 1].is_ascii_digit();
            let wanted = (0..hay.len().saturating_sub(4)).filter(of_the_class).filter(free).count();
            assert_eq!(hits.iter().filter(|hit| hit.literal == 0).count(), wanted, "{hay:?}");
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
