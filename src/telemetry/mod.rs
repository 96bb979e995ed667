//! What siftd says of itself: its messages (`log`) and its counters (`metrics`, and `families`, their names).
//! At the bottom of the layering: readers, sinks and the state count here, and nothing here asks them anything.

pub mod families;
mod log;
pub mod metrics;

pub use log::init;
pub use metrics::metrics;
