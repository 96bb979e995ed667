//! A keyword gate: finds which of some hundred words occur in a text, in one pass. It precedes the
//! regexes of `redact` and `classify`, so that the usual event runs none of them. It never allocates
//! while scanning, never reports a word that is not there, and never misses one of three bytes or more.
//!
//! Only every second position of a text is examined. A word is found by a window of three bytes: the rarest of those
//! that lie at even positions if the word begins at one, and another for words that begin at an odd position. A
//! window is looked up by a multiplicative hash in a table of 8 KiB; only what is in the table costs a comparison.
//! Unlike the states of an automaton, the windows of a text do not depend on each other: eight are looked up without
//! a branch. The table has one bit per hash: tables of bytes would push each other out of the nearest cache.

use std::ops::Range;
use std::sync::LazyLock;

use super::prefilter::SAMPLE;

/// Bytes of a window.
const WINDOW: usize = 3;
/// A window begins at every second byte.
const STRIDE: usize = 2;
/// Windows that are looked up together.
const LANES: usize = 8;
/// Bytes that these windows take: each is read as four, the last of which is ignored.
const READ: usize = (LANES - 1) * STRIDE + 4;
/// Bits of a hash.
const HASH_BITS: u32 = 16;
/// Bits of a word of the table.
const WORD_BITS: u32 = 5;
/// One bit for each hash.
type Table = [u32; 1 << (HASH_BITS - WORD_BITS)];
/// Bits of a slot.
const SLOT_BITS: u32 = 12;
/// Folds each byte to six bits, a letter of either case to the same value: equal words have equal windows.
const FOLD: u32 = 0x5F5F_5F5F;
/// Bits of a window, and a mask of them among those of four bytes.
const WINDOW_BITS: u32 = 24;
const THREE_BYTES: u32 = (1 << WINDOW_BITS) - 1;
/// Bytes from a word's beginning within which its window lies.
const REACH: usize = 100;
/// Knuth's multiplier, 2^32 / golden ratio, shifted so that the fourth byte of a window falls out of the product.
const SPREAD: u32 = 0x9E37_79B1 << 8;

/// One keyword.
#[derive(Debug)]
struct Word {
    /// Its bytes, eight at a time: a mask of those that count, and their values.
    parts: Box<[(u64, u64)]>,
    len: usize,
    /// Whether the byte before must not be a word character.
    left: bool,
    /// Whether the byte after must not be a word character.
    right: bool,
}

/// Where a word's window lies. The word's first part is stored here, too: most positions are rejected before the word is fetched.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The window, folded; above it, how many bytes from the word's beginning it lies.
    place: u32,
    word: u32,
    first: (u64, u64),
}

impl Entry {
    fn new(window: u32, offset: i8, word: u32, first: (u64, u64)) -> Self {
        Self { place: window & THREE_BYTES | u32::from(offset as u8) << WINDOW_BITS, word, first }
    }

    #[inline]
    fn window(self) -> u32 {
        self.place & THREE_BYTES
    }

    #[inline]
    fn offset(self) -> isize {
        ((self.place >> WINDOW_BITS) as u8 as i8).into()
    }
}

/// A set of keywords; built once, shared by all threads.
#[derive(Debug)]
pub struct Gate {
    /// One bit for each hash: whether a window has it.
    table: Box<Table>,
    /// For each slot, the leading bits of a hash: its first entry; after the last slot, the end.
    starts: Box<[u32]>,
    /// Sorted by hash.
    entries: Vec<Entry>,
    words: Vec<Word>,
}

