//! Where bytes come from. `expand` turns what a user names into inputs and `input` reads a finished one;
//! `discover`, `file` and `follow` follow files that grow, woken by `watch`.
//! Sources know files and folders; they never look into a line.

pub mod clock;
pub mod discover;
pub mod expand;
pub mod file;
pub mod follow;
pub mod input;
pub mod watch;
mod zst;
