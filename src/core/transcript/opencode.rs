//! opencode: `run --format json`, one event per line, and the messages of a session as
//! `export` writes them. A command with an exit code other than 0 is a completed call,
//! with the code beside it; a failure of the tool itself or a refusal is an `error`.

use serde_json::Value;

use super::json::{at, command, int, list, status, text};
use super::phrases::is_retrying;
use super::step::{Flag, Said, Step, Who};

pub fn knows(record: &Value) -> bool {
    let named = match text(record, "/type") {
        Some("tool_use" | "step_start" | "step_finish" | "text" | "reasoning") => "/part/type",
        Some("error") => "/error/name",
        _ => return is_kept(record),
    };
    text(record, "/sessionID").is_some() && text(record, named).is_some()
}

/// Whether a record is a message of an exported session, with its parts.
fn is_kept(record: &Value) -> bool {
    matches!(text(record, "/info/role"), Some("user" | "assistant")) && list(record, "/parts").iter().any(|part| text(part, "/type").is_some())
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    if is_kept(record) {
        out.extend(text(record, "/info/sessionID").map(|session| Said::Session(session.to_owned())));
        (0..list(record, "/parts").len()).for_each(|part| tool(record, &format!("/parts/{part}"), out));
        fault(record, "/info/error", out);
        return true;
    }
    let Some(session) = text(record, "/sessionID") else { return false };
    out.push(Said::Session(session.to_owned()));
    match text(record, "/type").unwrap_or_default() {
        "tool_use" => tool(record, "/part", out),
        "error" => fault(record, "/error", out),
        _ => {}
    }
    true
}

/// Reads a call and its result, which stand in one part of a record.
fn tool(record: &Value, part: &str, out: &mut Vec<Said>) {
    let place = |name: &str| format!("{part}/{name}");
    let (Some(id), Some(tool)) = (text(record, &place("callID")), text(record, &place("tool"))) else { return };
    let command = at(record, &place("state/input")).and_then(command);
    out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command });
    let exit = int(record, &place("state/metadata/exit")).filter(|&code| code != 0);
    let pointer = match text(record, &place("state/status")) {
        Some("error") => place("state/error"),
        Some("completed") if exit.is_some() => place("state/output"),
        _ => {
            let pointer = place("state/output");
            out.push(Said::Step(Step::passed(Some(id), (text(record, &pointer).unwrap_or_default(), pointer))));
            return;
        }
    };
    let said = text(record, &pointer).unwrap_or_default().to_owned();
    out.push(Said::Step(Step { text: said, pointer, exit, flag: Flag::Failed, ..Step::fine(Some(id)) }));
}

fn fault(record: &Value, error: &str, out: &mut Vec<Said>) {
    let places = ["data/message", "message", "name"].map(|name| format!("{error}/{name}"));
    let Some(pointer) = places.into_iter().find(|pointer| text(record, pointer).is_some()) else { return };
    let said = text(record, &pointer).unwrap_or_default();
    if is_retrying(said) {
        return;
    }
    out.push(Said::Step(Step {
        who: Who::Api,
        text: said.to_owned(),
        pointer,
        status: status(record, &format!("{error}/data/statusCode")),
        kind: text(record, &format!("{error}/name")).map(str::to_owned),
        flag: Flag::Failed,
        ..Step::default()
    }));
}
