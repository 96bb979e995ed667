//! Writes a verdict as one line of JSON, with its keys in the promised order, and a small writer of JSON objects.

use serde_json::json;

use super::{Summary, Verdict};
use crate::core::event::{Retry, RetryClass, Severity};

/// Writes one JSON object, member by member.
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Object<'a> {
    /// Begins an object at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_first: true }
    }

    fn name(&mut self, name: &str) {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        self.out.extend_from_slice(format!("\"{name}\":").as_bytes());
    }

    /// Adds a member; `name` must need no escape.
    pub fn member(&mut self, name: &str, value: impl Into<serde_json::Value>) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(value.into().to_string().as_bytes());
        self
    }

    /// Adds a member if there is a value.
    pub fn optional(&mut self, name: &str, value: Option<impl Into<serde_json::Value>>) -> &mut Self {
        match value {
            Some(value) => self.member(name, value),
            None => self,
        }
    }

    /// Adds a member whose value is already JSON.
    pub fn raw(&mut self, name: &str, json: &[u8]) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(json);
        self
    }

    /// Adds retry advice.
    pub fn retry(&mut self, retry: &Retry) -> &mut Self {
        self.retry_as(retry, retry.class == RetryClass::Transient)
    }

    /// Adds retry advice if the class alone does not say whether another attempt is worthwhile.
    pub fn retry_as(&mut self, retry: &Retry, retryable: bool) -> &mut Self {
        self.name("retry");
        let mut inner = Object::new(self.out);
        inner.member("class", retry.class.as_str()).member("reason", &*retry.reason).member("retryable", retryable);
        inner.member("remedy", retry.remedy.as_str()).optional("reset_at", retry.reset_at.as_deref()).end();
        self
    }

    /// Ends the object.
    pub fn end(&mut self) {
        self.out.push(b'}');
    }
}

/// Appends a verdict without a line end. `errors` are its records, one per line, as `sinks::record` writes them.
pub fn write(out: &mut Vec<u8>, verdict: &Verdict, errors: &[u8], counts: &Summary) {
    write_members(out, verdict, Some(errors), counts);
}

/// Like `write`, but without the member `errors` if `errors` is `None`.
pub fn write_members(out: &mut Vec<u8>, verdict: &Verdict, errors: Option<&[u8]>, counts: &Summary) {
    let facts = &verdict.facts;
    let mut object = Object::new(out);
    object.member("success", verdict.is_success()).member("status", verdict.status.as_str());
    object.optional("error_message", verdict.error_message.as_deref()).optional("error", verdict.error.as_deref());
    if let Some(errors) = errors {
        object.raw("errors", &listed(errors));
    }
    object.raw("summary", summary(counts).as_bytes());
    object.member("cause", verdict.cause.as_str()).retry(&verdict.retry);
    object.optional("exit_code", facts.exit_code).optional("signal", facts.signal).member("timed_out", facts.timed_out);
    object.optional("duration_ms", facts.duration_ms).member("attempts", facts.attempts).member("failures", verdict.failures);
    object.optional("task", facts.task.as_deref()).optional("operation", facts.operation.as_deref()).end();
}

/// Turns lines of JSON into a list.
fn listed(lines: &[u8]) -> Vec<u8> {
    let mut list = vec![b'['];
    for (index, line) in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        if index > 0 {
            list.push(b',');
        }
        list.extend_from_slice(line);
    }
    list.push(b']');
    list
}

fn summary(counts: &Summary) -> String {
    let each: String = Severity::ALL.iter().rev().map(|&severity| format!(",\"{severity}\":{}", counts[severity as usize])).collect();
    format!("{{\"total\":{}{each}}}", json!(counts.iter().sum::<u64>()))
}
