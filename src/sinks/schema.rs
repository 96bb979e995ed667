//! The record in other schemas: the Elastic Common Schema and the OTLP/JSON log record.
//! Members that have no field there go under `siftd`. Pure functions of the native record.

use serde_json::{Map, Value, json};

/// The version of the Elastic Common Schema in use.
const ECS_VERSION: &str = "8.17.0";
/// Members of the native record that both schemas have a field for, or that say nothing new.
const MAPPED: &[&str] =
    &["schema", "kind", "id", "timestamp", "observed_at", "host", "text", "exception", "location", "offset", "multiline", "severity", "labels"];

/// Converts a record to a document of the Elastic Common Schema.
pub(super) fn ecs(record: &Value) -> Value {
    let is_error = record["kind"] == "error";
    let mut out = Map::new();
    out.insert("@timestamp".into(), record["timestamp"].clone());
    out.insert("message".into(), message(record));
    out.insert("ecs".into(), json!({ "version": ECS_VERSION }));
    let mut event = json!({
        "kind": "event", "category": ["process"], "type": [if is_error { "error" } else { "info" }],
        "id": record["id"], "module": "siftd", "dataset": format!("siftd.{}", text(&record["kind"])),
    });
    if is_error {
        event["outcome"] = json!("failure");
        event["created"] = record["observed_at"].clone();
    }
    out.insert("event".into(), event);
    out.insert("host".into(), json!({ "name": record["host"] }));
    let mut log = Map::new();
    put(&mut log, "level", level(record).map(|(word, _, _)| json!(word)));
    put(&mut log, "offset", record.get("offset").cloned());
    put(&mut log, "file", record["source"].get("path").map(|path| json!({ "path": path })));
    put(&mut log, "origin", record.get("location").map(|place| json!({ "file": { "name": place["file"], "line": place["line"] } })));
    if !log.is_empty() {
        out.insert("log".into(), Value::Object(log));
    }
    if is_error {
        let mut error = Map::new();
        put(&mut error, "type", record["exception"].get("type").filter(|kind| *kind != "").cloned());
        put(&mut error, "message", Some(record["exception"].get("message").cloned().unwrap_or_else(|| record["text"].clone())));
        put(&mut error, "stack_trace", stack(record));
        put(&mut error, "code", Some(record["category"].clone()));
        put(&mut error, "id", Some(record["signature"].clone()));
        out.insert("error".into(), Value::Object(error));
    }
    put(&mut out, "labels", record.get("labels").cloned());
    out.insert("siftd".into(), rest(record, &["category", "signature"]));
    Value::Object(out)
}

/// Converts a record to a log record of OTLP/JSON.
pub(super) fn otel(record: &Value) -> Value {
    let mut attributes = Vec::new();
    let mut add = |key: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null() && *value != "") {
            attributes.push(json!({ "key": key, "value": any(value) }));
        }
    };
    let said = &record["exception"];
    add("log.record.uid", record.get("id"));
    add("exception.type", said.get("type"));
    add("exception.message", said.get("message"));
    add("exception.stacktrace", stack(record).as_ref());
    add("error.type", record.get("category"));
    let path = record["source"].get("path");
    add("log.file.path", path);
    add("log.file.name", path.and_then(Value::as_str).and_then(|path| path.rsplit('/').next()).map(|name| json!(name)).as_ref());
    add("log.iostream", record["source"].get("io"));
    add("code.file.path", record["location"].get("file"));
    add("code.line.number", record["location"].get("line"));
    add("host.name", record.get("host"));
    if let Value::Object(rest) = rest(record, &["category"]) {
        for (name, value) in &rest {
            add(&format!("siftd.{name}"), Some(value));
        }
    }
    let mut out = json!({
        "timeUnixNano": nanos(&record["timestamp"]),
        "observedTimeUnixNano": nanos(record.get("observed_at").unwrap_or(&record["timestamp"])),
        "body": { "stringValue": message(record) },
        "attributes": attributes,
    });
    if let Some((_, word, number)) = level(record) {
        out["severityNumber"] = json!(number);
        out["severityText"] = json!(word);
    }
    out
}

/// Maps severity to the ECS level, and to OTel's text and number.
fn level(record: &Value) -> Option<(&'static str, &'static str, u8)> {
    Some(match record["severity"].as_str()? {
        "blocking" => ("critical", "FATAL", 21),
        "high" => ("error", "ERROR", 17),
        "medium" => ("warn", "WARN", 13),
        _ => ("info", "INFO", 9),
    })
}

fn message(record: &Value) -> Value {
    match record.get("text") {
        Some(text) => text.clone(),
        None => json!(format!("{} {}", text(&record["kind"]), record["why"].as_str().or(record["signature"].as_str()).unwrap_or_default()).trim()),
    }
}

fn stack(record: &Value) -> Option<Value> {
    let lines: Vec<&str> = record.get("multiline")?.as_array()?.iter().filter_map(Value::as_str).collect();
    (lines.len() > 1).then(|| json!(lines.join("\n")))
}