impl Gate {
    /// Builds a gate over `(word, exact)` pairs; the index of a word is its id in [`Gate::scan`]. That takes any bytes if all
    /// words begin with a star; otherwise UTF-8, where the byte before a word is ASCII or the last one of a character.
    /// A word is matched whole, at word boundaries, unless a `*` at that end opens it; without `exact`
    /// ASCII letters match in either case. Words of one byte are never found.
    #[must_use]
    pub fn new<'a>(words: impl IntoIterator<Item = (&'a str, bool)>) -> Self {
        let mut entries = Vec::new();
        let familiar = familiar();
        let enter = |(id, (text, exact)): (usize, (&str, bool))| {
            let word = Word::new(text, exact);
            enter((bare(text), &word), u32::try_from(id).unwrap_or(u32::MAX), familiar, &mut entries);
            word
        };
        let words = words.into_iter().enumerate().map(enter).collect();
        entries.sort_unstable_by_key(|entry: &Entry| hash(entry.window()));
        entries.shrink_to_fit();
        let mut table: Box<Table> = Box::new([0; 1 << (HASH_BITS - WORD_BITS)]);
        let mut starts = vec![0_u32; (1 << SLOT_BITS) + 1].into_boxed_slice();
        for entry in &entries {
            let hash = hash(entry.window());
            table[hash >> WORD_BITS] |= 1 << (hash & ((1 << WORD_BITS) - 1));
            starts[slot(hash) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Self { table, starts, entries, words }
    }

    /// Calls `seen(id, word)` for every occurrence of every word, in text order
    /// of their windows; `word` is its range. Stops when `seen` returns `false`.
    #[inline]
    pub fn scan(&self, hay: &[u8], mut seen: impl FnMut(usize, Range<usize>) -> bool) {
        let mut at = 0;
        while let Some(bytes) = hay.get(at..).and_then(<[u8]>::first_chunk::<READ>) {
            let held = self.held_lanes(bytes);
            if held != 0 && !self.confirm_all(hay, at, (bytes, held), &mut seen) {
                return;
            }
            at += LANES * STRIDE;
        }
        let rest = &hay[at.min(hay.len())..];
        // A short word at the very end has no byte after it.
        if rest.len() + 1 >= WINDOW {
            let mut bytes = [0; READ];
            bytes[..rest.len()].copy_from_slice(rest);
            self.confirm_all(hay, at, (&bytes, self.held_lanes(&bytes)), &mut seen);
        }
    }

    /// Returns a bit for each lane: whether its window is in the table.
    #[inline(always)]
    fn held_lanes(&self, bytes: &[u8; READ]) -> u32 {
        (0..LANES).fold(0, |held, lane| held | (self.held(window(bytes, lane)) & 1) << lane)
    }

    /// The lowest bit says whether the window is in the table.
    #[inline(always)]
    fn held(&self, window: u32) -> u32 {
        let hash = hash(window);
        self.table[hash >> WORD_BITS].wrapping_shr(hash as u32)
    }

    /// Confirms the windows in the lanes `held` of `bytes`, which are at `at` of `hay`, with zeros after its end.
    #[inline(never)]
    fn confirm_all(&self, hay: &[u8], at: usize, (bytes, mut held): (&[u8; READ], u32), seen: &mut impl FnMut(usize, Range<usize>) -> bool) -> bool {
        while held != 0 {
            let lane = held.trailing_zeros() as usize;
            held &= held - 1;
            if !self.confirm(hay, at + lane * STRIDE, window(bytes, lane), seen) {
                return false;
            }
        }
        true
    }

    /// Whether any word occurs in `hay`.
    #[must_use]
    pub fn any(&self, hay: &[u8]) -> bool {
        let mut found = false;
        self.scan(hay, |_, _| {
            found = true;
            false
        });
        found
    }

    fn confirm(&self, hay: &[u8], at: usize, window: u32, seen: &mut impl FnMut(usize, Range<usize>) -> bool) -> bool {
        let slot = slot(hash(window));
        let entries = self.starts[slot] as usize..self.starts[slot + 1] as usize;
        for entry in self.entries[entries].iter().filter(|entry| entry.window() == window & THREE_BYTES) {
            let Some(start) = at.checked_add_signed(-entry.offset()) else { continue };
            if !is_part(hay, start, entry.first) {
                continue;
            }
            let word = &self.words[entry.word as usize];
            let end = start + word.len;
            if word.stands(hay, start, end) && !seen(entry.word as usize, start..end) {
                return false;
            }
        }
        true
    }
}

impl Word {
    fn new(text: &str, exact: bool) -> Self {
        let inner = bare(text);
        let care = |b: &u8| if exact || !b.is_ascii_alphabetic() { 0xFF } else { !0x20 };
        let part = |bytes: &[u8]| {
            let care = load(&bytes.iter().map(care).collect::<Vec<_>>(), 0);
            (care, load(bytes, 0) & care)
        };
        Self {
            parts: inner.chunks(8).map(part).collect(),
            len: inner.len(),
            left: !text.starts_with('*') && inner.first().is_some_and(|&b| is_word(b)),
            right: !text.ends_with('*') && inner.last().is_some_and(|&b| is_word(b)),
        }
    }

    /// Returns the mask and values of its first eight bytes; zeros if it has none.
    fn first(&self) -> (u64, u64) {
        self.parts.first().copied().unwrap_or_default()
    }

    /// Whether the word is there, given that its first part does.
    #[inline]
    fn stands(&self, hay: &[u8], start: usize, end: usize) -> bool {
        end <= hay.len()
            && self.parts.iter().enumerate().skip(1).all(|(at, part)| is_part(hay, start + 8 * at, *part))
            && !(self.left && start > 0 && is_word(hay[start - 1]))
            && !(self.right && hay.get(end).is_some_and(|&b| is_word(b)))
    }
}

/// Whether the bytes that count have their values at `at`.
#[inline]
fn is_part(hay: &[u8], at: usize, (care, value): (u64, u64)) -> bool {
    load(hay, at) & care == value
}

/// Returns a word without the stars that open its ends.
fn bare(text: &str) -> &[u8] {
    let inner = text.strip_prefix('*').unwrap_or(text);
    inner.strip_suffix('*').unwrap_or(inner).as_bytes()
}

/// Loads eight bytes at `at`, with zeros after the end.
#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.first_chunk().map_or_else(|| rest.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b)), |chunk| u64::from_le_bytes(*chunk))
}

