//! A keyword gate: which of some hundred words stand in a piece of text, asked in one pass.
//! It stands before the regexes of `redact` and `classify`, so that the usual event runs none of them.
//! It never allocates while scanning, never reports a word that is not there, and never misses one.
//!
//! Every word is found by one window of four bytes, its rarest, looked up in a 32 KiB bitmap by a
//! multiplicative hash; only a window that is in the table costs a comparison. The windows of a text do
//! not depend on each other, as the states of an automaton do, and eight are looked up without a branch.

use std::ops::Range;

use super::prefilter::SAMPLE;

/// Bytes of a window.
const WINDOW: usize = 4;
/// Windows that are looked up together.
const STEP: usize = 8;
/// Bits of a hash: a bitmap of 32 KiB fits into a first-level cache.
const HASH_BITS: u32 = 18;
/// Bits of a slot.
const SLOT_BITS: u32 = 13;
/// Folds ASCII letters to lower case, and other bytes to something: equal words keep equal windows.
const FOLD: u32 = 0x2020_2020;
/// The same for eight bytes.
const FOLD_TWO: u64 = 0x2020_2020_2020_2020;
/// Knuth's multiplier, 2^32 / golden ratio.
const SPREAD: u32 = 0x9E37_79B1;

/// One keyword.
#[derive(Debug)]
struct Word {
    text: Box<[u8]>,
    exact: bool,
    /// The byte before must not be a word character.
    left: bool,
    /// The byte after must not be a word character.
    right: bool,
}

/// Where a word's window lies: `window` folded, `offset` of it within the word.
#[derive(Debug, Clone, Copy)]
struct Entry {
    window: u32,
    word: u32,
    offset: u32,
}

/// A set of keywords; made once, shared by all threads.
#[derive(Debug)]
pub struct Gate {
    /// A bit for each hash: whether a window has it.
    bitmap: Box<[u32; 1 << (HASH_BITS - 5)]>,
    /// By slot, the beginning of a hash: its first entry, and behind the last slot the end.
    starts: Box<[u16]>,
    /// In the order of their hashes.
    entries: Vec<Entry>,
    words: Vec<Word>,
}

impl Gate {
    /// Builds a gate over `(word, exact)` pairs; the index of a word is its id in [`Gate::scan`].
    /// A word is matched whole, at word boundaries, unless a `*` at that end opens it; without `exact`
    /// ASCII letters match in either case. Words of 2 bytes are sought before hex digits, words of 3 bytes
    /// before a printable byte; an empty word is never found.
    #[must_use]
    pub fn new<'a>(words: impl IntoIterator<Item = (&'a str, bool)>) -> Self {
        let words: Vec<Word> = words.into_iter().map(|(text, exact)| Word::new(text, exact)).collect();
        let mut entries = Vec::with_capacity(words.len() * 2);
        let familiar = familiar();
        for (id, word) in words.iter().enumerate() {
            enter(word, u32::try_from(id).unwrap_or(u32::MAX), &familiar, &mut entries);
        }
        entries.sort_unstable_by_key(|entry| hash(entry.window));
        let mut bitmap = Box::new([0; 1 << (HASH_BITS - 5)]);
        let mut starts = vec![0_u16; (1 << SLOT_BITS) + 1].into_boxed_slice();
        for entry in &entries {
            let hash = hash(entry.window);
            bitmap[(hash >> 5) as usize] |= 1 << (hash & 31);
            starts[slot(hash) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Self { bitmap, starts, entries, words }
    }

    /// Calls `seen(id, word)` for every occurrence of every word, in text order of their windows; `word` is
    /// its range. Stops when `seen` answers false.
    #[inline]
    pub fn scan(&self, hay: &[u8], mut seen: impl FnMut(usize, Range<usize>) -> bool) {
        let mut at = 0;
        while let Some(bytes) = hay.get(at..).and_then(<[u8]>::first_chunk::<{ 2 * STEP }>) {
            if self.holds_any(bytes) && !self.confirm_all(hay, at..at + STEP, &mut seen) {
                return;
            }
            at += STEP;
        }
        self.confirm_all(hay, at..(hay.len() + 1).saturating_sub(WINDOW), &mut seen);
    }

    /// Whether one of the first eight windows is in the table.
    #[inline(always)]
    fn holds_any(&self, bytes: &[u8; 2 * STEP]) -> bool {
        let low = u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 8])) | FOLD_TWO;
        let high = u64::from_le_bytes(*bytes.last_chunk().unwrap_or(&[0; 8])) | FOLD_TWO;
        let held = |window: u64| known(&self.bitmap, hash(window as u32));
        let first = held(low) | held(low >> 8) | held(low >> 16) | held(low >> 24);
        let second = held(low >> 32) | held(low >> 40 | high << 24) | held(low >> 48 | high << 16) | held(low >> 56 | high << 8);
        (first | second) & 1 != 0
    }

    fn confirm_all(&self, hay: &[u8], places: Range<usize>, seen: &mut impl FnMut(usize, Range<usize>) -> bool) -> bool {
        for at in places {
            let window = fold(&hay[at..]);
            if known(&self.bitmap, hash(window)) & 1 != 0 && !self.confirm(hay, at, window, seen) {
                return false;
            }
        }
        true
    }

    /// Whether any word stands in `hay`.
    #[must_use]
    pub fn any(&self, hay: &[u8]) -> bool {
        let mut found = false;
        self.scan(hay, |_, _| {
            found = true;
            false
        });
        found
    }

    #[inline(never)]
    fn confirm(&self, hay: &[u8], at: usize, window: u32, seen: &mut impl FnMut(usize, Range<usize>) -> bool) -> bool {
        let slot = slot(hash(window));
        let entries = usize::from(self.starts[slot])..usize::from(self.starts[slot + 1]);
        for entry in self.entries[entries].iter().filter(|entry| entry.window == window) {
            let word = &self.words[entry.word as usize];
            let Some(start) = at.checked_sub(entry.offset as usize) else { continue };
            let end = start + word.text.len();
            if word.stands(hay, start, end) && !seen(entry.word as usize, start..end) {
                return false;
            }
        }
        true
    }
}

