//! Claude Code: session files (`~/.claude/projects/…/*.jsonl`) and `--output-format stream-json`.
//!
//! The blocks of a `user` record are the results. `toolUseResult` and the `progress` of a command repeat them
//! and are not read, except for the stderr of a successful command. Attempts that the client retries by itself
//! (`api_error`, `api_retry`) are not faults; the attempt at which it gives up is an `isApiErrorMessage`.

use serde_json::Value;

use super::claude_task;
use super::json::{at, command, content, first, int, is_true, list, status, text};
use super::step::{Flag, Said, Step, Who};

const TYPES: [&str; 9] = ["user", "assistant", "system", "progress", "result", "summary", "tool_result", "tool_use", "thinking"];

/// The tool that a background command counts as.
const BACKGROUND: &str = "Bash";

/// Deepest nesting of a subagent's records in progress records.
const MAX_NESTED: u8 = 3;

pub fn knows(record: &Value) -> bool {
    let Some(kind) = text(record, "/type") else { return false };
    let has = |key: &str| record.get(key).is_some();
    match kind {
        "user" | "assistant" => {
            let is_in_session = has("sessionId") || has("session_id") || has("parentUuid") || has("isSidechain");
            // A record without a session is cut out of one; then the message must have the record's role.
            let is_whole =
                || text(record, "/message/role") == Some(kind) && at(record, "/message/content").is_some_and(|told| told.is_string() || told.is_array());
            is_in_session && at(record, "/message/role").is_some() || is_whole()
        }
        "system" => has("subtype") && (has("sessionId") || has("session_id") || has("parentUuid")),
        "progress" => has("data") && has("sessionId"),
        "summary" => has("summary") && has("leafUuid"),
        "file-history-snapshot" => has("messageId") && has("snapshot"),
        "queue-operation" | "custom-title" | "ai-title" | "last-prompt" | "permission-mode" | "attachment" => has("sessionId"),
        "result" => has("subtype") && has("is_error"),
        "stream_event" => has("session_id"),
        // Blocks that stand alone, cut out of a message.
        "tool_result" => has("tool_use_id") || has("toolId") && has("isError"),
        "tool_use" => has("id") && has("name") && has("input"),
        "tool_call" => has("toolId") && has("parameters"),
        "thinking" => has("thinking"),
        _ => false,
    }
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    let Some(kind) = text(record, "/type") else { return false };
    let is_known = match kind {
        // Cursor's calls have a session, too, but no such key.
        "tool_call" => text(record, "/toolId").is_some(),
        _ => TYPES.contains(&kind) || first(record, &["/sessionId", "/session_id", "/messageId"]).is_some(),
    };
    if !is_known {
        return false;
    }
    if let Some(session) = first(record, &["/sessionId", "/session_id"]) {
        out.push(Said::Session(session.to_owned()));
    }
    message(record, "", 0, out);
    match kind {
        "result" => result(record, out),
        "system" => system(record, out),
        "attachment" => attachment(record, out),
        "rate_limit_event" => limit(record, out),
        "tool_call" => droid_call(record, out),
        "tool_result" if text(record, "/toolId").is_some() => droid(record, out),
        "tool_result" => block(record, (record, ""), out),
        "tool_use" => call(record, out),
        _ => {}
    }
    true
}

/// Reads a `user` or `assistant` record, which may be a subagent's inside a progress record.
fn message(record: &Value, base: &str, depth: u8, out: &mut Vec<Said>) {
    match text(record, "/type") {
        Some("user") => results(record, base, out),
        Some("assistant") => {
            calls(record, out);
            fault(record, base, out);
        }
        Some("progress") if depth < MAX_NESTED => {
            if let Some(inner) = at(record, "/data/message") {
                message(inner, &format!("{base}/data/message"), depth + 1, out);
            }
        }
        _ => {}
    }
}

fn calls(record: &Value, out: &mut Vec<Said>) {
    list(record, "/message/content").iter().for_each(|block| call(block, out));
}

fn call(block: &Value, out: &mut Vec<Said>) {
    if let (Some("tool_use" | "server_tool_use" | "mcp_tool_use"), Some(id), Some(tool)) = (text(block, "/type"), text(block, "/id"), text(block, "/name")) {
        let command = at(block, "/input").and_then(command);
        out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command });
    }
}