fn rest(record: &Value, but: &[&str]) -> Value {
    let members = record.as_object().into_iter().flatten();
    let mut rest: Map<String, Value> = members
        .filter(|(name, _)| !MAPPED.contains(&name.as_str()) && !but.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    put(&mut rest, "severity", record.get("severity").cloned());
    put(&mut rest, "frames", record["exception"].get("frames").cloned());
    put(&mut rest, "chain", record["exception"].get("chain").cloned());
    Value::Object(rest)
}

fn put(map: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        map.insert(name.to_owned(), value);
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Converts a value to OTLP's AnyValue; its JSON has 64-bit integers as strings.
fn any(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({ "stringValue": text }),
        Value::Bool(flag) => json!({ "boolValue": flag }),
        Value::Number(number) if number.is_f64() => json!({ "doubleValue": number }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Array(items) => json!({ "arrayValue": { "values": items.iter().map(any).collect::<Vec<_>>() } }),
        Value::Object(members) => {
            let pairs: Vec<Value> = members.iter().map(|(key, value)| json!({ "key": key, "value": any(value) })).collect();
            json!({ "kvlistValue": { "values": pairs } })
        }
        Value::Null => json!({}),
    }
}

fn nanos(time: &Value) -> String {
    let parsed: Option<jiff::Timestamp> = time.as_str().and_then(|text| text.parse().ok());
    parsed.map_or_else(|| "0".to_owned(), |time| time.as_nanosecond().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Value {
        serde_json::from_str(
            r#"{"schema":1,"kind":"error","id":"aa","timestamp":"2026-01-01T00:00:00.000001Z","observed_at":"2026-01-01T00:00:01.000000Z","host":"h",
            "source":{"name":"s","type":"file","path":"/var/log/a.log","io":"stderr"},"line_num":3,"line_end":5,"offset":70,"text":"E: x","category":"network_error",
            "severity":"blocking","cause":"unknown","signature":"bb","rule":"r.x","exception":{"type":"E","message":"x","frames":[{"function":"f"}]},
            "location":{"file":"a.py","line":7},"multiline":["Traceback","E: x"],"retry":{"class":"transient","retryable":true}}"#,
        )
        .unwrap()
    }

    #[test]
    fn ecs_has_its_names() {
        let wanted = json!({
            "@timestamp": "2026-01-01T00:00:00.000001Z", "message": "E: x", "ecs": {"version": ECS_VERSION}, "host": {"name": "h"},
            "event": {"kind": "event", "category": ["process"], "type": ["error"], "outcome": "failure", "created": "2026-01-01T00:00:01.000000Z", "id": "aa",
                "module": "siftd", "dataset": "siftd.error"},
            "log": {"level": "critical", "offset": 70, "file": {"path": "/var/log/a.log"}, "origin": {"file": {"name": "a.py", "line": 7}}},
            "error": {"type": "E", "message": "x", "stack_trace": "Traceback\nE: x", "code": "network_error", "id": "bb"},
            "siftd": {"source": {"name": "s", "type": "file", "path": "/var/log/a.log", "io": "stderr"}, "line_num": 3, "line_end": 5, "cause": "unknown",
                "rule": "r.x", "retry": {"class": "transient", "retryable": true}, "severity": "blocking", "frames": [{"function": "f"}]},
        });
        assert_eq!(ecs(&record()), wanted);
    }

    #[test]
    fn otel_has_its_names() {
        let out = otel(&record());
        assert_eq!((&out["timeUnixNano"], &out["observedTimeUnixNano"]), (&json!("1767225600000001000"), &json!("1767225601000000000")));
        assert_eq!((&out["severityNumber"], &out["severityText"], &out["body"]), (&json!(21), &json!("FATAL"), &json!({"stringValue": "E: x"})));
        let attribute = |key: &str| out["attributes"].as_array().unwrap().iter().find(|a| a["key"] == key).map(|a| a["value"].clone());
        for (key, value) in [("log.record.uid", "aa"), ("exception.stacktrace", "Traceback\nE: x"), ("log.file.name", "a.log"), ("log.iostream", "stderr")] {
            assert_eq!(attribute(key), Some(json!({"stringValue": value})), "{key}");
        }
        assert_eq!(attribute("code.line.number"), Some(json!({"intValue": "7"})));
        assert_eq!(attribute("siftd.retry").unwrap()["kvlistValue"]["values"][1], json!({"key": "retryable", "value": {"boolValue": true}}));
    }

    #[test]
    fn a_gap_is_an_event_without_an_error() {
        let gap = json!({"schema": 1, "kind": "gap", "id": "aa", "timestamp": "2026-01-01T00:00:00Z", "host": "h", "source": {"name": "s"}, "why": "rate_limit", "count": 7});
        let out = ecs(&gap);
        assert_eq!((&out["message"], &out["siftd"]["count"], out.get("error")), (&json!("gap rate_limit"), &json!(7), None));
        assert_eq!(otel(&gap).get("severityNumber"), None);
    }
}
