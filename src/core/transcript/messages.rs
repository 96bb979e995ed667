//! Messages as model APIs take them (`role` and `content`), one per line: kept by agents without a format of their
//! own, and exported by others. Calls and results in the formats of OpenAI, Anthropic, Gemini, the AI SDK, Goose and
//! Amp.
//!
//! A result that does not state its success is judged by its text, unless its tool only shows something.

use serde_json::Value;

use super::json::{at, command, content, first, int, is_true, list, text};
use super::step::{Flag, Said, Step};

/// Roles whose words are not evidence.
const SPEAKERS: [&str; 6] = ["system", "developer", "user", "assistant", "model", "human"];
/// A command's raw output, which mini-swe-agent keeps beside the text for the model.
const RAW: &str = "/extra/raw_output";
/// Roles of a tool's result.
const RESULTS: [&str; 4] = ["tool", "function", "tool_result", "toolResult"];

pub fn knows(record: &Value) -> bool {
    let role = text(record, "/role").unwrap_or_default();
    let told = ["content", "parts", "tool_calls"].iter().any(|key| record.get(key).is_some());
    told && (SPEAKERS.contains(&role) || RESULTS.contains(&role))
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    if !knows(record) {
        return false;
    }
    if text(record, "/role").is_some_and(|role| RESULTS.contains(&role)) && !blocks(record).any(|(_, block)| is_result(block)) {
        out.push(Said::Step(result(record, "")));
        return true;
    }
    for asked in list(record, "/tool_calls") {
        call(asked, out);
    }
    out.extend(returned(record).map(Said::Step));
    for pair in list(record, "/content").windows(2).enumerate() {
        out.extend(commanded(pair).map(Said::Step));
    }
    for (place, block) in blocks(record) {
        match at(block, "/functionResponse") {
            Some(response) => out.push(Said::Step(result(response, &format!("{place}/functionResponse")))),
            None if text(block, "/type") == Some("toolResponse") => out.push(Said::Step(response(block, &place))),
            None if is_result(block) => out.push(Said::Step(result(block, &place))),
            None => call(block, out),
        }
    }
    true
}

/// Reads what mini-swe-agent tells the model about a command: `<returncode>2</returncode>` and the output.
fn returned(record: &Value) -> Option<Step> {
    let (said, pointer) = content(record, "/content");
    let (code, output) = said.strip_prefix("<returncode>")?.split_once("</returncode>")?;
    let exit: i64 = code.trim().parse().ok()?;
    if exit == 0 {
        return Some(Step::fine(None));
    }
    let output = output.trim().strip_prefix("<output>").map_or(output, |inner| inner.strip_suffix("</output>").unwrap_or(inner)).trim();
    Some(Step { tool: Some("shell".to_owned()), text: output.to_owned(), pointer, flag: Flag::Failed, exit: Some(exit), ..Step::default() })
}

/// Reads what Cline tells the model about a command: one block names it, the next one has its output.
fn commanded((at, pair): (usize, &[Value])) -> Option<Step> {
    let command = text(&pair[0], "/text")?.trim_end().strip_prefix("[execute_command for '")?.strip_suffix("'] Result:")?;
    let (_, output) = text(&pair[1], "/text")?.split_once("Output:\n")?;
    let pointer = format!("/content/{}/text", at + 1);
    Some(Step {
        tool: Some("execute_command".to_owned()),
        command: Some(command.to_owned()),
        text: output.to_owned(),
        pointer,
        flag: Flag::Unknown,
        ..Step::default()
    })
}

/// Returns the parts of a message, each with its place in the record.
fn blocks(record: &Value) -> impl Iterator<Item = (String, &Value)> {
    parts(record, "/content").chain(parts(record, "/parts"))
}

fn parts<'v>(record: &'v Value, place: &'static str) -> impl Iterator<Item = (String, &'v Value)> {
    list(record, place).iter().enumerate().map(move |(at, block)| (format!("{place}/{at}"), block))
}

fn is_result(block: &Value) -> bool {
    matches!(text(block, "/type"), Some("tool_result" | "tool-result"))
}

