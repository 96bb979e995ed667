//! Annotations for a GitHub workflow: `::error file=…,line=…,col=…,title=…::text`, one line each.
//! The text of the log is sanitised, then escaped as the runner's command syntax asks.

use super::{sanitise, target};
use crate::core::event::Event;
use crate::sinks::record::Envelope;

/// Appends one annotation.
pub fn github(out: &mut Vec<u8>, envelope: &Envelope, event: &Event) {
    let place = target(envelope, event);
    let mut line = format!("::error file={},line={}", property(place.file), place.line);
    if let Some(column) = place.column {
        line.push_str(&format!(",col={column}"));
    }
    let title = format!("{} ({})", event.category, event.severity);
    line.push_str(&format!(",title={}::{}\n", property(&title), data(&event.text)));
    out.extend_from_slice(line.as_bytes());
}

/// The part behind the second `::` (actions/toolkit, `command.ts`, `escapeData`).
fn data(text: &str) -> String {
    sanitise(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property (`escapeProperty`).
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
