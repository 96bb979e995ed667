//! `siftd digest`, `judge` and `classify`: options for results of finished runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::SetupArgs;
use super::words::{max_chars, severity};
use crate::words::Severity;

/// Forms of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DigestFormat {
    /// Plain text.
    Text,
    /// One JSON object.
    Json,
    /// Markdown.
    Markdown,
}

/// `siftd digest`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd digest build.log
  siftd digest 'logs/*.log' old.log.gz                       one digest of all
  cargo test 2>&1 | siftd digest --format markdown --max-chars 2000
  siftd digest events.ndjson                                 records that siftd wrote earlier")]
pub struct DigestArgs {
    /// Logs, or siftd's own records or reports: files, globs, folders; - or nothing for stdin. All make one digest.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value = "text")]
    pub format: DigestFormat,
    /// As `--format json`, which other programs call so.
    #[arg(long, hide = true)]
    pub json: bool,
    /// Most characters, 100 to 10,000,000.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = max_chars())]
    pub max_chars: usize,
    /// Leave out lesser errors.
    #[arg(long, value_name = "SEVERITY", value_parser = severity())]
    pub min_severity: Option<Severity>,
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd judge`
#[derive(Debug, Args)]
#[command(after_help = "Fields, any subset: exit_code, stderr, stdout, timed_out, run_status, operation, task.
run_status: success (succeeded, passed, ok), failure (failed, error, crashed, killed, cancelled, aborted), timeout (timed_out),
transient_exhausted, malformed. A word that only says that the run is over (completed, done, finished, exited) or an empty
text leaves it to the exit code; any other word is never a success.

Example:
  echo '{\"exit_code\": 1, \"stderr\": \"bash: jq: command not found\"}' | siftd judge")]
pub struct JudgeArgs {
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd classify`
#[derive(Debug, Args)]
#[command(after_help = "Fields, any subset: name, code, message, response.status, response.headers, context.operation,
exit_code, timed_out, stderr, attempt, task.

Example:
  echo '{\"message\": \"boom\", \"response\": {\"status\": 429}, \"attempt\": 3}' | siftd classify")]
pub struct ClassifyArgs {
    /// No error stops the whole run: what was fatal is permanent.
    #[arg(long)]
    pub continue_on_error: bool,
    #[command(flatten)]
    pub setup: SetupArgs,
}
