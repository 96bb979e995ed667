//! Cursor's agent: `--output-format stream-json`. Its messages are those of Claude Code; its
//! calls are separate records, in which the kinds of the call and of its result are keys.

use serde_json::Value;

use super::json::{at, command, first, int, text};
use super::step::{Flag, Said, Step};

pub fn knows(record: &Value) -> bool {
    text(record, "/type") == Some("tool_call") && text(record, "/subtype").is_some() && at(record, "/tool_call").is_some_and(Value::is_object)
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    if !knows(record) {
        return false;
    }
    let calls = at(record, "/tool_call").and_then(Value::as_object);
    let Some((kind, call)) = calls.and_then(|calls| calls.iter().find(|(_, call)| call.is_object())) else { return true };
    let id = text(record, "/call_id");
    if let Some(id) = id {
        let tool = kind.strip_suffix("ToolCall").unwrap_or(kind).to_owned();
        out.push(Said::Call { id: id.to_owned(), tool, command: at(call, "/args").and_then(command) });
    }
    let results = at(call, "/result").and_then(Value::as_object);
    if let Some((name, told)) = results.and_then(|results| results.iter().next()) {
        out.push(Said::Step(result(id, name, told, &format!("/tool_call/{kind}/result/{name}"))));
    }
    true
}

fn result(id: Option<&str>, name: &str, told: &Value, place: &str) -> Step {
    let exit = int(told, "/exitCode").filter(|&code| code != 0);
    let filled = |place: &&str| text(told, place).is_some_and(|said| !said.trim().is_empty());
    if name == "success" && exit.is_none() {
        let pointer = ["/interleavedOutput", "/stdout", "/stderr"].into_iter().find(filled).unwrap_or_default();
        return Step::passed(id, (first(told, &[pointer]).unwrap_or_default(), format!("{place}{pointer}")));
    }
    let pointer = ["/stderr", "/stdout", "/interleavedOutput", "/errorMessage", "/error", "/message", "/reason"].into_iter().find(filled).unwrap_or_default();
    let said = first(told, &[pointer]).unwrap_or_default().to_owned();
    let flavour = matches!(name, "rejected" | "permissionDenied").then_some("refused");
    Step { text: said, pointer: format!("{place}{pointer}"), exit, flag: Flag::Failed, flavour, kind: Some(name.to_owned()), ..Step::fine(id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_how_they_went() {
        let table = [
            (r#"{"success":{"exitCode":0,"stdout":"error: x"}}"#, Flag::Fine, None, "error: x"),
            (r#"{"failure":{"exitCode":2,"stdout":"a","stderr":"x"}}"#, Flag::Failed, Some(2), "x"),
            (r#"{"success":{"exitCode":1,"stdout":"x","stderr":""}}"#, Flag::Failed, Some(1), "x"),
            (r#"{"error":{"errorMessage":"x"}}"#, Flag::Failed, None, "x"),
        ];
        for (told, flag, exit, said) in table {
            let line = format!(
                r#"{{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{{"shellToolCall":{{"args":{{"command":"make"}},"result":{told}}}}}}}"#
            );
            let mut out = Vec::new();
            assert!(read(&serde_json::from_str(&line).expect("a test"), &mut out));
            let [Said::Call { tool, .. }, Said::Step(step)] = out.as_slice() else { panic!("{line}: {out:?}") };
            assert_eq!((tool.as_str(), step.flag, step.exit, step.text.as_str()), ("shell", flag, exit, said), "{line}");
        }
    }
}
