//! Sockets that listen: `bind` makes them, or takes those that a service manager passed (`passed`); `accept` serves the
//! connections of stream sockets, `peer` one of them; `datagram` reads the others. Each connection, and each sender of
//! datagrams, is a stream of its own. `room` bounds how many there are, `rate` what a peer may send, `said` what is said
//! about it; `lost` and `refused` count what was not taken.

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
    /// What is counted of it.
    pub counted: Arc<SourceMetrics>,
    /// Turns true when it is to end.
    pub stop: watch::Receiver<bool>,
}

impl Served {
    /// A source that is about to begin.
    #[must_use]
    pub fn new(config: Arc<SourceConfig>, intake: Arc<Intake>, stop: watch::Receiver<bool>) -> Self {
        let counted = metrics().sources.of(&config.name);
        counted.kind.set(config.kind.as_str());
        Self { config, intake, counted, stop }
    }

    /// The name, kind and socket of the source.
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
        // The sender is gone: so is the daemon.
        let _ = self.stop.wait_for(|stop| *stop).await;
    }
}
