//! A state of a machine: its rows in the order in which they are
//! tried. The ends of a line rule out most rows before any regex runs.

use std::sync::OnceLock;

use super::ends::{PLACES, first_visible, is_indented, place, placed};
use super::entry::Row;
use super::pattern::Pattern;
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
    first: ByByte,
    flush: u64,
    indented: u64,
    last: ByByte,
    padded: ByByte,
}

/// A set of rows, one bit each, for each byte. Few of the sets differ, so each is kept once.
#[derive(Debug)]
struct ByByte {
    which: [u8; PLACES],
    sets: Vec<u64>,
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
        self.first(begin & ends.last.of(last), takes).or_else(|| self.first(begin & ends.padded.of(last), takes_padded))
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
        let by = |fits: fn(&Pattern, Option<u8>) -> bool| {
            ByByte::new(|byte| numbers.iter().enumerate().fold(0, |set, (bit, &number)| set | u64::from(fits(&rows[usize::from(number)].regex, byte)) << bit))
        };
        let standing =
            |indented: bool| (0..).zip(numbers).fold(0, |set, (bit, &number)| set | u64::from(rows[usize::from(number)].regex.may_stand(indented)) << bit);
        let (flush, indented) = (standing(false), standing(true));
        Self { first: by(Pattern::may_begin), flush, indented, last: by(Pattern::may_end), padded: by(Pattern::may_lack_blanks) }
    }

    /// Returns the rows that a text fits by its beginning. (If there is none, it may have been blanks.)
    fn beginning_as(&self, text: Shown) -> u64 {
        let margin = match text.bytes {
            [] => u64::MAX,
            bytes if is_indented(bytes) => self.indented,
            _ => self.flush,
        };
        self.first.of(text.lead) & margin
    }
}

impl ByByte {
    fn new(set_of: impl Fn(Option<u8>) -> u64) -> Self {
        let mut all = Self { which: [0; PLACES], sets: Vec::new() };
        for byte in placed() {
            let set = set_of(byte);
            let known = all.sets.iter().position(|known| *known == set);
            let at = known.unwrap_or_else(|| all.add(set));
            all.which[place(byte)] = at as u8;
        }
        all.sets.shrink_to_fit();
        all
    }

    /// Returns the index of a new set. If there is no index left, the last set takes it in: more rows are tried than need be.
    fn add(&mut self, set: u64) -> usize {
        let is_full = self.sets.len() > usize::from(u8::MAX);
        match self.sets.last_mut() {
            Some(last) if is_full => *last |= set,
            _ => self.sets.push(set),
        }
        self.sets.len() - 1
    }

    fn of(&self, byte: Option<u8>) -> u64 {
        self.sets[usize::from(self.which[place(byte)])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_set_and_one_that_finds_no_room_is_in_the_last() {
        let few = ByByte::new(|byte| if byte == Some(b'a') { 5 } else { 2 });
        assert_eq!((few.of(Some(b'a')), few.of(Some(b'b')), few.of(None), few.sets.len()), (5, 2, 2, 2));
        let many = ByByte::new(|byte| byte.map_or(1 << 40, u64::from));
        assert_eq!((many.of(Some(0)), many.of(Some(254)), many.sets.len()), (0, 254, 256));
        assert_eq!([many.of(Some(255)), many.of(None)], [1 << 40 | 255; 2]);
    }
}
