//! Where bytes come from. `expand` turns the names a user gives into inputs, `exclude` takes some of them away, and `input` reads a finished one, or one until `interrupt`, but
//! neither an `archive` nor what is `binary`. `follow` reads files that grow: `discover` names them, `open` opens them, `bytes` reads at an
//! offset, `content` recognises them, `reader` reads them, `watch` says when. What is not a file is a `flow`. `service` prepares and runs
//! such a source: a `socket`, with `tls` and a `codec` that finds the frames; a `command` (with `argv` as records show it); or `stdin`.
//! `cursor` keeps the position of a source that can be read again. Sources know files, folders and sockets; they never look into a line.

pub mod archive;
pub mod argv;
pub mod binary;
pub mod bytes;
pub mod clock;
pub mod codec;
pub mod command;
pub mod content;
pub mod cursor;
pub mod discover;
pub mod exclude;
pub mod expand;
pub mod flow;
pub mod follow;
pub mod foreign;
mod gz;
pub mod input;
pub mod interrupt;
pub mod open;
pub mod own;
pub mod reader;
pub mod service;
pub mod silence;
pub mod socket;
mod stdin;
pub mod tls;
pub mod watch;
mod zst;
