//! Adds the errors that `siftd breaker record` is given to the history. Their text is kept
//! only there, for `check`, `status` and `history`. Nothing here counts for a breaker.

use serde_json::{Value, json};

use crate::core::event::{Category, Hex, Severity, Timestamp};
use crate::core::redact::clean;
use crate::delivery::{Label, Record, Weight};
use crate::sources::clock::now;
use crate::state::shared::Shared;
use crate::verdict::counts;

/// One error that was reported.
pub struct Told {
    signature: Hex,
    severity: Severity,
    category: Category,
    /// When it was observed, if it comes from a record.
    observed: Option<Timestamp>,
    /// Its record, with the members that the history reads.
    line: Vec<u8>,
}

impl Told {
    fn new(signature: Hex, (severity, category): (Severity, Category), rule: &str, text: &str) -> Self {
        let mut line = format!("{{\"kind\":\"error\",\"text\":{},\"rule\":{}}}", json!(clean(text.trim())), json!(rule)).into_bytes();
        line.push(b'\n');
        Self { signature, severity, category, observed: None, line }
    }

    /// Creates an error from a line that names it; nothing more is known.
    pub fn of_line(text: &str) -> Self {
        Self::new(counts::of_line(text), (Severity::Medium, Category::UnknownError), "", text)
    }

    /// Returns the errors of a verdict.
    pub fn of_verdict(verdict: &Value) -> Vec<Self> {
        let errors = verdict.get("errors").and_then(Value::as_array).into_iter().flatten();
        errors.filter_map(Self::of_record).collect()
    }

    fn of_record(record: &Value) -> Option<Self> {
        let word = |name: &str| record.get(name).and_then(Value::as_str);
        let severity = word("severity").and_then(Severity::parse).unwrap_or(Severity::Medium);
        let category = word("category").and_then(Category::parse).unwrap_or(Category::UnknownError);
        let told = Self::new(Hex::parse(word("signature")?)?, (severity, category), word("rule").unwrap_or_default(), word("text")?);
        let observed = word("observed_at").and_then(|time| time.parse::<jiff::Timestamp>().ok());
        Some(Self { observed: observed.map(|time| Timestamp(time.as_microsecond()).min(now())), ..told })
    }

    /// Whether the history already has the error, as for a run that `siftd exec` supervised with the same state.
    fn is_known(&self, shared: &Shared) -> Result<bool, String> {
        let Some(observed) = self.observed else { return Ok(false) };
        Ok(shared.begin_with(&self.signature)?.iter().any(|entry| entry.row.last >= observed))
    }
}

/// Adds the errors to the history, if one is kept, as seen in the runs of a breaker.
///
/// # Errors
/// The errors of the state, worded for the user.
pub fn remember(shared: &mut Shared, name: &str, all: &[Told]) -> Result<(), String> {
    let mut new: Vec<&Told> = Vec::new();
    for told in all {
        if !told.is_known(shared)? {
            new.push(told);
        }
    }
    if new.is_empty() {
        return Ok(());
    }
    let at = now();
    let record = |told: &&Told| Record {
        len: told.line.len() as u32,
        generation: 0,
        offset: 0,
        inner: 0,
        id: String::new(),
        signature: told.signature,
        severity: told.severity,
        category: told.category,
        at: told.observed.unwrap_or(at),
        seen_at: 0,
        weight: Weight::None,
        session: None,
    };
    let records: Vec<Record> = new.iter().map(record).collect();
    let body: Vec<u8> = new.iter().flat_map(|told| told.line.iter().copied()).collect();
    let label = Label { source: name.to_owned(), kind: "command", ..Label::default() };
    // The resulting lines are not needed.
    shared.take_in((&label, &records), &body, &|_, _| (), at).map(drop)
}
