//! `siftd exec`: options of a run, when it is retried, and the command itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::words::{duration, max_chars, severity};
use super::{DigestFormat, SetupArgs};
use crate::words::Severity;

/// `siftd exec`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siftd exec --digest digest.txt -- make test                what went wrong, in 500 characters
  siftd exec --verdict - --task 42 -- npm ci                 one line of JSON after the command's output
  siftd exec --retries 5 --timeout 10m -- ./download.sh      again while the network is to blame
  siftd exec --breaker fix -- ./agent.sh                     not while it fails again and again in the same way
  siftd exec --strict --events events.ndjson -- Rscript fit.R
                                                             exit 65 when it ends well with a real error on stderr

stdin, stdout, stderr, signals and the exit code are the command's. FILE may be - for stdout or fd:N for an open descriptor.
On a terminal the command gets two of its own: its controlling one for stdin and stderr, and one for stdout. Keyboard
settings made on either apply to both, and typed text that is echoed counts as stderr.

Exit codes: the command's own, 128 + n when signal n ended it; 126 not runnable, 127 not found; 75 no retry is left,
none can help in time or stdin cannot be read again, 124 timed out; 11 the breaker is open,
125 a wrong flag, a file that siftd cannot write, or a state that it cannot open: nothing was run; where the
command's is 0: 65 --strict found a real error, 1 --fail-on found what it was asked for, 74 output or results could not be written.")]
pub struct ExecArgs {
    /// Write one line of JSON on how it went.
    #[arg(long, value_name = "FILE")]
    pub verdict: Option<PathBuf>,
    /// Append the records of errors, retries and the exit.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Write a summary of the errors for whoever fixes them, as `siftd digest` does.
    #[arg(long, value_name = "FILE")]
    pub digest: Option<PathBuf>,
    /// Form of the digest.
    #[arg(long, value_enum, value_name = "FORMAT", requires = "digest")]
    pub digest_format: Option<DigestFormat>,
    /// Most characters of the digest, 100 to 10,000,000.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = max_chars(), requires = "digest")]
    pub max_chars: usize,
    /// Exit with 65 where the command exits with 0 although stderr holds a real error.
    #[arg(long)]
    pub strict: bool,
    /// Exit with 1 where the command exits with 0 although an error is this severe or worse.
    #[arg(long, value_name = "SEVERITY", value_parser = severity())]
    pub fail_on: Option<Severity>,
    /// Run a command for each blocking error, with its record on stdin; at the end, siftd waits up to 30 s for each that
    /// still runs. Words and quotes are read as a shell does, no more.
    #[arg(long, value_name = "COMMAND")]
    pub on_blocking: Option<String>,
    /// Keep the output of a run that failed for good, both ends of it, in a folder.
    #[arg(long, value_name = "FOLDER")]
    pub keep_output: Option<PathBuf>,
    /// Try again if trying again can help; without N as often as the configuration says. A file on stdin is rewound;
    /// a pipe of which the command may have read something is no second time the same, so there is no retry.
    #[arg(long, value_name = "N", num_args = 0..=1, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub retries: Option<Option<u32>>,
    /// Pause before the first retry, doubled for each further one [default: 1s].
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "retries")]
    pub base_delay: Option<Duration>,
    /// The longest pause [default: 30s].
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "retries")]
    pub max_delay: Option<Duration>,
    /// The longest pause where the failure says when to try again; for a later time it gives up at once [default: 10m].
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "retries")]
    pub max_reset_wait: Option<Duration>,
    /// End a run, and all that it has started, after so long; 0s: no limit.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// What does not end within it after SIGTERM gets SIGKILL.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s", requires = "timeout")]
    pub kill_after: Duration,
    /// With --retries: retry for this reason, too, such as timed_out. Repeatable.
    #[arg(long, value_name = "REASON", value_delimiter = ',', requires = "retries")]
    pub retry_on: Vec<String>,
    /// Which task this is; stands in the verdict, and in the records of retries and of the exit.
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Run the command only if this breaker is not open; if it is, the exit code is 11. The breaker then learns how the run went.
    #[arg(long, value_name = "NAME")]
    pub breaker: Option<String>,
    /// Folder of the state with the breaker and the history of errors, instead of the configuration's.
    #[arg(long, value_name = "FOLDER")]
    pub state_dir: Option<PathBuf>,
    /// Stop at a mistake in the configuration instead of going on with the defaults.
    #[arg(long)]
    pub strict_config: bool,
    #[command(flatten)]
    pub setup: SetupArgs,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
