//! The list of all metrics: name, type, labels, meaning, and how each is read. The `/metrics` page, the table in the
//! page `systemd/README.md` and the tests of dashboard and alerts all derive from it. Units are base units only: bytes, seconds.

use super::metrics::{Metrics, SinkMetrics, SourceMetrics};

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Buckets, a sum and a count.
    Histogram,
}

impl Kind {
    /// Returns the word that follows the name in a `# TYPE` line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// One line about it.
    pub help: &'static str,
    /// Collects its samples.
    pub read: fn(&Metrics, &mut Samples),
}

/// Samples of one metric.
#[derive(Debug, Default)]
pub struct Samples(pub Vec<Sample>);

/// A value and the values of its labels.
#[derive(Debug, PartialEq)]
pub struct Sample {
    /// In the order of the family's labels; a histogram's bucket has `le` after them.
    pub labels: Vec<String>,
    /// Suffix of the name: empty, or `_bucket`, `_sum` or `_count` of a histogram.
    pub suffix: &'static str,
    /// The value.
    pub value: f64,
}

impl Samples {
    fn put(&mut self, labels: &[&str], value: u64) {
        self.float(labels, value as f64);
    }

    fn float(&mut self, labels: &[&str], value: f64) {
        self.0.push(Sample { labels: labels.iter().map(|label| (*label).to_owned()).collect(), suffix: "", value });
    }

    fn sources(&mut self, metrics: &Metrics, read: impl Fn(&SourceMetrics) -> u64) {
        metrics.sources.all().iter().for_each(|(name, source)| self.put(&[name], read(source)));
    }

    fn sinks(&mut self, metrics: &Metrics, read: impl Fn(&SinkMetrics) -> u64) {
        metrics.sinks.all().iter().for_each(|(name, sink)| self.put(&[name], read(sink)));
    }
}

macro_rules! families {
    ($($kind:ident $name:literal [$($label:literal),*] $help:literal: $read:expr;)+) => {
        /// All metrics, in the order in which they are shown.
        pub const FAMILIES: &[Family] = &[$(Family { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help, read: $read }),+];
    };
}

