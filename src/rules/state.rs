//! A state of a machine: its rows in the order in which they are
//! tried. The ends of a line rule out most rows before any regex runs.

use std::sync::OnceLock;

use super::compiled::Compiled;
use super::ends::{PLACES, first_visible, is_indented, place, placed};
use super::entry::Row;
use super::signs::Signs;

/// Most rows that are told apart, one bit each; if a state has more, each row is tried.
const MAX_TOLD: usize = 64;

/// A text that several rows are shown, with what each of them asks of it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The text.
    pub bytes: &'a [u8],
    /// Its first visible byte.
    pub lead: Option<u8>,
    /// Its signs, or those of a text that holds it.
    pub signs: Signs,
}

impl<'a> Shown<'a> {
    /// Looks at a text; `signs`: those of the text, or of one that holds it.
    #[must_use]
    pub fn new(bytes: &'a [u8], signs: Signs) -> Self {
        Self { bytes, lead: first_visible(bytes), signs }
    }
}

/// The rows that are tried in one state.
#[derive(Debug, Default)]
pub struct State {
    rows: Vec<u16>,
    has_loose: bool,
    ends: OnceLock<Box<Ends>>,
}

/// The rows that a line fits, by its first visible byte, by whether it is indented, and by its
/// last byte; and those that it may fit only with blanks behind that last byte.
#[derive(Debug)]
struct Ends {
    /// The rows that a line fits without white space at its beginning, and with it.
    flush: u64,
    indented: u64,
    sets: Sets,
    /// The three of each byte, side by side: a line asks for few bytes, and each is then at hand.
    of: [AtByte; PLACES],
}

/// Sets of rows, one bit each. Few of them differ, so each is kept once.
#[derive(Debug, Default)]
struct Sets(Vec<u64>);

/// The sets of the rows that fit a byte.
#[derive(Clone, Copy, Debug, Default)]
struct AtByte {
    first: u8,
    last: u8,
    padded: u8,
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

    /// Returns the number of the first row that takes `text`. `plain`: nothing begins with
    /// the line, so a loose row may take it. `rows` are all rows of the machine.
    #[must_use]
    pub fn taker(&self, rows: &[Row], text: Shown, plain: bool) -> Option<u16> {
        let may_take = |number: u16| plain || !rows[usize::from(number)].loose;
        let takes = |number: u16| may_take(number) && rows[usize::from(number)].regex.decides(text);
        let takes_padded = |number: u16| may_take(number) && rows[usize::from(number)].regex.takes_padded(text);
        if self.rows.len() > MAX_TOLD {
            let first = |takes: &dyn Fn(u16) -> bool| self.rows.iter().copied().find(|&number| takes(number));
            return first(&takes).or_else(|| first(&takes_padded));
        }
        let ends = self.ends.get_or_init(|| Box::new(Ends::of(&self.rows, rows)));
        let (begin, last) = (ends.beginning_as(text), text.bytes.last().copied());
        let (exact, padded) = ends.ending_with(last);
        self.first(begin & exact, takes).or_else(|| self.first(begin & padded, takes_padded))
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
        let patterns: Vec<&Compiled> = numbers.iter().map(|&number| rows[usize::from(number)].regex.compiled()).collect();
        let those = |fits: &dyn Fn(&Compiled) -> bool| (0..).zip(&patterns).fold(0, |set, (bit, pattern)| set | u64::from(fits(pattern)) << bit);
        let (mut of, mut sets) = ([AtByte::default(); PLACES], Sets::default());
        for byte in placed() {
            of[place(byte)] = AtByte {
                first: sets.add(those(&|row| row.may_begin(byte))),
                last: sets.add(those(&|row| row.may_end(byte))),
                padded: sets.add(those(&|row| row.may_lack_blanks(byte))),
            };
        }
        sets.0.shrink_to_fit();
        Self { flush: those(&|row| row.may_stand(false)), indented: those(&|row| row.may_stand(true)), sets, of }
    }

    /// Returns the rows that a text fits by its beginning. (If there is none, it may have been blanks.)
    fn beginning_as(&self, text: Shown) -> u64 {
        let margin = match text.bytes {
            [] => u64::MAX,
            bytes if is_indented(bytes) => self.indented,
            _ => self.flush,
        };
        self.sets.get(self.of[place(text.lead)].first) & margin
    }

    /// Returns the rows that a text fits by its last byte: as it is, or only with blanks behind it.
    fn ending_with(&self, last: Option<u8>) -> (u64, u64) {
        let at = self.of[place(last)];
        (self.sets.get(at.last), self.sets.get(at.padded))
    }
}

impl Sets {
    /// Returns the index of a set. If there is none left, the last set takes it in: more rows are tried than need be.
    fn add(&mut self, set: u64) -> u8 {
        let is_full = self.0.len() > usize::from(u8::MAX);
        let known = self.0.iter().position(|known| *known == set);
        match (known, self.0.last_mut()) {
            (Some(at), _) => return at as u8,
            (None, Some(last)) if is_full => *last |= set,
            (None, _) => self.0.push(set),
        }
        (self.0.len() - 1) as u8
    }

    fn get(&self, at: u8) -> u64 {
        self.0[usize::from(at)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_is_kept_once_and_one_that_finds_no_room_is_in_the_last() {
        let mut few = Sets::default();
        assert_eq!([5, 2, 5].map(|set| few.add(set)), [0, 1, 0]);
        assert_eq!((few.get(0), few.get(1), few.0.len()), (5, 2, 2));
        let mut many = Sets::default();
        let places: Vec<u8> = (0..256).chain([1 << 40]).map(|set| many.add(set)).collect();
        assert_eq!((many.get(places[0]), many.get(places[254]), many.0.len()), (0, 254, 256));
        assert_eq!([255, 256].map(|at| many.get(places[at])), [1 << 40 | 255; 2]);
    }
}
