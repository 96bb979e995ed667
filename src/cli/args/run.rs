//! `siftd run`: what is followed, and where records go.

use std::path::PathBuf;

use clap::Args;

use super::{ReadingArgs, SetupArgs};

/// `siftd run`
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  siftd run --file app.log --file 'logs/**/*.log'     to stdout, from the beginning of each file
  my-agent 2>&1 | siftd run --output events.ndjson    follow a pipe to its end
  siftd run --config /etc/siftd/siftd.toml            sources and sinks of a configuration
  siftd run --config siftd.toml --dry-run             what would be followed, and from where

With sources of a configuration, or with --state-dir, it keeps positions: after any end it goes on where it was.
SIGINT or SIGTERM ends it: what was read is written first. SIGHUP reads the configuration again; where there is
none it ends it, too. SIGUSR1 opens the output files again.

Environment: SIFTD_LOG (error, warn, info, debug, trace, off) chooses which messages go to stderr, at first those from warn on.")]
pub struct RunArgs {
    /// File or glob to follow from its beginning; - for stdin. Repeatable.
    #[arg(long, value_name = "GLOB")]
    pub file: Vec<PathBuf>,
    /// File that records are appended to; - for stdout, whatever the configuration says.
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Folder in which positions are kept, instead of the configuration's.
    #[arg(long, value_name = "FOLDER")]
    pub state_dir: Option<PathBuf>,
    /// Say what would be followed and from where, and end.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub setup: SetupArgs,
}
