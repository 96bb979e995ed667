//! The daemon: what it guarantees, part by part and as a whole.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod entries;
mod forget;
mod found;
mod full;
mod identity;
mod keys;
mod kill;
mod killing;
mod ledger;
mod model;
mod proof;
mod restart;
mod rig;
#[path = "../support/seed.rs"]
mod seed;
mod silence;
mod sinks;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../invariants/support.rs"]
#[allow(dead_code, reason = "the invariants use all of it")]
mod support;
mod unfinished;
