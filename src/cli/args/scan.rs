//! `siftd scan`: which files, what is shown of them, and how they are read.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::SetupArgs;
use super::words::{category, severity};
use crate::core::transcript::Mode;
use crate::sources::exclude::Exclude;
use crate::words::{Category, Severity};

/// What `scan` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON record a line.
    Ndjson,
    /// One JSON document with all errors and a summary.
    Report,
    /// For people.
    Pretty,
    /// Annotations of a GitHub workflow.
    Github,
    /// file:line:col: severity: text
    Unix,
    /// One SARIF 2.1.0 document, for code-scanning viewers.
    Sarif,
}

/// How a stream is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReadMode {
    /// As a transcript of an agent, if the first lines are records of one.
    #[default]
    Auto,
    /// As a transcript from its first record on, wherever that stands.
    Records,
    /// As text.
    Text,
}

impl From<ReadMode> for Mode {
    fn from(mode: ReadMode) -> Self {
        match mode {
            ReadMode::Auto => Self::Auto,
            ReadMode::Records => Self::Records,
            ReadMode::Text => Self::Text,
        }
    }
}

/// What `scan` and `run` both ask.
#[derive(Clone, Copy, Debug, Args)]
pub struct ReadingArgs {
    /// Leave out lesser errors.
    #[arg(long, value_name = "SEVERITY", value_parser = severity())]
    pub min_severity: Option<Severity>,
    /// Lines of context before and after each error, 0 to 65,535.
    #[arg(long, short = 'C', value_name = "N", allow_negative_numbers = true)]
    pub context: Option<u16>,
    /// How to read: as a transcript of an agent where the first lines show one, from the first record of
    /// one on, or never.
    #[arg(long, value_enum, default_value_t)]
    pub mode: ReadMode,
}

/// `siftd scan`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd scan build.log                            errors, in colour on a terminal
  siftd scan 'logs/**/*.log' old.log.gz           globs, folders, .gz and .zst
  cargo test 2>&1 | siftd scan --format unix      file:line:col: severity: text, for editors
  siftd scan --min-severity high --category build_error,test_failure ci.log
  siftd scan --exclude '*.gz' --exclude node_modules --output errors.ndjson logs
  siftd scan --format ndjson app.log | jq -r .text
  siftd scan --new-only --baseline main.ndjson build.log
                                                  exit 1 only for errors that main did not have

Exit codes: 0 done; 1 what --fail-on asked for, or what a --baseline lacks; 2 usage, configuration, or an input that was not
read in full, even if an error was found, too.")]
pub struct ScanArgs {
    /// Files, globs, folders, or - for stdin; stdin if it is a pipe and nothing is named.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Form of the output [default: pretty on a terminal, else ndjson].
    #[arg(long, short, value_enum)]
    pub format: Option<Format>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Write to a file instead of stdout; it is overwritten, but not if no input can be read.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Leave out these files and folders, by name (`*.gz`, `node_modules`) or by path (`logs/old/*.log`); a path is compared
    /// with the names as they are given and found, from their start on (`**/old/*.log` at any depth). Repeatable.
    #[arg(long, value_name = "GLOB", value_parser = Exclude::parse)]
    pub exclude: Vec<Exclude>,
    /// Only these categories.
    #[arg(long, value_name = "CATEGORY", value_delimiter = ',', value_parser = category())]
    pub category: Vec<Category>,
    /// Exit with 1 if an error that is shown is this severe or worse.
    #[arg(long, value_name = "SEVERITY", value_parser = severity())]
    pub fail_on: Option<Severity>,
    /// Read binary files, too.
    #[arg(long, short = 'a')]
    pub binary: bool,
    /// Files read at once [default: one per core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Part of each record's id: the same file under another run id gives other ids.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub run_id: String,
    /// Show only errors that were not there before; with --baseline, any of them that is no warning makes the exit code 1,
    /// unless --fail-on says otherwise.
    #[arg(long, requires = "before")]
    pub new_only: bool,
    /// What was there before: the output of an earlier `siftd scan --format ndjson`.
    #[arg(long, value_name = "FILE", group = "before", requires = "new_only")]
    pub baseline: Option<PathBuf>,
    /// Folder of a state whose history these errors belong to: records say whether they are new.
    #[arg(long, value_name = "FOLDER", group = "before")]
    pub state_dir: Option<PathBuf>,
    #[command(flatten)]
    pub setup: SetupArgs,
}
