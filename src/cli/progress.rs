//! The progress of a scan: a bar on stderr, if it can be seen and does not
//! mix with the output. It appears only if the work takes long enough.

use std::io::{IsTerminal, stderr, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that is shorter than this shows no bar.
const QUIET: Duration = Duration::from_millis(500);
const KNOWN: &str = "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} left";
const UNKNOWN: &str = "{spinner} {bytes} {binary_bytes_per_sec}";

/// A bar, or nothing.
pub struct Progress {
    /// Bytes read so far.
    pub read: Arc<AtomicU64>,
    bar: Option<ProgressBar>,
    shown: AtomicBool,
    started: Instant,
}

impl Progress {
    /// Creates the bar. `total` returns the number of bytes if it is known; it is called only if a bar can be seen.
    pub fn new(total: impl FnOnce() -> Option<u64>) -> Self {
        let visible = stderr().is_terminal() && !stdout().is_terminal();
        let bar = visible.then(|| bar(total()));
        Self { read: Arc::default(), bar, shown: AtomicBool::new(false), started: Instant::now() }
    }

    /// Updates the bar after a read.
    pub fn step(&self) {
        let Some(bar) = &self.bar else { return };
        if self.started.elapsed() < QUIET {
            return;
        }
        if !self.shown.swap(true, Ordering::Relaxed) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(self.read.load(Ordering::Relaxed));
    }

    /// Prints something on stderr without tearing the bar.
    pub fn aside(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the bar when the work is done.
    pub fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
    let template = if total.is_some() { KNOWN } else { UNKNOWN };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style)
}
