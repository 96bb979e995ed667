//! What siftd reports about itself: messages (`log`), counters (`metrics`, with their names in `families`), and
//! notifications to the service manager (`notify`). This is the bottom of the layering: readers, sinks and the state
//! update the counters, and nothing here calls them.

pub mod families;
pub mod http;
pub mod log;
pub mod metrics;
pub mod notify;
mod status;

pub use metrics::metrics;
