//! One machine that competes for a trace: which rows have taken which lines, and how many lines belong to it.

use super::{Entries, Kind, LeadIn, Line, Machine, TYPICAL_LINES, Take, View};
use crate::rules::{Row, Shown, Signs, State};

/// Maximum number of lines that a machine takes on trial before it gives up.
const MAX_TRIAL_LINES: usize = 60;
/// Maximum number of loose lines after an accepting one; what goes on for longer is no message.
const MAX_LOOSE_LINES: usize = 24;
/// Number of lines after which a machine gives up, even if its rows would
/// take any line: a block that never ends must not hide what follows forever.
pub const MAX_SEEN_LINES: usize = 20_000;
/// Row number of a line that no row of the machine took: a look-back
/// line, or the line that a log record put before the trace.
pub(super) const NO_ROW: u16 = u16::MAX;

/// One machine that competes for a trace.
#[derive(Clone, Debug)]
pub(super) struct Rival {
    pub(super) entry: u16,
    state: u8,
    pub(super) alive: bool,
    /// The row that took each kept line.
    pub(super) rows: Vec<u16>,
    /// Number of lines seen.
    pub(super) seen: usize,
    /// Number of lines up to and including the last accepting one.
    pub(super) accepted: usize,
    /// Number of that line in the stream.
    pub(super) accepted_num: u64,
    pub(super) has_frame: bool,
    /// Whether frames came last, and the exception that follows them has not come yet.
    pub(super) is_unnamed: bool,
    /// Loose lines since the last accepting one, up to the last that is not blank:
    /// the number of lines seen with them, and the number of that line in the stream.
    loose: Option<(usize, u64)>,
    /// Whether a line has shown that this is no error of its own.
    pub(super) is_void: bool,
}

pub(super) fn machine(entries: &Entries, entry: u16) -> Option<&Machine> {
    match &entries[usize::from(entry)].kind {
        Kind::Trace(machine) => Some(machine),
        _ => None,
    }
}

/// Returns the first row of `machine` that takes `text` in `state`. `plain`: nothing begins with the text, so a loose row may take it.
fn step(machine: &Machine, state: u8, text: Shown, plain: bool) -> Option<u16> {
    machine.rows_of.get(usize::from(state))?.taker(&machine.rows, text, plain)
}

/// Returns the row with which `machine`, that of `entry`, begins at the
/// part of `line` that `view` shows. The line remembers the answer.
#[must_use]
pub fn start_row<'m>(machine: &'m Machine, entry: u16, line: &Line, view: View) -> Option<&'m Row> {
    let number = start_number(machine, entry, line, view)?;
    machine.rows.get(usize::from(number))
}

fn start_number(machine: &Machine, entry: u16, line: &Line, view: View) -> Option<u16> {
    let part = view.of(line);
    line.start(entry, line.text.len() - part.len(), || step(machine, 0, Shown::new(part, line.signs()), false))
}

/// Returns what precedes the head in the part of `line` that `view` shows:
/// the shortest group `pre` of the rows with which the machines `rivals` take it.
#[must_use]
pub fn lead_in(entries: &Entries, rivals: &[u16], line: &Line, view: View) -> LeadIn {
    let head = view.of(line);
    let row = |entry: u16| machine(entries, entry).and_then(|machine| start_row(machine, entry, line, view)).filter(|row| row.regex.has_pre());
    let mut rows = rivals.iter().filter_map(|&entry| row(entry)).peekable();
    if rows.peek().is_none() || !LeadIn::may_begin(head) {
        return LeadIn::default();
    }
    // A machine that knows less of the head takes more of it for what precedes it.
    rows.filter_map(|row| LeadIn::new(row.regex.groups(head)?.name("pre")?)).min_by_key(LeadIn::len).unwrap_or_default()
}

/// Whether `machine` can begin with `text`.
#[must_use]
pub fn starts(machine: &Machine, text: &[u8]) -> bool {
    step(machine, 0, Shown::new(text, Signs::of(text)), false).is_some()
}

/// Makes room for the rows of a typical trace, the first `lead` lines of which have no row.
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

    /// Takes the line with which the machine begins.
    pub(super) fn begin(&mut self, entries: &Entries, line: &Line, view: View) {
        let Some(machine) = machine(entries, self.entry) else { return };
        let number = start_number(machine, self.entry, line, view);
        self.alive = number.is_some_and(|number| self.go_on(machine, number, view.of(line), line.place.num));
    }

    /// Takes the line if a row does. `repeats`: the head says the same.
    pub(super) fn advance(&mut self, entries: &Entries, text: Shown, num: u64, plain: bool, repeats: bool) -> bool {
        let Some(machine) = machine(entries, self.entry) else { return false };
        if self.seen >= MAX_SEEN_LINES {
            return false;
        }
        let Some(number) = step(machine, self.state, text, plain) else { return false };
        // No error is its own cause: this is the same error a second time.
        let comes_again = repeats && self.has_frame && machine.rows[usize::from(number)].take == Take::Exception;
        !comes_again && self.go_on(machine, number, text.bytes, num)
    }

    /// Takes the line with row `number`, unless that ends the trace.
    fn go_on(&mut self, machine: &Machine, number: u16, text: &[u8], num: u64) -> bool {
        let row = &machine.rows[usize::from(number)];
        // A frame of its own is not the head of another trace.
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

    /// Accepts the loose lines so far: the error is over, and they were its own.
    pub(super) fn keep_loose(&mut self) {
        if let Some((seen, num)) = self.loose.take() {
            (self.accepted, self.accepted_num) = (seen, num);
        }
    }
}
