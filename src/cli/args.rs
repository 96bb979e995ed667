//! The arguments of every command, and their help. Shapes only: nothing is checked against files here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::config::parse_duration;
use crate::core::transcript::Mode;
use crate::words::{Category, Severity};

/// Finds the real errors in what agents, builds and services print.
#[derive(Debug, Parser)]
#[command(name = "siftd", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
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

Exit codes: 0 done; 1 what --fail-on asked for; 2 usage, configuration, or unreadable input; exec has the command's.";

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
    /// Sum up the errors of a log for whoever is to mend them
    Digest(DigestArgs),
    /// Judge finished results, one JSON object a line of stdin
    Judge(JudgeArgs),
    /// Classify structured errors, one JSON object a line of stdin
    Classify(ClassifyArgs),
    /// Show what `run` knows of the files that it follows
    State(StateArgs),
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

/// `siftd scan`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd scan build.log                            errors, in colour on a terminal
  siftd scan 'logs/**/*.log' old.log.gz           globs, folders, .gz and .zst
  cargo test 2>&1 | siftd scan --format unix      file:line:col: severity: text, for editors
  siftd scan --min-severity high --category build_error,test_failure ci.log
  siftd scan --format ndjson app.log | jq -r .text")]
pub struct ScanArgs {
    /// Files, globs, folders, or - for stdin; stdin if it is a pipe and nothing is named.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Form of the output [default: pretty on a terminal, else ndjson].
    #[arg(long, short, value_enum)]
    pub format: Option<Format>,
    /// Leave out lesser errors.
    #[arg(long, value_name = "SEVERITY", value_parser = severity())]
    pub min_severity: Option<Severity>,
    /// Only these categories.
    #[arg(long, value_name = "CATEGORY", value_delimiter = ',', value_parser = category())]
    pub category: Vec<Category>,
    /// Exit with 1 if an error that is shown is this severe or worse.
    #[arg(long, value_name = "SEVERITY", value_parser = severity())]
    pub fail_on: Option<Severity>,
    /// Lines of context before and after each error.
    #[arg(long, short = 'C', value_name = "N")]
    pub context: Option<u16>,
    /// How to read: as a transcript of an agent where the first lines show one, from the first record of
    /// one on, or never.
    #[arg(long, value_enum, default_value_t)]
    pub mode: ReadMode,
    /// Files read at once [default: one per core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Part of each record's id: the same file under another run id gives other ids.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub run_id: String,
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd run --file app.log --file 'logs/**/*.log'     to stdout, from the beginning of each file
  my-agent 2>&1 | siftd run --output events.ndjson    follow a pipe to its end
  siftd run --config /etc/siftd/siftd.toml            sources and sinks of a configuration
  siftd run --config siftd.toml --dry-run             what would be followed, and from where

With sources of a configuration, or with --state-dir, it keeps positions: after any end it goes on where it was.
SIGINT or SIGTERM ends it: what was read is written first. SIGUSR1 opens the output files anew.")]
pub struct RunArgs {
    /// File or glob to follow from its beginning; - for stdin. Repeatable.
    #[arg(long, value_name = "GLOB")]
    pub file: Vec<PathBuf>,
    /// File that records are appended to, instead of stdout.
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Leave out lesser errors.
    #[arg(long, value_name = "SEVERITY", value_parser = severity())]
    pub min_severity: Option<Severity>,
    /// Lines of context before and after each error.
    #[arg(long, short = 'C', value_name = "N")]
    pub context: Option<u16>,
    /// Folder in which positions are kept, instead of the configuration's.
    #[arg(long, value_name = "FOLDER")]
    pub state_dir: Option<PathBuf>,
    /// Say what would be followed and from where, and end.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd exec`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd exec --digest digest.txt -- make test                what went wrong, in 500 characters
  siftd exec --verdict - --task 42 -- npm ci                 one line of JSON after the command's output
  siftd exec --retries 5 --timeout 10m -- ./download.sh      again while the network is to blame
  siftd exec --strict --events events.ndjson -- Rscript fit.R
                                                             exit 65 when it ends well with a real error on stderr

stdin, stdout, stderr, signals and the exit code are the command's. FILE may be - for stdout or fd:N for an open descriptor.

Exit codes: the command's own, 128 + n when signal n ended it; 126 not runnable, 127 not found; 75 no retry is left,
124 timed out; where the command's is 0: 65 --strict found a real error, 1 --fail-on found what it was asked for.")]
pub struct ExecArgs {
    /// Write one line of JSON on how it went.
    #[arg(long, value_name = "FILE")]
    pub verdict: Option<PathBuf>,
    /// Append the records of errors, retries and the exit.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Write what is needed to mend it, as `siftd digest` does.
    #[arg(long, value_name = "FILE")]
    pub digest: Option<PathBuf>,
    /// Form of the digest.
    #[arg(long, value_enum, value_name = "FORMAT", requires = "digest")]
    pub digest_format: Option<DigestFormat>,
    /// Most characters of the digest.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = max_chars())]
    pub max_chars: usize,
    /// Exit with 65 where the command exits with 0 although stderr holds a real error.
    #[arg(long)]
    pub strict: bool,
    /// Exit with 1 where the command exits with 0 although an error is this severe or worse.
    #[arg(long, value_name = "SEVERITY", value_parser = severity())]
    pub fail_on: Option<Severity>,
    /// Run a command for each blocking error, with its record on stdin. Words and quotes are read as a shell does, no more.
    #[arg(long, value_name = "COMMAND")]
    pub on_blocking: Option<String>,
    /// Keep the output of a run that failed for good, both ends of it, in a folder.
    #[arg(long, value_name = "FOLDER")]
    pub keep_output: Option<PathBuf>,
    /// Try again what can be mended by trying again; without N as often as the configuration says.
    #[arg(long, value_name = "N", num_args = 0..=1, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub retries: Option<Option<u32>>,
    /// Pause before the first retry, doubled for each further one [default: 1s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub base_delay: Option<Duration>,
    /// The longest pause [default: 30s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_delay: Option<Duration>,
    /// The longest pause where the failure says when to try again [default: 10m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_reset_wait: Option<Duration>,
    /// End a run, and all that it has started, after so long.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// What does not end within it after SIGTERM gets SIGKILL.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    pub kill_after: Duration,
    /// Retry for this reason, too, such as timed_out. Repeatable.
    #[arg(long, value_name = "REASON", value_delimiter = ',')]
    pub retry_on: Vec<String>,
    /// Which task this is; stands in verdict and records.
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Stop at a mistake in the configuration instead of going on with the defaults.
    #[arg(long)]
    pub strict_config: bool,
    #[command(flatten)]
    pub setup: SetupArgs,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

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
  cargo test 2>&1 | siftd digest --format markdown --max-chars 2000
  siftd digest events.ndjson                                 records that siftd wrote earlier")]
pub struct DigestArgs {
    /// A log, or siftd's own records; - or nothing for stdin.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value = "text")]
    pub format: DigestFormat,
    /// Most characters.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = max_chars())]
    pub max_chars: usize,
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd judge`
#[derive(Debug, Args)]
#[command(after_help = "Fields, any subset: exit_code, stderr, stdout, timed_out, run_status, operation, task

Example:
  echo '{\"exit_code\": 1, \"stderr\": \"bash: jq: command not found\"}' | siftd judge")]
pub struct JudgeArgs {
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd classify`
#[derive(Debug, Args)]
#[command(after_help = "Fields, any subset: name, code, message, response.status, context.operation, exit_code, timed_out, stderr, attempt, task

Example:
  echo '{\"message\": \"boom\", \"response\": {\"status\": 429}, \"attempt\": 3}' | siftd classify")]
pub struct ClassifyArgs {
    /// No error stops the whole run: what was fatal is permanent.
    #[arg(long)]
    pub continue_on_error: bool,
    #[command(flatten)]
    pub setup: SetupArgs,
}

/// `siftd state`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd state list                                    how far each file was read
  siftd state show /var/log/agents/a.log
  siftd state forget /var/log/agents/a.log            read it as new at the next start")]
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
        /// Form of the output.
        #[arg(long, value_enum, default_value = "table")]
        format: ListFormat,
        #[command(flatten)]
        place: StatePlace,
    },
    /// All that is known of a file
    Show {
        /// Its path, or the first digits of its identity.
        file: String,
        #[command(flatten)]
        place: StatePlace,
    },
    /// Drop what is known of a file, while no `run` uses it
    Forget {
        /// Its path, or the first digits of its identity.
        file: String,
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

/// `siftd explain`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd explain build.log:118
  echo \"TypeError: undefined is not a function\" | siftd explain")]
pub struct ExplainArgs {
    /// A line of a file; without it the lines of stdin.
    #[arg(value_name = "FILE:LINE")]
    pub place: Option<String>,
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
        /// Form of the output.
        #[arg(long, value_enum, default_value = "table")]
        format: ListFormat,
        #[command(flatten)]
        setup: SetupArgs,
    },
    /// One rule, or the rules of a family, as written
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
    },
    /// Check a rules file: its form, its regexes, its examples
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Convert a YAML or JSON file of the older systems to siftd's TOML, on stdout
    Import {
        /// The file.
        file: PathBuf,
    },
}

/// Forms of `siftd rules list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// For people.
    Table,
    /// One JSON array.
    Json,
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
    pub shell: Shell,
}

/// `siftd man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each command into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}

fn severity() -> impl TypedValueParser<Value = Severity> {
    PossibleValuesParser::new(Severity::ALL.iter().map(|s| s.as_str())).try_map(|word| Severity::parse(&word).ok_or("unknown severity"))
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).ok_or("write a whole number and a unit of ms, s, m, h or d, such as 30s")
}

/// With fewer, not even the fence and a line fit.
fn max_chars() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u64).range(100..=10_000_000).map(|count| count as usize)
}

fn category() -> impl TypedValueParser<Value = Category> {
    PossibleValuesParser::new(Category::ALL.iter().map(|c| c.as_str())).try_map(|word| Category::parse(&word).ok_or("unknown category"))
}
