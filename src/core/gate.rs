//! A keyword gate: which of some hundred words stand in a piece of text, asked in one pass.
//! It stands before the regexes of `redact` and `classify`, so that the usual event runs none of them.
//! It never allocates while scanning, never reports a word that is not there, and never misses one.
//!
//! Every word is found by one window of four bytes, its rarest, looked up in a 16 KiB table of bits by a
//! multiplicative hash; only a window that is in the table costs a comparison. The windows of a text do
//! not depend on each other, as the states of an automaton do, and eight are looked up without a branch.

use std::ops::Range;

/// Bytes of a window.
const WINDOW: usize = 4;
/// Windows that are looked up together.
const STEP: usize = 8;
/// Slots of the table: 2^14 bytes stay in the first-level cache beside the text.
const BITS: u32 = 14;
/// Folds ASCII letters to lower case, and other bytes to something: equal words keep equal windows.
const FOLD: u32 = 0x2020_2020;
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
    /// By slot: one bit for each fingerprint of the windows there.
    table: Box<[u8; 1 << BITS]>,
    /// By slot: its first entry.
    starts: Box<[u16]>,
    /// In the order of their slots.
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
        entries.sort_unstable_by_key(|entry| place(entry.window).0);
        let mut table = Box::new([0u8; 1 << BITS]);
        let mut starts = vec![0u16; 1 << BITS].into_boxed_slice();
        for (index, entry) in entries.iter().enumerate() {
            let (slot, print) = place(entry.window);
            if table[slot] == 0 {
                starts[slot] = u16::try_from(index).unwrap_or(u16::MAX);
            }
            table[slot] |= 1 << print;
        }
        Self { table, starts, entries, words }
    }

    /// Calls `seen(id, word)` for every occurrence of every word, in text order of their windows; `word` is
    /// its range. Stops when `seen` answers false.
    #[inline]
    pub fn scan(&self, hay: &[u8], mut seen: impl FnMut(usize, Range<usize>) -> bool) {
        let mut at = 0;
        while let Some(bytes) = hay.get(at..).and_then(<[u8]>::first_chunk::<{ 2 * STEP }>) {
            let mut marks = self.marks(bytes);
            while marks != 0 {
                let found = at + marks.trailing_zeros() as usize;
                if !self.confirm(hay, found, &mut seen) {
                    return;
                }
                marks &= marks - 1;
            }
            at += STEP;
        }
        for at in at..(hay.len() + 1).saturating_sub(WINDOW) {
            let (slot, print) = place(fold(&hay[at..]));
            if self.table[slot] >> print & 1 != 0 && !self.confirm(hay, at, &mut seen) {
                return;
            }
        }
    }

    /// Bit `n`: a window at `n` is in the table.
    #[inline(always)]
    fn marks(&self, bytes: &[u8; 2 * STEP]) -> u32 {
        let low = u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 8]));
        let high = u64::from_le_bytes(*bytes.last_chunk().unwrap_or(&[0; 8]));
        let mut marks = 0;
        for at in 0..STEP {
            let window = if at <= 4 { (low >> (8 * at)) as u32 } else { (low >> (8 * at) | high << (64 - 8 * at)) as u32 };
            let (slot, print) = place(window | FOLD);
            marks |= u32::from(self.table[slot] >> print & 1) << at;
        }
        marks
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
    fn confirm(&self, hay: &[u8], at: usize, seen: &mut impl FnMut(usize, Range<usize>) -> bool) -> bool {
        let window = fold(&hay[at..]);
        let slot = place(window).0;
        let first = usize::from(self.starts[slot]);
        for entry in self.entries[first..].iter().take_while(|e| place(e.window).0 == slot).filter(|e| e.window == window) {
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

#[inline]
fn place(window: u32) -> (usize, u8) {
    let hash = window.wrapping_mul(SPREAD);
    ((hash >> (32 - BITS)) as usize, (hash >> (29 - BITS)) as u8 & 7)
}

fn fold(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) | FOLD
}

fn enter(word: &Word, id: u32, familiar: &[bool], entries: &mut Vec<Entry>) {
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

fn familiar() -> Vec<bool> {
    let mut marks = vec![false; 1 << BITS];
    FAMILIAR.as_bytes().windows(WINDOW).for_each(|window| marks[place(fold(window)).0] = true);
    marks
}

/// How common a window is in error lines: the sum of its letters' ranks, rough is enough, and much more when it is familiar.
fn cost(window: &[u8], familiar: &[bool]) -> usize {
    const COMMON: &[u8] = b"zqjxkvbwygphmfudclsnaitr oe";
    let rank = |b: &u8| COMMON.iter().position(|c| *c == b.to_ascii_lowercase()).unwrap_or(4);
    window.iter().map(rank).sum::<usize>() + if familiar[place(fold(window)).0] { 200 } else { 0 }
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
