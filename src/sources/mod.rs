//! Where bytes come from. `expand` turns what a user names into inputs, `input` reads a finished one.
//! Sources know files and folders; they never look into a line.

pub mod clock;
pub mod expand;
pub mod input;
mod zst;
