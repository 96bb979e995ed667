//! One machine that competes for a trace: which rows have taken which lines, and how far they belong to it.

use super::{Entries, Kind, LeadIn, Line, Machine, TYPICAL_LINES, Take, View};
use crate::rules::{Row, State, first_visible};

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

/// The first row of `machine` that takes `text` in `state`, whose first visible byte is `lead`; `plain`: nothing begins with
/// it, so a loose row may.
fn step(machine: &Machine, state: u8, text: &[u8], lead: Option<u8>, plain: bool) -> Option<u16> {
    machine.rows_of.get(usize::from(state))?.taker(&machine.rows, text, lead, plain)
}

/// The row with which `machine`, that of `entry`, begins at the part of `line` that `view` shows. What was asked of a line
/// once, the line remembers.
#[must_use]
pub fn start_row<'m>(machine: &'m Machine, entry: u16, line: &Line, view: View) -> Option<&'m Row> {
    let number = start_number(machine, entry, line, view)?;
    machine.rows.get(usize::from(number))
}

fn start_number(machine: &Machine, entry: u16, line: &Line, view: View) -> Option<u16> {
    let part = view.of(line);
    line.start(entry, line.text.len() - part.len(), || step(machine, 0, part, first_visible(part), false))
}

/// What the head stands behind in the part of `line` that `view` shows: group `pre` of the row with which one of the
/// machines `rivals` takes it.
#[must_use]
pub fn lead_in(entries: &Entries, rivals: &[u16], line: &Line, view: View) -> LeadIn {
    let head = view.of(line);
    let row = |entry: u16| machine(entries, entry).and_then(|machine| start_row(machine, entry, line, view)).filter(|row| row.regex.has_pre());
    let mut rows = rivals.iter().filter_map(|&entry| row(entry)).peekable();
    if rows.peek().is_none() || !LeadIn::may_begin(head) {
        return LeadIn::default();
    }
    rows.find_map(|row| LeadIn::new(row.regex.groups(head)?.name("pre")?)).unwrap_or_default()
}

/// Whether `machine` can begin with `text`.
#[must_use]
pub fn starts(machine: &Machine, text: &[u8]) -> bool {
    step(machine, 0, text, first_visible(text), false).is_some()
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

    /// Takes the line with which it begins.
    pub(super) fn begin(&mut self, entries: &Entries, line: &Line, view: View) {
        let Some(machine) = machine(entries, self.entry) else { return };
        let number = start_number(machine, self.entry, line, view);
        self.alive = number.is_some_and(|number| self.go_on(machine, number, view.of(line), line.place.num));
    }

    /// Takes the line, whose first visible byte is `lead`, if a row does. `repeats`: the head says the same.
    pub(super) fn advance(&mut self, entries: &Entries, (text, lead): (&[u8], Option<u8>), num: u64, plain: bool, repeats: bool) -> bool {
        let Some(machine) = machine(entries, self.entry) else { return false };
        if self.seen >= MAX_SEEN_LINES {
            return false;
        }
        let Some(number) = step(machine, self.state, text, lead, plain) else { return false };
        // No error is its own cause: it came a second time.
        let comes_again = repeats && self.has_frame && machine.rows[usize::from(number)].take == Take::Exception;
        !comes_again && self.go_on(machine, number, text, num)
    }

    /// Takes the line with row `number`, unless that ends the trace.
    fn go_on(&mut self, machine: &Machine, number: u16, text: &[u8], num: u64) -> bool {
        let row = &machine.rows[usize::from(number)];
        // A frame of its own is no other's head.
        if row.take != Take::Frame && self.accepted > 0 && machine.stop.as_ref().is_some_and(|stop| stop.is_match(text)) {
            return false;
        }
        self.state = row.to;
        self.take(number);
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
        if !self.alive || self.seen - self.accepted >= MAX_LOOSE_LINES {
            return false;
        }
        let Some(machine) = machine(entries, self.entry) else { return false };
        machine.rows_of.get(usize::from(self.state)).is_some_and(State::has_loose)
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
