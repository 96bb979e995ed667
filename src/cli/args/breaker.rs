//! `siftd breaker`: which breaker, and what to do with it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{FormArgs, StatePlace};

/// `siftd breaker`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd exec --breaker fix -- ./agent.sh             ask before, record after
  siftd breaker check fix; [ $? = 11 ] && exit 11    in a loop of your own; 10 is only a warning …
  siftd breaker record fix --exit-code $? --error \"$(tail -n 1 agent.log)\"
                                                     … and what became of it
  siftd judge < result.json | siftd breaker record --task 42
  siftd breaker reset fix                            go on after it was fixed; --all resets every one

`check` exits with 0 when it is closed, 10 half open (a warning, or the probe after the cooldown), 11 open.")]
pub struct BreakerArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: BreakerCommand,
}

/// The commands of `siftd breaker`.
#[derive(Debug, Subcommand)]
pub enum BreakerCommand {
    /// Show one breaker, or all
    Status {
        #[command(flatten)]
        form: FormArgs,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        place: StatePlace,
    },
    /// Ask whether to go on: the exit code says it
    Check {
        /// Print no answer.
        #[arg(long, short)]
        quiet: bool,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        place: StatePlace,
    },
    /// Say how a run went; without a flag for that, verdicts of `judge` and `exec` or answers of `classify` are read
    /// from stdin, one a line
    Record(Box<RecordArgs>),
    /// Close it, whatever it was
    Reset {
        /// All breakers of the state.
        #[arg(long, conflicts_with = "Which")]
        all: bool,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        place: StatePlace,
    },
}

/// Which breaker.
#[derive(Clone, Debug, Default, Args)]
#[group(multiple = false)]
pub struct Which {
    /// Its name.
    pub name: Option<String>,
    /// The breaker of a task.
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// The breaker of an agent's session, as `source.session` of a record has it.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The breaker of a stream that `run` follows: the path of a file, or the name of another source.
    #[arg(long, value_name = "PATH")]
    pub stream: Option<String>,
}

/// `siftd breaker record`
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The run went well.
    #[arg(long, group = "how")]
    pub success: bool,
    /// The run failed.
    #[arg(long, group = "how")]
    pub failure: bool,
    /// The run ended with this exit code; a negative one is a signal, as Python says it.
    #[arg(long, value_name = "N", group = "how", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-64..=255))]
    pub exit_code: Option<i32>,
    /// The line that names its error; with exit code 0 it counts for nothing. Repeatable.
    #[arg(long, value_name = "TEXT", conflicts_with = "success", requires = "how", allow_hyphen_values = true)]
    pub error: Vec<String>,
    /// The signature of its error, 32 hex digits. Repeatable.
    #[arg(long, value_name = "SIG", conflicts_with = "success", requires = "how")]
    pub signature: Vec<String>,
    /// Trying again can help: it counts with all others of that kind.
    #[arg(long, conflicts_with_all = ["success", "fatal"], requires = "how")]
    pub transient: bool,
    /// Nothing can go on: it opens at once.
    #[arg(long, conflicts_with = "success", requires = "how")]
    pub fatal: bool,
    /// Append the records of what changes.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub place: StatePlace,
}
