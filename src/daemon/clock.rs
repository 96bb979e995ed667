//! What the deciding thread does by time alone, should no notice come: looking at files and names.

use std::time::{Duration, Instant};

/// Files that were active lately, in case a notice was late or lost.
pub(super) const SWEEP: Duration = Duration::from_millis(250);
/// Folders that may have appeared; files without notices.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// Everything.
pub(super) const FULL_SWEEP: Duration = Duration::from_secs(10);
/// New folders are looked into once more after so long: files may have been made before the watch.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Gauges.
pub(super) const TELL: Duration = Duration::from_secs(1);
/// Rows of files that are gone.
pub(super) const PRUNE: Duration = Duration::from_secs(3600);

/// What is due when.
#[derive(Default)]
pub(super) struct Clock {
    pub look: Every,
    pub sweep: Every,
    pub full: Every,
    pub prune: Every,
    pub tell: Every,
    pub silence: Every,
}

impl Clock {
    pub fn next(&self, is_active: bool) -> Duration {
        let quick = if is_active { self.sweep.left(SWEEP) } else { LOOK };
        quick.min(self.look.left(LOOK)).max(Duration::from_millis(5))
    }
}

/// Something that is done from time to time.
#[derive(Default)]
pub(super) struct Every(Option<Instant>);

impl Every {
    pub fn is_due(&mut self, pause: Duration) -> bool {
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
