//! Where the processor has AVX2, a loop compiled for it: the same code, which there takes fewer instructions. Serves the
//! prefilter's hot loop; what it computes is the same everywhere.

#[cfg(target_arch = "x86_64")]
use fearless_simd::{Level, Simd};

/// Runs `work`, which is to be inlined, with what the processor has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn widest<R>(work: impl FnOnce() -> R) -> R {
    match Level::new().as_avx2() {
        Some(avx2) => avx2.vectorize(work),
        None => work(),
    }
}

/// Runs `work`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn widest<R>(work: impl FnOnce() -> R) -> R {
    work()
}
