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
        if !self.takes_kind(head) {
            return;
        }
        if self.takes_any_source(head) && self.schema == Schema::Native {
            return out.extend_from_slice(record);
        }
        let Ok(value) = serde_json::from_slice::<Value>(record) else { return out.extend_from_slice(record) };
        if !self.takes_source(&value) {
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
        chunk.after(seq).filter(|(_, head, record)| self.wants(*head, record)).count() as u64
    }

    fn wants(&self, head: Head, record: &[u8]) -> bool {
        let is_of_source = || serde_json::from_slice(record).map_or(true, |value| self.takes_source(&value));
        self.takes_kind(head) && (self.takes_any_source(head) || is_of_source())
    }

    fn takes_kind(&self, head: Head) -> bool {
        head.kind.is_none_or(|(severity, category)| severity >= self.min_severity && (self.categories.is_empty() || self.categories.contains(&category)))
    }

    /// Whether the record is wanted whatever its source: only one that is not an error may concern another sink.
    fn takes_any_source(&self, head: Head) -> bool {
        self.sources.is_empty() && head.kind.is_some()
    }

    fn takes_source(&self, record: &Value) -> bool {
        let source = &record["source"];
        if source["type"] == FOR_SINK {
            // It reports what a sink has left out, and concerns that sink alone.
            return source["name"] == self.name.as_str();
        }
        self.sources.is_empty() || self.sources.iter().any(|name| source["name"] == name.as_str())
    }
}
