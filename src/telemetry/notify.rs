//! Notifies the service manager (sd_notify(3)); without one, each call does nothing. A message that cannot be sent is
//! ignored: the manager's own time limits apply then.

use std::time::Duration;

use sd_notify::NotifyState;

fn tell(states: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!("the service manager was not told: {error}");
    }
}

/// Says that the daemon is ready.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Says that the configuration is being reloaded; [`ready`] ends that.
pub fn reloading() {
    // systemd 253 and later match the start and end of a reload by this time.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Says that the daemon is shutting down.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Sets the line that `systemctl status` shows.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(&text.replace(char::is_control, " "))]);
}

/// Feeds the watchdog: the pipeline moves.
pub fn feed_watchdog() {
    tell(&[NotifyState::Watchdog]);
}

/// Returns how long the manager waits for the next feeding before it restarts the process; `None` if it has no watchdog.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}
