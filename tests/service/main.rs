//! siftd as a service: its units, how they are installed and removed, and a real service manager with them.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod files;
mod manager;
#[path = "../support/wait.rs"]
mod wait;
