//! One machine that competes for a trace: which rows have taken which lines, and how far they belong to it.

use super::{Entries, Kind, LeadIn, Machine, TYPICAL_LINES, Take};
use crate::rules::first_visible;

/// Most lines that a machine takes on trial before it gives up.
const MAX_TRIAL_LINES: usize = 60;
/// Most loose lines after an accepting one: what goes on for longer is no message.
const MAX_LOOSE_LINES: usize = 24;
/// A machine gives up after so many lines, even if its rows would take any line: a block whose end
/// never comes must not hide what follows it for ever.
pub const MAX_SEEN_LINES: usize = 20_000;
/// Row number of a line that no row of the machine took: look-back, or the line that a log record
/// put before the trace.
pub(super) const NO_ROW: u16 = u16::MAX;

/// One machine that competes for a trace.
#[derive(Clone, Debug)]
pub(super) struct Rival {
    pub(super) entry: u16,
    state: u8,
    pub(super) alive: bool,
    /// Row that took each line that is kept.
    pub(super) rows: Vec<u16>,
    /// Lines seen.
    pub(super) seen: usize,
    /// Lines up to and including the last accepting one.
    pub(super) accepted: usize,
    /// Number of that line in the stream.
    pub(super) accepted_num: u64,
    pub(super) has_frame: bool,
    /// Frames came last, and the exception, which comes behind them, has not.
    pub(super) is_unnamed: bool,
    /// Loose lines since the last accepting one, up to the last that says something: how many lines there are with
    /// them, and the number of that line.
    loose: Option<(usize, u64)>,
    /// A line has told that this is no error of its own.
    pub(super) is_void: bool,
}

pub(super) fn machine(entries: &Entries, entry: u16) -> Option<&Machine> {
    match &entries[usize::from(entry)].kind {
        Kind::Trace(machine) => Some(machine),
        _ => None,
    }
}

/// The first row of `machine` that takes `text` in `state`; `plain`: nothing begins with it, so a loose row may.
fn step(machine: &Machine, state: u8, text: &[u8], plain: bool) -> Option<usize> {
    let lead = first_visible(text);
    let rows = machine.rows_of.get(usize::from(state))?;
    let mut rows = rows.iter().map(|&row| usize::from(row));
    rows.find(|&row| (plain || !machine.rows[row].loose) && machine.rows[row].regex.is_match_from(text, lead))
}

/// What `head` stands behind: group `pre` of the row with which one of the machines `rivals` takes it.
#[must_use]
pub fn lead_in(entries: &Entries, rivals: &[u16], head: &[u8]) -> LeadIn {
    if !LeadIn::may_begin(head) {
        return LeadIn::default();
    }
    let pre = |entry: u16| {
        let machine = machine(entries, entry).filter(|machine| machine.rows_of.first().is_some_and(|rows| rows.iter().any(|&row| has_pre(machine, row))))?;
        let row = &machine.rows[step(machine, 0, head, false)?];
        LeadIn::new(row.regex.groups(head)?.name("pre")?)
    };
    rivals.iter().find_map(|&entry| pre(entry)).unwrap_or_default()
}

fn has_pre(machine: &Machine, row: u16) -> bool {
    machine.rows[usize::from(row)].regex.has_pre()
}

/// Whether `machine` can begin with `text`.
#[must_use]
pub fn starts(machine: &Machine, text: &[u8]) -> bool {
    step(machine, 0, text, false).is_some()
}

/// Whether a record right before `text` belongs to the trace that `machine` begins with it.
#[must_use]
pub fn starts_under_record(machine: &Machine, text: &[u8]) -> bool {
    step(machine, 0, text, false).is_some_and(|row| machine.rows[row].under_record)
}

/// Room for the rows of a usual trace, of which `lead` lines are none's.
fn rows(lead: usize) -> Vec<u16> {
    let mut rows = Vec::with_capacity(lead + TYPICAL_LINES);
    rows.resize(lead, NO_ROW);
    rows
}

impl Rival {
    pub(super) fn new(entry: u16, lead: usize) -> Self {
        Self {
            entry,
            state: 0,
            alive: true,
            rows: rows(lead),
            seen: lead,
            accepted: 0,
            accepted_num: 0,
            has_frame: false,
            is_unnamed: false,
            loose: None,
            is_void: false,
        }
    }

    /// Takes the line if a row does.
    pub(super) fn advance(&mut self, entries: &Entries, text: &[u8], num: u64, plain: bool) -> bool {
        let Some(machine) = machine(entries, self.entry) else { return false };
        if self.seen >= MAX_SEEN_LINES {
            return false;
        }
        let Some(number) = step(machine, self.state, text, plain) else { return false };
        let row = &machine.rows[number];
        // A frame of its own is no other's head.
        if row.take != Take::Frame && self.accepted > 0 && machine.stop.as_ref().is_some_and(|stop| stop.is_match(text)) {
            return false;
        }
        self.state = row.to;
        self.take(number as u16);
        self.has_frame |= row.take == Take::Frame;
        self.is_void |= row.void;
        self.is_unnamed = match row.take {
            Take::Frame => machine.crash_last,
            Take::Exception => false,
            _ => self.is_unnamed,
        };
        if row.accept {
            self.accept(num);
        } else if row.loose && !text.trim_ascii().is_empty() {
            self.loose = Some((self.seen, num));
        }
        self.seen - self.accepted <= MAX_TRIAL_LINES
    }

    /// Whether what it has taken so far is an error.
    pub(super) fn makes_an_event(&self, entries: &Entries) -> bool {
        self.accepted > 0 && (self.has_frame || machine(entries, self.entry).is_none_or(|machine| !machine.needs_frame))
    }

    pub(super) fn take(&mut self, row: u16) {
        self.seen += 1;
        self.rows.push(row);
    }

    pub(super) fn accept(&mut self, num: u64) {
        self.accepted = self.seen;
        self.accepted_num = num;
        self.loose = None;
    }

    /// Whether a loose row may take the next line.
    pub(super) fn may_be_loose(&self, entries: &Entries) -> bool {
        let Some(machine) = machine(entries, self.entry).filter(|_| self.alive && self.seen - self.accepted < MAX_LOOSE_LINES) else { return false };
        machine.rows_of.get(usize::from(self.state)).is_some_and(|rows| rows.iter().any(|&row| machine.rows[usize::from(row)].loose))
    }

    /// Whether its last lines are loose ones.
    pub(super) fn is_loose(&self) -> bool {
        self.loose.is_some()
    }

    /// The error is over: the loose lines before were its own.
    pub(super) fn keep_loose(&mut self) {
        if let Some((seen, num)) = self.loose.take() {
            (self.accepted, self.accepted_num) = (seen, num);
        }
    }
}
