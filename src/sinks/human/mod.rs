//! The forms for people and their tools: pretty, github, unix. Each writes log text only through
//! `sanitise`. They format an event and its envelope; they never decide what is an error.

pub mod breaker;
pub mod chart;
mod github;
mod headline;
mod paint;
mod pretty;
mod sanitise;
mod telling;
mod unix;

pub use github::github;
pub use headline::{beyond, placed_headline};
pub use paint::Paint;
pub use pretty::{Tally, pretty};
pub use sanitise::sanitise;
pub use telling::{telling, titles};
pub use unix::unix;

use super::record::Envelope;
use crate::core::event::Event;

/// Maximum bytes of a message on one line: GitHub refuses annotations of more than 64 KiB, and nobody reads so long a line in an editor.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// Where an editor should jump to: the event's own location, else its line in the log.
struct Target<'a> {
    file: &'a str,
    line: u64,
    column: Option<u32>,
}

fn target<'a>(envelope: &'a Envelope, event: &'a Event) -> Target<'a> {
    match &event.location {
        Some(place) if !place.file.is_empty() => {
            Target { file: &place.file, line: u64::from(place.line.max(1)), column: Some(place.column).filter(|&column| column > 0) }
        }
        _ => Target { file: log_name(envelope), line: event.line_num, column: None },
    }
}

fn log_name(envelope: &Envelope) -> &str {
    envelope.path.as_deref().unwrap_or(&envelope.name)
}
