//! Which lines a trace may hold that no row names: loose ones, which belong to it only if the error goes on or is over
//! behind them, and what its machines show on purpose.

use super::OpenTrace;
use super::rival::{Rival, machine};
use crate::rules::Entries;

impl OpenTrace {
    /// Whether some machine would take any line that begins nothing.
    #[must_use]
    pub fn may_be_loose(&self, entries: &Entries) -> bool {
        self.rivals.iter().any(|rival| rival.may_be_loose(entries))
    }

    /// Whether one of its machines says that commands behind a bare prompt may be shown in it.
    #[must_use]
    pub fn shows_commands(&self, entries: &Entries) -> bool {
        self.rivals.iter().any(|rival| machine(entries, rival.entry).is_some_and(|machine| machine.shows_commands))
    }

    /// Whether records of a log may stand in it.
    #[must_use]
    pub fn shows_records(&self, entries: &Entries) -> bool {
        self.rivals.iter().any(|rival| rival.alive && machine(entries, rival.entry).is_some_and(|machine| machine.shows_records))
    }

    /// Accepts the loose lines so far: a line has shown that the error is over, so they belong to it.
    pub fn keep_loose(&mut self) {
        self.rivals.iter_mut().for_each(Rival::keep_loose);
    }

    /// Accepts loose lines, too, if its last accepted line says that more
    /// follows: it ends with a colon, a comma or an opening bracket.
    pub fn keep_announced(&mut self) {
        let announces = |accepted: usize| {
            let last = self.gap.kept(accepted).checked_sub(1).filter(|last| *last < self.lines.len());
            last.and_then(|last| self.lines.get(last).part.trim_ascii_end().last().copied()).is_some_and(|sign| b":,([{".contains(&sign))
        };
        let announced = self.rivals.iter().any(|rival| rival.is_loose() && announces(rival.accepted));
        if announced {
            self.keep_loose();
        }
    }
}
