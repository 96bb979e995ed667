//! siftd as a service: its units, installation and removal, and a real service manager that runs it.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod files;
mod manager;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/wait.rs"]
mod wait;
