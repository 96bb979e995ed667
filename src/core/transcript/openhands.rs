//! OpenHands: events, one per line or as a list in one document. Older events name an
//! `action` or an `observation` and join them by `cause`; newer ones have a `kind`.

use serde_json::Value;

use super::json::{at, command, content, first, int, is_true, text};
use super::step::{Flag, Said, Step, Who};

pub fn knows(record: &Value) -> bool {
    let source = matches!(text(record, "/source"), Some("agent" | "user" | "environment" | "hook"));
    let old = text(record, "/action").is_some() || text(record, "/observation").is_some();
    let new = text(record, "/kind").is_some_and(|kind| kind.ends_with("Event") || kind.ends_with("Observation"));
    source && record.get("id").is_some() && (old || new)
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    if !knows(record) {
        return false;
    }
    if text(record, "/kind").is_some() {
        newer(record, out);
    } else if text(record, "/action").is_some() {
        action(record, out);
    } else {
        observation(record, out);
    }
    true
}

fn id(record: &Value, pointer: &str) -> Option<String> {
    match at(record, pointer)? {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn action(record: &Value, out: &mut Vec<Said>) {
    let (Some(id), Some(tool)) = (id(record, "/id"), text(record, "/action")) else { return };
    out.push(Said::Call { id, tool: tool.to_owned(), command: at(record, "/args").and_then(command) });
}

fn observation(record: &Value, out: &mut Vec<Said>) {
    let kind = text(record, "/observation").unwrap_or_default();
    let exit = int(record, "/extras/metadata/exit_code").or_else(|| int(record, "/extras/exit_code")).filter(|&code| code >= 0);
    let rejected = kind == "user_rejected";
    let failed = kind == "error" || rejected || exit.is_some_and(|code| code != 0) || at(record, "/success") == Some(&Value::Bool(false));
    let state_error = kind == "agent_state_changed" && text(record, "/extras/agent_state") == Some("error");
    let step =
        Step { exit, command: at(record, "/extras").and_then(command), flavour: rejected.then_some("refused"), ..Step::fine(id(record, "/cause").as_deref()) };
    if state_error {
        let said = first(record, &["/extras/reason", "/content", "/message"]).unwrap_or("the agent stopped with an error").to_owned();
        out.push(Said::Step(Step { who: Who::Run, text: said, pointer: "/extras/reason".to_owned(), flag: Flag::Failed, ..Step::default() }));
    } else if failed {
        let pointer = if text(record, "/content").is_some() { "/content" } else { "/message" };
        let said = text(record, pointer).unwrap_or_default().to_owned();
        out.push(Said::Step(Step { text: said, pointer: pointer.to_owned(), flag: Flag::Failed, ..step }));
    } else {
        let said = text(record, "/content").unwrap_or_default().to_owned();
        out.push(Said::Step(Step { text: said, pointer: "/content".to_owned(), ..step }));
    }
}

fn newer(record: &Value, out: &mut Vec<Said>) {
    let call = text(record, "/tool_call_id").or_else(|| text(record, "/tool_call/id"));
    let tool = text(record, "/tool_name").map(str::to_owned);
    let failed =
        |said: &str, pointer: &str| Step { tool: tool.clone(), text: said.to_owned(), pointer: pointer.to_owned(), flag: Flag::Failed, ..Step::fine(call) };
    match text(record, "/kind").unwrap_or_default() {
        "ActionEvent" => {
            if let (Some(id), Some(tool)) = (call, tool) {
                out.push(Said::Call { id: id.to_owned(), tool, command: at(record, "/action").and_then(command) });
            }
        }
        "ObservationEvent" => {
            let exit = int(record, "/observation/exit_code").or_else(|| int(record, "/observation/metadata/exit_code")).filter(|&code| code >= 0);
            let flagged = is_true(record, "/observation/is_error") || is_true(record, "/observation/error") || exit.is_some_and(|code| code != 0);
            let own = first(record, &["/observation/error"]);
            let from = ["/observation/content", "/observation/output"].into_iter().find(|from| at(record, from).is_some()).unwrap_or_default();
            if let Some(said) = own {
                out.push(Said::Step(Step { exit, ..failed(said, "/observation/error") }));
            } else if flagged {
                let (said, pointer) = content(record, from);
                out.push(Said::Step(Step { exit, ..failed(&said, &pointer) }));
            } else {
                out.push(Said::Step(Step::passed(call, content(record, from))));
            }
        }
        "AgentErrorEvent" => out.push(Said::Step(failed(text(record, "/error").unwrap_or_default(), "/error"))),
        "UserRejectObservation" => {
            let said = text(record, "/rejection_reason").unwrap_or_default();
            out.push(Said::Step(Step { flavour: Some("refused"), ..failed(said, "/rejection_reason") }));
        }
        "HookExecutionEvent" if at(record, "/success") == Some(&Value::Bool(false)) => {
            let pointer = ["/stderr", "/reason", "/error", "/stdout"].into_iter().find(|pointer| text(record, pointer).is_some()).unwrap_or("/reason");
            let flavour = is_true(record, "/blocked").then_some("not_permitted");
            let (tool, command) = (text(record, "/hook_event_type").map(str::to_owned), text(record, "/hook_command").map(str::to_owned));
            let exit = int(record, "/exit_code").filter(|_| flavour.is_none());
            let said = text(record, pointer).unwrap_or_default();
            out.push(Said::Step(Step { tool, command, exit, flavour, ..failed(said, pointer) }));
        }
        "ConversationErrorEvent" => {
            let kind = text(record, "/code").map(str::to_owned);
            out.push(Said::Step(Step { who: Who::Api, kind, ..failed(text(record, "/detail").unwrap_or_default(), "/detail") }));
        }
        _ => {}
    }
}