/// Whether the byte continues an ASCII name.
pub(crate) const fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Returns window `lane` of the bytes, folded; its fourth byte is ignored.
#[inline(always)]
fn window(bytes: &[u8; READ], lane: usize) -> u32 {
    let at = lane * STRIDE;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) & FOLD
}

#[inline(always)]
fn hash(window: u32) -> usize {
    (window.wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as usize
}

#[inline]
fn slot(hash: usize) -> usize {
    hash >> (HASH_BITS - SLOT_BITS)
}

fn fold(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) & FOLD
}

/// Adds the windows of a word: one for each parity of the position where it begins.
fn enter((text, word): (&[u8], &Word), id: u32, familiar: &[u16], entries: &mut Vec<Entry>) {
    let first = word.first();
    let mut push = |window: [u8; WINDOW], offset| entries.push(Entry::new(fold(&window), offset, id, first));
    // No letter stands before a word that must begin there; the last byte of any other character folds to none.
    let may_precede = |before: &u8| !(word.left && before.is_ascii_uppercase());
    for parity in 0..STRIDE {
        let inside = (parity..(text.len() + 1).saturating_sub(WINDOW)).step_by(STRIDE).take_while(|at| *at < REACH);
        let best = inside.min_by_key(|&at| cost(&text[at..at + WINDOW], familiar));
        match (best, text) {
            (Some(at), _) => push([text[at], text[at + 1], text[at + 2]], at as i8),
            // A word that begins at an odd position has a byte before it.
            (None, &[first, second, ..]) if parity == 1 => {
                (0x40..=0x5F).chain(0..0x20).filter(may_precede).for_each(|before| push([before, first, second], -1));
            }
            (None, &[first, second]) => (0x40..=0x5F).chain(0..0x20).for_each(|after| push([first, second, after], 0)),
            _ => {}
        }
    }
}

/// Typical text of errors and stacks; a window from it would open the gate for nothing.
const FAMILIAR: &str = "traceback (most recent call last): file \"/usr/lib/python3/site-packages/\", line 1, in <module> execute execution return raise valueerror: invalid value \
    error in exception at org.apache. java.lang. javax.com.google.internal node_modules/src/index.js node:internal/modules/cjs/loader async function object. <anonymous> processticksandrejections \
    /home/app/dist/main.go goroutine running runtime. panic core::ops std:: server client request response http://localhost https:// connection network worker package test assert validation load import \
    failed to info warn error: message: status code: data/user/name/type string null undefined expected found handler service context config create require include module process thread the for with not and ";

/// Returns how often the sample and the error texts contain each window, counted at the first call.
fn familiar() -> &'static [u16] {
    static COUNTS: LazyLock<Vec<u16>> = LazyLock::new(count_familiar);
    &COUNTS
}

