//! `siftd state`: which state, and which file in it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::FormArgs;

/// `siftd state`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd state list                                    how far each file was read
  siftd state show /var/log/agents/a.log
  siftd state forget /var/log/agents/a.log            read it as new at the next start
  siftd state forget --all /var/log/agents/a.log      … and drop its rotated generations
  siftd state forget 4f2a90c1d7e3                     one entry, by its identity")]
pub struct StateArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: StateCommand,
}

/// The commands of `siftd state`.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Every file: how far it was read, how much is left, and which file it is
    List {
        #[command(flatten)]
        form: FormArgs,
        #[command(flatten)]
        place: StatePlace,
    },
    /// All that is known of a file
    Show {
        /// Its path, or the first digits of its identity.
        file: OsString,
        #[command(flatten)]
        place: StatePlace,
    },
    /// Drop what is known of a file, while no `run` uses it
    Forget {
        /// Its path, or the first digits of its identity.
        file: OsString,
        /// Its older generations, too: files that had its name and were rotated.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: StatePlace,
    },
}

/// Where the state is.
#[derive(Clone, Debug, Default, Args)]
pub struct StatePlace {
    /// Folder of the state, instead of the configuration's.
    #[arg(long, value_name = "FOLDER")]
    pub state_dir: Option<PathBuf>,
    /// Configuration that names it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `siftd status`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd status                                        the daemon of /etc/siftd
  siftd status --config siftd.toml --format json | jq .sinks

Exit codes: 0 it is ready; 1 it runs and is not ready, or does not move; 2 it does not run, or may not be asked.")]
pub struct StatusArgs {
    #[command(flatten)]
    pub form: FormArgs,
    #[command(flatten)]
    pub place: StatePlace,
}