/// Reads a call of a tool; its arguments may be JSON in a string.
fn call(asked: &Value, out: &mut Vec<Said>) {
    let tool = first(asked, &["/function/name", "/name", "/toolName", "/functionCall/name", "/toolCall/value/name"]);
    let id = first(asked, &["/id", "/toolCallId", "/functionCall/id"]);
    let (Some(tool), Some(id)) = (tool, id) else { return };
    let input = ["/function/arguments", "/input", "/args", "/functionCall/args", "/toolCall/value/arguments"].iter().find_map(|place| at(asked, place));
    let parsed = input.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let command = parsed.as_ref().or(input).and_then(command);
    out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command });
}

/// Reads the result of a call, at `place` in its record.
fn result(told: &Value, place: &str) -> Step {
    let id = first(told, &["/tool_call_id", "/toolCallId", "/tool_use_id", "/toolUseID", "/call_id", "/id"]);
    let exit = ["/exit_code", "/exitCode", "/metadata/exit_code", "/result/exitCode", "/output/exit_code", "/extra/returncode", "/run/result/exitCode"]
        .iter()
        .find_map(|code| int(told, code));
    let flag = flag(told, exit);
    let (said, pointer) = match content(told, "/content") {
        // mini-swe-agent: `content` is JSON in a string.
        _ if text(told, RAW).is_some() => (text(told, RAW).unwrap_or_default().to_owned(), RAW.to_owned()),
        (said, pointer) if !said.is_empty() => (said, pointer),
        _ => {
            const PLACES: [&str; 11] = [
                "/response/error",
                "/response/output",
                "/error",
                "/error/message",
                "/output",
                "/output/value",
                "/result",
                "/result/stderr",
                "/result/stdout",
                "/run/error/message",
                "/run/result/output",
            ];
            let found = PLACES.iter().find_map(|place| Some((text(told, place)?.to_owned(), (*place).to_owned())));
            found.unwrap_or_default()
        }
    };
    let tool = first(told, &["/name", "/toolName", "/tool_name"]).map(str::to_owned);
    Step { tool, text: said, pointer: format!("{place}{pointer}"), flag, exit: exit.filter(|&code| code != 0), ..Step::fine(id) }
}

/// Reads the result of a call in Goose's format: whether the tool could run. How its command ended must be read from the text.
fn response(told: &Value, place: &str) -> Step {
    let failed = text(told, "/toolResult/status") == Some("error") || is_true(told, "/toolResult/value/isError");
    let flag = if failed { Flag::Failed } else { Flag::Unknown };
    let found =
        ["/toolResult/error", "/toolResult/value", "/toolResult/value/content"].iter().map(|place| content(told, place)).find(|(said, _)| !said.is_empty());
    let (said, pointer) = found.unwrap_or_default();
    Step { text: said, pointer: format!("{place}{pointer}"), flag, ..Step::fine(text(told, "/id")) }
}

