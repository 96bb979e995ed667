//! The rows of the tables, through the program: each line of `rows.jsonl`
//! has the wording of a row, the input, and what the answer must contain.

use serde_json::Value;

use crate::{Folder, Sent};

#[test]
fn every_row_is_answered_in_its_own_words() {
    let rows: Vec<Value> = include_str!("rows.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut wrong = Vec::new();
    for command in ["judge", "classify"] {
        let rows: Vec<&Value> = rows.iter().filter(|row| row["command"] == command).collect();
        let lines: String = rows.iter().map(|row| format!("{}\n", row["in"])).collect();
        let answers = Folder::new().piped([command], lines).ended(0).records();
        assert_eq!(answers.len(), rows.len(), "{command}");
        for (row, answer) in rows.iter().zip(&answers) {
            if !holds(&row["want"], answer) {
                wrong.push(format!("{}\n  in:   {}\n  want: {}\n  got:  {answer}", row["row"], row["in"], row["want"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Whether `got` contains everything in `want`; `"*"` matches anything but null.
fn holds(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => want.iter().all(|(key, want)| got.get(key).is_some_and(|got| holds(want, got))),
        (Value::String(any), got) if any == "*" => !got.is_null(),
        _ => want == got,
    }
}

#[test]
fn whatever_a_line_is_the_next_one_is_read() {
    let lines =
        Sent::from("{\"exit_code\": 0}\n\n   \n{\"exit_code\":\n\u{feff}{\"exit_code\": 0}\r\n").with(b"{\"exit_code\": 1, \"stderr\": \"caf\xe9 \\ud83d\"}");
    let answers = Folder::new().piped(["judge"], lines.0).ended(0).records();
    let statuses: Vec<&str> = answers.iter().map(|answer| answer["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["success", "malformed", "success", "failure"]);
    assert_eq!(answers[3]["error_message"], "caf\u{fffd} \u{fffd}");
    let refused = Folder::new().piped(["classify"], "{\"code\":\n{\"message\":\"boom\"}\n").ended(0).records();
    assert!(refused[0]["error"].as_str().unwrap().starts_with("no JSON") && refused[1].get("error").is_none());
}

/// Ignoring such a field could turn a failure into a success.
#[test]
fn a_field_that_is_not_what_it_is_called_is_malformed() {
    let lines = r#"{"stderr": {"text": "KeyError: x"}}
{"exit_code": 0, "stderr": 5}
{"exit_code": 0, "stdout": ["a", 5]}
{"exit_code": 0, "timed_out": "yes"}
{"exit_code": "one"}
{"exit_code": 0, "stderr": null, "timed_out": null, "task": 7}
{"exit_code": 1, "stderr": ["KeyError: x\n", "bye"], "operation": "fit"}
"#;
    let answers = Folder::new().piped(["judge"], lines).ended(0).records();
    let statuses: Vec<&str> = answers.iter().map(|answer| answer["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["malformed", "malformed", "malformed", "malformed", "malformed", "success", "failure"]);
    assert_eq!(answers[1]["error"], "`stderr` is neither a text nor a list of lines");
    assert_eq!((&answers[5]["task"], &answers[6]["operation"]), (&Value::from("7"), &Value::from("fit")));
}

#[test]
fn continue_on_error_by_flag_and_by_configuration() {
    let error = "{\"name\":\"SessionError\",\"code\":\"PIPELINE_SESSION_LOAD_FAILED\"}\n";
    let folder = Folder::new();
    folder.write("go-on.toml", "[retry]\ncontinue_on_error = true\n");
    for args in [&["classify", "--continue-on-error"][..], &["classify", "--config", "go-on.toml"]] {
        let answer = &folder.piped(args, error).ended(0).records()[0];
        assert_eq!((&answer["fatal"], &answer["retry"]["class"]), (&Value::Bool(false), &Value::from("permanent")));
    }
}

#[test]
fn pauses_come_from_the_configuration_and_from_the_error() {
    let folder = Folder::new();
    folder.write("slow.toml", "[retry]\nbase_delay = \"2s\"\nmax_delay = \"5s\"\nmax_reset_wait = \"1m\"\n");
    let lines = "{\"code\":\"ECONNRESET\",\"attempt\":2}\n{\"code\":\"ECONNRESET\",\"attempt\":9}\n{\"message\":\"429 Too Many Requests, retry after 20 seconds\"}\n{\"message\":\"429 Too Many Requests, retry after 2 hours\"}\n";
    let delays: Vec<u64> =
        folder.piped(["classify", "--config", "slow.toml"], lines).ended(0).records().iter().map(|answer| answer["delay_ms"].as_u64().unwrap()).collect();
    assert_eq!(delays, [4000, 5000, 20_000, 7_200_000], "what the error asks for is not cut");
}

#[test]
fn judged_twice_it_has_the_same_ids() {
    let result = "{\"exit_code\":1,\"stderr\":\"TypeError: x is not a function\"}\n";
    let id = || Folder::new().piped(["judge"], result).ended(0).records()[0]["errors"][0]["id"].clone();
    assert_eq!(id(), id());
}

#[test]
fn a_log_record_with_a_pipelines_error_uses_the_table() {
    for (line, class) in [
        (r#"{"name":"SessionError","code":"PIPELINE_SESSION_LOAD_FAILED","message":"gone"}"#, "fatal"),
        (r#"{"level":"error","name":"AgentError","code":"PIPELINE_AGENT_TIMEOUT","message":"no answer"}"#, "transient"),
        (r#"{"level":"error","message":"x","name":"ValidationError","code":"PIPELINE_VALIDATION_INVALID_INPUT"}"#, "permanent"),
        (r#"{"level":"error","message":"x","name":"ValidationError","code":"PIPELINE_VALIDATION_INVALID_INPUT","context":{"operation":"parse_prd"}}"#, "fatal"),
        (r#"{"level":50,"name":"EnvironmentError","msg":"no docker"}"#, "fatal"),
        (r#"{"level":"error","msg":"request failed","response":{"status":503}}"#, "transient"),
        (r#"{"level":"error","msg":"read","code":"ECONNRESET"}"#, "transient"),
        ("[orchestrator] stopped with code PIPELINE_SESSION_SAVE_FAILED", "fatal"),
        ("AgentError: PIPELINE_AGENT_PARSE_FAILED: no JSON", "permanent"),
        ("TaskError [PIPELINE_TASK_EXECUTION_FAILED]: step 3", "unknown"),
    ] {
        let records = Folder::new().piped(["scan", "--format", "ndjson"], format!("{line}\n")).ended(0).records();
        assert_eq!(records.len(), 1, "{line}");
        assert_eq!(records[0]["retry"]["class"], class, "{line}");
    }
}
