//! Codex: rollout files (`~/.codex/sessions/…/rollout-*.jsonl`) and `codex exec --json`.
//!
//! A command's end may appear twice, as `exec_command_end` and as `function_call_output`: the call
//! id joins them. Exit codes stand in `exit_code`, in `metadata`, or in words before the output.

use serde_json::Value;

use super::json::{at, command, content, first, int, is_true, list, text};
use super::phrases::{is_failing, is_retrying};
use super::step::{Flag, Said, Step, Who};

const ROLLOUT: [&str; 5] = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];
const EXEC: [&str; 8] =
    ["thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated", "item.completed", "session.created"];

pub fn knows(record: &Value) -> bool {
    let has = |key: &str| record.get(key).is_some();
    match text(record, "/type") {
        Some(kind) if ROLLOUT.contains(&kind) => has("payload"),
        Some(kind) if EXEC.contains(&kind) => true,
        Some("function_call" | "function_call_output" | "custom_tool_call" | "custom_tool_call_output") => has("call_id"),
        _ => at(record, "/msg/type").is_some() && has("id"),
    }
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    if let Some(session) = first(record, &["/thread_id", "/payload/session_id", "/msg/session_id"]) {
        out.push(Said::Session(session.to_owned()));
    }
    match text(record, "/type") {
        Some("session_meta") => {
            if let Some(id) = text(record, "/payload/id") {
                out.push(Said::Session(id.to_owned()));
            }
            true
        }
        Some("turn.failed") => run(record, &["/error/message"], out),
        Some("error") => api(record, "", out),
        Some("item.completed") => at(record, "/item").is_some_and(|inner| item(inner, out)),
        Some("function_call" | "function_call_output" | "custom_tool_call" | "custom_tool_call_output" | "local_shell_call" | "message" | "reasoning") => {
            payload(record, "", out)
        }
        Some(kind) if EXEC.contains(&kind) => true,
        _ if record.get("payload").is_some() => payload(&record["payload"], "/payload", out),
        _ if at(record, "/msg/type").is_some() => payload(&record["msg"], "/msg", out),
        _ => false,
    }
}

/// Reads what a rollout's record holds: a part of the conversation, or an event of the client.
fn payload(inner: &Value, base: &str, out: &mut Vec<Said>) -> bool {
    let id = text(inner, "/call_id").or_else(|| text(inner, "/id"));
    match text(inner, "/type").unwrap_or_default() {
        "function_call" | "custom_tool_call" | "local_shell_call" => call(inner, id, out),
        "function_call_output" | "custom_tool_call_output" => output(inner, base, id, out),
        "exec_command_begin" => {
            if let Some(id) = id {
                out.push(Said::Call { id: id.to_owned(), tool: "shell".to_owned(), command: command(inner) });
            }
        }
        "exec_command_end" => command_end(inner, base, id, out),
        "patch_apply_end" => {
            let flag = if at(inner, "/success") == Some(&Value::Bool(false)) { Flag::Failed } else { Flag::Fine };
            let pointer = if text(inner, "/stderr").is_some() { "/stderr" } else { "/stdout" };
            step_of(inner, base, pointer, Step { tool: Some("apply_patch".to_owned()), flag, ..Step::fine(id) }, out);
        }
        "mcp_tool_call_end" => mcp(inner, base, id, out),
        "message" if text(inner, "/role") == Some("user") => typed(inner, base, out),
        "error" => return api(inner, base, out),
        _ => {}
    }
    true
}

/// Reads a command that the user has typed: `<user_shell_command><command>…</command><result>Exit code: 2…</result></user_shell_command>`
fn typed(inner: &Value, base: &str, out: &mut Vec<Said>) {
    let (said, pointer) = content(inner, "/content");
    let Some(told) = said.trim_start().strip_prefix("<user_shell_command>") else { return };
    let element = |name: &str| Some(told.split_once(&format!("<{name}>"))?.1.split_once(&format!("</{name}>"))?.0.trim().to_owned());
    let Some((Some(exit), text)) = element("result").map(announced) else { return };
    let flag = if exit == 0 { Flag::Fine } else { Flag::Failed };
    let (tool, pointer) = (Some("shell".to_owned()), format!("{base}{pointer}"));
    out.push(Said::Step(Step { tool, command: element("command"), text, pointer, exit: Some(exit), flag, ..Step::default() }));
}

fn call(inner: &Value, id: Option<&str>, out: &mut Vec<Said>) {
    let Some(id) = id else { return };
    let tool = text(inner, "/name").unwrap_or("shell").to_owned();
    // Arguments are JSON in a string; the input of a custom tool is in a language of its own.
    let arguments = text(inner, "/arguments").and_then(|arguments| serde_json::from_str::<Value>(arguments).ok());
    let command = arguments.as_ref().or_else(|| at(inner, "/action")).and_then(command);
    out.push(Said::Call { id: id.to_owned(), tool, command });
}

fn output(inner: &Value, base: &str, id: Option<&str>, out: &mut Vec<Said>) {
    let (outer, mut pointer) = content(inner, "/output");
    let (mut said, mut exit) = (outer, None);
    let mut failed = at(inner, "/output/success") == Some(&Value::Bool(false)) || at(inner, "/success") == Some(&Value::Bool(false));
    if let Some(Value::String(text)) = at(inner, "/output/content") {
        (said, pointer) = (text.clone(), "/output/content".to_owned());
    }
    // `{"output":"…","metadata":{"exit_code":1}}` in a string.
    if said.starts_with('{')
        && let Ok(value) = serde_json::from_str::<Value>(&said)
        && let Some(text) = value.get("output").and_then(Value::as_str)
    {
        exit = int(&value, "/metadata/exit_code");
        said = text.to_owned();
    }
    if exit.is_none() {
        (exit, said) = announced(said);
    }
    failed |= exit.map_or_else(|| is_failing(&said), |code| code != 0);
    if !failed && super::phrases::flavour(&said).is_none() {
        out.push(Said::Step(Step::passed(id, (said, format!("{base}{pointer}")))));
        return;
    }
    out.push(Said::Step(Step { text: said, pointer: format!("{base}{pointer}"), exit, flag: Flag::Failed, ..Step::fine(id) }));
}

