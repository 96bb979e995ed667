//! The formats, and how a record of each is read.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step::Said;
use super::{claude, cline, codex, copilot, cursor, gemini, messages, opencode, openhands, pi, swe};

/// A format of transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Claude Code: session files and `--output-format stream-json`.
    Claude,
    /// Codex: rollout files and `exec --json`.
    Codex,
    /// Gemini CLI: `--output-format stream-json`.
    Gemini,
    /// pi: session files and `--mode json`.
    Pi,
    /// opencode: `run --format json`.
    Opencode,
    /// Copilot CLI: the events of a session.
    Copilot,
    /// Cursor's agent: `--output-format stream-json`.
    Cursor,
    /// Cline and Roo Code: what their windows showed, as one document.
    Cline,
    /// OpenHands: events, one per line or as one document.
    Openhands,
    /// SWE-agent: trajectories, each one document.
    SweAgent,
    /// Messages of a model's API, one per line, whichever agent kept them.
    Messages,
    /// aider: the history of a chat.
    Aider,
    /// SpecStory: histories of sessions.
    Specstory,
}

impl Format {
    /// The formats whose records are JSON objects, in the order in which they are tried.
    pub const JSON: [Self; 11] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Pi,
        Self::Opencode,
        Self::Copilot,
        Self::Cursor,
        Self::Cline,
        Self::Openhands,
        Self::SweAgent,
        Self::Messages,
    ];

    /// Returns the name of the agent, or of what has the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Pi => "pi",
            Self::Opencode => "opencode",
            Self::Copilot => "Copilot CLI",
            Self::Cursor => "Cursor",
            Self::Cline => "Cline",
            Self::Openhands => "OpenHands",
            Self::SweAgent => "SWE-agent",
            Self::Messages => "messages of a model's API",
            Self::Aider => "aider",
            Self::Specstory => "SpecStory",
        }
    }

    /// Whether a record alone shows that it is of this format.
    #[must_use]
    pub fn knows(self, record: &Value) -> bool {
        match self {
            Self::Claude => claude::knows(record),
            Self::Codex => codex::knows(record),
            Self::Gemini => gemini::knows(record),
            Self::Pi => pi::knows(record),
            Self::Opencode => opencode::knows(record),
            Self::Copilot => copilot::knows(record),
            Self::Cursor => cursor::knows(record),
            Self::Cline => cline::knows(record),
            Self::Openhands => openhands::knows(record),
            Self::Messages => messages::knows(record),
            Self::SweAgent | Self::Aider | Self::Specstory => false,
        }
    }

    /// Reads a record of a stream of this format; returns `false` if it is not such a record.
    pub fn read(self, record: &Value, out: &mut Vec<Said>) -> bool {
        match self {
            Self::Claude => claude::read(record, out),
            Self::Codex => codex::read(record, out),
            Self::Gemini => gemini::read(record, out),
            Self::Pi => pi::read(record, out),
            Self::Opencode => opencode::read(record, out),
            Self::Copilot => copilot::read(record, out),
            Self::Cursor => cursor::read(record, out),
            Self::Cline => cline::read(record, out),
            Self::Openhands => openhands::read(record, out),
            Self::SweAgent => swe::read(record, out),
            Self::Messages => messages::read(record, out),
            Self::Aider | Self::Specstory => false,
        }
    }
}
