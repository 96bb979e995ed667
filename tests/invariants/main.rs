//! The invariants of the core. Each has tests that are named after it:
//! 1. The core is sync and cannot fail: bytes and the time in, events out. It knows no file, clock, thread or logger.
//! 2. What is searched first may pass too much, never too little: the events are those of asking every rule about every line.
//! 3. A block without a hit, and without anything open, costs one search; nothing is decoded for it.
//! 4. An open trace or region sees every line of its stream.
//! 5. Chunks and pauses change neither ids nor line numbers.
//! 6. Streams and writers do not mix.
//! 7. Everything is bounded, and reaching a bound shows.
//! 9. Time is an argument: deadlines are told, and kept by whoever can wait.
//! 10. Rules are data: no rule is named in the code.
//! 11. Text is a claim, not evidence: what a program prints can hide no error, forge nothing and smuggle nothing into a terminal.
//!
//! The eighth, that one transaction is the truth, is a matter of the state and tested with the daemon.
#![allow(clippy::unwrap_used)]

mod belonging;
mod bounds;
mod chunking;
mod claims;
mod layers;
mod prefilter;
mod quiet;
mod records;
mod support;
mod time;
mod writers;
