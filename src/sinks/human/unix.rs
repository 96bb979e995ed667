//! `file:line:col: severity: text`, the form that editors can jump to (vim's quickfix, emacs' compile mode).

use super::{MAX_MESSAGE_BYTES, placed_headline, sanitise, target};
use crate::core::event::Event;
use crate::sinks::record::{Envelope, cut_text};

/// Appends one line. A column that the log does not state is 1.
pub fn unix(out: &mut Vec<u8>, envelope: &Envelope, event: &Event) {
    let place = target(envelope, event);
    let mut text = placed_headline(event).into_owned();
    cut_text(&mut text, MAX_MESSAGE_BYTES);
    let (file, text) = (sanitise(place.file), sanitise(&text));
    let line = format!("{file}:{}:{}: {}: {text}\n", place.line, place.column.unwrap_or(1), event.severity);
    out.extend_from_slice(line.as_bytes());
}
