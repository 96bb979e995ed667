//! Writes a verdict as one line of JSON, with its keys in the promised order.

use super::{Summary, Verdict};
use crate::core::event::{Retry, RetryClass, Severity};
use crate::json::Object;

/// Adds retry advice. `retryable` says whether another attempt is worthwhile, which the class alone may not say.
pub fn write_retry(object: &mut Object, retry: &Retry, retryable: bool) {
    object.object("retry", |inner| {
        inner.member("class", retry.class.as_str()).member("reason", &*retry.reason).member("retryable", retryable);
        inner.member("remedy", retry.remedy.as_str()).optional("reset_at", retry.reset_at.as_deref());
    });
}

/// Adds how many errors of each severity there are.
pub fn write_summary(object: &mut Object, counts: &Summary) {
    object.object("summary", |inner| {
        inner.member("total", counts.iter().sum::<u64>());
        for &severity in Severity::ALL.iter().rev() {
            inner.member(severity.as_str(), counts[severity as usize]);
        }
    });
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
    write_summary(&mut object, counts);
    object.member("cause", verdict.cause.as_str());
    write_retry(&mut object, &verdict.retry, verdict.retry.class == RetryClass::Transient);
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
