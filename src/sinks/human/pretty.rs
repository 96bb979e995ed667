//! Errors for a person at a terminal: head, place, the lines with their numbers, advice. Log
//! text passes the sanitiser; long errors lose their middle. No log line is ever written bare.

use std::borrow::Cow;

use super::{Paint, log_name, sanitise};
use crate::core::event::{Event, RetryClass, Severity};
use crate::sinks::record::Envelope;

/// Maximum lines to show of one error.
const MAX_LINES: usize = 24;

/// Maximum characters to show of a line, and how many of them come from its beginning.
const MAX_CHARS: usize = 1000;
const FIRST_CHARS: usize = 700;

/// Appends one event and a blank line.
pub fn pretty(out: &mut Vec<u8>, envelope: &Envelope, event: &Event, paint: Paint) {
    let mut page = Page { out: String::with_capacity(512), paint };
    page.head(event);
    page.place(envelope, event);
    page.lines(event);
    page.advice(event);
    page.out.push('\n');
    out.extend_from_slice(page.out.as_bytes());
}

struct Page {
    out: String,
    paint: Paint,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn head(&mut self, event: &Event) {
        let label = self.paint.severity(event.severity, &format!("{}[{}]", event.severity, event.category));
        let text = self.paint.bold(&shown(&event.text));
        self.line(&format!("{label} {text}"));
    }

    fn place(&mut self, envelope: &Envelope, event: &Event) {
        let arrow = self.paint.dim("  -->");
        let mut log = format!("{arrow} {}:{}", sanitise(log_name(envelope)), event.line_num);
        if let Some(key) = &event.key {
            log.push_str(&format!(" ({})", sanitise(key)));
        }
        self.line(&log);
        if let Some(place) = &event.location {
            let numbers: String = [place.line, place.column].iter().take_while(|&&n| n > 0).map(|n| format!(":{n}")).collect();
            self.line(&format!("{arrow} {}{numbers}", sanitise(&place.file)));
        }
    }

    fn lines(&mut self, event: &Event) {
        let rows = rows(event);
        let width = rows.iter().filter_map(|row| row.num).max().map_or(1, |num| num.to_string().len());
        // A note about a single hidden line would take as much room as the line.
        let hidden = match rows.len().saturating_sub(MAX_LINES) {
            1 => 0,
            count => count,
        };
        for (index, row) in rows.iter().enumerate() {
            if hidden > 0 && index == MAX_LINES / 2 {
                let note = self.paint.dim(&format!("{:width$} ⋮ {hidden} more lines", ""));
                self.line(&note);
            }
            if hidden == 0 || index < MAX_LINES / 2 || index >= MAX_LINES / 2 + hidden {
                self.row(row, width, event.severity);
            }
        }
    }

    fn row(&mut self, row: &Row, width: usize, severity: Severity) {
        let num = row.num.map_or(String::new(), |num| num.to_string());
        let text = shown(row.text);
        let line = if row.error {
            format!("{}{} {text}", self.paint.dim(&format!("{num:>width$} ")), self.paint.severity(severity, "▎"))
        } else {
            self.paint.dim(&format!("{num:>width$} │ {text}"))
        };
        self.line(&line);
    }

    fn advice(&mut self, event: &Event) {
        if let Some(hint) = &event.hint {
            let line = format!("{} {}", self.paint.bold("  hint:"), sanitise(hint));
            self.line(&line);
        }
        let retry = match event.retry.class {
            class @ RetryClass::Transient => format!("retry: {class} ({})", sanitise(&event.retry.reason)),
            class => format!("retry: {class}"),
        };
        let line = self.paint.dim(&format!("  {retry} · cause: {} · rule: {} · signature: {}", event.cause, sanitise(&event.rule), event.signature));
        self.line(&line);
    }
}

/// Returns a line that is safe for a terminal; a long one loses its middle.
fn shown(text: &str) -> Cow<'_, str> {
    let text = sanitise(text);
    let count = if text.len() > MAX_CHARS { text.chars().count() } else { 0 };
    if count <= MAX_CHARS {
        return text;
    }
    let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let (first, last) = (&text[..at(FIRST_CHARS)], &text[at(count - (MAX_CHARS - FIRST_CHARS))..]);
    format!("{first} … {} characters … {last}", count - MAX_CHARS).into()
}

/// A line of the log to show.
struct Row<'a> {
    num: Option<u64>,
    text: &'a str,
    error: bool,
}

/// Returns the context before, the error, and the context after. The error's lines are numbered if they are consecutive.
fn rows(event: &Event) -> Vec<Row<'_>> {
    let context: Vec<Row> = event.context.iter().filter_map(numbered).collect();
    let whole = event.line_end - event.line_num.min(event.line_end) + 1 == event.multiline.len() as u64;
    let error = event.multiline.iter().enumerate();
    let error = error.map(|(index, text)| Row { num: (whole || index == 0).then(|| event.line_num + index as u64), text, error: true });
    // Line numbers within a record's own text start at 1, so lines that the error already shows are recognised by their text.
    let is_apart = !context.is_empty() && !context.iter().any(|row| within(event, row));
    let is_shown = |row: &Row| within(event, row) || (is_apart && event.multiline.iter().any(|line| line == row.text));
    let (before, after): (Vec<Row>, Vec<Row>) = context.into_iter().filter(|row| !is_shown(row)).partition(|row| row.num < Some(event.line_num));
    before.into_iter().chain(error).chain(after).collect()
}

fn within(event: &Event, row: &Row) -> bool {
    row.num.is_some_and(|num| event.covers(num))
}

/// Splits `"40: text"` into its number and text.
fn numbered(line: &str) -> Option<Row<'_>> {
    let (num, text) = line.split_once(": ").or_else(|| line.split_once(':'))?;
    Some(Row { num: Some(num.parse().ok()?), text, error: false })
}

/// Counts of events by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally([u64; Severity::ALL.len()]);

impl Tally {
    /// Counts one event.
    pub fn add(&mut self, severity: Severity) {
        self.0[severity as usize] += 1;
    }

    /// Adds the counts of another tally.
    pub fn merge(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// Returns the count of one severity.
    #[must_use]
    pub fn of(&self, severity: Severity) -> u64 {
        self.0[severity as usize]
    }

    /// Returns the total.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns a line such as `3 errors: 1 blocking, 2 high`, worst first.
    #[must_use]
    pub fn line(&self, paint: Paint) -> String {
        let noun = if self.total() == 1 { "error" } else { "errors" };
        let parts: Vec<String> = Severity::ALL.iter().rev().filter(|&&s| self.of(s) > 0).map(|&s| paint.severity(s, &format!("{} {s}", self.of(s)))).collect();
        let colon = if parts.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", paint.bold(&format!("{} {noun}", self.total())), parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_loses_its_middle() {
        assert_eq!(shown("a short one"), "a short one");
        let text: String = ["é".repeat(600), "x".repeat(5000), "ü".repeat(300)].concat();
        let said = shown(&text);
        assert!(said.starts_with(&"é".repeat(600)) && said.ends_with(&"ü".repeat(300)) && said.contains(" … 4900 characters … "), "{said}");
        assert_eq!(shown(&"x".repeat(MAX_CHARS)), "x".repeat(MAX_CHARS));
    }
}
