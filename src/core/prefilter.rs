//! Stage one: where in a block of whole lines does a literal of any rule stand?
//!
//! A *window hash*: every literal is represented by one 4-byte window for each parity of its
//! position, so that looking at every second byte finds it. A 64 KiB table, indexed by a
//! multiplicative hash of the window, answers "maybe" for eight windows at a time; the few places
//! that remain are compared with the whole literal, so a hit is exact. The cost per byte does not
//! depend on the number of rules. Windows are chosen by how rare they are in ordinary logs
//! (`config/prefilter.txt` is the sample that is counted).
//!
//! It never decides what an error is, and it never misses a literal: the property test compares it
//! with a plain search.

use std::collections::HashMap;

use crate::rules::{LiteralForm, MIN_LITERAL_BYTES};

const WINDOW: usize = 4;
const STEP: usize = 16;
const SAMPLE: &str = include_str!("../../config/prefilter.txt");

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
}

/// All literals of a rule set, ready to be found.
pub struct Prefilter {
    table: Box<[u8; 1 << 16]>,
    slots: Vec<Slot>,
    entries: Vec<Entry>,
    literals: Vec<Guarded>,
    /// The literals of 3 bytes, which `resolve_end` looks for.
    shortest: Vec<u16>,
    slot_mask: u32,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    window: u32,
    first: u32,
    count: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    literal: u16,
    /// Distance from the start of the literal to its window; negative when the window begins
    /// before a short literal.
    at: i8,
}

struct Guarded {
    bytes: Box<[u8]>,
    not_after: Option<Box<[bool; 256]>>,
    not_before: Option<Box<[bool; 256]>>,
}

impl Guarded {
    fn new(literal: &LiteralForm) -> Self {
        let set = |bytes: &[u8]| {
            (!bytes.is_empty()).then(|| {
                let mut set = Box::new([false; 256]);
                bytes.iter().for_each(|&b| set[usize::from(b)] = true);
                set
            })
        };
        Self {
            bytes: literal.bytes.clone().into_boxed_slice(),
            not_after: set(&literal.not_after),
            not_before: set(&literal.not_before),
        }
    }

    /// Whether the literal stands at `start` of `hay` with neighbours that the guard allows.
    fn stands_at(&self, hay: &[u8], start: usize) -> bool {
        let end = start + self.bytes.len();
        if hay.get(start..end) != Some(&*self.bytes) {
            return false;
        }
        if let (Some(set), Some(&next)) = (&self.not_after, hay.get(end))
            && set[usize::from(next)]
        {
            return false;
        }
        match (&self.not_before, start.checked_sub(1)) {
            (Some(set), Some(left)) if set[usize::from(hay[left])] => {
                hay[start.saturating_sub(12)..start].iter().any(|&b| b == b'\\' || b == 0x1b)
            }
            _ => true,
        }
    }
}

#[inline(always)]
fn hash(window: u32) -> u16 {
    (window.wrapping_mul(0x9E37_79B1) >> 16) as u16
}

