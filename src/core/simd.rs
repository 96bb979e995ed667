//! Loops that are compiled for what the processor supports: the same code in fewer
//! instructions. Used by the prefilter; the results are the same everywhere.

use fearless_simd::{Level, Simd, dispatch, prelude::*, u8x64};

use super::prefilter::{GROUPS, Tables, WINDOW};

/// Positions that [`sift`] tests at once.
pub const LANES: usize = 64;
/// Bytes that must exist from the first position on: the windows of all positions, and a word at the last.
const NEEDED: usize = LANES + 8;
/// Positions of a round that are written at once; few rounds have more.
const BATCH: usize = 16;

/// Whether [`sift`] is fast on this processor.
#[must_use]
pub fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return Level::new().as_avx512().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Runs `work`, which must be inlined, compiled for what the processor supports, but never with 64-byte registers.
#[inline(always)]
pub fn widest<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Level::new().as_avx2() {
        return avx2.vectorize(work);
    }
    work()
}

/// Writes the positions of `hay` that a sieve lets through to `places`, each with `base` added, and for each
/// round the marks of newlines and of escapes to `marks`. `places` needs room for one round more than the
/// bytes of `hay`. Returns how many bytes it tested (all but the last few), and how many positions it wrote.
pub fn sift(tables: &Tables, hay: &[u8], base: u32, places: &mut [u32], marks: (&mut [u64], &mut [u64])) -> (usize, usize) {
    dispatch!(Level::new(), simd => sift_with(simd, tables, hay, base, places, marks))
}

/// Writes the marks of newlines and of escapes to `marks`, for each [`LANES`] whole bytes of `hay`.
pub fn mark(hay: &[u8], marks: (&mut [u64], &mut [u64])) {
    dispatch!(Level::new(), simd => mark_with(simd, hay, marks));
}

#[inline(always)]
fn mark_with<S: Simd>(simd: S, hay: &[u8], (newlines, escapes): (&mut [u64], &mut [u64])) {
    let (newline, escape) = (u8x64::splat(simd, b'\n'), u8x64::splat(simd, 0x1b));
    let (bytes, _) = hay.as_chunks::<LANES>();
    for step in 0..bytes.len() {
        let bytes = u8x64::from_slice(simd, &bytes[step]);
        newlines[step] = bytes.simd_eq(newline).to_bitmask();
        escapes[step] = bytes.simd_eq(escape).to_bitmask();
    }
}

/// Uses no closures and no iterators over vectors: these might not be compiled for what the processor supports.
#[inline(always)]
fn sift_with<S: Simd>(simd: S, tables: &Tables, hay: &[u8], base: u32, places: &mut [u32], (newlines, escapes): (&mut [u64], &mut [u64])) -> (usize, usize) {
    let (none, value) = (u8x64::splat(simd, 0), u8x64::splat(simd, 127));
    let (newline, escape) = (u8x64::splat(simd, b'\n'), u8x64::splat(simd, 0x1b));
    let lane = u8x64::from_fn(simd, |lane| lane as u8);
    let mut halves = [[(none, none); WINDOW]; GROUPS];
    for group in 0..GROUPS {
        for place in 0..WINDOW {
            let (low, high) = tables[group][place].split_at(LANES);
            halves[group][place] = (u8x64::from_slice(simd, low), u8x64::from_slice(simd, high));
        }
    }
    let (mut at, mut kept) = (0, 0);
    while let Some(bytes) = hay.get(at..at + NEEDED) {
        let first = u8x64::from_slice(simd, &bytes[..LANES]);
        newlines[at / LANES] = first.simd_eq(newline).to_bitmask();
        escapes[at / LANES] = first.simd_eq(escape).to_bitmask();
        let mut values = [none; WINDOW];
        for place in 0..WINDOW {
            values[place] = u8x64::from_slice(simd, &bytes[place..place + LANES]) & value;
        }
        let mut any = none;
        for group in &halves {
            let mut buckets = group[0].0.concat_swizzle_dyn(group[0].1, values[0]);
            for place in 1..WINDOW {
                buckets &= group[place].0.concat_swizzle_dyn(group[place].1, values[place]);
            }
            any |= buckets;
        }
        let through = !any.simd_eq(none);
        let count = through.to_bitmask().count_ones() as usize;
        // Packs the lanes together in a few instructions: taking the mask apart bit by bit cost as much as the sieve itself.
        let mut lanes = [0; LANES];
        lane.compress(through).store_slice(&mut lanes);
        let begin = base + at as u32;
        let batches = places[kept..kept + LANES].chunks_exact_mut(BATCH).zip(lanes.chunks_exact(BATCH));
        for (places, lanes) in batches.take(count.div_ceil(BATCH)) {
            for (place, lane) in places.iter_mut().zip(lanes) {
                *place = begin + u32::from(*lane);
            }
        }
        kept += count;
        at += LANES;
    }
    (at, kept)
}
