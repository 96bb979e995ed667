//! Any bytes to every function that reads a text: `cargo fuzz run texts` (fuzz/README.md). The body is that of
//! `tests/fuzz_smoke`, which plain `cargo test` runs.
#![no_main]

#[path = "../../tests/fuzz_smoke/texts.rs"]
mod texts;

libfuzzer_sys::fuzz_target!(|input: &[u8]| texts::check(input));
