//! Gemini CLI: `--output-format stream-json`, the messages of its saved chats, and what `--output-format json` prints
//! of a run that failed.

use serde_json::Value;

use super::json::{at, command, first, list, text};
use super::phrases::is_retrying;
use super::step::{Flag, Said, Step, Who};

/// The prefix of the id of a shell command's call: the tool's name.
const SHELL: &str = "run_shell_command";

pub fn knows(record: &Value) -> bool {
    let has = |key: &str| record.get(key).is_some();
    match text(record, "/type") {
        Some("init") => has("session_id") && has("model"),
        Some("tool_use") => has("tool_name") && has("tool_id"),
        Some("tool_result") => has("tool_id") && has("status"),
        Some("result") => has("status") && has("stats"),
        // Messages of a saved chat; services also keep records of type `user`.
        Some(kind @ ("user" | "gemini")) => {
            let told = ["/id", "/timestamp", "/content"].iter().all(|place| text(record, place).is_some());
            told && (kind == "gemini" || record.as_object().is_some_and(|fields| fields.len() == 4))
        }
        None => is_failed_run(record),
        _ => false,
    }
}

pub fn read(record: &Value, out: &mut Vec<Said>) -> bool {
    match text(record, "/type").unwrap_or_default() {
        "init" => {
            if let Some(session) = text(record, "/session_id") {
                out.push(Said::Session(session.to_owned()));
            }
        }
        "tool_use" => {
            if let (Some(id), Some(tool)) = (text(record, "/tool_id"), text(record, "/tool_name")) {
                let command = at(record, "/parameters").and_then(command);
                out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command });
            }
        }
        "tool_result" => result(record, out),
        "error" => fault(record, out),
        "result" if text(record, "/status") == Some("error") => run(record, out),
        "" if is_failed_run(record) => run(record, out),
        "gemini" => {
            for told in list(record, "/toolCalls") {
                kept(told, out);
            }
        }
        "result" | "message" | "user" => {}
        _ => return false,
    }
    true
}

/// Whether a record is `{"session_id": "…", "error": {"type": "FatalAuthenticationError", "message": "…", "code": 41}}`.
fn is_failed_run(record: &Value) -> bool {
    text(record, "/error/type").is_some_and(|kind| kind.starts_with("Fatal") && kind.ends_with("Error")) && text(record, "/error/message").is_some()
}

/// Reads a run that failed.
fn run(record: &Value, out: &mut Vec<Said>) {
    let said = text(record, "/error/message").unwrap_or("the run failed").to_owned();
    let kind = text(record, "/error/type").map(str::to_owned);
    out.push(Said::Step(Step { who: Who::Run, text: said, pointer: "/error/message".to_owned(), kind, flag: Flag::Failed, ..Step::default() }));
}

/// Reads a call of a saved chat, with its result.
fn kept(told: &Value, out: &mut Vec<Said>) {
    let (Some(id), Some(tool)) = (text(told, "/id"), text(told, "/name")) else { return };
    out.push(Said::Call { id: id.to_owned(), tool: tool.to_owned(), command: at(told, "/args").and_then(command) });
    let places = ["/result/0/functionResponse/response/error", "/result/0/functionResponse/response/output", "/resultDisplay"];
    let Some(pointer) = places.into_iter().find(|place| text(told, place).is_some()) else { return };
    let said = text(told, pointer).unwrap_or_default();
    let exit = exit(said).filter(|&code| code != 0);
    if text(told, "/status") != Some("error") && exit.is_none() {
        out.push(Said::Step(Step::passed(Some(id), (said, pointer))));
        return;
    }
    out.push(Said::Step(Step { text: said.to_owned(), pointer: pointer.to_owned(), exit, flag: Flag::Failed, ..Step::fine(Some(id)) }));
}

fn result(record: &Value, out: &mut Vec<Said>) {
    let id = text(record, "/tool_id");
    let exit = text(record, "/output").and_then(|said| exit(said).or_else(|| signal(said))).filter(|&code| code != 0);
    if text(record, "/status") != Some("error") && exit.is_none() {
        // A failed shell command is a successful call, and its exit code is not reported.
        let printed = text(record, "/output").filter(|said| !said.is_empty() && id.is_some_and(|id| id.starts_with(SHELL)));
        let unknown = |said: &str| Step { text: said.to_owned(), pointer: "/output".to_owned(), flag: Flag::Unknown, ..Step::fine(id) };
        out.push(Said::Step(printed.map_or_else(|| Step::fine(id), unknown)));
        return;
    }
    let pointer = if exit.is_none() && text(record, "/error/message").is_some() { "/error/message" } else { "/output" };
    let said = first(record, &[pointer, "/error/message", "/output"]).unwrap_or_default().to_owned();
    let kind = text(record, "/error/type").map(str::to_owned);
    out.push(Said::Step(Step { text: said, pointer: pointer.to_owned(), exit, kind, flag: Flag::Failed, ..Step::fine(id) }));
}

/// Returns the code in `Exit Code: 1`, which the shell tool writes after the output.
fn exit(output: &str) -> Option<i64> {
    let heads = ["Exit Code: ", "Command exited with code: "];
    output.lines().rev().take(8).find_map(|line| heads.iter().find_map(|head| line.strip_prefix(head)?.trim().parse().ok()))
}

/// Returns a shell's exit code for the signal in `Signal: 11` or `Command terminated by signal: 11`, which stand in place of a code.
fn signal(output: &str) -> Option<i64> {
    let heads = ["Signal: ", "Command terminated by signal: "];
    let number: i64 = output.lines().rev().take(8).find_map(|line| heads.iter().find_map(|head| line.strip_prefix(head)?.trim().parse().ok()))?;
    (1..=64).contains(&number).then_some(128 + number)
}

fn fault(record: &Value, out: &mut Vec<Said>) {
    // `/content` is the place in a saved chat.
    let Some(pointer) = ["/message", "/content"].into_iter().find(|place| text(record, place).is_some()) else { return };
    let Some(said) = text(record, pointer).filter(|said| !is_retrying(said)) else { return };
    if text(record, "/severity") != Some("warning") {
        out.push(Said::Step(Step { who: Who::Api, text: said.to_owned(), pointer: pointer.to_owned(), flag: Flag::Failed, ..Step::default() }));
    }
}
