//! `siftd history`: which part to show, and in which format.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::FormArgs;
use super::words::duration;

/// `siftd history`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  siftd history                            what was seen last
  siftd history diff --since yesterday     what is new, what came back, what is gone
  siftd history list --sort count --limit 10
  siftd history show 69366e                all that is known of one error
  siftd history resolve 69366e             it is fixed: should it come again, it is `regressed`
  siftd history mute 69366e --for 7d       leave it out of lists
  siftd history trend --days 14

A signature may be cut to its first digits, at least four. SINCE is a duration (36h, 7d), today, yesterday, a date
(2026-11-20) or a time (2026-11-20T14:00:00Z)."
)]
pub struct HistoryArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<HistoryCommand>,
    #[command(flatten)]
    pub list: HistoryList,
    #[command(flatten)]
    pub form: HistoryForm,
}

/// Where the history is, and the form of the output.
#[derive(Clone, Debug, Default, Args)]
pub struct HistoryForm {
    #[command(flatten)]
    form: FormArgs,
    /// Folder of the state, instead of the configuration's.
    #[arg(long, value_name = "FOLDER", global = true)]
    pub state_dir: Option<PathBuf>,
    /// Configuration that names it.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

impl HistoryForm {
    /// Whether JSON is asked for, in either spelling.
    pub fn is_json(&self) -> bool {
        self.form.is_json()
    }
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Seen last.
    #[default]
    Last,
    /// First seen last.
    First,
    /// Seen most.
    Count,
}

/// Which errors are listed.
#[derive(Clone, Debug, Default, Args)]
pub struct HistoryList {
    /// Only those that were seen since.
    #[arg(long, value_name = "SINCE")]
    pub since: Option<String>,
    /// Only those that were first seen since; without --since within a day.
    #[arg(long)]
    pub new: bool,
    /// Only those that came back since; without --since within a day.
    #[arg(long, conflicts_with = "new")]
    pub regressed: bool,
    /// Those that are resolved or muted as well.
    #[arg(long, short)]
    pub all: bool,
    /// What comes first.
    #[arg(long, value_enum, default_value_t)]
    pub sort: Sort,
    /// At most so many, 1 to 100,000.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
}

/// The commands of `siftd history`.
#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Errors, what was seen last first, with a chart of their last day
    List(HistoryList),
    /// All that is known of one error
    Show {
        /// Its signature.
        signature: String,
    },
    /// Say that an error is fixed: it leaves the list, and is `regressed` when it comes again
    Resolve {
        /// Signatures.
        #[arg(required = true)]
        signature: Vec<String>,
    },
    /// Leave an error out of lists, until it comes back after having been quiet for long
    Mute {
        /// Signatures.
        #[arg(required = true)]
        signature: Vec<String>,
        /// Only for so long.
        #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
        span: Option<Duration>,
        /// Undo it.
        #[arg(long, conflicts_with = "span")]
        off: bool,
    },
    /// How many errors there were, of one or of all, by hour or by day
    Trend {
        /// A signature; without one, all errors.
        signature: Option<String>,
        /// So many days back, 1 to 90; up to two by the hour.
        #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=90))]
        days: u32,
    },
    /// What has changed since a moment: new errors, those that came back, those that were not seen any more
    Diff {
        /// The moment.
        #[arg(long, value_name = "SINCE", default_value = "1d")]
        since: String,
    },
    /// Let an error go on under another signature, as one
    Join {
        /// The signature that there was.
        old: String,
        /// The one that goes on.
        new: String,
    },
}
