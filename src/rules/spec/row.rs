//! The TOML shapes of a trace's rows, and of the lines that it looks back to.

use serde::{Deserialize, Serialize};

use crate::rules::located::Located;
use crate::rules::one_or_many::OneOrMany;

/// A row of a trace.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RowSpec {
    /// States in which the row is tried; `start` opens the trace.
    pub from: OneOrMany,
    /// The line, without its prefix.
    pub regex: Located,
    /// The state after the line.
    pub to: Located,
    /// What to read from the line.
    #[serde(default)]
    pub take: Take,
    /// How the frame or exception is parsed by bytes; if absent, the groups of the regex are read.
    pub shape: Option<Shape>,
    /// `false`: the line is taken on trial, until an accepting line follows.
    #[serde(default = "yes")]
    pub accept: bool,
    /// For a start row: loggers print such a line right below the record that reports it, and that record then is
    /// the trace's first line. A line that only a program's end or another program prints is an error of its own.
    #[serde(default)]
    pub under_record: bool,
    /// For a start row: what a program prints when it dies begins otherwise, so a logger's record of level debug or trace
    /// right above such a line says what it is: no error. Calls without an exception are none below level info either.
    #[serde(default)]
    pub takes_level: bool,
    /// A further line of a message, without a shape of its own: nothing else may begin with it,
    /// and it belongs to the trace once a log line, a prompt, a rule or a status line follows.
    #[serde(default)]
    pub loose: bool,
    /// The line shows that what the trace has taken is no error of its own: the trace consumes its lines without an event.
    #[serde(default)]
    pub void: bool,
}

/// A look-back line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BeforeSpec {
    /// The line.
    pub regex: Located,
    /// Whether the line may be missing.
    #[serde(default)]
    pub optional: bool,
    /// How often the line may repeat.
    #[serde(default = "one")]
    pub max: u32,
    /// What a trace reads from the line: `exception`, `location` or `text`.
    /// A trace whose error this line names does not begin without it.
    #[serde(default)]
    pub take: Take,
}

/// What a row reads from its line.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// Nothing.
    #[default]
    Nothing,
    /// Groups `type` and `message`: an exception of the chain; the outermost names the error.
    Exception,
    /// A further line of the message.
    Message,
    /// Groups `function file line column`: a frame.
    Frame,
    /// Groups `file line column`: where an editor should jump to.
    Location,
    /// The line that names the error.
    Text,
}

/// Shapes of frames and exceptions that are parsed by bytes.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// `File "app.py", line 3, in main`
    Python,
    /// `at f (app.js:3:5)`, `at com.acme.App.main(App.java:12)`, `at app.js:3:5`
    Call,
    /// `from app.rb:3:in 'main'`, `/srv/app/main.go:12 +0x1d`
    Place,
    /// `12: core::panicking::panic`, `12: 0x55d0c7 - core::panicking::panic`
    Numbered,
    /// An exception rather than a frame: `app.CartError: empty cart`
    Named,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}
