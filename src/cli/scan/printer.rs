//! Turns events into the requested output format, and decides which events are shown.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::super::args::{Format, ScanArgs};
use super::Paint;
use super::reader::Totals;
use super::target::named;
use crate::core::event::{Category, Event, Severity};
use crate::sinks::human;
use crate::sinks::record::{self, Envelope};
use crate::sinks::sarif;
use crate::words::counted;

/// How far the reading went.
pub struct Reach {
    pub inputs: usize,
    /// Inputs that were not read at all.
    pub unopened: usize,
    /// Inputs that were not read to their end.
    pub unread: usize,
    pub is_interrupted: bool,
}

/// Output format and filter.
pub struct Printer {
    format: Format,
    paint: Paint,
    min_severity: Severity,
    categories: Vec<Category>,
    max_event_bytes: usize,
    /// Rules that the SARIF output has to describe.
    used: Mutex<sarif::Used>,
}

impl Printer {
    pub fn new(args: &ScanArgs, paint: Paint, max_event_bytes: usize) -> Self {
        let usual = || if named(args).is_none() && std::io::stdout().is_terminal() { Format::Pretty } else { Format::Ndjson };
        Self {
            format: args.format.unwrap_or_else(usual),
            paint,
            min_severity: args.reading.min_severity.unwrap_or(Severity::Low),
            categories: args.category.clone(),
            max_event_bytes,
            used: Mutex::default(),
        }
    }

    /// Whether the flags select the event.
    pub fn shows(&self, event: &Event) -> bool {
        event.severity >= self.min_severity && (self.categories.is_empty() || self.categories.contains(&event.category))
    }

    /// Returns what precedes all events.
    pub fn first(&self) -> &'static [u8] {
        match self.format {
            Format::Report => b"{\"errors\":[",
            Format::Sarif => sarif::HEAD,
            _ => b"",
        }
    }

    /// Whether all events are items of a list in one document.
    pub fn is_document(&self) -> bool {
        matches!(self.format, Format::Report | Format::Sarif)
    }

    /// Appends one event. In a document each event follows a comma, even the first:
    /// `order` drops that one. `line` is the event's record, if it already exists.
    pub fn print(&self, out: &mut Vec<u8>, envelope: &Envelope, event: &Event, line: Option<&[u8]>) {
        let record = |out: &mut Vec<u8>| match line {
            Some(line) => out.extend_from_slice(line),
            None => record::write(out, envelope, event, self.max_event_bytes),
        };
        match self.format {
            Format::Ndjson => record(out),
            Format::Report => {
                out.extend_from_slice(b",\n");
                record(out);
                out.pop();
            }
            Format::Pretty => human::pretty(out, envelope, event, self.paint),
            Format::Github => human::github(out, envelope, event),
            Format::Unix => human::unix(out, envelope, event),
            Format::Sarif => {
                self.used.lock().unwrap_or_else(PoisonError::into_inner).add(event);
                sarif::result(out, envelope, event, self.max_event_bytes);
            }
        }
    }

    /// Returns what follows all events.
    pub fn last(&self, totals: &Totals, reach: &Reach, started: Instant) -> Vec<u8> {
        match self.format {
            Format::Sarif => self.used.lock().unwrap_or_else(PoisonError::into_inner).tail(reach.unopened + reach.unread == 0 && !reach.is_interrupted),
            Format::Report => summary(totals).into_bytes(),
            Format::Pretty => {
                let (lines, inputs) = (counted(totals.lines, "line"), counted(reach.inputs as u64, "input"));
                // Without it, no error would look like a clean log.
                let said = |count: usize, how: &str| if count > 0 { format!(" · {count} {how}") } else { String::new() };
                let unread = said(reach.unopened, "not read") + &said(reach.unread, "not read in full");
                format!("{} · {lines} in {inputs}, {:.1} s{unread}\n", totals.tally.line(self.paint), started.elapsed().as_secs_f32()).into_bytes()
            }
            _ => Vec::new(),
        }
    }
}

fn summary(totals: &Totals) -> String {
    let counts: String = Severity::ALL.iter().rev().map(|&severity| format!(",\"{severity}\":{}", totals.tally.of(severity))).collect();
    format!("\n],\"summary\":{{\"total\":{}{counts}}}}}\n", totals.tally.total())
}
