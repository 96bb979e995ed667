//! What the fields of a structured record say besides its text: the name and code of a pipeline's error, an errno, an HTTP
//! status, an exit code. Called by `record` for records that are known to be errors, and to recognise one by its code alone.

use super::classify::{self, Subject};
use super::decode::Record;
use super::engine::{Candidate, Engine};
use super::event::{Category, Event, Retry};
use super::retry::{UNMATCHED, remedy, structured_row};
use crate::rules::Kind;

/// Returns the rule that knows the record's code by itself.
pub fn by_code(engine: &Engine, record: &Record, candidates: &[Candidate]) -> Option<u16> {
    let code = record.code.as_deref()?;
    structured_row(None, Some(code), None)?;
    let knows = |entry: &u16| matches!(&engine.rules.entries[usize::from(*entry)].kind, Kind::Rule(regex) if regex.is_match(code.as_bytes()));
    candidates.iter().map(|candidate| candidate.entry).find(knows)
}

/// Returns the rule that spells out the whole record, from its first brace.
pub fn by_shape(engine: &Engine, body: &[u8], candidates: &[Candidate]) -> Option<u16> {
    let knows = |entry: &u16| matches!(&engine.rules.entries[usize::from(*entry)].kind, Kind::Rule(regex) if regex.spells_records() && regex.is_match(body));
    candidates.iter().map(|candidate| candidate.entry).find(knows)
}

/// Returns the name of the error: from a field for it, or from one that
/// may also name a logger, if the table of structured errors knows it.
pub fn name(record: &Record) -> Option<&str> {
    let named = record.name.as_deref().filter(|name| structured_row(Some(name), record.code.as_deref(), None).is_some());
    record.kind.as_deref().or(named.filter(|name| name.ends_with("Error")))
}

/// Adds to an event what the fields of its record say.
pub fn restate(engine: &Engine, record: &Record, event: &mut Event) {
    if let Some(row) = structured_row(name(record), record.code.as_deref(), record.operation.as_deref()) {
        let reset_at = event.retry.reset_at.take();
        event.retry = Retry { class: row.class, reason: row.reason.as_str().into(), remedy: remedy(row.class, event.cause), reset_at };
        return;
    }
    if record.code.is_none() && record.status.is_none() && record.exit_code.is_none() {
        return;
    }
    let text = format!("{} {}", event.text, record.code.as_deref().unwrap_or_default());
    let verdict = classify::classify(&Subject {
        text: &text,
        kind: record.kind.as_deref(),
        whole: event.multiline.as_str(),
        language: event.language.as_deref(),
        exit_code: record.exit_code.or_else(|| record.code.as_deref()?.parse().ok()),
        status: record.status,
        ..Subject::default()
    });
    if event.category == Category::UnknownError {
        (event.category, event.cause) = (verdict.category, verdict.cause);
        event.severity = engine.limits.severity_override(&event.rule, event.category).unwrap_or(verdict.severity);
    }
    if event.retry.reason == UNMATCHED {
        event.retry = Retry { remedy: remedy(verdict.retry.class, event.cause), ..verdict.retry };
    }
}
