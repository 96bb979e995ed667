//! The configuration: its types and its entry points (`parse`, `load`). Defaults are in `defaults`.
//!
//! TOML text → `reader` walks the tree → `schema` names the keys and bounds → `Config`, or every mistake with
//! its line. This module never judges whether this version can run a source or sink, and touches no log file.
//!
//! The annotated default file for users is `config/siftd.toml`; a test compares it with these types.

mod defaults;
mod import;
mod load;
mod pattern;
mod reader;
mod schema;
mod sink;
mod source;
mod telemetry;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::core::event::{Category, Severity};
use crate::diag::{Diagnostics, Source};
use crate::words::word_set as words;
pub use import::import;
pub use load::User;
pub use pattern::{LiteralCheck, Pattern, PatternKind, fixed_literal};
pub use sink::{HttpConfig, PeerConfig, SinkConfig};
pub use telemetry::{Listen, LogFormat, Telemetry};
pub use value::parse_duration;

words! {
    /// Where lines come from.
    SourceKind { File = "file", Tcp = "tcp", Udp = "udp", Unix = "unix", Command = "command", Journald = "journald", Stdin = "stdin" }
}
words! {
    /// Where reading begins in a file that exists at the very first start.
    StartAt { Beginning = "beginning", End = "end" }
}
words! {
    /// The kind of a unix socket.
    SocketMode { Stream = "stream", Datagram = "datagram" }
}
words! {
    /// How messages are delimited on a stream socket.
    Framing { Auto = "auto", Newline = "newline", OctetCounting = "octet_counting" }
}
words! {
    /// When a command that has ended is restarted.
    Restart { Never = "never", OnFailure = "on-failure", Always = "always" }
}
words! {
    /// Where records go.
    SinkKind { Stdout = "stdout", File = "file", Tcp = "tcp", Unix = "unix", Http = "http" }
}
words! {
    /// The naming scheme of a record's fields.
    Schema { Native = "native", Ecs = "ecs", Otel = "otel" }
}
words! {
    /// The form of an HTTP request's body.
    HttpFormat { Ndjson = "ndjson", Json = "json", Elasticsearch = "elasticsearch" }
}
words! {
    /// What happens when a sink falls behind by `outbox_max`.
    WhenFull { Block = "block", Drop = "drop" }
}

/// A validated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Folder that holds the state file.
    pub state_dir: PathBuf,
    /// What counts as an error, and how severe it is.
    pub error_detection: ErrorDetection,
    /// Rule files and disabled rules.
    pub rules: Rules,
    /// Limits for one stream.
    pub limits: Limits,
    /// When and how often a run is retried.
    pub retry: Retry,
    /// When a repeating failure stops the work.
    pub breaker: Breaker,
    /// What is remembered about errors.
    pub history: History,
    /// How events reach the sinks.
    pub delivery: Delivery,
    /// What siftd reports about itself.
    pub telemetry: Telemetry,
    /// Sources to read; names are unique.
    pub sources: Vec<SourceConfig>,
    /// Destinations of records; names are unique.
    pub sinks: Vec<SinkConfig>,
}

/// `[error_detection]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetection {
    /// If false, nothing is an error.
    pub enabled: bool,
    /// If false, every rule is tried on every line.
    pub two_stage: bool,
    /// Whether the lines of a trace become one event.
    pub capture_multiline: bool,
    /// Most context lines around an error, in total.
    pub max_context_lines: u32,
    /// Most frames kept of a stack.
    pub max_stack_depth: u32,
    /// Further patterns that mark errors; `error_indicators` end up here too.
    pub custom_patterns: Vec<Pattern>,
    /// Patterns that cancel the hits they cover.
    pub custom_false_positives: Vec<Pattern>,
    /// Patterns that make the whole line noise.
    pub noise_patterns: Vec<Pattern>,
    /// Category or rule id → severity.
    pub severity_overrides: BTreeMap<String, Severity>,
    /// Whether warnings are events (of severity low).
    pub warnings: bool,
}

/// `[rules]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Globs of rule files; a glob that matches nothing is not a mistake.
    pub files: Vec<String>,
    /// Ids of disabled rules.
    pub disable: Vec<String>,
}

/// `[limits]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longer lines are cut.
    pub max_line_bytes: u64,
    /// Longer records are cut.
    pub max_event_bytes: u64,
    /// Longer traces are closed.
    pub max_trace_lines: u32,
    /// A trace that pauses for this long is published.
    pub trace_idle: Duration,
    /// `scan` does not read a longer single-document file.
    pub max_document_bytes: u64,
}

/// `[retry]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Pause before the first retry; doubled for each further one.
    pub base_delay: Duration,
    /// The longest pause.
    pub max_delay: Duration,
    /// The longest pause when the failure itself names the time to wait for.
    pub max_reset_wait: Duration,
    /// Retries after the first attempt.
    pub max_retries: u32,
    /// Whether no failure is fatal.
    pub continue_on_error: bool,
    /// What differs for the reason `api_rate_limit`.
    pub api_rate_limit: ReasonRetry,
}

/// `[retry.<reason>]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonRetry {
    /// Retries after the first attempt.
    pub max_retries: u32,
}

