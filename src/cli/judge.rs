//! `siftd judge`: reads finished results and writes verdicts, one per line. `verdict` defines what the fields of a
//! result mean; this module only finds them in the object. Every line gets an answer, and then the next one is read.

use std::sync::Arc;

use serde_json::Value;

use super::args::JudgeArgs;
use super::objects::{answer_each, integer};
use super::{Exit, Failure, identity, setup, stdin};
use crate::core::engine::Engine;
use crate::core::event::Io;
use crate::core::extract::Origin;
use crate::sinks::record::{self, Envelope};
use crate::sources::clock::now;
use crate::verdict::{self, Facts, Said, Status, Verdict, filtered};
use crate::words::did_you_mean;

/// The fields of a result; an object must have at least one of them.
const FIELDS: [&str; 7] = ["exit_code", "stderr", "stdout", "timed_out", "run_status", "operation", "task"];

/// Words for a run that has merely ended: the exit code decides.
const ENDED: [&str; 6] = ["", "completed", "complete", "done", "finished", "exited"];

pub fn judge(args: &JudgeArgs) -> Result<Exit, Failure> {
    stdin::needed("judge", "pipe results in, one JSON object a line", "judge")?;
    let setup = setup::load(&args.setup, setup::Reading::default())?;
    let judge = Judge { engine: setup.engine, host: identity::host(), max_event_bytes: setup.config.limits.max_event_bytes as usize };
    answer_each(setup.config.limits.max_document_bytes, |_, line, out| judge.answer(line, out))
}

struct Judge {
    engine: Arc<Engine>,
    host: String,
    max_event_bytes: usize,
}

impl Judge {
    fn answer(&self, line: Result<Value, String>, out: &mut Vec<u8>) {
        let (verdict, said) = match line.and_then(checked) {
            Ok(result) => {
                let facts = self.facts(&result);
                let said = self.read(&result, facts.stated() == Status::Success);
                (verdict::judge(facts, &said), said)
            }
            Err(why) => (Verdict::malformed(why), Said::default()),
        };
        let envelope = Envelope { host: self.host.clone(), name: "judge".into(), kind: "stdin", ..Envelope::default() };
        let mut errors = Vec::new();
        said.errors.iter().for_each(|event| record::write(&mut errors, &envelope, event, self.max_event_bytes));
        verdict::write(out, &verdict, &errors, &said.summary);
    }

    fn facts(&self, result: &Value) -> Facts {
        let code = integer(result, "exit_code");
        // `null` stands for a run that ended without an exit code.
        let without_code = result.get("exit_code").filter(|code| code.is_null()).map(|_| Status::Failure);
        let timed_out = result.get("timed_out").is_some_and(|value| value == true);
        let clean = |name| name_of(result, name).map(|text| self.engine.redactor.redact(&text, &mut 0).into_owned());
        let (run_status, unknown_status) = self.stated(result);
        Facts {
            exit_code: code,
            // A negative code is a signal, as in Python.
            signal: code.filter(|code| (-64..0).contains(code)).map(|code| -code as i32),
            signal_was_ours: false,
            timed_out,
            run_status: run_status.or(without_code.filter(|_| !timed_out)),
            unknown_status,
            duration_ms: None,
            attempts: 1,
            task: clean("task"),
            operation: clean("operation"),
        }
    }

    /// Reads `run_status`: a status, or the original words if it is something else.
    fn stated(&self, result: &Value) -> (Option<Status>, Option<String>) {
        let words = match result.get("run_status") {
            None | Some(Value::Null) => return (None, None),
            Some(Value::String(words)) if ENDED.contains(&words.trim().to_ascii_lowercase().as_str()) => return (None, None),
            Some(Value::String(words)) => words.clone(),
            Some(other) => other.to_string(),
        };
        let status = Status::parse(&words);
        (status, status.is_none().then(|| self.engine.redactor.redact(&words, &mut 0).into_owned()))
    }

    /// Reads stderr and stdout. The same result always gets the same ids.
    fn read(&self, result: &Value, succeeded: bool) -> Said {
        let (stderr, stdout) = (output(result, "stderr"), output(result, "stdout"));
        let uid = |io: Io| identity::hash(&[b"siftd-judge-1", io.as_str().as_bytes(), stderr.as_bytes(), stdout.as_bytes()]);
        let outputs = [(Io::Stderr, &stderr), (Io::Stdout, &stdout)].map(|(io, text)| (Origin { uid: uid(io), generation: 0 }, text.as_bytes()));
        let mut said = Said::default();
        for (io, events) in [Io::Stderr, Io::Stdout].into_iter().zip(verdict::read(&self.engine, outputs, succeeded, now())) {
            said.add(io, events);
        }
        said.asked = verdict::asked(&said.errors, [stderr.as_bytes(), stdout.as_bytes()]);
        (said.text, said.only_noise) = filtered(&self.engine, stderr.as_bytes(), now());
        said
    }
}

/// Returns an object that has at least one field of a result, each with a valid value; otherwise returns what is wrong.
fn checked(value: Value) -> Result<Value, String> {
    let Some(object) = value.as_object() else {
        return Err("a result is an object: {\"exit_code\": …, \"stderr\": …}".to_owned());
    };
    if object.contains_key("success") && object.contains_key("status") && object.contains_key("summary") {
        return Err("a verdict of siftd already, no result: use it as it is".to_owned());
    }
    // Ignoring a field that is only spelled in another way could turn a failure into a success.
    let plain = |key: &str| key.replace(['_', '-'], "").to_ascii_lowercase();
    if let Some((key, field)) = object.keys().find_map(|key| Some((key, FIELDS.iter().find(|field| **field != key.as_str() && plain(field) == plain(key))?))) {
        return Err(format!("`{key}` is no field of a result, did you mean `{field}`?"));
    }
    if !FIELDS.iter().any(|field| object.contains_key(*field)) {
        let slip = object.keys().find_map(|key| Some(format!("`{key}` is no field of a result, {}", did_you_mean(key, &FIELDS)?)));
        return Err(slip.unwrap_or_else(|| format!("no field of a result, which has {}", FIELDS.join(", "))));
    }
    match FIELDS.iter().find_map(|field| Some((field, misread(&value, field)?))) {
        Some((field, why)) => Err(format!("`{field}` {why}")),
        None => Ok(value),
    }
}

/// Returns why a field has no valid value. Ignoring such a field could turn a failure into a success.
fn misread(result: &Value, field: &str) -> Option<&'static str> {
    let value = result.get(field).filter(|value| !value.is_null())?;
    let is_text = |value: &Value| value.is_string();
    match field {
        "exit_code" if integer(result, field).is_none() => Some("is no whole number"),
        "timed_out" if !value.is_boolean() => Some("is neither true nor false"),
        "stderr" | "stdout" if !is_text(value) && !value.as_array().is_some_and(|lines| lines.iter().all(is_text)) => {
            Some("is neither a text nor a list of lines")
        }
        _ => None,
    }
}

/// Returns a task or an operation, which is a text or a number.
fn name_of(result: &Value, name: &str) -> Option<String> {
    match result.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns an output, which is a string or a list of lines.
fn output(result: &Value, name: &str) -> String {
    match result.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).map(|line| line.trim_end_matches('\n')).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
