//! The defaults. `config/siftd.toml` documents them for users; a test compares the two.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{
    Breaker, Config, Delivery, ErrorDetection, Framing, History, Limits, ReasonRetry, Restart, Retry, Rules, SocketMode, SourceConfig, SourceKind, StartAt,
    Telemetry, TlsConfig,
};
use crate::core::breaker;

impl Default for TlsConfig {
    fn default() -> Self {
        Self { certificate: PathBuf::new(), key: PathBuf::new(), client_ca: None, handshake_timeout: Duration::from_secs(10) }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            state_dir: PathBuf::from("/var/lib/siftd"),
            error_detection: ErrorDetection::default(),
            rules: Rules { files: vec!["/etc/siftd/rules/*.toml".to_owned()], disable: Vec::new() },
            limits: Limits::default(),
            retry: Retry::default(),
            breaker: Breaker::default(),
            history: History::default(),
            delivery: Delivery { outbox_max: 1 << 30, repeat_window: Duration::ZERO, shutdown_grace: Duration::from_secs(10) },
            telemetry: Telemetry::default(),
            sources: Vec::new(),
            sinks: Vec::new(),
        }
    }
}

impl Default for ErrorDetection {
    fn default() -> Self {
        Self {
            enabled: true,
            two_stage: true,
            capture_multiline: true,
            max_context_lines: 5,
            max_stack_depth: 20,
            custom_patterns: Vec::new(),
            custom_false_positives: Vec::new(),
            noise_patterns: Vec::new(),
            severity_overrides: BTreeMap::new(),
            warnings: false,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_line_bytes: 1 << 20, max_event_bytes: 30 << 10, max_trace_lines: 2000, trace_idle: Duration::from_millis(500), max_document_bytes: 64 << 20 }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            max_reset_wait: Duration::from_secs(600),
            max_retries: 3,
            continue_on_error: false,
            api_rate_limit: ReasonRetry { max_retries: 5 },
        }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        let breaker::Limits { warn_after, open_after, transient_open_after, cooldown_us, stream_window_us, stream_quiet_us } = breaker::Limits::default();
        let [cooldown, stream_window, stream_quiet] = [cooldown_us, stream_window_us, stream_quiet_us].map(|us| Duration::from_micros(us.unsigned_abs()));
        Self { warn_after, open_after, transient_open_after, cooldown, streams: true, stream_window, stream_quiet, on_open: Vec::new() }
    }
}

impl Default for History {
    fn default() -> Self {
        let day = Duration::from_secs(86_400);
        Self { enabled: true, max_signatures: 100_000, max_age: 90 * day, regressed_after: 7 * day }
    }
}

impl SourceConfig {
    /// Returns a source with every default filled in; a file source still needs `include`.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: SourceKind) -> Self {
        Self {
            name: name.into(),
            kind,
            include: Vec::new(),
            exclude: Vec::new(),
            start_at: StartAt::End,
            rotate_wait: Duration::from_secs(5),
            forget_after: Duration::from_secs(30 * 86_400),
            follow_links_into: Vec::new(),
            max_events_per_second: 0,
            silence: Duration::ZERO,
            mode: SocketMode::Stream,
            labels: BTreeMap::new(),
            address: None,
            allow_remote: false,
            path: None,
            permissions: 0o660,
            owner: String::new(),
            group: String::new(),
            framing: Framing::Auto,
            max_connections: 1024,
            max_line_bytes: 32 << 10,
            idle_timeout: Duration::from_secs(3600),
            max_peer_bytes_per_second: 0,
            receive_buffer: 0,
            tls: None,
            argv: Vec::new(),
            environment: BTreeMap::new(),
            directory: None,
            user: String::new(),
            restart: if kind == SourceKind::Journald { Restart::Always } else { Restart::OnFailure },
            restart_delay: Duration::from_secs(1),
            max_restart_delay: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(5),
            matches: Vec::new(),
        }
    }
}
