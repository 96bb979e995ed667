//! The errors that `siftd breaker record` is given: read from the line that names one, or from a verdict, and added to
//! the history. Their text is kept only there, for `check`, `status` and `history`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{Failure, identity};
use super::desk::Desk;
use crate::core::engine::Engine;
use crate::core::event::{Category, Event, Hex, Io, Severity, Timestamp};
use crate::core::extract::Origin;
use crate::core::redact::clean;
use crate::delivery::{Label, Record, Weight};
use crate::sources::clock::now;
use crate::state::shared::{Incoming, Shared};
use crate::verdict::counts::{self, Fault};
use crate::verdict::{self, Said};

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

    /// Creates an error from a line of which nothing more is known.
    fn of_line(text: &str) -> Self {
        Self::new(counts::of_line(text), (Severity::Medium, Category::UnknownError), "", text)
    }

    fn of_event(event: &Event) -> Self {
        Self::new(event.signature, (event.severity, event.category), &event.rule, &event.text)
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

/// What lines that name errors come to.
#[derive(Default)]
pub struct Named {
    /// For the history.
    pub told: Vec<Told>,
    /// For the breaker.
    pub faults: Vec<Fault>,
    /// What `siftd judge` would find in them as the stderr of a run.
    pub said: Said,
}

impl Named {
    /// Reads the lines that the user has given, blank ones aside.
    ///
    /// # Errors
    /// The rules cannot be loaded.
    pub fn given(desk: &Desk, lines: &[String]) -> Result<Self, Failure> {
        let mut named = Self::default();
        let mut lines = lines.iter().filter(|line| !line.trim().is_empty()).peekable();
        if lines.peek().is_some() {
            let engine = desk.engine()?;
            lines.for_each(|line| named.read(&engine, line));
        }
        Ok(named)
    }

    /// Reads a line as `siftd judge` does. If it finds nothing there that counts, the line itself is the error.
    fn read(&mut self, engine: &Arc<Engine>, line: &str) {
        let uid = identity::hash(&[b"siftd-breaker-1", line.as_bytes()]);
        let mut said = Said::default();
        let [events] = verdict::read(engine, [(Origin { uid, generation: 0 }, line.as_bytes())], false, now());
        said.add(Io::Stderr, events);
        let faults: Vec<Fault> = said.errors.iter().map(Fault::of).collect();
        if faults.iter().all(|fault| fault.weight == Weight::None) {
            self.told.push(Told::of_line(line));
            self.faults.push(Fault::of_line(line));
        } else {
            self.told.extend(said.errors.iter().map(Told::of_event));
            self.faults.extend(faults);
            self.said.join(&said);
        }
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
    shared.take_in(Incoming { label: &label, records: &records, body: &body }, |_, _| (), at).map(drop)
}
