//! aider: `.aider.chat.history.md`. Lines quoted with `>` come from aider
//! and its programs, `####` marks the user; everything else is the model's.

use super::markdown::push;
use super::step::{Flag, Said, Step};
use crate::core::line::Place;

/// The open block of quoted lines.
#[derive(Default)]
pub struct Aider {
    open: Option<Step>,
}

impl Aider {
    /// Reads one line.
    pub fn line(&mut self, line: &str, place: &Place, out: &mut Vec<Said>) {
        if let Some(time) = line.strip_prefix("# aider chat started at ") {
            self.finish(out);
            out.push(Said::Session(time.trim().to_owned()));
            return;
        }
        let quoted = line.strip_prefix("> ").or_else(|| (line.trim_end() == ">").then_some(""));
        match quoted {
            // Two trailing blanks are Markdown's line break.
            Some(said) => push(self.open.get_or_insert_with(|| Step { flag: Flag::Unknown, ..Step::default() }), said.trim_end(), place),
            None => self.finish(out),
        }
    }

    /// Ends the open block of quoted lines.
    pub fn finish(&mut self, out: &mut Vec<Said>) {
        out.extend(self.open.take().map(Said::Step));
    }

    /// Whether no block of quoted lines is open.
    pub fn is_between(&self) -> bool {
        self.open.is_none()
    }
}
