//! The configuration: its types, and the way in (`parse`, `load`). What holds without a word is in `defaults`.
//! TOML text → `reader` walks the tree → `schema` names the keys and bounds → `Config`, or every mistake
//! with its line. It never judges whether this version can run a source or sink, and touches no log file.
//! The annotated default for people is `config/siftd.toml`; a test holds it against the types here.

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
    /// Where reading begins in a file that is present at the very first start.
    StartAt { Beginning = "beginning", End = "end" }
}
words! {
    /// The kind of a unix socket.
    SocketMode { Stream = "stream", Datagram = "datagram" }
}
words! {
    /// How messages over a stream socket are told apart.
    Framing { Auto = "auto", Newline = "newline", OctetCounting = "octet_counting" }
}
words! {
    /// When a command that has ended is started anew.
    Restart { Never = "never", OnFailure = "on-failure", Always = "always" }
}
words! {
    /// Where records go.
    SinkKind { Stdout = "stdout", File = "file", Tcp = "tcp", Unix = "unix", Http = "http" }
}
words! {
    /// The names of a record's fields.
    Schema { Native = "native", Ecs = "ecs", Otel = "otel" }
}
words! {
    /// The form of an HTTP request's body.
    HttpFormat { Ndjson = "ndjson", Json = "json", Elasticsearch = "elasticsearch" }
}
words! {
    /// What happens when a sink is behind by `outbox_max`.
    WhenFull { Block = "block", Drop = "drop" }
}

/// A validated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Folder of the state file.
    pub state_dir: PathBuf,
    /// What is an error, and how bad.
    pub error_detection: ErrorDetection,
    /// Rule files and switches.
    pub rules: Rules,
    /// Bounds of one stream.
    pub limits: Limits,
    /// When and how often a run is tried again.
    pub retry: Retry,
    /// When a repeating failure stops the work.
    pub breaker: Breaker,
    /// What is remembered of errors.
    pub history: History,
    /// From the event to the sinks.
    pub delivery: Delivery,
    /// What siftd says of itself.
    pub telemetry: Telemetry,
    /// What is read; names are unique.
    pub sources: Vec<SourceConfig>,
    /// Where records go; names are unique.
    pub sinks: Vec<SinkConfig>,
}

/// `[error_detection]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetection {
    /// False: nothing is an error.
    pub enabled: bool,
    /// False: every rule is asked of every line.
    pub two_stage: bool,
    /// Lines of a trace become one event.
    pub capture_multiline: bool,
    /// Lines around an error, in all.
    pub max_context_lines: u32,
    /// Frames of a stack.
    pub max_stack_depth: u32,
    /// More that is an error; `error_indicators` are here too.
    pub custom_patterns: Vec<Pattern>,
    /// Cancel the hits that they cover.
    pub custom_false_positives: Vec<Pattern>,
    /// Make the whole line noise.
    pub noise_patterns: Vec<Pattern>,
    /// Category or rule id → severity.
    pub severity_overrides: BTreeMap<String, Severity>,
    /// Warnings are events of severity low.
    pub warnings: bool,
}

/// `[rules]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Globs of rule files; one that matches nothing is no mistake.
    pub files: Vec<String>,
    /// Ids of rules that are switched off.
    pub disable: Vec<String>,
}

/// `[limits]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A longer line is cut.
    pub max_line_bytes: u64,
    /// A longer record is cut.
    pub max_event_bytes: u64,
    /// A longer trace is closed.
    pub max_trace_lines: u32,
    /// A trace that pauses for so long is published.
    pub trace_idle: Duration,
    /// A longer one-document file is not read by `scan`.
    pub max_document_bytes: u64,
}

/// `[retry]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Pause before the first retry; doubled for each further one.
    pub base_delay: Duration,
    /// The longest pause.
    pub max_delay: Duration,
    /// The longest pause for a time that the failure itself names.
    pub max_reset_wait: Duration,
    /// Retries after the first try.
    pub max_retries: u32,
    /// Nothing is fatal.
    pub continue_on_error: bool,
    /// What differs for the reason `api_rate_limit`.
    pub api_rate_limit: ReasonRetry,
}

/// `[retry.<reason>]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonRetry {
    /// Retries after the first try.
    pub max_retries: u32,
}