/// Returns what a result states about its success.
fn flag(told: &Value, exit: Option<i64>) -> Flag {
    let is = |place: &str| at(told, place).and_then(Value::as_bool);
    let flagged = is("/is_error").or_else(|| is("/isError")).or_else(|| is("/error")).or_else(|| is("/success").map(|fine| !fine));
    match (flagged, exit, first(told, &["/status", "/run/status"])) {
        (Some(true), ..) | (_, Some(..=-1 | 1..), _) | (_, _, Some("error" | "failed" | "failure")) => Flag::Failed,
        (Some(false), ..) | (_, Some(0), _) | (_, _, Some("success" | "ok" | "completed" | "done")) => Flag::Fine,
        _ if first(told, &["/response/error", "/error", "/error/message"]).is_some() => Flag::Failed,
        _ => Flag::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Vec<Said> {
        let mut out = Vec::new();
        assert!(read(&serde_json::from_str(line).expect("a test"), &mut out), "{line}");
        out
    }

    /// Returns flag, exit code, pointer and text of the only step.
    fn step(line: &str) -> (Flag, Option<i64>, String, String) {
        match said(line).as_slice() {
            [Said::Step(step)] => (step.flag, step.exit, step.pointer.clone(), step.text.clone()),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn words_of_people_and_models_are_no_steps() {
        for line in [
            r#"{"role":"user","content":"TypeError: x is not a function"}"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"panic: it failed"}]}"#,
            r#"{"role":"system","content":"error: none"}"#,
        ] {
            assert_eq!(said(line), [], "{line}");
        }
    }

    #[test]
    fn results_say_how_they_went() {
        let table = [
            (r#"{"role":"tool","tool_call_id":"c","content":"x"}"#, Flag::Unknown, None, "/content", "x"),
            (r#"{"role":"tool","tool_call_id":"c","content":"x","is_error":true}"#, Flag::Failed, None, "/content", "x"),
            (r#"{"role":"tool","tool_call_id":"c","content":"x","isError":false}"#, Flag::Fine, None, "/content", "x"),
            (r#"{"role":"tool","tool_call_id":"c","content":"x","exit_code":2}"#, Flag::Failed, Some(2), "/content", "x"),
            (r#"{"role":"tool","tool_call_id":"c","content":"x","exit_code":0}"#, Flag::Fine, None, "/content", "x"),
            (
                r#"{"role":"tool","tool_call_id":"c","content":"{\"returncode\":2}","extra":{"returncode":2,"raw_output":"x"}}"#,
                Flag::Failed,
                Some(2),
                "/extra/raw_output",
                "x",
            ),
            (r#"{"role":"tool","tool_call_id":"c","content":"y","extra":{"returncode":0,"raw_output":"x"}}"#, Flag::Fine, None, "/extra/raw_output", "x"),
            (
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"x"}]}"#,
                Flag::Failed,
                None,
                "/content/0/content",
                "x",
            ),
            (
                r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"t","isError":true,"output":"x"}]}"#,
                Flag::Failed,
                None,
                "/content/0/output",
                "x",
            ),
            (
                r#"{"role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"status":"error","error":"x"}}]}"#,
                Flag::Failed,
                None,
                "/content/0/toolResult/error",
                "x",
            ),
            (
                r#"{"role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"x"}]}}]}"#,
                Flag::Unknown,
                None,
                "/content/0/toolResult/value/0/text",
                "x",
            ),
            (
                r#"{"role":"user","content":[{"type":"tool_result","toolUseID":"c","run":{"status":"done","result":{"output":"x","exitCode":1}}}]}"#,
                Flag::Failed,
                Some(1),
                "/content/0/run/result/output",
                "x",
            ),
            (
                r#"{"role":"user","content":[{"type":"tool_result","toolUseID":"c","run":{"status":"error","error":{"message":"x"}}}]}"#,
                Flag::Failed,
                None,
                "/content/0/run/error/message",
                "x",
            ),
            (
                r#"{"role":"user","parts":[{"functionResponse":{"name":"t","response":{"error":"x"}}}]}"#,
                Flag::Failed,
                None,
                "/parts/0/functionResponse/response/error",
                "x",
            ),
        ];
        for (line, flag, exit, pointer, text) in table {
            assert_eq!(step(line), (flag, exit, pointer.to_owned(), text.to_owned()), "{line}");
        }
    }

    #[test]
    fn a_return_code_is_a_result() {
        let told = r#"{"role":"user","content":"<returncode>2</returncode>\n<output>\nx\n</output>"}"#;
        assert_eq!(step(told), (Flag::Failed, Some(2), "/content".to_owned(), "x".to_owned()));
        assert_eq!(step(&told.replace('2', "0")).0, Flag::Fine);
    }

    #[test]
    fn calls_name_their_command() {
        for line in [
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{\"command\":\"make\"}"}}]}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"bash","input":{"command":"make"}}]}"#,
            r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"bash","input":{"command":"make"}}]}"#,
            r#"{"role":"assistant","content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"bash","arguments":{"command":"make"}}}}]}"#,
        ] {
            assert_eq!(said(line), [Said::Call { id: "c".into(), tool: "bash".into(), command: Some("make".into()) }], "{line}");
        }
    }

    #[test]
    fn other_records_are_left_alone() {
        for line in [r#"{"role":"admin","content":"x"}"#, r#"{"role":"user","name":"ann"}"#, r#"{"content":"x"}"#, r#"{"type":"tool_result","tool_id":"c"}"#] {
            assert!(!read(&serde_json::from_str(line).expect("a test"), &mut Vec::new()), "{line}");
        }
    }
}
