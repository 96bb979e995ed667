//! SpecStory: histories in Markdown. A tool's result stands in a fence after `Result:` or
//! `Error:`, in a `<tool-use>` element, or, in older versions, after `Tool use: **Name**`.

use super::markdown::push;
use super::phrases;
use super::step::{Flag, Said, Step};
use crate::core::line::Place;

/// The state of the reader.
#[derive(Default)]
pub struct Specstory {
    tool: Option<Step>,
    /// What the next fence holds.
    announced: Announced,
    /// The backticks that close the fence.
    fence: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Announced {
    #[default]
    Nothing,
    Command,
    Result,
    Error,
}

impl Specstory {
    /// Reads one line.
    pub fn line(&mut self, line: &str, place: &Place, out: &mut Vec<Said>) {
        if self.fence.is_some() {
            self.fenced(line, place, out);
            return;
        }
        let text = line.trim();
        if let Some(session) = session(text) {
            out.push(Said::Session(session.to_owned()));
        } else if is_role(text) {
            self.end_tool(out);
        } else if let Some(name) = tool(text) {
            // The summary inside an element repeats the name.
            if self.tool.as_ref().is_none_or(|open| open.tool.as_deref() != Some(name)) || !text.contains("<summary>") {
                self.end_tool(out);
                self.tool = Some(Step { tool: Some(name.to_owned()), ..Step::default() });
            }
            self.announced = Announced::Command;
        } else if text.starts_with("</details></tool-use>") {
            self.end_tool(out);
        } else if let Some(open) = &mut self.tool {
            match text.trim_matches('*') {
                "Result:" | "Output:" => self.announced = Announced::Result,
                "Error:" => self.announced = Announced::Error,
                _ if text.starts_with("```") => self.fence = Some(text[..text.bytes().take_while(|&b| b == b'`').count()].to_owned()),
                _ => {
                    let command = text.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
                    if let (Some(command), None, Announced::Command) = (command, &open.command, self.announced) {
                        open.command = Some(command.to_owned());
                    }
                }
            }
        }
    }

    fn fenced(&mut self, line: &str, place: &Place, out: &mut Vec<Said>) {
        if self.fence.as_deref() == Some(line.trim()) {
            self.fence = None;
            if matches!(self.announced, Announced::Result | Announced::Error) {
                self.end_tool(out);
            }
            return;
        }
        let Some(open) = &mut self.tool else { return };
        match self.announced {
            Announced::Command => {
                open.command.get_or_insert_with(|| line.trim_start_matches("$ ").to_owned());
            }
            Announced::Result | Announced::Error => push(open, line, place),
            Announced::Nothing => {}
        }
    }

    fn end_tool(&mut self, out: &mut Vec<Said>) {
        let announced = std::mem::take(&mut self.announced);
        let Some(mut step) = self.tool.take() else { return };
        step.exit = super::claude::exit(&step.text).filter(|&code| code != 0);
        step.flag = match announced {
            Announced::Error => Flag::Failed,
            _ if step.exit.is_some() || step.text.starts_with("<tool_use_error>") || phrases::flavour(&step.text).is_some() => Flag::Failed,
            // Without a flag, only the output of a command can tell.
            Announced::Result if step.command.is_some() => Flag::Unknown,
            _ => Flag::Fine,
        };
        out.push(Said::Step(step));
    }

    /// Ends the transcript.
    pub fn finish(&mut self, out: &mut Vec<Said>) {
        self.fence = None;
        self.end_tool(out);
    }

    /// Whether no tool is open.
    pub fn is_between(&self) -> bool {
        self.tool.is_none() && self.fence.is_none()
    }
}

/// Returns the session of a line: `<!-- Claude Code Session 600c64d2-… (2026-08-03 15:41:34Z) -->`.
fn session(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("<!-- ")?.split_once("Session ")?;
    rest.split_whitespace().next()
}

/// Whether a line names a speaker: `_**User**_`, `_**Agent (model)**_`.
fn is_role(text: &str) -> bool {
    text.starts_with("_**") && text.ends_with("**_")
}

/// Returns the tool that `<tool-use data-tool-name="Bash">` or `Tool use: **Bash** what for` opens.
fn tool(text: &str) -> Option<&str> {
    if let Some((_, rest)) = text.split_once("data-tool-name=\"") {
        return text.starts_with("<tool-use").then(|| rest.split('"').next())?;
    }
    let text = text.strip_prefix("<summary>").unwrap_or(text);
    let (name, _) = text.strip_prefix("Tool use: **")?.split_once("**")?;
    Some(name)
}
