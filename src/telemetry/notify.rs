//! What the service manager is told (sd_notify(3)); without one each call does nothing. A message that cannot be
//! sent is no reason to stop: the manager's own limits apply then.

use std::time::Duration;

use sd_notify::NotifyState;

fn tell(states: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!("the service manager was not told: {error}");
    }
}

/// It works.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is being read; [`ready`] ends that.
pub fn reloading() {
    // systemd 253 and newer pair a reload with its end by the time.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// It ends.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// One line for people, which `systemctl status` shows.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(&text.replace(char::is_control, " "))]);
}

/// The pipeline moves.
pub fn feed_watchdog() {
    tell(&[NotifyState::Watchdog]);
}

/// How long the manager waits between two feedings before it restarts the process; none: it does not watch.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}
