//! What precedes the lines of a trace, beyond what `decode` has removed: a lead-in that the head and the
//! other lines share (a tag, a quote mark), or the stamps of a logger that was given the trace line by line.

use super::rival::{machine, starts};
use super::stamp::Stamp;
use super::{Entries, Line, OpenTrace, Prefix, View};
use crate::core::decode;

impl OpenTrace {
    /// Whether its further lines have as many times and levels before them as the
    /// head: a collector's stamp, and no logger's record that only the head begins.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        let Some(next) = self.lines.from(self.lead + 1).next() else { return false };
        let Prefix { shaped, times, levels, .. } = decode::prefix(next.text, self.opened_at);
        shaped && (times, levels) == (self.prefix.times, self.prefix.levels)
    }

    /// Returns the part of `line` in `view`. If one blank follows the head's time, a second blank
    /// belongs to the line's own text; if two follow it, the second blank does not.
    #[must_use]
    pub fn shown<'a>(&self, line: &Line<'a>, view: View) -> &'a [u8] {
        let part = view.of(line);
        if view != View::Body || self.prefix.times == 0 || line.prefix().times == 0 {
            return part;
        }
        match (self.prefix.padded, line.prefix().padded) {
            (false, true) => &line.text[line.text.len() - part.len() - 1..],
            (true, false) => part.strip_prefix(b" ").unwrap_or(part),
            _ => part,
        }
    }

    /// Returns `part` without the head's lead-in; `None` if the lead-in is not there.
    #[must_use]
    pub fn own_part<'a>(&self, part: &'a [u8]) -> Option<&'a [u8]> {
        self.lead_in.strip(part)
    }

    /// Whether the lines of the trace share the head's lead-in: one without it is another writer's.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        self.lead_in.is_shared() && !self.lead_in.is_quote()
    }

    /// Whether its lines are quoted, as the head is: an unquoted line does not belong to it.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.lead_in.is_shared() && self.lead_in.is_quote()
    }

    /// Whether only the head is quoted so far: what it begins counts only once a further line is quoted, too.
    #[must_use]
    pub fn may_be_quoted(&self) -> bool {
        matches!(self.view, View::Quoted(_)) && !self.lead_in.is_shared() && !self.is_restamped()
    }

    /// Whether the line follows another writer's name.
    #[must_use]
    pub fn is_others(&self, part: &[u8]) -> bool {
        self.lead_in.is_other(part)
    }

    /// Returns what `line` says after its stamp, and the stamp's length, if it may be the trace's next line
    /// although it is a record of its own: a logger that is given a trace line by line stamps each line.
    #[must_use]
    pub fn restamped<'a>(&self, entries: &Entries, line: &Line<'a>) -> Option<(&'a [u8], usize)> {
        let stamp = self.stamp.as_ref().filter(|_| self.key.as_deref() == line.key())?;
        let starts_at = |entry: &u16, text: &[u8]| machine(entries, *entry).is_some_and(|machine| starts(machine, text));
        // A stamp is only what all of these machines can do without.
        let begins = |text: &[u8]| {
            let mut able = self.rivals().filter(|entry| starts_at(entry, stamp.said())).peekable();
            able.peek().is_some() && able.all(|entry| starts_at(&entry, text))
        };
        stamp.strip(line, begins)
    }

    /// Whether a line with its stamp is first read without it: no machine takes the stamp for a word of its own.
    #[must_use]
    pub fn prefers_restamped(&self) -> bool {
        self.stamp.as_ref().is_some_and(Stamp::comes_first)
    }

    /// Whether its further lines are records of their own.
    #[must_use]
    pub fn is_restamped(&self) -> bool {
        self.stamp.as_ref().is_some_and(Stamp::is_shared)
    }

    /// Notes that the line taken last is such a record, after `length`
    /// bytes of the head's stamp, which are no part of the head either.
    pub fn mark_stamp(&mut self, line: &Line, length: usize) {
        let belongs = self.rivals.iter().any(|rival| rival.alive && rival.seen == rival.accepted);
        let Some(stamp) = &mut self.stamp else { return };
        stamp.go_on(line);
        if belongs && !stamp.is_shared() {
            let bytes = stamp.share(length);
            self.lines.shorten(self.lead.min(self.lines.len() - 1), bytes);
        }
    }

    /// Notes that the line taken last has the head's lead-in, which is thus no part of the head.
    pub fn mark(&mut self) {
        let belongs = self.rivals.iter().any(|rival| rival.alive && rival.seen == rival.accepted);
        if !belongs || self.lead_in.is_shared() {
            return;
        }
        self.lead_in.confirm();
        if !matches!(self.view, View::AfterWriter | View::Quoted(_)) {
            self.lines.shorten(self.lead.min(self.lines.len() - 1), self.lead_in.len());
            self.name_writer();
        }
    }

    pub(super) fn name_writer(&mut self) {
        if self.key.is_none() {
            self.key = self.lead_in.name().map(<[u8]>::to_vec);
        }
    }
}
