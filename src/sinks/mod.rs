//! Where records go. `record` is the NDJSON contract; `human` the forms for people and their tools.

pub mod human;
pub mod record;
