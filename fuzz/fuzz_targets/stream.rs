//! Any bytes in any chunks: `cargo fuzz run stream` (fuzz/README.md). The body is that of
//! `tests/fuzz_smoke`, which plain `cargo test` runs.
#![no_main]

#[path = "../../tests/fuzz_smoke/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|input: &[u8]| body::check(input));
