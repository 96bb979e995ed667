//! The only place that asks the system for the time. The core gets time as a value.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::core::event::Timestamp;

/// Returns the current time; a clock before 1970 reads as 1970.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_micros() as i64)
}