/// Returns the exit code among the lines before `Output:`, and the text after that line.
fn announced(said: String) -> (Option<i64>, String) {
    let mut exit = None;
    let mut at = 0;
    for line in said.split_inclusive('\n').take(12) {
        at += line.len();
        let line = line.trim_end();
        if line == "Output:" {
            return (exit, said[at..].to_owned());
        }
        let code = ["Process exited with code ", "Exit code: "].iter().find_map(|head| line.strip_prefix(head)?.trim().parse().ok());
        exit = exit.or(code);
    }
    // Without an `Output:` line, the words belong to the output itself.
    (None, said)
}

fn command_end(inner: &Value, base: &str, id: Option<&str>, out: &mut Vec<Said>) {
    let exit = int(inner, "/exit_code");
    let declined = text(inner, "/status") == Some("declined");
    let flag = if declined || exit.is_some_and(|code| code != 0) { Flag::Failed } else { Flag::Fine };
    let pointer = ["/aggregated_output", "/formatted_output", "/stderr", "/stdout"].into_iter().find(|pointer| text(inner, pointer).is_some());
    let step = Step { command: command(inner), exit, flag, flavour: declined.then_some("refused"), ..Step::fine(id) };
    step_of(inner, base, pointer.unwrap_or("/aggregated_output"), step, out);
}

fn mcp(inner: &Value, base: &str, id: Option<&str>, out: &mut Vec<Said>) {
    let tool = text(inner, "/invocation/tool").map(str::to_owned);
    if text(inner, "/result/Err").is_some() {
        step_of(inner, base, "/result/Err", Step { tool, flag: Flag::Failed, ..Step::fine(id) }, out);
    } else if is_true(inner, "/result/Ok/isError") || is_true(inner, "/result/Ok/is_error") {
        let (said, pointer) = content(inner, "/result/Ok/content");
        out.push(Said::Step(Step { text: said, pointer: format!("{base}{pointer}"), tool, flag: Flag::Failed, ..Step::fine(id) }));
    } else {
        out.push(Said::Step(Step::fine(id)));
    }
}

/// Adds the step with the text at `pointer`.
fn step_of(inner: &Value, base: &str, pointer: &str, step: Step, out: &mut Vec<Said>) {
    let said = text(inner, pointer).unwrap_or_default();
    out.push(Said::Step(Step { text: said.to_owned(), pointer: format!("{base}{pointer}"), ..step }));
}

/// Reads a completed item of `exec --json`.
fn item(inner: &Value, out: &mut Vec<Said>) -> bool {
    let failed = matches!(text(inner, "/status"), Some("failed" | "declined"));
    // Item ids count from 0 in each run, so they mean nothing across runs.
    let id = text(inner, "/id");
    match text(inner, "/type").or_else(|| text(inner, "/item_type")).unwrap_or_default() {
        "command_execution" => {
            let exit = int(inner, "/exit_code");
            let flag = if failed || exit.is_some_and(|code| code != 0) { Flag::Failed } else { Flag::Fine };
            let flavour = (text(inner, "/status") == Some("declined")).then_some("refused");
            let step = Step { tool: Some("shell".to_owned()), command: command(inner), exit, flag, flavour, ..Step::fine(id) };
            step_of(inner, "/item", "/aggregated_output", step, out);
        }
        "mcp_tool_call" => {
            let tool = text(inner, "/tool").map(str::to_owned);
            let flag = if failed { Flag::Failed } else { Flag::Fine };
            step_of(inner, "/item", "/error/message", Step { tool, flag, ..Step::fine(id) }, out);
        }
        "file_change" if failed => {
            let paths: Vec<&str> = list(inner, "/changes").iter().filter_map(|change| text(change, "/path")).collect();
            let said = text(inner, "/error/message").unwrap_or("a change of files failed").to_owned();
            let command = Some(paths.join(" ")).filter(|paths| !paths.is_empty());
            out.push(Said::Step(Step {
                tool: Some("file_change".to_owned()),
                command,
                text: said,
                pointer: "/item".to_owned(),
                flag: Flag::Failed,
                ..Step::fine(id)
            }));
        }
        "error" => step_of(inner, "/item", "/message", Step { flag: Flag::Unknown, ..Step::fine(id) }, out),
        _ => {}
    }
    true
}

/// Reads a fault of the API or the client, unless it says that it will be retried.
fn api(inner: &Value, base: &str, out: &mut Vec<Said>) -> bool {
    let Some(said) = text(inner, "/message") else { return false };
    if !is_retrying(said) {
        let kind = text(inner, "/codex_error_info").map(str::to_owned);
        out.push(Said::Step(Step { who: Who::Api, text: said.to_owned(), pointer: format!("{base}/message"), kind, flag: Flag::Failed, ..Step::default() }));
    }
    true
}

fn run(record: &Value, pointers: &[&str], out: &mut Vec<Said>) -> bool {
    let said = first(record, pointers).unwrap_or("the turn failed").to_owned();
    out.push(Said::Step(Step { who: Who::Run, text: said, pointer: pointers[0].to_owned(), flag: Flag::Failed, ..Step::default() }));
    true
}
