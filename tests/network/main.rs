//! Sources that are not files, in the real daemon: sockets with honest and hostile
//! peers, commands, the journal. Uses only the loopback interface and this machine.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

mod commands;
mod datagrams;
mod hostile;
mod journal;
mod passed;
mod rig;
#[path = "../support/seed.rs"]
mod seed;
mod silence;
#[path = "../support/skip.rs"]
mod skip;
mod streams;
mod tls;
