//! What a language model, or a person in a hurry, needs to fix a failure, in few characters: errors by severity,
//! repeats folded, frames of the program first. Takes events or records, returns bounded text. Everything in it
//! was printed by untrusted programs, so it is fenced, labelled, and free of control characters.

mod ended;
mod item;
mod json;
mod quoted;
mod report;
mod text;

use serde_json::Value;

use crate::core::event::{Event, Severity};
use crate::sinks::human::sanitise;
use crate::verdict::{Said, Summary, Verdict};
pub use item::Item;
pub use quoted::Quoted;
pub use report::report;

/// Maximum number of distinct errors; further ones are only counted.
const MAX_ITEMS: usize = 200;

/// The forms of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Plain text.
    Text,
    /// One JSON object.
    Json,
    /// Markdown.
    Markdown,
}

/// Format and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The format.
    pub format: Format,
    /// Maximum number of characters, including fences and labels.
    pub max_chars: usize,
}

/// The errors of a log or of a run, folded and ordered.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    /// Errors below this severity are left out.
    pub least: Option<Severity>,
    /// How the run ended, in one line.
    pub ended: Option<String>,
    /// The last lines of the output, if no error was recognised.
    pub last_words: Vec<String>,
    /// The distinct errors; the most severe first once [`order`](Self::order) has been called.
    pub items: Vec<Item>,
    /// Number of all errors, by severity.
    pub summary: Summary,
}

impl Digest {
    /// Adds an error.
    pub fn add(&mut self, item: Item) {
        if self.least.is_some_and(|least| item.severity < least) {
            return;
        }
        self.summary[item.severity as usize] += 1;
        if let Some(known) = self.items.iter_mut().find(|known| known.signature == item.signature) {
            known.count += 1;
        } else if self.items.len() < MAX_ITEMS {
            self.items.push(item);
        } else if let Some(lesser) = self.items.iter_mut().rev().find(|known| known.severity < item.severity) {
            // A later error may be the one that matters.
            *lesser = item;
        }
    }

    /// Adds an event.
    pub fn event(&mut self, event: &Event) {
        self.add(Item::new(event));
    }

    /// Adds a record that siftd wrote: an error, or how a run of `exec` ended, of which the last counts.
    pub fn record(&mut self, record: &Value) {
        if let Some(item) = Item::of_record(record) {
            if ended::is_of_exec(record) {
                self.ended = Some(ended::UNKNOWN.to_owned());
            }
            self.add(item);
        } else if let Some(ended) = ended::of_record(record) {
            self.ended = Some(ended);
        }
    }

    /// The digest of a supervised run.
    #[must_use]
    pub fn of_run(verdict: &Verdict, said: &Said, argv: &[String]) -> Self {
        let mut digest = Self::default();
        said.errors.iter().for_each(|event| digest.event(event));
        // Includes errors that were counted but not kept.
        digest.summary = said.summary;
        digest.ended = Some(ended::of_run(verdict, argv));
        if digest.items.is_empty() && !verdict.is_success() {
            let words = if said.text.is_empty() { &said.printed } else { &said.text };
            digest.last_words = words.lines().rev().filter(|line| !line.trim().is_empty()).take(12).map(|line| sanitise(line).into_owned()).collect();
            digest.last_words.reverse();
        }
        digest.order();
        digest
    }

    /// Sorts by severity, and within a severity puts errors first that name a place in
    /// the code: consequential errors name none. Otherwise keeps the order of the log.
    pub fn order(&mut self) {
        self.items.sort_by_key(|item| (std::cmp::Reverse(item.severity), item.place.is_none() && item.frames.is_empty()));
    }

    fn total(&self) -> u64 {
        self.summary.iter().sum()
    }

    /// Returns a text such as `3 errors: 1 blocking, 2 high`.
    fn counts(&self) -> String {
        let each: Vec<String> = Severity::ALL
            .iter()
            .rev()
            .filter(|&&severity| self.summary[severity as usize] > 0)
            .map(|&severity| format!("{} {severity}", self.summary[severity as usize]))
            .collect();
        match self.total() {
            0 => "no errors".to_owned(),
            1 => format!("1 error: {}", each.join(", ")),
            total => format!("{total} errors: {}", each.join(", ")),
        }
    }
}

/// Renders the digest in the requested form, with a final line end.
#[must_use]
pub fn render(digest: &Digest, form: &Form) -> String {
    match form.format {
        Format::Json => json::render(digest, form.max_chars),
        Format::Text => text::render(digest, form.max_chars, false),
        Format::Markdown => text::render(digest, form.max_chars, true),
    }
}

#[cfg(test)]
mod tests;
