//! What precedes the lines of a trace, beyond what `decode` has removed: a lead-in that the head and the
//! other lines share (a tag, a quote mark), or the stamps of a logger that was given the trace line by line.

use super::rival::{machine, starts};
use super::stamp::{self, Stamp};
use super::{Entries, Line, OpenTrace, Prefix, Timestamp, View};
use crate::core::{decode, leadin};

impl OpenTrace {
    /// Whether its further lines have as many times and levels before them as the
    /// head: a collector's stamp, and no logger's record that only the head begins.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        let Some(next) = self.lines.from(self.lead + 1).next() else { return false };
        let Prefix { shaped, times, levels, .. } = decode::prefix(next.text, self.opened_at);
        shaped && (times, levels) == (self.prefix.times, self.prefix.levels)
    }

    /// Whether `line`, of which `part` is the text, comes after the trace although it may read like one
    /// of its lines: its writer had paused, or the trace ends with a bare name and is indented deeper.
    #[must_use]
    pub fn is_past(&self, line: &Line, part: &[u8]) -> bool {
        let last = self.lines.get(self.lines.len() - 1);
        let indent = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let is_bare = || !last.part.trim_ascii().contains(&b' ') && !part.trim_ascii().is_empty();
        let paused = |time: Timestamp| decode::prefix(last.text, self.opened_at).time.is_some_and(|last| !stamp::is_near(time, last));
        indent(part) < indent(self.head().part) && is_bare() || line.prefix().time.is_some_and(paused)
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

    /// Whether `line` is the next record of its writer and has the same stamp as the head, not much later.
    #[must_use]
    pub fn is_stamped_alike(&self, line: &Line) -> bool {
        let (head, own, other) = (self.head(), self.prefix, line.prefix());
        let stamp = &head.text[..own.message.min(head.text.len())];
        let is_alike = || match (own.time, other.time) {
            (Some(time), Some(other)) => stamp::is_near(time, other) && leadin::strip(stamp, line.text).is_some(),
            // The words of a clock without a date are compared, fractions included.
            (None, None) => line.text.starts_with(stamp),
            _ => false,
        };
        own.times > 0 && (own.times, own.levels, own.level) == (other.times, other.levels, other.level) && head.place.level == line.place.level && is_alike()
    }

    /// Whether `restamped`, a line without its stamp and the length of that, may follow the record that the
    /// trace has adopted: that record must have the same stamp, to the last word, if only this shows that it is the head.
    #[must_use]
    pub fn proves_head(&self, restamped: Option<(&[u8], usize)>) -> bool {
        let (Some(stamp), Some(single)) = (&self.stamp, &self.adopted) else { return false };
        restamped.is_some_and(|(_, length)| stamp.precedes(length, single.head().text))
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
        self.unproven &= !belongs;
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
            let head = self.lead.min(self.lines.len() - 1);
            // It may stand before the head's stamp, and so is cut off already.
            if self.lead_in.strip(self.lines.get(head).part).is_some() {
                self.lines.shorten(head, self.lead_in.len());
            }
            self.name_writer();
        }
    }

    pub(super) fn name_writer(&mut self) {
        if self.key.is_none() {
            self.key = self.lead_in.name().map(<[u8]>::to_vec);
        }
    }
}
