//! The arguments of every command and their help texts, one file per group of
//! commands. Only the structure is defined here; nothing is checked against files.

mod breaker;
mod exec;
mod history;
mod replay;
mod results;
mod rules;
mod run;
mod scan;
mod service;
mod state;
mod text;
mod words;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use breaker::{BreakerArgs, BreakerCommand, RecordArgs, Which};
pub use exec::ExecArgs;
pub use history::{HistoryArgs, HistoryCommand, HistoryForm, HistoryList, Sort};
pub use replay::ReplayArgs;
pub use results::{ClassifyArgs, DigestArgs, DigestFormat, JudgeArgs};
pub use rules::{FormArgs, RulesArgs, RulesCommand};
pub use run::RunArgs;
pub use scan::{Format, ReadMode, ReadingArgs, ScanArgs};
pub use service::{ServiceArgs, ServiceCommand, ServicePlace};
pub use state::{StateArgs, StateCommand, StatePlace, StatusArgs};
pub use text::{ExplainArgs, FilterArgs, SignatureArgs};

/// Finds the real errors in what agents, builds and services print.
#[derive(Debug, Parser)]
#[command(name = "siftd", version, propagate_version = true, after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true, args_override_self = true)]
pub struct Cli {
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  siftd scan build.log                      the errors of a finished log
  make 2>&1 | siftd scan                    … of a pipe
  siftd scan --fail-on high logs/           exit 1 if something serious is in the folder
  siftd run --file 'logs/*.log' --output events.ndjson
                                            follow files, one NDJSON record for each error
  siftd exec --retries --digest d.txt -- make test
                                            run a command, retry it, sum up what went wrong
  siftd explain build.log:118               why a line is, or is not, an error

Exit codes: 0 done; 1 what --fail-on asked for, or what a --baseline lacks; 2 usage, configuration, or unreadable input;
exec has the command's, and 125 for usage.

Environment: NO_COLOR, if not empty, turns colours off; SIFTD_LOG (error, warn, info, debug, trace, off) chooses which
messages `siftd run` writes to stderr, at first those from warn on.";

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the errors in finished logs
    Scan(ScanArgs),
    /// Follow files or stdin and write a record for each error
    Run(RunArgs),
    /// Run a command as if siftd were not there, find its errors, retry what can be retried
    Exec(Box<ExecArgs>),
    /// Sum up the errors of a log for whoever is to fix them
    Digest(DigestArgs),
    /// Judge finished results, one JSON object a line of stdin
    Judge(JudgeArgs),
    /// Classify structured errors, one JSON object a line of stdin
    Classify(ClassifyArgs),
    /// Stop a loop that fails again and again in the same way
    Breaker(BreakerArgs),
    /// Show which errors there were: new, recurring, regressed
    History(HistoryArgs),
    /// Show what changed rules change in a log
    Replay(ReplayArgs),
    /// Show what `run` knows of the files that it follows
    State(StateArgs),
    /// Ask a running `siftd run` how it goes
    Status(StatusArgs),
    /// Install siftd as a service of systemd, or remove it
    Service(ServiceArgs),
    /// Say why a line is, or is not, an error
    Explain(ExplainArgs),
    /// Print the signature of each line of stdin
    Signature(SignatureArgs),
    /// Copy stdin to stdout without the noise
    Filter(FilterArgs),
    /// List, show, test, check and import rules
    Rules(RulesArgs),
    /// Check a configuration file
    Check(CheckArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them
    Man(ManArgs),
}

/// Where the rules come from.
#[derive(Clone, Debug, Default, Args)]
pub struct SetupArgs {
    /// Configuration instead of /etc/siftd/siftd.toml and conf.d/*.toml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Rule file to add to the built-in rules. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
}

/// `siftd check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd completions`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  siftd completions bash > ~/.local/share/bash-completion/completions/siftd")]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(ignore_case = true)]
    pub shell: Shell,
}

/// `siftd man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each command into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}
