//! Stage two: what does a candidate line begin? Asks the entries that its literals lead to, cheapest test first: the
//! level tag, whether the line is displayed source code, the entry's own regex, and only after a match the noise and
//! the cancels. It decides per hit: an entry counts if at least one of its literals in the text is not cancelled.

use std::cell::OnceCell;
use std::ops::Range;

use super::engine::{Candidate, Engine};
use super::line::{Line, View};
use super::shown;
use super::trace::start_row;
use super::word_gate::Maybe;
use crate::rules::{Entry, FactKind, Kind, Pattern, Region, Shown, Table};
use crate::words::Level;

/// Minimum number of entries that may be asked of any line.
const MIN_ASKED: usize = 64;
/// Maximum number of bytes that the entries of one line read together; beyond it, no more
/// than [`MIN_ASKED`] are asked. Lines of 64 KiB leave room for all built-in entries.
const MAX_ASKED_BYTES: usize = 64 << 20;

/// Longest line that is also read after a quote mark, in bytes.
const MAX_QUOTED_BYTES: usize = 4 << 10;

/// An entry that a line confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Index of the entry.
    pub entry: u16,
    /// Part of the line in which it matched.
    pub view: View,
}

impl Found {
    /// Returns what the status line is about: group `key` of its regex.
    #[must_use]
    pub fn key(&self, engine: &Engine, line: &Line) -> Option<Vec<u8>> {
        let Kind::Note(note) = &engine.rules.entries[usize::from(self.entry)].kind else { return None };
        note.regex.key(self.view.of(line))
    }
}

/// Why an entry that was asked does not count; `explain` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The line's level says that it is not an error.
    Level(Level),
    /// The line is displayed source code.
    Code,
    /// The regex does not match.
    Regex,
    /// The line is noise.
    Noise,
    /// A cancel covers every literal of it.
    Cancelled,
}

/// The checks of one line.
pub struct Confirm<'a> {
    engine: &'a Engine,
    line: &'a Line<'a>,
    candidates: &'a [Candidate],
    /// The tables of the entries that the literals lead to, one bit each: most questions are about none of them.
    tables: u8,
    asked: usize,
    unasked: Option<u16>,
}

/// Answers about a line that are found only once, whoever asks.
#[derive(Clone, Debug, Default)]
pub struct Known {
    is_code: OnceCell<bool>,
    maybe: OnceCell<Maybe>,
    is_noise: OnceCell<bool>,
    cancelled: OnceCell<Vec<Range<usize>>>,
}

impl<'a> Confirm<'a> {
    /// Prepares the checks; decides nothing yet.
    #[must_use]
    pub fn new(engine: &'a Engine, line: &'a Line<'a>, candidates: &'a [Candidate]) -> Self {
        let mut confirm = Self { engine, line, candidates, tables: 0, asked: 0, unasked: None };
        confirm.tables = confirm.entries().fold(0, |all, entry| all | bit(confirm.entry(entry).kind.table()));
        confirm
    }

