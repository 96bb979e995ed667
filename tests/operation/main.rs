//! The daemon as its operator sees it: reload, watchdog, health, logs.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod ended;
mod health;
mod keys;
mod lost;
mod messages;
mod metrics;
mod own;
mod reload;
mod rig;
#[path = "../support/skip.rs"]
mod skip;
mod tidy;
#[path = "../support/wait.rs"]
mod wait;
mod watchdog;
mod watching;
