//! Annotations for a GitHub workflow: `::error file=…,line=…,col=…,title=…::text`, one line each; `warning` and
//! `notice` for lower severities. Log text is sanitised, then escaped as the runner's command syntax requires.

use super::{MAX_MESSAGE_BYTES, placed_headline, sanitise, target};
use crate::core::event::{Event, Severity};
use crate::sinks::record::{Envelope, cut_text};

/// Appends one annotation. An event with a place neither in the code nor in a log file names none.
pub fn github(out: &mut Vec<u8>, envelope: &Envelope, event: &Event) {
    let mut line = format!("::{} ", command(event.severity));
    if event.location.is_some() || envelope.path.is_some() {
        let place = target(envelope, event);
        // As git names it: GitHub matches files by that name.
        let file = place.file.strip_prefix("./").unwrap_or(place.file);
        line.push_str(&format!("file={},line={},", property(file), place.line));
        if let Some(column) = place.column {
            line.push_str(&format!("col={column},"));
        }
    }
    let title = format!("{} ({})", event.category, event.severity);
    let mut text = placed_headline(event).into_owned();
    cut_text(&mut text, MAX_MESSAGE_BYTES);
    line.push_str(&format!("title={}::{}\n", property(&title), data(&text)));
    out.extend_from_slice(line.as_bytes());
}

fn command(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocking | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "notice",
    }
}

/// Escapes the part after the second `::` (actions/toolkit, `command.ts`, `escapeData`).
fn data(text: &str) -> String {
    sanitise(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property (`escapeProperty`).
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
