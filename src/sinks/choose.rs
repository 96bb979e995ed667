//! Which records a sink wants, and under which field names: a pure function of the
//! committed record, so that the same record gives the same bytes after any restart.

use serde_json::Value;

use super::schema;
use crate::config::Schema;
use crate::core::event::{Category, Severity};
use crate::delivery::{Chunk, FOR_SINK, Head};

/// What a sink wants.
#[derive(Clone, Debug)]
pub struct Choose {
    /// The name of the sink.
    pub name: String,
    /// Errors of lower severity are left out; records that are not errors stay.
    pub min_severity: Severity,
    /// Only these categories, unless empty.
    pub categories: Vec<Category>,
    /// Only these sources, unless empty.
    pub sources: Vec<String>,
    /// The schema of the field names.
    pub schema: Schema,
}

impl Choose {
    /// Whether every record of a chunk is wanted unchanged; may say no where the answer is yes.
    #[must_use]
    pub fn takes_all(&self, chunk: &Chunk) -> bool {
        let asks_nothing = self.categories.is_empty() && self.sources.is_empty() && self.schema == Schema::Native;
        let is_wanted = |head: &Head| head.kind.is_some_and(|(severity, _)| severity >= self.min_severity);
        asks_nothing && chunk.heads.iter().all(is_wanted)
    }

    /// Appends the record as the sink wants it, or nothing if the sink does not want it.
    pub fn write(&self, head: Head, record: &[u8], out: &mut Vec<u8>) {
        if let Some((severity, category)) = head.kind
            && (severity < self.min_severity || !self.categories.is_empty() && !self.categories.contains(&category))
        {
            return;
        }
        if head.kind.is_none() && self.is_for_another(record) {
            return;
        }
        if self.sources.is_empty() && self.schema == Schema::Native {
            return out.extend_from_slice(record);
        }
        let Ok(value) = serde_json::from_slice::<Value>(record) else { return out.extend_from_slice(record) };
        let source = value["source"]["name"].as_str().unwrap_or_default();
        let is_own = value["source"]["type"] == FOR_SINK;
        if !is_own && !self.sources.is_empty() && !self.sources.iter().any(|name| name == source) {
            return;
        }
        let named = match self.schema {
            Schema::Native => return out.extend_from_slice(record),
            Schema::Ecs => schema::ecs(&value),
            Schema::Otel => schema::otel(&value),
        };
        out.extend_from_slice(named.to_string().as_bytes());
        out.push(b'\n');
    }

    /// Counts the records of a chunk after number `seq` that are wanted.
    #[must_use]
    pub fn count(&self, chunk: &Chunk, seq: u64) -> u64 {
        let mut space = Vec::new();
        let mut is_wanted = |(_, head, record): &(u64, Head, &[u8])| {
            space.clear();
            self.write(*head, record, &mut space);
            !space.is_empty()
        };
        chunk.after(seq).filter(|record| is_wanted(record)).count() as u64
    }

    /// Whether a record reports what another sink has left out: it concerns that sink alone.
    fn is_for_another(&self, record: &[u8]) -> bool {
        let Ok(value) = serde_json::from_slice::<Value>(record) else { return false };
        value["source"]["type"] == FOR_SINK && value["source"]["name"] != self.name.as_str()
    }
}