#[inline(always)]
fn word(hay: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hay[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn window_at(hay: &[u8], at: usize) -> u32 {
    let mut bytes = [0; WINDOW];
    bytes.copy_from_slice(&hay[at..at + WINDOW]);
    u32::from_le_bytes(bytes)
}

impl Prefilter {
    /// Builds the tables for `literals`; those shorter than [`MIN_LITERAL_BYTES`] are never found.
    #[must_use]
    pub fn new(literals: &[LiteralForm]) -> Self {
        let windows = choose_windows(literals);
        let size = (windows.len() * 4).next_power_of_two().max(64);
        let mut filter = Self {
            table: Box::new([0; 1 << 16]),
            slots: vec![Slot::default(); size],
            entries: Vec::new(),
            literals: literals.iter().map(Guarded::new).collect(),
            shortest: (0..literals.len()).filter(|&i| literals[i].bytes.len() == MIN_LITERAL_BYTES).map(|i| i as u16).collect(),
            slot_mask: (size - 1) as u32,
        };
        let mut ordered: Vec<_> = windows.into_iter().collect();
        ordered.sort_by_key(|(window, _)| *window);
        for (window, entries) in ordered {
            filter.insert(window, &entries);
        }
        filter
    }

    fn insert(&mut self, window: u32, entries: &[Entry]) {
        self.table[usize::from(hash(window))] = 1;
        let mut at = self.slot_of(window);
        while self.slots[at].count != 0 {
            at = (at + 1) & self.slot_mask as usize;
        }
        let first = self.entries.len() as u32;
        self.slots[at] = Slot { window, first, count: entries.len() as u32 };
        self.entries.extend_from_slice(entries);
    }

    #[inline(always)]
    fn slot_of(&self, window: u32) -> usize {
        (window.wrapping_mul(0x85EB_CA6B).rotate_right(15) & self.slot_mask) as usize
    }

    /// Appends every guarded occurrence of every literal in `hay` to `hits`, in order of position.
    /// `hay` holds at most 4 GiB.
    pub fn scan(&self, hay: &[u8], scratch: &mut Scratch, hits: &mut Vec<Hit>) {
        let before = hits.len();
        let (scanned, marked) = self.mark_steps(hay, &mut scratch.steps);
        for &step in &scratch.steps[..marked] {
            let step = step as usize;
            for at in (step..step + STEP).step_by(2) {
                self.resolve(hay, at, window_at(hay, at), hits);
            }
        }
        let mut at = scanned;
        while at + WINDOW <= hay.len() {
            self.resolve(hay, at, window_at(hay, at), hits);
            at += 2;
        }
        self.resolve_end(hay, hits);
        hits[before..].sort_unstable();
        dedup_from(hits, before);
    }

    /// The hot loop: which 16-byte steps may hold a window. Returns where it stopped and
    /// how many steps it marked.
    #[inline(never)]
    fn mark_steps(&self, hay: &[u8], steps: &mut Vec<u32>) -> (usize, usize) {
        let table = &*self.table;
        let lookup = |window: u64| table[usize::from(hash(window as u32))];
        let mut at = 0;
        let mut kept = 0;
        // Room for every step: the append below has no branch on the data.
        if steps.len() <= hay.len() / STEP {
            steps.resize(hay.len() / STEP + 1, 0);
        }
        while at + STEP + 8 <= hay.len() {
            let (a, b, c) = (word(hay, at), word(hay, at + 8), word(hay, at + 16));
            let maybe = lookup(a)
                | lookup(a >> 16)
                | lookup(a >> 32)
                | lookup((a >> 48) | (b << 16))
                | lookup(b)
                | lookup(b >> 16)
                | lookup(b >> 32)
                | lookup((b >> 48) | (c << 16));
            steps[kept] = at as u32;
            kept += usize::from(maybe);
            at += STEP;
        }
        (at, kept)
    }

    #[inline]
    fn resolve(&self, hay: &[u8], at: usize, window: u32, hits: &mut Vec<Hit>) {
        if self.table[usize::from(hash(window))] == 0 {
            return;
        }
        let mut slot = self.slot_of(window);
        loop {
            let found = self.slots[slot];
            if found.count == 0 {
                return;
            }
            if found.window == window {
                let first = found.first as usize;
                let entries = &self.entries[first..first + found.count as usize];
                entries.iter().for_each(|entry| self.compare(hay, at, *entry, hits));
                return;
            }
            slot = (slot + 1) & self.slot_mask as usize;
        }
    }

    #[inline]
    fn compare(&self, hay: &[u8], at: usize, entry: Entry, hits: &mut Vec<Hit>) {
        let Some(start) = at.checked_add_signed(-isize::from(entry.at)) else { return };
        if self.literals[usize::from(entry.literal)].stands_at(hay, start) {
            hits.push(Hit { pos: start as u32, literal: entry.literal });
        }
    }

    /// A 3-byte literal may end at the very end of `hay`, where no 4-byte window fits behind it.
    fn resolve_end(&self, hay: &[u8], hits: &mut Vec<Hit>) {
        let Some(start) = hay.len().checked_sub(MIN_LITERAL_BYTES) else { return };
        for &literal in &self.shortest {
            if self.literals[usize::from(literal)].stands_at(hay, start) {
                hits.push(Hit { pos: start as u32, literal });
            }
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

/// For each literal and parity the window that ordinary logs show least, shared where possible.
fn choose_windows(literals: &[LiteralForm]) -> HashMap<u32, Vec<Entry>> {
    let weights = sample_weights();
    let mut chosen: HashMap<u32, Vec<Entry>> = HashMap::new();
    let mut order: Vec<usize> = (0..literals.len()).collect();
    order.sort_by_key(|&i| (literals[i].bytes.len(), i));
    for index in order {
        let bytes = &literals[index].bytes;
        if bytes.len() < MIN_LITERAL_BYTES {
            continue;
        }
        for parity in 0..2 {
            let best = (parity..=bytes.len().saturating_sub(WINDOW).min(100))
                .step_by(2)
                .filter(|_| bytes.len() >= WINDOW + parity)
                .min_by_key(|&at| {
                    let window = window_at(bytes, at);
                    let shared = chosen.contains_key(&window);
                    u64::from(weights[usize::from(hash(window))]) * 2 + u64::from(!shared)
                });
            match best {
                Some(at) => chosen.entry(window_at(bytes, at)).or_default().push(Entry { literal: index as u16, at: at as i8 }),
                None => short_windows(bytes, parity, index as u16, &mut chosen),
            }
        }
    }
    chosen
}

/// A literal of 3 or 4 bytes has no window of its own at one parity or both: every byte that may
/// stand beside it makes a window.
fn short_windows(bytes: &[u8], parity: usize, literal: u16, chosen: &mut HashMap<u32, Vec<Entry>>) {
    for neighbour in 0..=u8::MAX {
        let (window, at) = if parity == 0 {
            ([bytes[0], bytes[1], bytes[2], neighbour], 0)
        } else {
            ([neighbour, bytes[0], bytes[1], bytes[2]], -1)
        };
        chosen.entry(u32::from_le_bytes(window)).or_default().push(Entry { literal, at });
    }
}

fn sample_weights() -> Vec<u32> {
    let mut weights = vec![0_u32; 1 << 16];
    for window in SAMPLE.as_bytes().windows(WINDOW) {
        weights[usize::from(hash(window_at(window, 0)))] += 1;
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
        let literals: Vec<_> = ["abc", "abcd", "bcdab", "rror: ", "error:", "dd", "aaaaaa", "ab\ncd"].map(literal).to_vec();
        let wanted: Vec<_> = literals.iter().filter(|l| l.bytes.len() >= MIN_LITERAL_BYTES).cloned().collect();
        let filter = Prefilter::new(&wanted);
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
            assert_eq!(hits, plain(&wanted, &hay), "round {round}: {:?}", String::from_utf8_lossy(&hay));
        }
    }

    #[test]
    fn a_guard_looks_at_the_neighbours() {
        let filter = Prefilter::new(&[LiteralForm { bytes: b"Error:".to_vec(), not_after: b":".to_vec(), not_before: b"_n".to_vec() }]);
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