    /// Returns the entries that the line's literals lead to.
    #[must_use]
    pub fn candidates(&self) -> &'a [Candidate] {
        self.candidates
    }

    /// Returns the entry by which the line is a border.
    pub fn border(&mut self) -> Option<u16> {
        self.first(&[Table::Border], |_| true).map(|found| found.entry)
    }

    /// Returns the entry of the noise block that the line opens, and how many lines the block may take.
    pub fn noise_block(&mut self) -> Option<(u16, u32)> {
        let found = self.first(&[Table::Noise], |kind| matches!(kind, Kind::Noise { block: Some(_), .. }))?;
        match &self.entry(found.entry).kind {
            Kind::Noise { block: Some((_, lines)), .. } => Some((found.entry, *lines)),
            _ => None,
        }
    }

    /// Returns the region that the line opens, and the part of the line that does so.
    pub fn region(&mut self) -> Option<(u16, &'a Region, View)> {
        let found = self.first(&[Table::Region], |_| true)?;
        match &self.entry(found.entry).kind {
            Kind::Region(region) => Some((found.entry, region, found.view)),
            _ => None,
        }
    }

    /// Returns the traces that can begin here, and the part of the line that they see.
    pub fn starts(&mut self) -> (Vec<u16>, View) {
        let Some(first) = self.first(&[Table::Trace], |kind| matches!(kind, Kind::Trace(machine) if !machine.weak)) else { return (Vec::new(), View::Text) };
        let mut rivals = vec![first.entry];
        for entry in self.entries_after(first.entry) {
            let Kind::Trace(machine) = &self.entry(entry).kind else { break };
            if !machine.weak && start_row(machine, entry, self.line, first.view).is_some() && self.verdict(entry) == Ok(first.view) {
                rivals.push(entry);
            }
        }
        (rivals, first.view)
    }

    /// Returns the traces that can begin after a quote mark or a logger's
    /// words, and where: the first position with the most traces.
    #[must_use]
    pub fn quoted_starts(&self) -> (Vec<u16>, View) {
        let mut best = (Vec::new(), View::Text);
        // Most lines lead to no trace at all.
        let traces = || self.entries().filter(|&entry| matches!(&self.entry(entry).kind, Kind::Trace(machine) if !machine.weak));
        if self.line.text.len() > MAX_QUOTED_BYTES || self.tables & bit(Table::Trace) == 0 || traces().next().is_none() {
            return best;
        }
        for from in self.line.inner_starts() {
            let found: Vec<u16> = traces().filter(|&entry| self.begins_at(entry, from)).collect();
            if found.len() > best.0.len() {
                best = (found, View::Quoted(from));
            }
        }
        best
    }

    fn begins_at(&self, index: u16, from: usize) -> bool {
        let entry = self.entry(index);
        let Kind::Trace(machine) = &entry.kind else { return false };
        self.check_level(entry).is_ok()
            && (entry.code || !self.is_code())
            && start_row(machine, index, self.line, View::Quoted(from)).is_some()
            && self.has_open_hit(index, from)
            && !self.is_noise()
    }

    /// Returns the entry by which the line is a status line.
    pub fn note(&mut self) -> Option<Found> {
        self.first(&[Table::Note], |_| true)
    }

    /// Returns the entry by which the line is an error by itself.
    pub fn rule(&mut self) -> Option<Found> {
        self.first(&[Table::Rule, Table::Fact], |kind| matches!(kind, Kind::Rule(_) | Kind::Fact(FactKind::Level | FactKind::Warning)))
    }

    /// Returns the first entry that was not asked because the line had used up its
    /// limit. What this entry and those after it would have said is not known.
    #[must_use]
    pub fn unasked(&self) -> Option<u16> {
        self.unasked
    }

    /// Returns every entry that the literals lead to, once, in the order in which they are asked.
    pub fn entries(&self) -> impl Iterator<Item = u16> + use<'a> {
        let candidates = self.candidates;
        (0..candidates.len()).filter(move |&i| i == 0 || candidates[i].entry != candidates[i - 1].entry).map(move |i| candidates[i].entry)
    }

    fn entries_after(&self, entry: u16) -> impl Iterator<Item = u16> + use<'a> {
        self.entries().filter(move |&other| other > entry)
    }

    fn entry(&self, entry: u16) -> &'a Entry {
        &self.engine.rules.entries[usize::from(entry)]
    }

    /// Returns the first of the entries in `tables` that is `wanted` and that the line confirms.
    fn first(&mut self, tables: &[Table], wanted: impl Fn(&Kind) -> bool) -> Option<Found> {
        let asked = tables.iter().fold(0, |all, table| all | bit(*table));
        if self.tables & asked == 0 {
            return None;
        }
        for entry in self.entries() {
            let kind = &self.entry(entry).kind;
            if bit(kind.table()) & asked == 0 || !wanted(kind) {
                continue;
            }
            if self.asked >= MIN_ASKED && self.asked * self.line.text.len() >= MAX_ASKED_BYTES {
                self.unasked.get_or_insert(entry);
                return None;
            }
            self.asked += 1;
            if let Ok(view) = self.verdict(entry) {
                return Some(Found { entry, view });
            }
        }
        None
    }

    /// Returns the part of the line in which the entry counts.
    ///
    /// # Errors
    /// Why the entry does not count.
    pub fn verdict(&self, index: u16) -> Result<View, Rejected> {
        let entry = self.entry(index);
        self.check_level(entry)?;
        if !entry.code && self.may_be_shown(entry) && self.is_code() {
            return Err(Rejected::Code);
        }
        let view = self.matching_view(index, entry)?;
        if matches!(entry.kind, Kind::Border(_) | Kind::Noise { .. } | Kind::Region(_)) {
            return Ok(view);
        }
        if self.is_noise() && !self.takes_back(index, entry, view) {
            return Err(Rejected::Noise);
        }
        Ok(view)
    }

    /// Whether the entry takes back with this line what a runner told of a test: the line is no error in any case.
    fn takes_back(&self, index: u16, entry: &Entry, view: View) -> bool {
        matches!(&entry.kind, Kind::Trace(machine) if machine.once && start_row(machine, index, self.line, view).is_some_and(|row| row.void))
    }

    fn check_level(&self, entry: &Entry) -> Result<(), Rejected> {
        if matches!(entry.kind, Kind::Border(_) | Kind::Region(_) | Kind::Noise { .. }) {
            return Ok(());
        }
        let level = self.line.prefix().level;
        match level {
            Some(level @ (Level::Trace | Level::Debug)) => Err(Rejected::Level(level)),
            Some(level @ (Level::Info | Level::Warn)) if entry.generic || entry.leveled => Err(Rejected::Level(level)),
            Some(Level::Warn) if !matches!(entry.kind, Kind::Fact(_)) && self.warns() => Err(Rejected::Level(Level::Warn)),
            _ => Ok(()),
        }
    }

    /// Whether a logger's record states that it is a warning, by a letter, a number or a name before the
    /// word: whatever it reports, the program goes on. If the word begins the text, as it also does in
    /// reports that are no records, the noise rules decide. Redis's mark (`#`) says only that a line matters.
    fn warns(&self) -> bool {
        let body = self.line.body();
        let word = body.strip_prefix(b"[").unwrap_or(body).get(..4);
        let before = &self.line.text[..self.line.text.len() - body.len()];
        let told = word.is_some_and(|word| word.eq_ignore_ascii_case(b"warn")) || before.trim_ascii_end().ends_with(b"#");
        self.line.prefix().times > 0 && !told
    }

    /// Whether the line may be displayed source code. Code has no time
    /// stamp: a level after one is the line's own, whatever code it quotes.
    fn may_be_shown(&self, entry: &Entry) -> bool {
        match entry.kind {
            Kind::Rule(_) | Kind::Trace(_) => true,
            Kind::Fact(_) => self.line.prefix().time.is_none(),
            _ => false,
        }
    }

    fn is_code(&self) -> bool {
        *self.line.known.is_code.get_or_init(|| shown::reads_as_code(self.line.body(), self.line.signs()))
    }

    fn is_noise(&self) -> bool {
        *self.line.known.is_noise.get_or_init(|| self.engine.is_noise(self.line, self.maybe()))
    }

    fn maybe(&self) -> &Maybe {
        self.line.known.maybe.get_or_init(|| self.engine.maybe(self.line, self.line.signs()))
    }

    fn matching_view(&self, index: u16, entry: &Entry) -> Result<View, Rejected> {
        let prefix = self.line.prefix();
        let first = (entry.whole && prefix.body > 0).then_some((View::Text, 0));
        let after_writer = || self.line.after_writer().map(|text| (View::AfterWriter, self.line.text.len() - text.len()));
        let tagged = (prefix.message > prefix.body).then_some((View::Message, prefix.message));
        let body = Some((View::Body, prefix.body));
        // A CI runner glues its tag to what a tool has printed: `##[error]src/cart.c:3:5: …`.
        let (one, other) = if self.line.body().starts_with(b"##[") { (tagged, body) } else { (body, tagged) };
        let padded = || self.line.padded().map(|text| (View::Padded, self.line.text.len() - text.len()));
        let others = std::iter::once_with(after_writer).chain(std::iter::once_with(padded)).flatten();
        let views = first.into_iter().chain(one).chain(other).chain(others);
        let mut rejected = Rejected::Regex;
        for (view, from) in views {
            if !self.matches(index, entry, view) {
                continue;
            }
            // A cancel says that a hit is no error; the other kinds are none anyway.
            let is_error = matches!(entry.kind, Kind::Trace(_) | Kind::Note(_) | Kind::Rule(_)) && !self.takes_back(index, entry, view);
            if !is_error || self.has_open_hit(index, from) {
                return Ok(view);
            }
            rejected = Rejected::Cancelled;
        }
        Err(rejected)
    }

    fn matches(&self, index: u16, entry: &Entry, view: View) -> bool {
        let level = self.line.prefix().level;
        let regex: &Pattern = match &entry.kind {
            Kind::Border(regex) | Kind::Noise { regex, .. } | Kind::Rule(regex) => regex,
            Kind::Region(region) => &region.open,
            Kind::Note(note) => &note.regex,
            Kind::Trace(machine) => return start_row(machine, index, self.line, view).is_some(),
            Kind::Fact(FactKind::Level) => return level.is_some_and(|level| level >= Level::Error),
            Kind::Fact(FactKind::Warning) => return level == Some(Level::Warn),
            Kind::Fact(_) => return false,
        };
        let text = Shown::new(view.of(self.line), self.line.signs());
        // A line has lost the blanks at its end, for which an error's pattern may ask.
        regex.takes(text) || matches!(entry.kind, Kind::Rule(_)) && regex.takes_padded(text)
    }

    /// Whether one of the entry's literals is in the part of the line that begins at `from`, and no cancel covers it.
    fn has_open_hit(&self, index: u16, from: usize) -> bool {
        self.candidates.iter().filter(|c| c.entry == index && c.at as usize + usize::from(c.len) > from).any(|c| {
            // A literal may end with blanks that the line has lost.
            let (at, end) = (c.at as usize, (c.at as usize + usize::from(c.len)).min(self.line.text.len()));
            !self.cancelled().iter().any(|cancelled| cancelled.start <= at && end <= cancelled.end)
        })
    }

    fn cancelled(&self) -> &[Range<usize>] {
        self.line.known.cancelled.get_or_init(|| self.engine.cancelled(self.line, self.maybe()))
    }
}

/// Returns the bit of a table.
fn bit(table: Table) -> u8 {
    1 << table as u8
}
