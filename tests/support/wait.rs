//! Waits for what another process does; every wait has a deadline.

use std::time::{Duration, Instant};

/// Long enough for a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Polls every 10 ms until there is an answer.
#[track_caller]
pub fn wait<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}
