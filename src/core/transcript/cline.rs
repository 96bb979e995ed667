//! Cline and Roo Code: what their windows showed, as a list in one document. A command's
//! output has no exit code with it: its text decides, unless the command only shows something.

use serde_json::Value;

use super::json::text;
use super::step::{Flag, Said, Step, Who};

/// The id of the one command in progress.
const COMMAND: &str = "command";

pub fn knows(record: &Value) -> bool {
    let kind = text(record, "/type").filter(|kind| matches!(*kind, "say" | "ask"));
    record.get("ts").is_some_and(Value::is_number) && kind.is_some_and(|kind| record.get(kind).is_some_and(Value::is_string))
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    if !knows(record) {
        return false;
    }
    let kind = text(record, "/say").or_else(|| text(record, "/ask")).unwrap_or_default();
    let said = text(record, "/text").unwrap_or_default().to_owned();
    let step = Step { text: said.clone(), pointer: "/text".to_owned(), ..Step::default() };
    match kind {
        "command" => out.push(Said::Call { id: COMMAND.to_owned(), tool: "execute_command".to_owned(), command: Some(said) }),
        "command_output" => out.push(Said::Step(Step { id: Some(COMMAND.to_owned()), flag: Flag::Unknown, ..step })),
        "error" | "diff_error" => out.push(Said::Step(Step { flag: Flag::Failed, ..step })),
        "api_req_failed" => out.push(Said::Step(Step { who: Who::Api, flag: Flag::Failed, ..step })),
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_output_and_faults_are_steps() {
        for (kind, flag) in [("text", None), ("completion_result", None), ("command_output", Some(Flag::Unknown)), ("error", Some(Flag::Failed))] {
            let mut out = Vec::new();
            let line = format!(r#"{{"ts":1794304802000,"type":"say","say":"{kind}","text":"error: x"}}"#);
            assert!(read(&serde_json::from_str(&line).expect("a test"), &mut out));
            let got = out.iter().find_map(|said| if let Said::Step(step) = said { Some(step.flag) } else { None });
            assert_eq!(got, flag, "{kind}");
        }
    }
}
