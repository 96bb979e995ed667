//! What a daemon is to run, and how a run ended.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Config, SourceConfig, SourceKind};
use crate::core::engine::Engine;
use crate::delivery::{Label, Node};
use crate::sinks::choose::Choose;
use crate::sinks::file::Options;
use crate::sinks::stream::Target;
use crate::sinks::{http, stream};
use crate::sources::discover::Spec;
use crate::sources::flow::Nonce;
use crate::sources::follow::IdOf;
use crate::sources::silence::Limit;
use crate::sources::socket::passed::Passed;
use crate::state::ledger;
use crate::state::withhold::Rules;
use crate::telemetry::http::Place;

/// Makes a new plan from the configuration as it is now; the error lists every mistake in it.
pub type Again = Box<dyn FnMut() -> Result<Plan, String> + Send>;

/// What a daemon is to run.
pub struct Plan {
    /// The configuration it was made from: a reload leaves alone what is equal in it.
    pub config: Config,
    /// Fingerprint of rules and limits: if it changes, a new engine is used.
    pub rules_print: [u8; 16],
    /// Makes the plan for SIGHUP; if `None`, that signal drains and ends the daemon, as SIGTERM does.
    pub again: Option<Again>,
    /// The engine, with its rules and limits.
    pub engine: Arc<Engine>,
    /// Sources that are files.
    pub specs: Vec<Spec>,
    /// Sources that are not files.
    pub services: Vec<SourceConfig>,
    /// Sockets that a service manager has passed.
    pub passed: Passed,
    /// Gives streams that are not files their identity.
    pub nonce: Nonce,
    /// Gives files their identity.
    pub id_of: IdOf,
    /// Where records go.
    pub sinks: Vec<SinkPlan>,
    /// The state folder; if `None`, no state is kept.
    pub state: Option<PathBuf>,
    /// Where the HTTP server listens, besides the socket in the state folder.
    pub listen: Option<Place>,
    /// Which records are withheld.
    pub withhold: Rules,
    /// Name of a source → microseconds of silence after which a notice is written.
    pub silence: HashMap<String, Limit>,
    /// Rules of the history and the breakers.
    pub ledger: ledger::Rules,
    /// Program and arguments to run when a breaker opens; empty: none.
    pub on_open: Vec<String>,
    /// Most bytes that may wait for sinks.
    pub outbox_max: u64,
    /// Sinks that drop records when more than that waits for them.
    pub dropping: Vec<Choose>,
    /// Time to drain.
    pub grace: Duration,
    /// Name of this machine.
    pub host: String,
    /// Most bytes of one record.
    pub max_event_bytes: usize,
    /// A file that must never be read, as it is siftd's own output.
    pub own: Option<Node>,
    /// Labels of each source, by its name.
    pub labels: BTreeMap<String, Vec<(String, String)>>,
}

impl Plan {
    /// The labels for records that concern a source as a whole.
    pub(super) fn sources(&self) -> Vec<Label> {
        let files = self.specs.iter().map(|spec| (&spec.name, SourceKind::File));
        let all = files.chain(self.services.iter().map(|source| (&source.name, source.kind)));
        all.map(|(name, kind)| Label { source: name.clone(), kind: kind.as_str(), ..Label::default() }).collect()
    }
}

/// One sink.
#[allow(clippy::large_enum_variant, reason = "there are a few of them, once")]
pub enum SinkPlan {
    /// An open descriptor.
    Stdout {
        /// Its name.
        name: String,
        /// The descriptor.
        file: File,
        /// Which records.
        choose: Choose,
    },
    /// A file.
    File {
        /// Its name.
        name: String,
        /// How it is written.
        options: Options,
    },
    /// A peer that takes lines.
    Stream {
        /// Its name.
        name: String,
        /// How it is reached.
        options: stream::Options,
    },
    /// A server that takes batches.
    Http {
        /// Its name.
        name: String,
        /// What is sent.
        options: http::Options,
        /// How it is reached.
        client: http::Client,
    },
}

impl SinkPlan {
    /// The word for its type.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Stdout { .. } => "stdout",
            Self::File { .. } => "file",
            Self::Stream { options, .. } => match options.target {
                Target::Tcp(..) => "tcp",
                Target::Unix(_) => "unix",
            },
            Self::Http { .. } => "http",
        }
    }

    /// The file that it writes.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File { options, .. } => Some(&options.path),
            Self::Stdout { .. } | Self::Stream { .. } | Self::Http { .. } => None,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Stdout { name, .. } | Self::File { name, .. } | Self::Stream { name, .. } | Self::Http { name, .. } => name,
        }
    }
}

/// Why the daemon cannot start or go on; each has a message of its own.
#[derive(Debug)]
pub struct Obstacles(pub Vec<String>);

impl From<String> for Obstacles {
    fn from(why: String) -> Self {
        Self(vec![why])
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything was read.
    Well,
    /// Something could not be read to its end.
    Troubled,
}
