//! Connections turned away for lack of room: in the log, the first at once and then
//! one message a minute; in the metrics; and, with their number, as a `gap` record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Served;
use super::lost::{Lost, add};
use super::said::Said;
use crate::delivery::{Missed, Why};
use crate::sources::clock::now;
use crate::sources::flow::Flow;

/// Interval between two such records.
const SAY: Duration = Duration::from_secs(1);

/// The refused connections of one source.
#[derive(Default)]
pub(super) struct Refused {
    said: Said,
    lost: Option<Lost>,
    since: Option<Instant>,
    /// For records about the source itself; opened when needed.
    own: Option<Arc<Flow>>,
}

impl Refused {
    /// Counts a peer that was turned away.
    pub fn happened(&mut self, peer: &str, served: &Served) {
        served.counted.refused.of("too_many").add(1);
        add(&mut self.lost, 1, now());
        self.since.get_or_insert_with(Instant::now);
        if let Some(count) = self.said.happened(Instant::now()) {
            let (name, most) = (&served.config.name, served.config.max_connections);
            tracing::warn!("source {name}: max_connections ({most}) is reached, {count} turned away, the last from {peer}");
        }
    }

    /// Waits until there is something to report.
    pub async fn due(&self) {
        match self.since {
            Some(since) => tokio::time::sleep(SAY.saturating_sub(since.elapsed())).await,
            None => std::future::pending().await,
        }
    }

    /// Reports it.
    pub fn say(&mut self, served: &Served) {
        self.since = None;
        let Some(lost) = self.lost.take() else { return };
        let own = self.own.get_or_insert_with(|| served.intake.open(served.label(), served.reading()));
        own.notice(lost.notice(&own.uid, Why::TurnedAway, Missed::Connections));
    }

    /// Reports the last ones when the source ends.
    pub fn end(mut self, served: &Served) {
        self.say(served);
        self.own.into_iter().for_each(|own| own.end());
    }
}
