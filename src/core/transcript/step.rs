//! What the records of every format come to.

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
    /// When a limit that was reached is lifted; the next fault of the API is about it.
    Reset(String),
    /// Something was done.
    Step(Step),
}

/// Who speaks. The agent and the user make no steps: what they say is no evidence.
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

/// What a step says of its success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flag {
    /// It failed: by a flag, or by an exit code.
    Failed,
    /// It went well.
    #[default]
    Fine,
    /// It says nothing: its text decides, unless it only shows something.
    Unknown,
    /// It went well; the text is what it wrote to stderr.
    Stderr,
}

/// One thing that was done, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Who did it.
    pub who: Who,
    /// Name of the tool.
    pub tool: Option<String>,
    /// Id of the call; of a fault, the id of its record.
    pub id: Option<String>,
    /// Command or target.
    pub command: Option<String>,
    /// What was printed or said; empty when it went well.
    pub text: String,
    /// Where in the record that stands (RFC 6901); empty outside JSON.
    pub pointer: String,
    /// Number and offset in the stream of each line of `text`, where it has lines of its own there.
    pub lines: Vec<(u64, u64)>,
    /// How it went.
    pub flag: Flag,
    /// Exit code of a command.
    pub exit: Option<i64>,
    /// HTTP status of an API fault.
    pub status: Option<u16>,
    /// The API's or the tool's own word for the fault.
    pub kind: Option<String>,
    /// The format says itself how it was refused.
    pub flavour: Option<&'static str>,
}

impl Step {
    /// A step of a tool call that went well.
    #[must_use]
    pub fn fine(id: Option<&str>) -> Self {
        Self { id: id.map(str::to_owned), ..Self::default() }
    }
}
