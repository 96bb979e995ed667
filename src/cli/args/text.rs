//! `siftd explain`, `signature` and `filter`: lines of text, examined one by one.

use std::ffi::OsString;

use clap::Args;

use super::{ReadMode, SetupArgs};

/// `siftd explain`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd explain build.log:118
  siftd explain build.log:118-121
  echo \"TypeError: undefined is not a function\" | siftd explain")]
pub struct ExplainArgs {
    /// A line of a file, or FIRST-LAST of them; -:LINE for one of stdin, - or nothing for all of them.
    #[arg(value_name = "FILE:LINE", allow_hyphen_values = true)]
    pub place: Option<OsString>,
    /// How to read, as `siftd scan --mode` does.
    #[arg(long, value_enum, default_value_t)]
    pub mode: ReadMode,
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd signature`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  echo 'worker 7 lost 10.0.0.3:5432 after 31 s' | siftd signature --why")]
pub struct SignatureArgs {
    /// Name each replacement under its line.
    #[arg(long)]
    pub why: bool,
}

/// `siftd filter`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  npm ci 2>&1 | siftd filter")]
pub struct FilterArgs {
    #[command(flatten)]
    pub setup: SetupArgs,
}
