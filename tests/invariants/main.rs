//! The invariants of the core (ARCHITECTURE): each has one or more tests that are named after it.
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