/// `[breaker]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Runs with the same signature before a warning.
    pub warn_after: u32,
    /// Runs with the same signature before the breaker opens.
    pub open_after: u32,
    /// The same, for transient errors.
    pub transient_open_after: u32,
    /// Time in state `open` before a probe.
    pub cooldown: Duration,
    /// Whether `run` has a breaker for each stream.
    pub streams: bool,
    /// Within a stream, an error counts at most once in this time.
    pub stream_window: Duration,
    /// A stream that is quiet for this long has succeeded.
    pub stream_quiet: Duration,
    /// Program and arguments to run when a breaker opens, with its record on stdin; empty: none.
    pub on_open: Vec<String>,
}

/// `[history]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// If false, no history is kept.
    pub enabled: bool,
    /// Most errors that are remembered.
    pub max_signatures: u32,
    /// An error not seen for this long is forgotten.
    pub max_age: Duration,
    /// An error that reappears after this long has regressed.
    pub regressed_after: Duration,
}

/// `[delivery]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Most bytes that may wait for slow sinks.
    pub outbox_max: u64,
    /// Equal errors within this time become one event with a count; zero: off.
    pub repeat_window: Duration,
    /// Time to drain after SIGTERM.
    pub shutdown_grace: Duration,
}

/// One `[[source]]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Name, which every event carries.
    pub name: String,
    /// Type of the source.
    pub kind: SourceKind,
    /// Globs of files to read; never empty for a file source.
    pub include: Vec<String>,
    /// Globs of files to leave out.
    pub exclude: Vec<String>,
    /// Where reading begins.
    pub start_at: StartAt,
    /// How long a rotated file is still read.
    pub rotate_wait: Duration,
    /// How long the position of a vanished file is kept.
    pub forget_after: Duration,
    /// Folders that symbolic links may lead into.
    pub follow_links_into: Vec<PathBuf>,
    /// Most events per second; zero: unlimited.
    pub max_events_per_second: u32,
    /// A stream that is silent for this long is reported; zero: none is.
    pub silence: Duration,
    /// Kind of a unix socket.
    pub mode: SocketMode,
    /// Labels that every event carries unchanged, except for redacted secrets.
    pub labels: BTreeMap<String, String>,
    /// Address that tcp and udp sources listen on; always present for these.
    pub address: Option<SocketAddr>,
    /// Whether other machines may send.
    pub allow_remote: bool,
    /// Path of a unix socket; always present for a unix source.
    pub path: Option<PathBuf>,
    /// Mode bits of a unix socket.
    pub permissions: u32,
    /// Owner of a unix socket; empty: the user who runs siftd.
    pub owner: String,
    /// Group of a unix socket; empty: the group of the user who runs siftd.
    pub group: String,
    /// How messages are delimited on a stream socket.
    pub framing: Framing,
    /// Most simultaneous connections.
    pub max_connections: u32,
    /// Longer lines from a socket are cut.
    pub max_line_bytes: u64,
    /// A connection that is silent for this long is closed.
    pub idle_timeout: Duration,
    /// Most bytes per second from one peer; zero: unlimited.
    pub max_peer_bytes_per_second: u64,
    /// Bytes of datagrams that the kernel buffers; zero: the system's default.
    pub receive_buffer: u64,
    /// TLS settings, if TLS is wanted.
    pub tls: Option<TlsConfig>,
    /// Program and arguments; never empty for a command.
    pub argv: Vec<String>,
    /// Variables added to siftd's environment.
    pub environment: BTreeMap<String, String>,
    /// Working directory; `None`: siftd's own.
    pub directory: Option<PathBuf>,
    /// User who runs the command; empty: the user who runs siftd.
    pub user: String,
    /// When the command is restarted.
    pub restart: Restart,
    /// Pause before the first restart; doubled for each further one.
    pub restart_delay: Duration,
    /// The longest pause.
    pub max_restart_delay: Duration,
    /// Time between SIGTERM and SIGKILL.
    pub stop_timeout: Duration,
    /// Matches of the journal, as `journalctl` takes them.
    pub matches: Vec<String>,
}

/// `[source.tls]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// PEM file of the certificate and its chain up to the root.
    pub certificate: PathBuf,
    /// PEM file of the certificate's key.
    pub key: PathBuf,
    /// PEM file of the roots that client certificates must lead to; `None`: clients need no certificate.
    pub client_ca: Option<PathBuf>,
    /// The longest time for a handshake.
    pub handshake_timeout: Duration,
}

impl Config {
    /// Reads one text over the defaults. `name` appears in messages.
    ///
    /// # Errors
    /// Every mistake in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        Self::default().overlay(&[Source::new(name, text)], &fixed_literal)
    }

    /// Reads texts over this configuration, in order. A later text overrides values and `files`, and adds to the
    /// lists of patterns, `disable`, `severity_overrides`, sources and sinks. `literals` judges custom regexes.
    ///
    /// # Errors
    /// Every mistake in all the texts.
    pub fn overlay(mut self, layers: &[Source], literals: &LiteralCheck) -> Result<Self, Diagnostics> {
        let errors = schema::read(&mut self, layers, literals).errors;
        if errors.is_empty() { Ok(self) } else { Err(Diagnostics(errors)) }
    }
}

macro_rules! impl_word {
    ($($name:ty),+) => {$(
        impl value::Word for $name {
            const WORDS: &'static [Self] = Self::ALL;
            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    )+};
}
impl_word!(LogFormat, SourceKind, StartAt, SocketMode, Framing, Restart, SinkKind, Schema, HttpFormat, WhenFull, PatternKind, Severity, Category);
