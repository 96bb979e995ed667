//! `siftd classify`: reads structured errors and writes answers, one per line. `core::retry` has the
//! tables; this module only finds the fields in the object, and computes the pause before the next attempt.

use std::time::Duration;

use serde_json::{Value, json};

use super::args::ClassifyArgs;
use super::objects::{answer_each, integer, text};
use super::{Exit, Failure, say, setup, stdin};
use crate::config::Retry;
use crate::core::event::{Category, Cause};
use crate::core::redact::clean;
use crate::core::retry::{StructuredError, UNMATCHED, classify_structured};
use crate::exec::policy;
use crate::json::Object;
use crate::sources::clock::now;
use crate::verdict::{headers, write_retry};
use crate::words::{counted, did_you_mean};

/// The fields that are used; a dot separates a field from the object that contains it.
const FIELDS: [&str; 8] = ["name", "code", "message", "response.status", "context.operation", "exit_code", "timed_out", "stderr"];

pub fn classify(args: &ClassifyArgs) -> Result<Exit, Failure> {
    stdin::needed("classify", "pipe errors in, one JSON object a line", "classify")?;
    let config = setup::config(&args.setup)?;
    let mut policy = config.retry;
    policy.continue_on_error |= args.continue_on_error;
    let (mut unknown, mut misread) = (0_u64, Vec::new());
    let done = answer_each(config.limits.max_document_bytes, |number, line, out| match line {
        Ok(Value::Object(_)) => {
            let object = line.as_ref().unwrap_or(&Value::Null);
            if !FIELDS.iter().any(|field| has(object, field)) {
                unknown += 1;
                if unknown == 1 {
                    say(&nothing_known(number, object));
                }
            }
            for (field, why) in FIELDS.iter().filter_map(|field| Some((*field, mistyped(object, field)?))) {
                if !misread.contains(&field) {
                    say(&format!("`{field}` {why}: it is ignored"));
                    misread.push(field);
                }
            }
            answer(object, &policy, out);
        }
        Ok(_) => refuse("an error is an object: {\"name\": …, \"code\": …, \"message\": …}", out),
        Err(why) => refuse(&why, out),
    });
    if unknown > 1 {
        let were = if unknown == 2 { "was" } else { "were" };
        say(&format!("{} more {were} answered so", counted(unknown - 1, "object")));
    }
    done
}

fn has(object: &Value, field: &str) -> bool {
    member(object, field).is_some()
}

fn member<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('.').try_fold(object, |value, name| value.get(name))
}

/// Returns why the value of a field cannot be used. Each such field is told once.
fn mistyped(object: &Value, field: &str) -> Option<&'static str> {
    let value = member(object, field).filter(|value| !value.is_null())?;
    match field {
        "exit_code" => integer(object, field).is_none().then_some("is no whole number"),
        "response.status" => integer(object.get("response")?, "status").is_none().then_some("is no whole number"),
        "timed_out" => (!value.is_boolean()).then_some("is neither true nor false"),
        "code" => (!value.is_string() && !value.is_number()).then_some("is neither a text nor a number"),
        _ => (!value.is_string()).then_some("is no text"),
    }
}

/// The warning about the first such object, on this line; the answer is that of an unknown error.
fn nothing_known(number: u64, object: &Value) -> String {
    let keys = object.as_object().into_iter().flat_map(|object| object.keys());
    let slip = keys.into_iter().find_map(|key| Some(format!(" (of `{}`: {})", clean(key), meant(key)?))).unwrap_or_default();
    format!("line {number}: none of the fields that are looked at: {}{slip}; it is answered as an error of which nothing is known", FIELDS.join(", "))
}

/// Returns the field that a key may stand for.
fn meant(key: &str) -> Option<String> {
    let within = FIELDS.iter().find(|field| field.rsplit_once('.').is_some_and(|(_, last)| last == key));
    let names: Vec<&str> = FIELDS.iter().map(|field| field.split('.').next().unwrap_or(field)).collect();
    within.map(|field| format!("did you mean `{field}`?")).or_else(|| did_you_mean(key, &names))
}

fn answer(object: &Value, policy: &Retry, out: &mut Vec<u8>) {
    let said = Said::new(object);
    let mut verdict = classify_structured(&said.error(object), policy.continue_on_error);
    if verdict.retryable && verdict.retry.reset_at.is_none() {
        verdict.retry.reset_at = said.asked(object);
    }
    let attempt = integer(object, "attempt").and_then(|attempt| u32::try_from(attempt).ok()).unwrap_or(1).max(1);
    let delay = if verdict.retryable { policy::delay(policy, attempt, verdict.retry.reset_at.as_deref(), now()) } else { Duration::ZERO };
    let task = text(object, "task").map(clean);
    let mut answer = Object::new(out);
    answer.member("category", verdict.category.as_str()).member("cause", verdict.cause.as_str());
    answer.member("fatal", verdict.fatal).member("retryable", verdict.retryable);
    write_retry(&mut answer, &verdict.retry, verdict.retryable);
    answer.member("delay_ms", delay.as_millis() as u64).optional("task", task.as_deref()).end();
}

/// Answers a line that is no error object: it is not retried, and it is not fatal.
fn refuse(why: &str, out: &mut Vec<u8>) {
    let retry = json!({"class": "unknown", "reason": UNMATCHED, "retryable": false, "remedy": "none"});
    let mut answer = Object::new(out);
    answer.member("error", why).member("category", Category::UnknownError.as_str()).member("cause", Cause::Unknown.as_str());
    answer.member("fatal", false).member("retryable", false).member("retry", retry).member("delay_ms", 0).end();
}

/// Values that must be computed before they can be borrowed.
struct Said {
    code: Option<String>,
    status: Option<u16>,
}

impl Said {
    fn new(object: &Value) -> Self {
        let code = match object.get("code") {
            Some(Value::String(code)) => Some(code.clone()),
            Some(Value::Number(code)) => Some(code.to_string()),
            _ => None,
        };
        let status = object.get("response").and_then(|response| integer(response, "status")).and_then(|status| status.try_into().ok());
        // Many clients put the status of a failed request there; system errors have smaller numbers.
        let as_status = || code.as_deref().and_then(|code| code.parse().ok()).filter(|code| (400..600).contains(code));
        Self { status: status.or_else(as_status), code }
    }

    /// Returns the time that the headers of the response name.
    fn asked(&self, object: &Value) -> Option<String> {
        let all = object.get("response")?.get("headers")?.as_object()?;
        // Most clients represent a repeated header as a list.
        let said = |value: &Value| match value.as_array().and_then(|list| list.first()).unwrap_or(value) {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let all: Vec<(&str, String)> = all.iter().filter_map(|(name, value)| Some((name.as_str(), said(value)?))).collect();
        headers(self.status, all.iter().map(|(name, said)| (*name, said.as_str())))
    }

    fn error<'a>(&'a self, object: &'a Value) -> StructuredError<'a> {
        StructuredError {
            name: text(object, "name"),
            code: self.code.as_deref(),
            message: text(object, "message"),
            status: self.status,
            operation: object.get("context").and_then(|context| text(context, "operation")),
            exit_code: integer(object, "exit_code"),
            timed_out: object.get("timed_out").is_some_and(|value| value == true),
            stderr: text(object, "stderr"),
        }
    }
}
