//! pi: session files and `--mode json`. There a result appears in several events, which its call id joins.

use serde_json::Value;

use super::json::{at, command, content, int, is_true, list, text};
use super::step::{Flag, Said, Step, Who};

pub fn knows(record: &Value) -> bool {
    let has = |key: &str| record.get(key).is_some();
    match text(record, "/type") {
        Some("session") => has("id") && has("cwd"),
        Some("message") => matches!(text(record, "/message/role"), Some("user" | "assistant" | "toolResult" | "bashExecution")),
        Some("message_start" | "message_end") => at(record, "/message/role").is_some(),
        Some("tool_execution_start" | "tool_execution_end") => has("toolCallId"),
        _ => false,
    }
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    match text(record, "/type").unwrap_or_default() {
        "session" => {
            if let Some(id) = text(record, "/id") {
                out.push(Said::Session(id.to_owned()));
            }
        }
        "message" | "message_end" => {
            if let Some(inner) = at(record, "/message") {
                message(inner, text(record, "/id"), out);
            }
        }
        "tool_execution_start" => {
            if let (Some(id), Some(tool)) = (text(record, "/toolCallId"), text(record, "/toolName")) {
                out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command: at(record, "/args").and_then(command) });
            }
        }
        "tool_execution_end" => result(record, "", "/result/content", out),
        "agent_start"
        | "agent_end"
        | "turn_start"
        | "turn_end"
        | "message_start"
        | "message_update"
        | "tool_execution_update"
        | "compaction"
        | "model_change"
        | "thinking_level_change"
        | "branch_summary"
        | "custom"
        | "label"
        | "session_info" => {}
        _ => return false,
    }
    true
}

fn message(inner: &Value, record_id: Option<&str>, out: &mut Vec<Said>) {
    match text(inner, "/role").unwrap_or_default() {
        "assistant" => {
            for block in list(inner, "/content").iter().filter(|block| text(block, "/type") == Some("toolCall")) {
                if let (Some(id), Some(tool)) = (text(block, "/id"), text(block, "/name")) {
                    out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command: at(block, "/arguments").and_then(command) });
                }
            }
            if text(inner, "/stopReason") == Some("error") {
                let said = text(inner, "/errorMessage").unwrap_or("the model stopped with an error").to_owned();
                let pointer = "/message/errorMessage".to_owned();
                out.push(Said::Step(Step { who: Who::Api, text: said, pointer, flag: Flag::Failed, ..Step::fine(record_id) }));
            }
        }
        "toolResult" => result(inner, "/message", "/content", out),
        "bashExecution" => {
            let exit = int(inner, "/exitCode");
            if exit.is_some_and(|code| code != 0) {
                let said = text(inner, "/output").unwrap_or_default().to_owned();
                let (tool, pointer) = (Some("bash".to_owned()), "/message/output".to_owned());
                out.push(Said::Step(Step { tool, command: command(inner), text: said, pointer, exit, flag: Flag::Failed, ..Step::fine(record_id) }));
            }
        }
        _ => {}
    }
}

fn result(inner: &Value, base: &str, from: &str, out: &mut Vec<Said>) {
    let id = text(inner, "/toolCallId");
    if !is_true(inner, "/isError") {
        let (said, pointer) = content(inner, from);
        out.push(Said::Step(Step::passed(id, (said, format!("{base}{pointer}")))));
        return;
    }
    let (said, pointer) = content(inner, from);
    let exit = said.lines().rev().find_map(|line| line.trim().strip_prefix("Command exited with code ")?.parse().ok());
    let tool = text(inner, "/toolName").map(str::to_owned);
    out.push(Said::Step(Step { tool, text: said, pointer: format!("{base}{pointer}"), exit, flag: Flag::Failed, ..Step::fine(id) }));
}
