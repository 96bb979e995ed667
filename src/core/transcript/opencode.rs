//! opencode: `run --format json`, one event a line. A command that ended with another code than 0 is a call that was
//! completed, with the code beside it; what failed in the tool itself or was refused is an `error`.

use serde_json::Value;

use super::json::{at, command, first, int, status, text};
use super::phrases::is_retrying;
use super::step::{Flag, Said, Step, Who};

pub fn knows(record: &Value) -> bool {
    let named = match text(record, "/type") {
        Some("tool_use" | "step_start" | "step_finish" | "text" | "reasoning") => "/part/type",
        Some("error") => "/error/name",
        _ => return false,
    };
    text(record, "/sessionID").is_some() && text(record, named).is_some()
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    let Some(session) = text(record, "/sessionID") else { return false };
    out.push(Said::Session(session.to_owned()));
    match text(record, "/type").unwrap_or_default() {
        "tool_use" => tool(record, out),
        "error" => fault(record, out),
        _ => {}
    }
    true
}

/// A call and what came of it stand in one event.
fn tool(record: &Value, out: &mut Vec<Said>) {
    let (Some(id), Some(tool)) = (text(record, "/part/callID"), text(record, "/part/tool")) else { return };
    let command = at(record, "/part/state/input").and_then(command);
    out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command });
    let exit = int(record, "/part/state/metadata/exit").filter(|&code| code != 0);
    let pointer = match text(record, "/part/state/status") {
        Some("error") => "/part/state/error",
        Some("completed") if exit.is_some() => "/part/state/output",
        _ => {
            out.push(Said::Step(Step::fine(Some(id))));
            return;
        }
    };
    let said = text(record, pointer).unwrap_or_default().to_owned();
    out.push(Said::Step(Step { text: said, pointer: pointer.to_owned(), exit, flag: Flag::Failed, ..Step::fine(Some(id)) }));
}

fn fault(record: &Value, out: &mut Vec<Said>) {
    let places = ["/error/data/message", "/error/message", "/error/name"];
    let Some(pointer) = places.into_iter().find(|pointer| text(record, pointer).is_some()) else { return };
    let said = first(record, &[pointer]).unwrap_or_default();
    if is_retrying(said) {
        return;
    }
    out.push(Said::Step(Step {
        who: Who::Api,
        text: said.to_owned(),
        pointer: pointer.to_owned(),
        status: status(record, "/error/data/statusCode"),
        kind: text(record, "/error/name").map(str::to_owned),
        flag: Flag::Failed,
        ..Step::default()
    }));
}