/// `[breaker]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Runs with one signature until a warning.
    pub warn_after: u32,
    /// Runs with one signature until it opens.
    pub open_after: u32,
    /// The same for transient errors.
    pub transient_open_after: u32,
    /// Time in `open` before a probe.
    pub cooldown: Duration,
    /// `run` has a breaker for each stream.
    pub streams: bool,
    /// In a stream an error counts once in so long.
    pub stream_window: Duration,
    /// A stream that is quiet for so long has succeeded.
    pub stream_quiet: Duration,
    /// Program and arguments that are run when one opens, with its record on stdin; empty: none.
    pub on_open: Vec<String>,
}

/// `[history]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// False: none is kept.
    pub enabled: bool,
    /// Errors that are remembered.
    pub max_signatures: u32,
    /// An error is forgotten when it was unseen for so long.
    pub max_age: Duration,
    /// An error that was unseen for so long has come back.
    pub regressed_after: Duration,
}

/// `[delivery]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes that wait for slow sinks.
    pub outbox_max: u64,
    /// Equal errors within it are one event and a count; zero: off.
    pub repeat_window: Duration,
    /// Time to drain after SIGTERM.
    pub shutdown_grace: Duration,
}

/// One `[[source]]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Stands in each event.
    pub name: String,
    /// Its type.
    pub kind: SourceKind,
    /// Globs of files; never empty for a file source.
    pub include: Vec<String>,
    /// Globs of files that are left out.
    pub exclude: Vec<String>,
    /// Where reading begins.
    pub start_at: StartAt,
    /// How long a rotated file is still read.
    pub rotate_wait: Duration,
    /// When the position of a vanished file is dropped.
    pub forget_after: Duration,
    /// Folders that links may lead into.
    pub follow_links_into: Vec<PathBuf>,
    /// Zero: off.
    pub max_events_per_second: u32,
    /// A stream that says nothing for so long is told; zero: none is.
    pub silence: Duration,
    /// Kind of a unix socket.
    pub mode: SocketMode,
    /// Stand in each event as they are, secrets apart.
    pub labels: BTreeMap<String, String>,
    /// Where tcp and udp listen; always present for these.
    pub address: Option<SocketAddr>,
    /// Other machines may send.
    pub allow_remote: bool,
    /// Where a unix socket lies; always present for it.
    pub path: Option<PathBuf>,
    /// Mode bits of a unix socket.
    pub permissions: u32,
    /// Owner of a unix socket; empty: the one who runs siftd.
    pub owner: String,
    /// Group of a unix socket; empty: that of the one who runs siftd.
    pub group: String,
    /// How messages over a stream socket are told apart.
    pub framing: Framing,
    /// Connections at once.
    pub max_connections: u32,
    /// A longer line of a socket is cut.
    pub max_line_bytes: u64,
    /// A connection that is silent for so long is closed.
    pub idle_timeout: Duration,
    /// What one peer may send in a second; zero: off.
    pub max_peer_bytes_per_second: u64,
    /// What the kernel keeps of datagrams; zero: as the system has it.
    pub receive_buffer: u64,
    /// TLS, if it is asked for.
    pub tls: Option<TlsConfig>,
    /// What is run; never empty for a command.
    pub argv: Vec<String>,
    /// Added to the environment of siftd.
    pub environment: BTreeMap<String, String>,
    /// Where it runs; empty: where siftd does.
    pub directory: Option<PathBuf>,
    /// Who runs it; empty: the one who runs siftd.
    pub user: String,
    /// When it is started anew.
    pub restart: Restart,
    /// Pause before the first new start; doubled for each further one.
    pub restart_delay: Duration,
    /// The longest pause.
    pub max_restart_delay: Duration,
    /// From SIGTERM to SIGKILL.
    pub stop_timeout: Duration,
    /// Matches of the journal, as `journalctl` takes them.
    pub matches: Vec<String>,
}

/// `[source.tls]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// PEM file of the certificate and those that lead to its root.
    pub certificate: PathBuf,
    /// PEM file of its key.
    pub key: PathBuf,
    /// PEM file of the roots that clients' certificates must lead to; none: clients need no certificate.
    pub client_ca: Option<PathBuf>,
    /// A handshake takes at most so long.
    pub handshake_timeout: Duration,
}

impl Config {
    /// Reads one text over the defaults. `name` stands in messages.
    ///
    /// # Errors
    /// Every mistake in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        Self::default().overlay(&[Source::new(name, text)], &fixed_literal)
    }

    /// Reads texts over this configuration: a later one overrides values and `files`; it adds to lists of
    /// patterns, `disable`, `severity_overrides`, sources and sinks. `literals` judges custom regexes.
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
