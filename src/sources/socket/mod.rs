//! Sockets that listen. `bind` creates them, or takes those that a service manager passed (`passed`). `accept` serves the connections of stream
//! sockets, `peer` one of them; `datagram` reads the others. Each connection, and each sender of datagrams, is a stream of its own. `room` bounds
//! the number of connections, `rate` what a peer may send, `said` how often log messages come; `lost` and `refused` count what was not taken.

pub mod accept;
pub mod bind;
pub mod datagram;
mod lost;
pub mod passed;
mod peer;
mod rate;
mod refused;
mod room;
pub(super) mod said;

use std::sync::Arc;

use tokio::sync::watch;

use super::flow::{Intake, Reading};
use crate::config::SourceConfig;
use crate::delivery::Label;
use crate::telemetry::metrics;
use crate::telemetry::metrics::SourceMetrics;

/// What the tasks of one source share.
#[derive(Clone)]
pub struct Served {
    /// Its configuration.
    pub config: Arc<SourceConfig>,
    /// Where its bytes go.
    pub intake: Arc<Intake>,
    /// Its counters.
    pub counted: Arc<SourceMetrics>,
    /// Becomes `true` when the source is to end.
    pub stop: watch::Receiver<bool>,
}

impl Served {
    /// Prepares a source that is about to begin.
    #[must_use]
    pub fn new(config: Arc<SourceConfig>, intake: Arc<Intake>, stop: watch::Receiver<bool>) -> Self {
        let counted = metrics().sources.of(&config.name);
        counted.kind.set(config.kind.as_str());
        Self { config, intake, counted, stop }
    }

    /// Returns the name, kind and socket of the source.
    #[must_use]
    pub fn label(&self) -> Label {
        let path = self.config.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        Label { source: self.config.name.clone(), kind: self.config.kind.as_str(), path, ..Label::default() }
    }

    fn reading(&self) -> Reading {
        Reading { syslog: true, max_line_bytes: Some(usize::try_from(self.config.max_line_bytes).unwrap_or(usize::MAX)) }
    }

    /// Waits until the source is to end.
    pub async fn stopped(&mut self) {
        // If the sender is gone, so is the daemon.
        let _ = self.stop.wait_for(|stop| *stop).await;
    }
}