fn results(record: &Value, base: &str, out: &mut Vec<Said>) {
    for (index, told) in list(record, "/message/content").iter().enumerate().filter(|(_, block)| text(block, "/type") == Some("tool_result")) {
        if let Some(stderr) = first(record, &["/toolUseResult/stderr", "/tool_use_result/stderr"]).filter(|_| !has_failed(record, told)) {
            let key = if record.get("toolUseResult").is_some() { "toolUseResult" } else { "tool_use_result" };
            let pointer = format!("{base}/{key}/stderr");
            out.push(Said::Step(Step { text: stderr.to_owned(), pointer, flag: Flag::Stderr, ..Step::fine(text(told, "/tool_use_id")) }));
        }
        // If stderr tells of a failure, what the whole output tells is the same.
        block(record, (told, &format!("{base}/message/content/{index}")), out);
    }
    // A command that the user has typed, of a shell or of the client itself.
    let typed = |tag: &str| text(record, "/message/content").and_then(|said| said.split_once(&format!("<{tag}>"))?.1.split_once(&format!("</{tag}>")));
    let printed = typed("bash-stderr").or_else(|| typed("local-command-stderr"));
    if let Some((stderr, _)) = printed.filter(|(stderr, _)| !stderr.is_empty()) {
        let pointer = format!("{base}/message/content");
        out.push(Said::Step(Step { tool: Some(BACKGROUND.to_owned()), text: stderr.to_owned(), pointer, flag: Flag::Stderr, ..Step::default() }));
    }
    if let Some((pointer, failed)) = background(record, "/message/content") {
        out.push(Said::Step(Step { tool: Some(BACKGROUND.to_owned()), pointer: format!("{base}{pointer}"), ..failed }));
    }
}

/// A call in the stream of Factory's droid.
fn droid_call(record: &Value, out: &mut Vec<Said>) {
    if let (Some(id), Some(tool)) = (text(record, "/id"), first(record, &["/toolName", "/toolId"])) {
        out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command: at(record, "/parameters").and_then(command) });
    }
}

/// A result in the stream of Factory's droid, which otherwise has Claude Code's words.
fn droid(record: &Value, out: &mut Vec<Said>) {
    let id = text(record, "/id");
    if !is_true(record, "/isError") {
        return out.push(Said::Step(Step::passed(id, (text(record, "/value").unwrap_or_default(), "/value"))));
    }
    let pointer = ["/error/message", "/value"].into_iter().find(|place| text(record, place).is_some()).unwrap_or_default();
    let said = text(record, pointer).unwrap_or_default().to_owned();
    out.push(Said::Step(Step { text: said, pointer: pointer.to_owned(), flag: Flag::Failed, ..Step::fine(id) }));
}

fn has_failed(record: &Value, block: &Value) -> bool {
    is_true(block, "/is_error") || is_tagged(block) || is_called_error(record)
}

/// Reads a result at `place` in the stream's record; `record` is the one that the result came with.
fn block(record: &Value, (block, place): (&Value, &str), out: &mut Vec<Said>) {
    let id = text(block, "/tool_use_id");
    if has_failed(record, block) {
        let (text, pointer) = content(block, "/content");
        let (exit, pointer) = (exit(&text), format!("{place}{pointer}"));
        out.push(Said::Step(Step { text, pointer, exit, flag: Flag::Failed, ..Step::fine(id) }));
    } else if let Some((pointer, failed)) = background(block, "/content") {
        let (id, pointer) = (failed.id.clone().or(id.map(str::to_owned)), format!("{place}{pointer}"));
        out.push(Said::Step(Step { tool: Some(BACKGROUND.to_owned()), id, pointer, ..failed }));
    } else {
        let (said, pointer) = content(block, "/content");
        out.push(Said::Step(Step::passed(id, (said, format!("{place}{pointer}")))));
    }
}

/// Returns a background command that failed, and the place that says so.
fn background(value: &Value, pointer: &str) -> Option<(String, Step)> {
    let (said, pointer) = content(value, pointer);
    claude_task::failed(&said).map(|failed| (pointer, failed))
}

/// Whether the client's own copy of a result reports a failure, where the flag is missing.
fn is_called_error(record: &Value) -> bool {
    text(record, "/toolUseResult").is_some_and(|said| said.starts_with("Error: "))
}

/// Whether a tag reports a fault of the tool itself, whatever the flag says.
fn is_tagged(block: &Value) -> bool {
    text(block, "/content").is_some_and(|text| text.starts_with("<tool_use_error>"))
}

