//! A state of a machine: its rows in the order in which they are
//! tried. The ends of a line rule out most rows before any regex runs.

use std::sync::OnceLock;

use super::entry::Row;

/// Most rows that are told apart, one bit each; if a state has more, each row is tried.
const MAX_TOLD: usize = 64;
/// The values of a byte, followed by one for "no byte".
const PLACES: usize = 257;

/// The rows that are tried in one state.
#[derive(Debug, Default)]
pub struct State {
    rows: Vec<u16>,
    has_loose: bool,
    ends: OnceLock<Box<Ends>>,
}

/// For each byte, the rows that a line fits with that byte as its first visible byte, or
/// as its last byte; and those that it may fit only with blanks behind that last byte.
#[derive(Debug)]
struct Ends {
    first: [u64; PLACES],
    last: [u64; PLACES],
    padded: [u64; PLACES],
}

fn place(byte: Option<u8>) -> usize {
    byte.map_or(PLACES - 1, usize::from)
}

impl State {
    /// Makes the state in which the rows with these `numbers` are tried.
    #[must_use]
    pub fn new(numbers: Vec<u16>, rows: &[Row]) -> Self {
        let has_loose = numbers.iter().any(|&number| rows[usize::from(number)].loose);
        Self { rows: numbers, has_loose, ends: OnceLock::new() }
    }

    /// Whether one of the rows is loose.
    #[must_use]
    pub fn has_loose(&self) -> bool {
        self.has_loose
    }

    /// Returns the number of the first row that takes `text`, whose first visible byte is `lead`. `plain`:
    /// nothing begins with the line, so a loose row may take it. `rows` are all rows of the machine.
    #[must_use]
    pub fn taker(&self, rows: &[Row], text: &[u8], lead: Option<u8>, plain: bool) -> Option<u16> {
        let may_take = |number: u16| plain || !rows[usize::from(number)].loose;
        let takes = |number: u16| may_take(number) && rows[usize::from(number)].regex.decides(text);
        let takes_padded = |number: u16| may_take(number) && rows[usize::from(number)].regex.is_match_padded(text);
        if self.rows.len() > MAX_TOLD {
            let first = |takes: &dyn Fn(u16) -> bool| self.rows.iter().copied().find(|&number| takes(number));
            return first(&takes).or_else(|| first(&takes_padded));
        }
        let ends = self.ends.get_or_init(|| Box::new(Ends::of(&self.rows, rows)));
        let (begin, last) = (ends.first[place(lead)], place(text.last().copied()));
        self.first(begin & ends.last[last], takes).or_else(|| self.first(begin & ends.padded[last], takes_padded))
    }

    /// Returns the first of the rows with the bits `fit` that takes a text.
    fn first(&self, mut fit: u64, takes: impl Fn(u16) -> bool) -> Option<u16> {
        while fit != 0 {
            let number = self.rows[fit.trailing_zeros() as usize];
            if takes(number) {
                return Some(number);
            }
            fit &= fit - 1;
        }
        None
    }
}

impl Ends {
    fn of(numbers: &[u16], rows: &[Row]) -> Self {
        let mut ends = Self { first: [0; PLACES], last: [0; PLACES], padded: [0; PLACES] };
        for (bit, &number) in numbers.iter().enumerate() {
            let regex = &rows[usize::from(number)].regex;
            for byte in (0..=u8::MAX).map(Some).chain([None]) {
                ends.first[place(byte)] |= u64::from(regex.may_begin(byte)) << bit;
                ends.last[place(byte)] |= u64::from(regex.may_end(byte)) << bit;
                ends.padded[place(byte)] |= u64::from(regex.may_lack_blanks(byte)) << bit;
            }
        }
        ends
    }
}
