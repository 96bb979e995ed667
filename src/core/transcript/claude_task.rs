//! Claude Code: commands that run in the background. Elements state how a command
//! ended: in the result of the tool that asks for it (`BashOutput`, `TaskOutput`),
//! and in a message that the client writes in the user's place when the command ends.

use super::step::{Flag, Step};

/// The elements stand before the output, which may be the text of any program.
const MAX_HEAD_BYTES: usize = 600;

/// Returns the background command whose failure `said` reports, if
/// any. Repeated requests get the same report, so the task is its id.
pub fn failed(said: &str) -> Option<Step> {
    let said = said.trim_start();
    let is_notice = said.starts_with("<task-notification>");
    if !is_notice && !said.starts_with("<retrieval_status>") && !said.starts_with("<status>") {
        return None;
    }
    let head = &said[..said.floor_char_boundary(MAX_HEAD_BYTES)];
    let head = &head[..OUTPUTS.iter().filter_map(|output| head.find(output)).min().unwrap_or(head.len())];
    let stated = element(head, "exit_code").and_then(|code| code.parse().ok());
    let exit = stated.or_else(|| element(head, "summary").and_then(exit)).filter(|&code| code != 0);
    if exit.is_none() && element(head, "status") != Some("failed") {
        return None;
    }
    let output = ["stderr", "output", "stdout"].iter().find_map(|name| element(said, name)).or_else(|| element(head, "summary"));
    let id = ["task_id", "task-id", "shell_id"].iter().find_map(|name| element(head, name));
    Some(Step { text: output.unwrap_or_default().to_owned(), exit, flag: Flag::Failed, ..Step::fine(id) })
}

/// Returns the code with which the summary of a command ends: `… failed with exit code 2`.
pub fn exit(summary: &str) -> Option<i64> {
    summary.rsplit_once("exit code ").and_then(|(_, code)| code.trim_end_matches('.').parse().ok())
}

/// The elements with which the output begins.
const OUTPUTS: [&str; 3] = ["<stdout>", "<stderr>", "<output>"];

/// Returns the content of the first element with this name; if it is cut off, whatever is left.
fn element<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = said.split_once(&format!("<{name}>"))?;
    let inner = rest.split_once(&format!("</{name}>")).map_or(rest, |(inner, _)| inner);
    Some(inner.trim()).filter(|inner| !inner.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_in_front_of_the_output_decide() {
        let of = |said: &str| failed(said).map(|step| (step.id.unwrap_or_default(), step.exit, step.text));
        let told = |id: &str, exit, text: &str| Some((id.to_owned(), exit, text.to_owned()));
        let table = [
            (
                "<retrieval_status>success</retrieval_status>\n<task_id>b1</task_id>\n<status>failed</status>\n<exit_code>2</exit_code>\n<output>\nboom\n</output>",
                told("b1", Some(2), "boom"),
            ),
            ("<status>completed</status>\n<exit_code>1</exit_code>\n<stdout>a</stdout>\n<stderr>b</stderr>", told("", Some(1), "b")),
            (
                "<task-notification>\n<task-id>b2</task-id>\n<status>failed</status>\n<summary>Background command \"make\" failed with exit code 2</summary>\n</task-notification>",
                told("b2", Some(2), "Background command \"make\" failed with exit code 2"),
            ),
            ("<status>completed</status>\n<exit_code>0</exit_code>\n<stdout><status>failed</status></stdout>", None),
            ("<status>running</status>\n<stdout>Error: x", None),
            ("the log says <status>failed</status>", None),
        ];
        for (said, want) in table {
            assert_eq!(of(said), want, "{said}");
        }
    }
}
