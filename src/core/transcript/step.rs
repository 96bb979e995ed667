//! What the records of every format are turned into.

/// Something that a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The session that this and the next records belong to.
    Session(String),
    /// The agent calls a tool.
    Call {
        /// Id of the call.
        id: String,
        /// The tool.
        tool: String,
        /// Command or target, when the call names one.
        command: Option<String>,
    },
    /// When a limit that was reached ends; the next fault of the API is about that limit.
    Reset(String),
    /// A completed action.
    Step(Step),
}

/// Who speaks. The agent and the user make no steps: what they say is not evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Who {
    /// A tool that the agent called.
    #[default]
    Tool,
    /// The model's API.
    Api,
    /// The run as a whole.
    Run,
}

/// What a step states about its success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flag {
    /// Failed, by a flag or by an exit code.
    Failed,
    /// Succeeded, as far as its exit code tells: of a command line that hides failures the text decides.
    #[default]
    Fine,
    /// Not stated: the text decides, unless the step only shows something.
    Unknown,
    /// Succeeded; the text is what it wrote to stderr.
    Stderr,
}

/// One action, and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Who acted.
    pub who: Who,
    /// Name of the tool.
    pub tool: Option<String>,
    /// Id of the call; for a fault, the id of its record.
    pub id: Option<String>,
    /// Command or target.
    pub command: Option<String>,
    /// What was printed or said; if it succeeded, as far as the format tells.
    pub text: String,
    /// Pointer to `text` in the record (RFC 6901); empty outside JSON.
    pub pointer: String,
    /// Number and offset in the stream of each line of `text`, if it has lines of its own there.
    pub lines: Vec<(u64, u64)>,
    /// Whether the middle of a long `text` was left out.
    pub is_cut: bool,
    /// Whether it succeeded.
    pub flag: Flag,
    /// Exit code of a command.
    pub exit: Option<i64>,
    /// HTTP status of an API fault.
    pub status: Option<u16>,
    /// The API's or the tool's own word for the fault.
    pub kind: Option<String>,
    /// How it was refused, if the format itself says so.
    pub flavour: Option<&'static str>,
}

impl Step {
    /// Returns a step of a tool call that succeeded.
    #[must_use]
    pub fn fine(id: Option<&str>) -> Self {
        Self { id: id.map(str::to_owned), ..Self::default() }
    }

    /// Returns a step of a tool call that succeeded and printed the text at `pointer` of the stream's record.
    #[must_use]
    pub fn passed(id: Option<&str>, (text, pointer): (impl Into<String>, impl Into<String>)) -> Self {
        Self { text: text.into(), pointer: pointer.into(), ..Self::fine(id) }
    }
}