/// Returns the code in `Exit code 1`, with which the result of a failed command begins.
pub fn exit(text: &str) -> Option<i64> {
    let rest = text.trim_start().trim_start_matches("Error: ").strip_prefix("Exit code ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Reads a message that the client wrote in the agent's place because the API failed.
fn fault(record: &Value, base: &str, out: &mut Vec<Said>) {
    if !is_true(record, "/isApiErrorMessage") && text(record, "/error").is_none() {
        return;
    }
    let (said, pointer) = content(record, "/message/content");
    let kind = text(record, "/error").map(str::to_owned);
    out.push(Said::Step(Step {
        who: Who::Api,
        text: if said.is_empty() { kind.clone().unwrap_or_default() } else { said },
        pointer: format!("{base}{pointer}"),
        status: status(record, "/apiErrorStatus").or_else(|| status(record, "/error_status")),
        kind,
        flag: Flag::Failed,
        // A session that continues in another file repeats its messages under other uuids.
        ..Step::fine(first(record, &["/message/id", "/uuid"]))
    }));
}

/// Reads the end of a run.
fn result(record: &Value, out: &mut Vec<Said>) {
    let subtype = text(record, "/subtype").unwrap_or_default();
    if !is_true(record, "/is_error") && !subtype.starts_with("error") {
        return;
    }
    let errors: Vec<&str> = list(record, "/errors").iter().filter_map(|error| error.as_str().or_else(|| text(error, "/message"))).collect();
    let (said, pointer) = match text(record, "/result").or_else(|| text(record, "/error")) {
        Some(said) => (said.to_owned(), "/result"),
        None if !errors.is_empty() => (errors.join("\n"), "/errors/0"),
        None if subtype.starts_with("error") => (subtype.to_owned(), "/subtype"),
        None => ("the run failed".to_owned(), "/is_error"),
    };
    let status = status(record, "/api_error_status").or_else(|| status(record, "/apiErrorStatus"));
    out.push(Said::Step(Step { who: Who::Run, text: said, pointer: pointer.to_owned(), status, flag: Flag::Failed, ..Step::fine(text(record, "/uuid")) }));
}

/// Reads a system record. Hooks and background commands report through these; anything else in them is the client's own news.
fn system(record: &Value, out: &mut Vec<Said>) {
    match text(record, "/subtype") {
        Some("task_notification") if text(record, "/status") == Some("failed") => {
            let (said, tool) = (text(record, "/summary").unwrap_or("a background command failed"), Some(BACKGROUND.to_owned()));
            let id = first(record, &["/tool_use_id", "/task_id"]);
            let exit = claude_task::exit(said);
            out.push(Said::Step(Step { tool, text: said.to_owned(), pointer: "/summary".to_owned(), exit, flag: Flag::Failed, ..Step::fine(id) }));
        }
        Some("hook_response") => hook(record, "", int(record, "/exit_code"), text(record, "/outcome") == Some("error"), out),
        Some("stop_hook_summary") => {
            let said: Vec<&str> = list(record, "/hookErrors").iter().filter_map(Value::as_str).collect();
            if !said.is_empty() {
                let (tool, command) = (Some("Stop".to_owned()), text(record, "/hookInfos/0/command").map(str::to_owned));
                let pointer = "/hookErrors/0".to_owned();
                out.push(Said::Step(Step { tool, command, text: said.join("\n"), pointer, flag: Flag::Failed, ..Step::fine(text(record, "/toolUseID")) }));
            }
        }
        _ => {}
    }
}

fn attachment(record: &Value, out: &mut Vec<Said>) {
    let Some(inner) = at(record, "/attachment") else { return };
    let is_error = text(inner, "/type").is_some_and(|kind| kind.starts_with("hook_") && kind.ends_with("_error"));
    hook(inner, "/attachment", int(inner, "/exitCode"), is_error, out);
}

fn hook(record: &Value, base: &str, exit: Option<i64>, is_error: bool, out: &mut Vec<Said>) {
    if !is_error && exit.is_none_or(|code| code == 0) {
        return;
    }
    let Some(pointer) = ["/stderr", "/blockingError/blockingError", "/output", "/stdout"].into_iter().find(|pointer| text(record, pointer).is_some()) else {
        return;
    };
    // The result of a call that a hook blocks repeats the message; a hook that fails beside its call is a failure of its own.
    let is_blocking = text(record, "/type") == Some("hook_blocking_error");
    let id = text(record, "/toolUseID").filter(|id| is_blocking || !id.starts_with("toolu_"));
    out.push(Said::Step(Step {
        tool: first(record, &["/hook_name", "/hookName", "/hook_event", "/hookEvent"]).map(str::to_owned),
        command: first(record, &["/command", "/blockingError/command"]).map(str::to_owned),
        text: text(record, pointer).unwrap_or_default().to_owned(),
        pointer: format!("{base}{pointer}"),
        exit,
        flag: Flag::Failed,
        flavour: (is_blocking && text(record, "/hookEvent") == Some("PreToolUse")).then_some("not_permitted"),
        ..Step::fine(id)
    }));
}

/// Reads a limit that was reached, with the second at which it ends.
fn limit(record: &Value, out: &mut Vec<Said>) {
    if let (Some("rejected"), Some(at)) = (text(record, "/rate_limit_info/status"), int(record, "/rate_limit_info/resetsAt")) {
        out.push(Said::Reset(at.to_string()));
    }
}
