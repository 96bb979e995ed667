//! `siftd replay`: logs, and two sets of rules.

use std::path::PathBuf;

use clap::Args;

use super::{FormArgs, ReadMode};

/// `siftd replay`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd replay app.log --rules new.toml                       against the rules without it
  siftd replay 'logs/*.log' --rules new/ --against old/       two folders of rules
  siftd replay app.log --config new.toml                      against the installed configuration, or the defaults
  siftd replay app.log --config new.toml --against-config siftd.toml

+ an event appears, - one vanishes, ~ one changes. Both sets are added to the built-in rules, as `siftd scan --rules` does.")]
pub struct ReplayArgs {
    /// Logs: files, globs, folders, .gz and .zst.
    #[arg(required = true, value_name = "LOG")]
    pub files: Vec<PathBuf>,
    /// The new rules: a file, or a folder of .toml files. Repeatable.
    #[arg(long, value_name = "NEW", required_unless_present = "config")]
    pub rules: Vec<PathBuf>,
    /// The old rules; without them the built-in ones alone, and those of the configuration. Repeatable.
    #[arg(long, value_name = "OLD")]
    pub against: Vec<PathBuf>,
    /// Configuration with the new rules and patterns. Alone, it is compared with the one that is installed, or the defaults;
    /// with --rules or --against it holds for both, unless --against-config is given.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Configuration with the old ones.
    #[arg(long, value_name = "FILE")]
    pub against_config: Option<PathBuf>,
    /// How to read the logs.
    #[arg(long, value_enum, default_value_t)]
    pub mode: ReadMode,
    #[command(flatten)]
    pub form: FormArgs,
}
