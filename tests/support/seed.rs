//! The seed of a test that does something at random.

/// Returns `SIFTD_SEED`, or another seed each time. A test that fails shows what it has printed, and so the seed with which to run it again.
pub fn seed() -> u64 {
    let given = std::env::var("SIFTD_SEED").ok().map(|seed| seed.parse().expect("SIFTD_SEED is a number"));
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("again with SIFTD_SEED={seed}");
    seed
}
