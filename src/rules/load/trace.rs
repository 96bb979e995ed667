//! Reads what is a trace's own: its rows, the states between them, and the lines before it.

use super::Reader;
use crate::rules::spec::{BeforeSpec, EntrySpec, RowSpec};
use crate::rules::{Before, Kind, Machine, Row, State, Take};
use crate::words::did_you_mean;

/// Most states of a trace.
const MAX_STATES: usize = 32;
/// The bit of the state `start`, which is the first.
const START: u32 = 1;

impl Reader<'_> {
    pub(super) fn trace(&mut self, spec: &EntrySpec) -> Kind {
        let mut states = vec!["start".to_owned()];
        let rows: Vec<Row> = spec.rows.iter().map(|row| self.row(spec, row, &mut states)).collect();
        if !rows.iter().any(|row| row.from & START != 0) {
            self.problem(&spec.id, "rows", "no row leaves the state `start`", "give one row `from = \"start\"`");
        }
        if self.check {
            self.check_states(spec);
        }
        let before = self.before(spec);
        let stop = self.optional(spec, "stop", spec.stop.as_ref());
        let rows_in = |state: usize| (0..).zip(&rows).filter(|(_, row)| row.from & (1 << state) != 0).map(|(number, _)| number).collect();
        let rows_of = (0..states.len()).map(|state| State::new(rows_in(state), &rows)).collect();
        Kind::Trace(Machine {
            rows,
            rows_of,
            states,
            before,
            stop,
            needs_frame: spec.needs_frame,
            crash_last: spec.crash_last,
            weak: spec.region.is_some(),
            once: spec.once,
            shows_commands: spec.shows_commands,
            shows_records: spec.shows_records,
        })
    }

    fn row(&mut self, spec: &EntrySpec, row: &RowSpec, states: &mut Vec<String>) -> Row {
        let from = row.from.iter().fold(0, |from, name| from | 1 << self.state(spec, states, name));
        let start = from & START != 0;
        // A weak trace is tried on every line of its region, so no literal need lead to it.
        let is_gated = start && spec.region.is_none();
        let regex = if is_gated { self.gated(spec, "rows.regex", &row.regex) } else { self.pattern(spec, "rows.regex", &row.regex) };
        let to = self.state(spec, states, row.to.get());
        for (is_set, key) in [(row.under_record, "rows.under_record"), (row.takes_level, "rows.takes_level")] {
            if is_set && !start {
                self.problem(&row.regex, key, "only what begins a trace can stand under a record", "remove it, or give the row `from = \"start\"`");
            }
        }
        Row {
            from,
            regex,
            to,
            take: row.take,
            shape: row.shape,
            accept: row.accept && !row.loose,
            loose: row.loose,
            under_record: row.under_record,
            takes_level: row.takes_level,
            void: row.void,
        }
    }

    /// Checks the states of a trace: a misspelt state would silently end the trace or never be reached.
    fn check_states(&mut self, spec: &EntrySpec) {
        for row in &spec.rows {
            let to = row.to.get();
            if to != "end" && !spec.rows.iter().any(|row| row.from.iter().any(|from| from == to)) {
                let known: Vec<&str> = spec.rows.iter().flat_map(|row| row.from.iter()).chain(["end"]).collect();
                let mend = did_you_mean(to, &known).unwrap_or_else(|| "give a row `from` this state, or write \"end\"".to_owned());
                self.problem(&row.to, "rows.to", format!("no row begins in the state `{to}`"), mend);
            }
            for from in row.from.iter().filter(|from| *from != "start") {
                if !spec.rows.iter().any(|row| row.to.get() == from) {
                    let known: Vec<&str> = spec.rows.iter().map(|row| row.to.get()).collect();
                    let mend = did_you_mean(from, &known).unwrap_or_else(|| "let a row lead `to` it".to_owned());
                    self.problem(&row.regex, "rows.from", format!("no row leads to the state `{from}`, so this one is never tried"), mend);
                }
            }
        }
    }

    fn state(&mut self, spec: &EntrySpec, states: &mut Vec<String>, name: &str) -> u8 {
        if let Some(known) = states.iter().position(|s| s == name) {
            return known as u8;
        }
        if states.len() == MAX_STATES {
            self.problem(&spec.id, "rows", format!("more than {MAX_STATES} states"), "split the trace");
            return 0;
        }
        states.push(name.to_owned());
        (states.len() - 1) as u8
    }

    /// Reads the lines before the start row or the status line.
    pub(super) fn before(&mut self, spec: &EntrySpec) -> Vec<Before> {
        for unread in spec.before.iter().filter(|b| b.take != Take::Nothing && (spec.rows.is_empty() || matches!(b.take, Take::Frame | Take::Message))) {
            self.problem(&unread.regex, "before.take", "nothing reads this of a look-back line", "a trace takes `exception`, `location` or `text`");
        }
        let read = |b: &BeforeSpec, regex| Before { regex, optional: b.optional, max: b.max, take: b.take };
        spec.before.iter().map(|b| read(b, self.pattern(spec, "before.regex", &b.regex))).collect()
    }
}
