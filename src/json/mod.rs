//! How siftd writes JSON (RFC 8259) without values in between, with the members in the order in which they are given: `Writer` for what
//! is written once per event, `Object` for everything else. Neither knows what the members mean; that is for `sinks::record` (errors),
//! `sinks::notice` (all other records), `verdict` and `digest`.

mod object;
mod writer;

pub use object::Object;
pub use writer::Writer;
