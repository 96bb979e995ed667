//! The timers of the deciding thread: files and names are looked at even if no file system notice arrives.

use std::time::{Duration, Instant};

/// Between two checks of files that were active lately, in case a notice was late or lost.
pub(super) const SWEEP: Duration = Duration::from_millis(250);
/// Between two looks for folders that may have appeared and for files without notices.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// Between two checks of all files.
pub(super) const FULL_SWEEP: Duration = Duration::from_secs(10);
/// After a new folder appears, before it is looked into again: files may have been created before the watch was set.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Between two updates of gauges.
pub(super) const TELL: Duration = Duration::from_secs(1);
/// Between two prunings of the rows of files that are gone.
pub(super) const PRUNE: Duration = Duration::from_secs(3600);

/// When each periodic task is due.
#[derive(Default)]
pub(super) struct Clock {
    pub look: Every,
    pub sweep: Every,
    pub full: Every,
    pub prune: Every,
    pub tell: Every,
    /// Whether bytes were left to read when the gauges were last due.
    pub lags: bool,
    pub silence: Every,
}

impl Clock {
    /// Returns the time until files are next looked at: of `files`, `active` were written to lately.
    pub fn next(&self, files: usize, active: usize) -> Duration {
        let sweep = (active > 0).then(|| self.sweep.left(sweep(active)));
        let next = [self.look.left(look(files)), self.full.left(FULL_SWEEP)].into_iter().chain(sweep).min();
        next.unwrap_or(LOOK).max(Duration::from_millis(5))
    }

    /// Calls `set`, which sets the gauges and returns how many bytes are left to read, from time to time, and once more as
    /// soon as what was left then is read.
    pub fn gauges(&mut self, files: usize, is_busy: bool, set: impl FnOnce() -> u64) {
        let is_due = self.tell.ticks(TELL.mul_f64(1.0 + files as f64 / 2000.0));
        if is_due || (self.lags && !is_busy) {
            let lag_bytes = set();
            self.lags = is_due && lag_bytes > 0;
        }
    }
}

/// The pause between two looks; the more files, the longer.
pub(super) fn look(files: usize) -> Duration {
    LOOK.mul_f64(1.0 + files as f64 / 2000.0)
}

/// The pause between two sweeps; the more active files, the longer.
pub(super) fn sweep(active: usize) -> Duration {
    SWEEP.mul_f64(1.0 + active as f64 / 1000.0)
}

/// A periodic task: when it was last done.
#[derive(Default)]
pub(super) struct Every(Option<Instant>);

impl Every {
    /// Begins the next period, and returns `true`, if the last one began at least `pause` ago.
    pub fn ticks(&mut self, pause: Duration) -> bool {
        let due = self.left(pause).is_zero();
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }

    fn left(&self, pause: Duration) -> Duration {
        self.0.map_or(Duration::ZERO, |last| pause.saturating_sub(last.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_as_soon_as_all_is_read() {
        let mut clock = Clock::default();
        let mut sets = |is_busy: bool, lag_bytes: u64, is_due: bool| {
            // Due again at once, or not for as long as the test may take.
            clock.tell = Every((!is_due).then(|| Instant::now() + Duration::from_secs(3600)));
            let mut is_set = false;
            clock.gauges(1, is_busy, || {
                is_set = true;
                lag_bytes
            });
            is_set
        };
        assert!(sets(true, 100, true), "due");
        assert!(!sets(true, 100, false), "still reading");
        assert!(sets(false, 0, false), "all is read");
        assert!(!sets(false, 0, false), "and that was said");
        assert!(sets(false, 0, true) && !sets(false, 0, false), "nothing was left");
    }

    #[test]
    fn who_waits_sleeps_until_something_is_due() {
        // A moment in the future: no time has passed since.
        let begun = || Every(Some(Instant::now() + Duration::from_secs(3600)));
        let clock = Clock { look: begun(), sweep: begun(), full: begun(), ..Clock::default() };
        assert_eq!(clock.next(0, 0), LOOK);
        assert_eq!(clock.next(10_000, 0), look(10_000));
        assert_eq!(clock.next(10_000, 1000), SWEEP * 2);
        assert_eq!(clock.next(100_000, 0), FULL_SWEEP);
    }
}
