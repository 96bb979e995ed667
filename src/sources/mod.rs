//! Where bytes come from. `expand` turns what a user names into inputs and `input` reads a finished one, or until `interrupt`;
//! `follow` keeps files that grow: `discover` names them, `open` opens them, `bytes` reads at an offset,
//! `content` knows them again,
//! `reader` reads them, `watch` says when.
//! Sources know files and folders; they never look into a line.

pub mod bytes;
pub mod clock;
pub mod content;
pub mod discover;
pub mod expand;
pub mod follow;
pub mod input;
pub mod interrupt;
pub mod open;
pub mod reader;
pub mod silence;
pub mod watch;
mod zst;
