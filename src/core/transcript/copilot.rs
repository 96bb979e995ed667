//! Copilot CLI: the events of a session, one per line. A command with an exit code
//! other than 0 may still be a success of the tool; the code then follows its output.

use serde_json::Value;

use super::json::{at, command, first, text};
use super::step::{Flag, Said, Step, Who};

pub fn knows(record: &Value) -> bool {
    // Events of other services have such types, too.
    let told = match text(record, "/type") {
        Some("session.start") => "/data/sessionId",
        Some("user.message" | "assistant.message") => "/data/content",
        Some("tool.execution_start" | "tool.execution_complete") => "/data/toolCallId",
        _ => return false,
    };
    text(record, "/id").is_some() && text(record, told).is_some()
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    if !at(record, "/data").is_some_and(Value::is_object) {
        return false;
    }
    match text(record, "/type").unwrap_or_default() {
        "session.start" => out.extend(text(record, "/data/sessionId").map(|session| Said::Session(session.to_owned()))),
        "tool.execution_start" => {
            if let (Some(id), Some(tool)) = (text(record, "/data/toolCallId"), text(record, "/data/toolName")) {
                out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command: at(record, "/data/arguments").and_then(command) });
            }
        }
        "tool.execution_complete" => out.push(Said::Step(result(record))),
        "session.error" => out.extend(text(record, "/data/message").map(|said| {
            let pointer = "/data/message".to_owned();
            Said::Step(Step { who: Who::Api, text: said.to_owned(), pointer, flag: Flag::Failed, ..Step::default() })
        })),
        _ => {}
    }
    true
}

fn result(record: &Value) -> Step {
    let id = text(record, "/data/toolCallId");
    let places = ["/data/error/message", "/data/result/content", "/data/result"];
    let pointer = places.into_iter().find(|place| text(record, place).is_some()).unwrap_or_default();
    let said = first(record, &[pointer]).unwrap_or_default();
    let (said, exit) = ended(said);
    if at(record, "/data/success").and_then(Value::as_bool) != Some(false) && exit.is_none() {
        return Step::passed(id, (said, pointer));
    }
    Step { text: said.to_owned(), pointer: pointer.to_owned(), exit, flag: Flag::Failed, ..Step::fine(id) }
}

/// Returns the output before `<exited with exit code 2>`, and the code unless it is 0.
fn ended(said: &str) -> (&str, Option<i64>) {
    let Some((output, code)) = said.trim_end().strip_suffix('>').and_then(|text| text.rsplit_once("<exited with exit code ")) else {
        return (said, None);
    };
    (output.trim_end(), code.parse().ok().filter(|code| *code != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_how_they_went() {
        let table = [
            (r#"{"success":true,"result":{"content":"error: x\n<exited with exit code 0>"}}"#, Flag::Fine, None, "error: x"),
            (r#"{"success":true,"result":{"content":"x\n<exited with exit code 2>"}}"#, Flag::Failed, Some(2), "x"),
            (r#"{"success":false,"error":{"message":"x"}}"#, Flag::Failed, None, "x"),
        ];
        for (data, flag, exit, said) in table {
            let data = data.replacen('{', r#"{"toolCallId":"c","#, 1);
            let line = format!(r#"{{"type":"tool.execution_complete","id":"1","data":{data}}}"#);
            let mut out = Vec::new();
            assert!(read(&serde_json::from_str(&line).expect("a test"), &mut out));
            let [Said::Step(step)] = out.as_slice() else { panic!("{line}: {out:?}") };
            assert_eq!((step.flag, step.exit, step.text.as_str()), (flag, exit, said), "{line}");
        }
    }
}