fn count_familiar() -> Vec<u16> {
    let mut counts = vec![0_u16; 1 << HASH_BITS];
    for (text, weight) in [(FAMILIAR, 50), (SAMPLE, 1)] {
        for window in text.as_bytes().windows(WINDOW) {
            let count = &mut counts[hash(fold(window))];
            *count = count.saturating_add(weight);
        }
    }
    counts
}

/// Rates how common a window is: how often it was seen, and the sum of its letters' ranks; a rough value is enough.
fn cost(window: &[u8], familiar: &[u16]) -> usize {
    const COMMON: &[u8] = b"zqjxkvbwygphmfudclsnaitr oe";
    let rank = |b: &u8| COMMON.iter().position(|c| *c == b.to_ascii_lowercase()).unwrap_or(4);
    window.iter().map(rank).sum::<usize>() + 20 * usize::from(familiar[hash(fold(window))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &[(&str, bool)], hay: &str) -> Vec<usize> {
        let mut ids = Vec::new();
        Gate::new(words.iter().copied()).scan(hay.as_bytes(), |id, _| {
            ids.push(id);
            true
        });
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    #[test]
    fn case_boundaries_and_stars() {
        let words = [("timeout", false), ("FAIL", true), ("panic*", false), ("*Error:*", true)];
        assert_eq!(found(&words, "TIMEOUT"), [0]);
        assert_eq!(found(&words, "timeouts FAILED fail"), [] as [usize; 0]);
        assert_eq!(found(&words, "xFAIL FAIL. panicked"), [1, 2]);
        assert_eq!(found(&words, "TypeError:x"), [3]);
    }

    #[test]
    fn short_words_are_sought_before_what_follows_them() {
        let words = [("SK", true), ("eyJ*", true), ("://*", false)];
        assert_eq!(found(&[("SK*", true)], "SK0f"), [0]);
        for hay in ["SKz", "SK_", " SK-", "SK"] {
            assert_eq!(found(&[("SK*", true)], hay), [0], "{hay}");
        }
        assert_eq!(found(&words[1..], "eyJh http://x"), [0, 1]);
        assert_eq!(found(&words[1..], "eyj"), [] as [usize; 0]);
    }

    #[test]
    fn every_word_is_found_wherever_it_stands() {
        let words = [("no such file", false), ("permission denied", false), ("command not found", false)];
        for (id, (word, _)) in words.iter().enumerate() {
            for pad in 0..9 {
                let hay = format!("{}{word}{}", " ".repeat(pad), ".".repeat(9 - pad));
                assert_eq!(found(&words, &hay), [id], "{hay}");
            }
        }
    }

    /// Finds every word at every position, by a plain search.
    fn plain(words: &[(&str, bool)], hay: &str) -> Vec<usize> {
        let stands = |(text, exact): (&str, bool)| {
            let (inner, hay) = (bare(text), hay.as_bytes());
            let end_is_free = |at: Option<&u8>, open: bool, own: u8| open || !is_word(own) || !at.is_some_and(|b| is_word(*b));
            (0..(hay.len() + 1).saturating_sub(inner.len())).any(|start| {
                let (found, end) = (&hay[start..start + inner.len()], start + inner.len());
                let same = if exact { found == inner } else { found.eq_ignore_ascii_case(inner) };
                let before = start.checked_sub(1).and_then(|at| hay.get(at));
                same && end_is_free(before, text.starts_with('*'), inner[0]) && end_is_free(hay.get(end), text.ends_with('*'), inner[inner.len() - 1])
            })
        };
        (0..words.len()).filter(|&id| stands(words[id])).collect()
    }

    proptest::proptest! {
        #[test]
        fn finds_what_a_plain_search_finds(pieces in proptest::collection::vec(0_usize..16, 0..24), shift in 0_usize..3) {
            const PIECES: [&str; 16] =
                ["sk-", "SK-", "pwd", "://", "FAIL", "fail", "token", "TOKEN", "password", " ", "_", "é", "@", "no such file", "out of memory", "k"];
            let words = [("sk-", true), ("sk-*", true), ("*pwd*", false), ("*://*", false), ("FAIL", true), ("*token*", false), ("token", false),
                ("*pass*", false), ("no such file", false), ("out of memory*", false)];
            let hay = " ".repeat(shift) + &pieces.iter().map(|&at| PIECES[at]).collect::<String>();
            proptest::prop_assert_eq!(found(&words, &hay), plain(&words, &hay), "{}", hay);
        }
    }
}
