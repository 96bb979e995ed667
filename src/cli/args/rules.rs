//! `siftd rules`: the catalogue and the files of a user.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::SetupArgs;

/// `siftd rules`
#[derive(Debug, Args)]
pub struct RulesArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: RulesCommand,
}

/// The commands of `siftd rules`.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// The catalogue: every rule, its kind and how deep its family goes
    List {
        /// Only these families, or rules.
        #[arg(value_name = "FAMILY")]
        names: Vec<String>,
        #[command(flatten)]
        form: FormArgs,
        #[command(flatten)]
        setup: SetupArgs,
    },
    /// One rule, or the file of a family, as written
    Show {
        /// `family.slug` or `family`
        id: String,
        #[command(flatten)]
        setup: SetupArgs,
    },
    /// Run every example of the built-in rules and of the files
    Test {
        /// Rule files to add.
        files: Vec<PathBuf>,
        #[command(flatten)]
        setup: SetupArgs,
    },
    /// Check rule files: their form, their regexes, their examples
    Check {
        /// The files; without any, those of --rules, or else of the configuration.
        files: Vec<PathBuf>,
        #[command(flatten)]
        setup: SetupArgs,
    },
    /// Convert a YAML or JSON file of the older systems, or problem matchers of GitHub, to siftd's TOML, on stdout
    Import {
        /// The file; - for stdin.
        file: PathBuf,
    },
}

/// Forms of what lists: rules, states, errors, how it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// For people.
    #[default]
    Table,
    /// For programs: one JSON document, or one object a line where it may be long.
    Json,
}

/// The form of what lists.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct FormArgs {
    /// Form of the output.
    #[arg(long, global = true, value_enum, default_value_t)]
    format: ListFormat,
    /// As `--format json`, which other programs call so.
    #[arg(long, global = true, hide = true)]
    json: bool,
}

impl FormArgs {
    /// Whether JSON is asked for, in either spelling.
    pub fn is_json(self) -> bool {
        self.json || self.format == ListFormat::Json
    }
}
