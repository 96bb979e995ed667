//! SWE-agent: a trajectory is one document, whose steps are read one by one. An
//! observation has no flag: its text decides, unless the action only shows a file.

use serde_json::Value;

use super::json::text;
use super::step::{Flag, Said, Step, Who};

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    if let Some(status) = text(record, "/exit_status") {
        // `submitted`, `submitted (exit_cost)`: there is a result.
        if !status.starts_with("submitted") && !status.starts_with("skipped") {
            out.push(Said::Step(Step { who: Who::Run, text: status.to_owned(), pointer: "/exit_status".to_owned(), flag: Flag::Failed, ..Step::default() }));
        }
        return true;
    }
    let Some(action) = text(record, "/action") else { return record.get("observation").is_some() };
    out.push(Said::Step(Step {
        tool: Some("shell".to_owned()),
        command: Some(action.trim().to_owned()),
        text: text(record, "/observation").unwrap_or_default().to_owned(),
        pointer: "/observation".to_owned(),
        flag: Flag::Unknown,
        ..Step::default()
    }));
    true
}