families! {
    Gauge "siftd_build_info" ["version"] "Always 1; the version that runs.": |_, out| out.put(&[env!("CARGO_PKG_VERSION")], 1);
    Counter "siftd_source_read_bytes_total" ["source"] "Bytes read, those included that start_at = end only counts.": |all, out| out.sources(all, |source| source.bytes.get());
    Counter "siftd_source_lines_total" ["source"] "Lines read.": |all, out| out.sources(all, |source| source.lines.get());
    Counter "siftd_source_candidate_lines_total" ["source"] "Lines that the fast search did not rule out.":
        |all, out| out.sources(all, |source| source.candidates.get());
    Counter "siftd_source_truncated_lines_total" ["source"] "Lines longer than max_line_bytes.": |all, out| out.sources(all, |source| source.truncated.get());
    Counter "siftd_source_unasked_lines_total" ["source"] "Lines (also of texts inside records) that were not tried with every rule: they could match more than siftd tries on one line, or could not be looked at again.":
        |all, out| out.sources(all, |source| source.unasked.get());
    Counter "siftd_source_cut_sections_total" ["source"] "Sections of tools' outputs that were not followed to their end because too many were open: their later errors may be missing, or not be taken back.":
        |all, out| out.sources(all, |source| source.cut_sections.get());
    Counter "siftd_source_unread_records_total" ["source"] "Records of transcripts that are too long to be read.":
        |all, out| out.sources(all, |source| source.unread.get());
    Gauge "siftd_source_lag_bytes" ["source"] "Bytes that are in the source's files and were not read yet.":
        |all, out| out.sources(all, |source| source.lag_bytes.get());
    Gauge "siftd_source_files" ["source"] "Files that are followed.": |all, out| out.sources(all, |source| source.files.get());
    Gauge "siftd_source_connections" ["source"] "Connections that are open.": |all, out| out.sources(all, |source| source.connections.get());
    Counter "siftd_source_accepted_connections_total" ["source"] "Connections accepted.": |all, out| out.sources(all, |source| source.accepted.get());
    Counter "siftd_source_refused_connections_total" ["source", "reason"] "Connections turned away or ended by a limit.": |all, out| {
        for (name, source) in all.sources.all() {
            source.refused.all().iter().for_each(|(reason, count)| out.put(&[&name, reason], count.get()));
        }
    };
    Counter "siftd_source_datagrams_total" ["source"] "Datagrams received.": |all, out| out.sources(all, |source| source.datagrams.get());
    Counter "siftd_source_restarts_total" ["source"] "Starts of a command after its first one.": |all, out| out.sources(all, |source| source.restarts.get());
    Gauge "siftd_source_up" ["source"] "0 while something is wrong with the source; /status says what.":
        |all, out| out.sources(all, |source| u64::from(source.trouble.get().is_none()));
    Gauge "siftd_open_files" [] "Descriptors that followed files hold.": |all, out| out.put(&[], all.open_files.get());
    Counter "siftd_events_total" ["source", "category", "severity"] "Errors found and committed.": |all, out| {
        for (name, source) in all.sources.all() {
            source.events.seen().for_each(|(category, severity, count)| out.put(&[&name, category.as_str(), severity.as_str()], count));
        }
    };
    Counter "siftd_noise_lines_total" ["rule"] "Lines that looked like an error and that a noise rule silenced.":
        |all, out| all.noise.all().iter().for_each(|(rule, count)| out.put(&[rule], count.get()));
    Counter "siftd_gaps_total" ["why"] "Records of what nobody saw.": |all, out| all.gaps.all().iter().for_each(|(why, gap)| out.put(&[why], gap.count.get()));
    Counter "siftd_gap_bytes_total" ["why"] "Bytes that nobody saw, as far as they are known.":
        |all, out| all.gaps.all().iter().for_each(|(why, gap)| out.put(&[why], gap.bytes.get()));
    Counter "siftd_gap_items_total" ["why"] "Events or datagrams that nobody saw, as far as they are known.":
        |all, out| all.gaps.all().iter().for_each(|(why, gap)| out.put(&[why], gap.items.get()));
    Histogram "siftd_commit_duration_seconds" [] "How long transactions of the state took.": |all, out| {
        let counts = all.commit.cumulative();
        let bounds = super::metrics::BOUNDS_US.iter().map(|bound| (*bound as f64 / 1e6).to_string()).chain(["+Inf".to_owned()]);
        out.0.extend(bounds.zip(counts).map(|(le, count)| Sample { labels: vec![le], suffix: "_bucket", value: count as f64 }));
        out.0.push(Sample { labels: Vec::new(), suffix: "_sum", value: all.commit.sum_us() as f64 / 1e6 });
        out.0.push(Sample { labels: Vec::new(), suffix: "_count", value: counts[counts.len() - 1] as f64 });
    };
    Counter "siftd_commit_failures_total" [] "Transactions that failed and were tried again.": |all, out| out.put(&[], all.commit_failures.get());
    Gauge "siftd_state_up" [] "0 while the state cannot be written, and reading waits; /status says why.":
        |all, out| out.put(&[], u64::from(all.state_trouble.get().is_none()));
    Gauge "siftd_outbox_bytes" [] "Bytes of records that some sink has not passed on.": |all, out| out.put(&[], all.outbox_bytes.get());
    Gauge "siftd_outbox_max_bytes" [] "Most bytes that may wait (outbox_max).": |all, out| out.put(&[], all.outbox_max_bytes.get());
    Gauge "siftd_sink_waiting_records" ["sink"] "Records that the sink has not passed on.": |all, out| {
        let last = all.outbox_last.get();
        out.sinks(all, |sink| last.saturating_sub(sink.seq.get()));
    };
    Counter "siftd_sink_written_bytes_total" ["sink"] "Bytes written.": |all, out| out.sinks(all, |sink| sink.bytes.get());
    Counter "siftd_sink_retries_total" ["sink"] "Writes or requests that failed and are tried again.": |all, out| out.sinks(all, |sink| sink.retries.get());
    Counter "siftd_sink_reconnects_total" ["sink"] "Connections after the first one.": |all, out| out.sinks(all, |sink| sink.reconnects.get());
    Counter "siftd_sink_dead_letters_total" ["sink"] "Records that the other side refuses for good.": |all, out| out.sinks(all, |sink| sink.dead_letters.get());
    Gauge "siftd_sink_up" ["sink"] "0 while the sink cannot write; /status says why.":
        |all, out| out.sinks(all, |sink| u64::from(sink.trouble.get().is_none()));
    Counter "siftd_reloads_total" ["result"] "Readings of the configuration after the start: ok, or refused.": |all, out| {
        out.put(&["ok"], all.reloads.succeeded.get());
        out.put(&["refused"], all.reloads.failed.get());
    };
    Gauge "siftd_config_last_reload_successful" [] "0 while the configuration on disk has mistakes and an older one goes on.":
        |all, out| out.put(&[], u64::from(all.reloads.error.get().is_none()));
    Gauge "siftd_start_time_seconds" [] "When it started, in seconds since 1970.": |all, out| out.float(&[], all.started_us.get() as f64 / 1e6);
    Gauge "siftd_ready" [] "1 while the state, the sources and the files of sinks are open, and the state can be written.": |all, out| out.put(&[], u64::from(all.state() == super::metrics::Phase::Ready.as_str()));
    Gauge "siftd_pipeline_stalled" [] "1 while nothing moves although something waits: the watchdog is not fed then.":
        |all, out| out.put(&[], u64::from(all.is_stalled.load(std::sync::atomic::Ordering::Relaxed)));
}

