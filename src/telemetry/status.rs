//! The counters as one JSON document, which `/status` returns, and as text, which `siftd status` prints.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use super::metrics::{Metrics, SinkMetrics, SourceMetrics};
use crate::words::Severity;

/// Returns the document. Fields may be added, but are never changed or removed.
#[must_use]
pub fn document(metrics: &Metrics, now_us: u64) -> Value {
    let seconds = |micros: u64| micros / 1_000_000;
    let started = metrics.started_us.get();
    let reloads = &metrics.reloads;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "state": metrics.state(),
        "healthy": metrics.trouble().is_none(),
        "trouble": metrics.trouble(),
        "started": seconds(started),
        "uptime_seconds": seconds(now_us.saturating_sub(started)),
        "reload": {
            "succeeded": reloads.succeeded.get(),
            "refused": reloads.failed.get(),
            "last": (reloads.at_us.get() > 0).then(|| seconds(reloads.at_us.get())),
            "error": reloads.error.get(),
        },
        "sources": metrics.sources.all().iter().map(|(name, source)| source_object(name, source)).collect::<Vec<_>>(),
        "sinks": metrics.sinks.all().iter().map(|(name, sink)| sink_object(name, sink, metrics.outbox_last.get())).collect::<Vec<_>>(),
        "outbox": { "bytes": metrics.outbox_bytes.get(), "max_bytes": metrics.outbox_max_bytes.get() },
        "gaps": metrics.gaps.all().iter().map(|(why, gap)| (why.clone(), json!(gap.count.get()))).collect::<Map<_, _>>(),
        "open_files": metrics.open_files.get(),
        "stalled": metrics.is_stalled.load(Ordering::Relaxed),
    })
}

fn source_object(name: &str, source: &SourceMetrics) -> Value {
    let mut events = [0_u64; Severity::ALL.len()];
    source.events.seen().for_each(|(_, severity, count)| events[severity as usize] += count);
    let by_severity: Map<String, Value> = Severity::ALL.iter().rev().map(|&severity| (severity.to_string(), json!(events[severity as usize]))).collect();
    json!({
        "name": name,
        "type": source.kind.get(),
        "up": source.trouble.get().is_none(),
        "trouble": source.trouble.get(),
        "files": source.files.get(),
        "connections": source.connections.get(),
        "bytes": source.bytes.get(),
        "lines": source.lines.get(),
        "lag_bytes": source.lag_bytes.get(),
        "events": by_severity,
    })
}

fn sink_object(name: &str, sink: &SinkMetrics, last: u64) -> Value {
    json!({
        "name": name,
        "type": sink.kind.get(),
        "up": sink.trouble.get().is_none(),
        "trouble": sink.trouble.get(),
        "waiting_records": last.saturating_sub(sink.seq.get()),
        "retries": sink.retries.get(),
        "dead_letters": sink.dead_letters.get(),
    })
}
