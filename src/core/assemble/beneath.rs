//! What a logger prints below a record has the level of that record: a debug record may show where it was
//! called from, with or without an exception that nobody threw. Asked only where such a trace begins.

use super::Context;
use crate::core::line::{Line, View};
use crate::core::lookback::LookBack;
use crate::core::trace::{OpenTrace, start_row};
use crate::rules::{Kind, Row, Take};
use crate::words::Level;

/// Voids those machines of `trace` that begin at `line` with what only a
/// logger prints, if the record above it has a level at which that is no error.
pub(super) fn heed_record(cx: &Context, trace: &mut OpenTrace, line: &Line, view: View, back: LookBack) {
    let entries = &cx.engine.rules.entries;
    // What is indented is certainly the record's.
    let is_indented = matches!(line.body().first(), Some(b' ' | b'\t'));
    let row = |entry: u16| match &entries[usize::from(entry)].kind {
        Kind::Trace(machine) => start_row(machine, entry, line, view).filter(|row| row.takes_level || is_indented && row.under_record),
        _ => None,
    };
    if trace.rivals().all(|entry| row(entry).is_none()) {
        return;
    }
    let Some((level, names_error)) = back.level_above(line) else { return };
    let is_void = |row: &Row| match level {
        Level::Trace | Level::Debug => is_indented || row.take == Take::Frame || is_bare(row, view.of(line)),
        Level::Info => row.takes_level && row.take == Take::Frame && !names_error,
        _ => false,
    };
    trace.make_void(|entry| row(entry).is_some_and(is_void));
}

/// Whether the head is nothing but an exception: its first word, the
/// class, could stand alone. Words before it are a report of their own.
fn is_bare(row: &Row, head: &[u8]) -> bool {
    let word = head.trim_ascii_start().split(u8::is_ascii_whitespace).next().unwrap_or_default();
    row.regex.is_match(word.strip_suffix(b":").unwrap_or(word))
}