impl Word {
    fn new(text: &str, exact: bool) -> Self {
        let inner = text.strip_prefix('*').unwrap_or(text);
        let inner = inner.strip_suffix('*').unwrap_or(inner).as_bytes();
        Self {
            exact,
            left: !text.starts_with('*') && inner.first().is_some_and(|&b| is_word(b)),
            right: !text.ends_with('*') && inner.last().is_some_and(|&b| is_word(b)),
            text: inner.into(),
        }
    }

    fn stands(&self, hay: &[u8], start: usize, end: usize) -> bool {
        let Some(found) = hay.get(start..end) else { return false };
        let same = if self.exact { found == &*self.text } else { found.eq_ignore_ascii_case(&self.text) };
        same && !(self.left && start > 0 && is_word(hay[start - 1])) && !(self.right && hay.get(end).is_some_and(|&b| is_word(b)))
    }
}

/// A byte that continues an ASCII name.
pub(crate) const fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

#[inline(always)]
fn hash(window: u32) -> u32 {
    window.wrapping_mul(SPREAD) >> (32 - HASH_BITS)
}

#[inline]
fn slot(hash: u32) -> usize {
    (hash >> (HASH_BITS - SLOT_BITS)) as usize
}

/// The lowest bit of the result says whether the bitmap knows `hash`.
#[inline(always)]
fn known(bitmap: &[u32; 1 << (HASH_BITS - 5)], hash: u32) -> u32 {
    // The shift counts modulo 32.
    bitmap[(hash >> 5) as usize & ((1 << (HASH_BITS - 5)) - 1)].wrapping_shr(hash)
}

fn fold(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) | FOLD
}

fn enter(word: &Word, id: u32, familiar: &[u16], entries: &mut Vec<Entry>) {
    let text = &word.text;
    let mut push = |window, offset| entries.push(Entry { window, word: id, offset });
    match text.len() {
        0 | 1 => {}
        2 => {
            let hex = b"0123456789abcdef";
            hex.iter().for_each(|&a| hex.iter().for_each(|&b| push(fold(&[text[0], text[1], a, b]), 0)));
        }
        3 => (0x20..0x40).chain(0x60..0x80).for_each(|b| push(fold(&[text[0], text[1], text[2], b]), 0)),
        len => {
            let offset = (0..=len - WINDOW).min_by_key(|&i| cost(&text[i..i + WINDOW], familiar)).unwrap_or(0);
            push(fold(&text[offset..]), u32::try_from(offset).unwrap_or(0));
        }
    }
}

/// What error texts and stacks are full of; a window from it would open for nothing.
const FAMILIAR: &str = "traceback (most recent call last): file \"/usr/lib/python3/site-packages/\", line 1, in <module> execute execution return raise valueerror: invalid value \
    error in exception at org.apache. java.lang. javax.com.google.internal node_modules/src/index.js node:internal/modules/cjs/loader async function object. <anonymous> processticksandrejections \
    /home/app/dist/main.go goroutine running runtime. panic core::ops std:: server client request response http://localhost https:// connection network worker package test assert validation load import \
    failed to info warn error: message: status code: data/user/name/type string null undefined expected found handler service context config create require include module process thread the for with not and ";

/// How often the sample and error texts show each window.
fn familiar() -> Vec<u16> {
    let mut counts = vec![0_u16; 1 << HASH_BITS];
    for (text, weight) in [(FAMILIAR, 50), (SAMPLE, 1)] {
        for window in text.as_bytes().windows(WINDOW) {
            let count = &mut counts[hash(fold(window)) as usize];
            *count = count.saturating_add(weight);
        }
    }
    counts
}

/// How common a window is: what it was seen, and the sum of its letters' ranks, rough is enough.
fn cost(window: &[u8], familiar: &[u16]) -> usize {
    const COMMON: &[u8] = b"zqjxkvbwygphmfudclsnaitr oe";
    let rank = |b: &u8| COMMON.iter().position(|c| *c == b.to_ascii_lowercase()).unwrap_or(4);
    window.iter().map(rank).sum::<usize>() + 20 * usize::from(familiar[hash(fold(window)) as usize])
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
}
