//! Where records go. `record` is the NDJSON contract; `human` the forms for people.

pub mod human;
pub mod record;
