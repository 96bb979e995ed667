//! siftd's own messages: where they go and how many. Set up once by a command at its start; `SIFTD_LOG`
//! chooses (`SIFTD_LOG=debug siftd run …`). The core never logs; records never go through here. They have no colours, on a terminal neither.

use tracing_subscriber::EnvFilter;

/// Starts writing messages to stderr; a second call does nothing.
pub fn init() {
    let filter = EnvFilter::try_from_env("SIFTD_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let started = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).try_init();
    // Only a test that starts two commands in one process comes here twice.
    drop(started);
}
