//! One error of a digest, taken from an event or from a record that siftd wrote earlier.

use serde_json::Value;

use crate::core::event::{Category, Event, Severity};
use crate::sinks::human::{beyond, sanitise, telling, titles};

/// Maximum number of frames shown.
const MAX_FRAMES: usize = 3;
/// Maximum number of further lines shown for an error without frames.
const MAX_LINES: usize = 8;

/// An error and its number of occurrences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Severity.
    pub severity: Severity,
    /// Category.
    pub category: String,
    /// The line that names it.
    pub text: String,
    /// `file:line:column`.
    pub place: Option<String>,
    /// `function (file:line)`, frames of the program first.
    pub frames: Vec<String>,
    /// What it says beyond that line.
    pub message: Option<String>,
    /// Its other lines.
    pub lines: Vec<String>,
    /// What usually fixes it.
    pub hint: Option<String>,
    /// Identifies the error.
    pub signature: String,
    /// Number of occurrences.
    pub count: u64,
}

impl Item {
    /// Creates an item from an event.
    #[must_use]
    pub fn new(event: &Event) -> Self {
        let frames: Vec<(bool, String)> =
            event.exception.iter().flat_map(|said| said.frames.iter()).map(|frame| (frame.in_app, shown(frame.function, frame.file, frame.line))).collect();
        let said = event.exception.as_ref().map(|exception| exception.message.as_str());
        let message = beyond(&event.text, said, event.category == Category::TestFailure, event.multiline.iter());
        let place = event.location.as_ref().map(|place| place_of(&place.file, u64::from(place.line), u64::from(place.column)));
        Self {
            severity: event.severity,
            category: event.category.as_str().to_owned(),
            text: clean(&event.text),
            place,
            frames: first_of_program(frames),
            lines: others(event.multiline.iter(), &event.text, message.as_deref()),
            message: message.map(|message| clean(&message)),
            hint: event.hint.as_deref().map(clean),
            signature: event.signature.to_string(),
            count: 1,
        }
    }

    /// Creates an item from a record of kind `error`; `None` for any other value.
    #[must_use]
    pub fn of_record(record: &Value) -> Option<Self> {
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        if text("kind") != Some("error") || record.get("schema").and_then(Value::as_u64) != Some(1) {
            return None;
        }
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
        let number = |of: &Value, name: &str| of.get(name).and_then(Value::as_u64).unwrap_or_default();
        let string = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let frames = list(record.pointer("/exception/frames"));
        let frames = frames.iter().map(|frame| {
            let line = u32::try_from(number(frame, "line")).unwrap_or_default();
            (frame.get("in_app") == Some(&Value::Bool(true)), shown(&string(frame, "function"), &string(frame, "file"), line))
        });
        let named = text("text")?;
        let category = text("category")?;
        let said = record.pointer("/exception/message").and_then(Value::as_str);
        let lines = list(record.get("multiline"));
        let lines = lines.iter().filter_map(Value::as_str);
        let message = beyond(named, said, category == Category::TestFailure.as_str(), lines.clone());
        Some(Self {
            severity: Severity::parse(text("severity")?)?,
            category: clean(category),
            text: clean(named),
            place: record.get("location").map(|place| place_of(&string(place, "file"), number(place, "line"), number(place, "column"))),
            frames: first_of_program(frames.collect()),
            lines: others(lines, named, message.as_deref()),
            message: message.map(|message| clean(&message)),
            hint: text("hint").map(clean),
            signature: text("signature")?.to_owned(),
            count: 1,
        })
    }

    /// Returns what follows the first line, the most useful details first.
    pub fn details(&self) -> Vec<String> {
        let mut details: Vec<String> = self.message.iter().map(|message| format!("| {message}")).collect();
        details.extend(self.place.iter().filter(|place| !self.states(place)).map(|place| format!("at {place}")));
        details.extend(self.frames.iter().map(|frame| format!("at {frame}")));
        details.extend(self.hint.iter().map(|hint| format!("hint: {hint}")));
        if self.frames.is_empty() {
            let is_said = |line: &&String| self.message.as_ref().is_some_and(|message| message.contains(line.trim()));
            details.extend(self.lines.iter().filter(|line| !is_said(line)).map(|line| format!("| {line}")));
        }
        details
    }

    /// Whether the text or a frame, which has no column, states the place.
    fn states(&self, place: &str) -> bool {
        let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let line = match place.rsplit_once(':') {
            Some((line, _)) if line.rsplit_once(':').is_some_and(|(_, last)| number(last)) => line,
            _ => place,
        };
        self.text.contains(place) || self.frames.iter().any(|frame| frame.contains(&format!("{line})")) || frame == line)
    }
}

fn clean(text: &str) -> String {
    sanitise(text.trim_end()).into_owned()
}

fn place_of(file: &str, line: u64, column: u64) -> String {
    let number = |number: u64| if number > 0 { format!(":{number}") } else { String::new() };
    clean(&format!("{file}{}{}", number(line), if line > 0 { number(column) } else { String::new() }))
}

fn shown(function: &str, file: &str, line: u32) -> String {
    let place = place_of(file, u64::from(line), 0);
    match (function.is_empty(), place.is_empty()) {
        (true, _) => place,
        (_, true) => clean(function),
        _ => format!("{} ({place})", clean(function)),
    }
}

/// Returns the frames of the program; if there are none, those closest to the crash.
fn first_of_program(frames: Vec<(bool, String)>) -> Vec<String> {
    let (own, others): (Vec<_>, Vec<_>) = frames.into_iter().partition(|(in_app, _)| *in_app);
    let wanted = if own.is_empty() { others } else { own };
    wanted.into_iter().map(|(_, frame)| frame).take(MAX_FRAMES).collect()
}

/// Returns the lines that tell more: those from the one that says what is wrong on, then those above it, then what titles say.
fn others<'a>(lines: impl Iterator<Item = &'a str> + Clone, text: &str, message: Option<&str>) -> Vec<String> {
    let told: Vec<&str> = telling(lines.clone()).collect();
    let says = |line: &&str| message.is_some_and(|message| message.starts_with(line.trim()));
    let at = told.iter().position(says).or_else(|| told.iter().position(|line| line.trim() == text.trim())).unwrap_or(0);
    let (above, below) = told.split_at(at);
    let rest = below.iter().chain(above).copied().chain(titles(lines));
    rest.filter(|line| line.trim() != text.trim()).take(MAX_LINES).map(clean).collect()
}
