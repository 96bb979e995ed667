//! What siftd says of itself: its messages (`log`) and its counters (`metrics`, and `families`,
//! their names); `notify` is for the service manager.
//! At the bottom of the layering: readers, sinks and the state count here, and nothing here asks them anything.

pub mod families;
pub mod http;
pub mod log;
pub mod metrics;
pub mod notify;
mod status;

pub use metrics::metrics;