/// Returns the page in Prometheus' text format, version 0.0.4.
#[must_use]
pub fn page(metrics: &Metrics) -> String {
    let mut out = String::new();
    for family in FAMILIES {
        out += &format!("# HELP {} {}\n# TYPE {} {}\n", family.name, family.help, family.name, family.kind.as_str());
        let mut samples = Samples::default();
        (family.read)(metrics, &mut samples);
        for sample in samples.0 {
            let names = family.labels.iter().copied().chain(["le"]);
            let labels: Vec<String> = names.zip(&sample.labels).map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            out += &format!("{}{}{labels} {}\n", family.name, sample.suffix, sample.value);
        }
    }
    out
}

/// Escapes backslashes, quotes and newlines in a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::words::{Category, Severity};

    #[test]
    fn the_page_has_a_head_for_each_family_and_escapes_labels() {
        let metrics = Metrics::default();
        let source = metrics.sources.of("a\"b\\\n");
        source.bytes.add(7);
        source.events.add(Category::BuildError, Severity::High, 2);
        metrics.commit.observe(Duration::from_micros(900));
        metrics.commit.observe(Duration::from_secs(99));
        metrics.gaps.of("udp_loss").items.add(3);
        metrics.sinks.of("out").seq.set(4);
        metrics.outbox_last.set(9);
        let page = page(&metrics);
        for line in [
            "# TYPE siftd_source_read_bytes_total counter",
            "siftd_source_read_bytes_total{source=\"a\\\"b\\\\\\n\"} 7",
            "siftd_events_total{source=\"a\\\"b\\\\\\n\",category=\"build_error\",severity=\"high\"} 2",
            "siftd_commit_duration_seconds_bucket{le=\"0.0005\"} 0",
            "siftd_commit_duration_seconds_bucket{le=\"0.001\"} 1",
            "siftd_commit_duration_seconds_bucket{le=\"30\"} 1",
            "siftd_commit_duration_seconds_bucket{le=\"+Inf\"} 2",
            "siftd_commit_duration_seconds_sum 99.0009",
            "siftd_commit_duration_seconds_count 2",
            "siftd_gap_items_total{why=\"udp_loss\"} 3",
            "siftd_sink_waiting_records{sink=\"out\"} 5",
            "siftd_sink_up{sink=\"out\"} 1",
            "siftd_pipeline_stalled 0",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line}\n{page}");
        }
        for family in FAMILIES {
            assert!(page.contains(&format!("# HELP {} {}\n", family.name, family.help)), "{}", family.name);
            assert!(family.name.starts_with("siftd_") && family.help.ends_with('.'), "{}", family.name);
            assert_eq!(family.kind == Kind::Counter, family.name.ends_with("_total"), "{}", family.name);
        }
    }
}
