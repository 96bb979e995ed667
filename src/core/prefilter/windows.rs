//! Which windows of a literal are searched for: of the possible ones, those that are rarest
//! in ordinary logs. `config/prefilter.txt` is the sample in which they are counted.

use super::guarded::{Byte, Guarded};
use super::plan::Entry;
use super::steps::STRIDE;
use super::{HASH_BITS, WINDOW, hash, window};
use crate::rules::MIN_LITERAL_BYTES;

/// Bytes of a window that must belong to its literal; the other byte is expanded into all its values.
pub(super) const KNOWN: usize = MIN_LITERAL_BYTES;
/// How far into a literal its window may begin.
const MAX_OFFSET: usize = 100;
/// Cost of a window for each occurrence in the sample; a place in the table costs 1.
const SEEN_COST: u64 = 4;
/// Ordinary text, with words that look like errors.
pub(in super::super) const SAMPLE: &str = include_str!("../../../config/prefilter.txt");

/// Returns the windows at these offsets of each of `literals`. A literal shorter than a window's known bytes has none.
pub(super) fn entries(literals: &[Guarded], offsets: impl Fn(usize) -> Vec<isize>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, literal) in literals.iter().enumerate().filter(|(_, literal)| is_long_enough(literal)) {
        for at in offsets(index) {
            entries.extend(hashes(literal, at).into_iter().map(|hash| Entry::new(hash, index, at)));
        }
    }
    entries
}

/// Returns the hashes of the windows that show a literal at an offset.
pub(super) fn hashes(literal: &Guarded, at: isize) -> Vec<usize> {
    let mut hashes: Vec<usize> = windows(literal, at).into_iter().map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Whether the literal can be searched for.
pub(super) fn is_long_enough(literal: &Guarded) -> bool {
    literal.len() >= KNOWN
}

/// Returns the offset of the last window of a literal that [is long enough](is_long_enough):
/// it may reach one byte beyond the literal, at the price of more windows.
pub(super) fn last_offset(literal: &Guarded) -> isize {
    (literal.len() - KNOWN).min(MAX_OFFSET) as isize
}

/// Returns, for each parity of a literal's position, the offset of the window at an even position that is rarest in ordinary text.
pub(super) fn by_parity(literal: &Guarded, seen: &[u16]) -> Vec<isize> {
    let of_parity = |parity: usize| (-1..=last_offset(literal)).filter(move |at| at.rem_euclid(STRIDE as isize) as usize == parity);
    (0..STRIDE).map(|parity| rarest(literal, of_parity(parity), seen)).collect()
}

fn rarest(literal: &Guarded, offsets: impl Iterator<Item = isize> + Clone, seen: &[u16]) -> isize {
    let cost = |place: usize| SEEN_COST * u64::from(seen[place]) + 1;
    let single = offsets.clone().filter_map(|at| Some((cost(hash(literal.window(at)?)), at)));
    let mut best = single.min().unwrap_or((u64::MAX, 0));
    for at in offsets.filter(|at| literal.window(*at).is_none()) {
        // Each window costs at least 1, so many windows mostly need not be expanded.
        if count(literal, at) < best.0 {
            best = best.min((windows(literal, at).into_iter().map(|window| cost(hash(window))).sum(), at));
        }
    }
    best.1
}

/// Returns the number of [`windows`].
pub(super) fn count(literal: &Guarded, at: isize) -> u64 {
    let all_but_last = places(literal, at).take(WINDOW - 1).map(|byte| u64::from(byte.count())).product::<u64>();
    all_but_last * u64::from(literal.byte(at + WINDOW as isize - 1).low_bits())
}

/// Returns what may stand at each byte of the window at an offset.
fn places(literal: &Guarded, at: isize) -> impl Iterator<Item = Byte<'_>> {
    (at..at + WINDOW as isize).map(|at| literal.byte(at))
}

/// Returns the windows that show a literal at an offset; only one of those that differ in what the hash ignores.
pub(super) fn windows(literal: &Guarded, at: isize) -> Vec<u32> {
    if let Some(window) = literal.window(at) {
        return vec![window];
    }
    let mut all = vec![0];
    for (place, byte) in places(literal, at).enumerate() {
        let shifted = |value: u8| u32::from(value) << (8 * place);
        match byte {
            Byte::Only(value) => all.iter_mut().for_each(|window| *window |= shifted(value)),
            _ => {
                let values = if place == WINDOW - 1 { byte.low_values() } else { byte.values() };
                let mut next = Vec::with_capacity(all.len() * values.len());
                values.into_iter().for_each(|value| next.extend(all.iter().map(|window| window | shifted(value))));
                all = next;
            }
        }
    }
    all
}

/// Returns how often the windows of each hash occur in the sample: what the table would let through.
pub(super) fn seen() -> Vec<u16> {
    let mut seen = vec![0_u16; 1 << HASH_BITS];
    for bytes in SAMPLE.as_bytes().windows(WINDOW) {
        let count = &mut seen[hash(window(bytes, 0))];
        *count = count.saturating_add(1);
    }
    seen
}
