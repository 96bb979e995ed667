//! Matches the patterns of rules: a backtracking matcher over runs of bytes, with a budget.
//!
//! The lines that rules look at are short and mostly fit. On them a backtracker that consumes a whole
//! run of a class at once, and retreats only to places where the next two bytes fit, costs a fifth of
//! a lazy automaton, reads the groups in the same pass, and is built in a twentieth of the time. It
//! leaves to `regex` what it cannot do: Unicode classes, look-around other than `^`, `$` and `\b`,
//! and any text on which the budget, linear in the text's length, runs out. So matching stays linear.
//!
//! It finds what `regex` finds: the leftmost match, with alternatives in their order (Perl's rules).

use std::ops::Range;

use regex_syntax::hir::Hir;
use serde::{Deserialize, Serialize};

mod build;
mod classes;
mod spans;
mod thread;
use thread::Thread;

/// Most named groups.
pub const MAX_NAMED: usize = 12;
/// Budget for each byte of the text; looking at one byte costs 1.
const FUEL_PER_BYTE: usize = 32;
/// Budget that even the shortest text has.
const MIN_FUEL: usize = 2048;
/// A set of bytes: one bit for each class of bytes that the program tells apart.
type Set = u64;
/// The class of the end of the text.
const END: u8 = 0;
/// Where each named group begins and ends; [`UNSET`] when the group took no part.
pub type Slots = [u32; 2 * MAX_NAMED];
/// A group that took no part in the match.
pub const UNSET: u32 = u32::MAX;

/// One step; operands larger than a number are in lists of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum Step {
    Byte(u8),
    Literal(u16),
    /// Number in the list of sets.
    Set(u8),
    Run(u16),
    Split(u16),
    Switch(u16),
    Jump(u16),
    Save(u8),
    Look(Look),
    Match,
}

/// A condition between two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum Look {
    Start,
    End,
    /// A boundary of an ASCII word.
    Word,
    NoWord,
}

/// Literal bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Box<[u8]>", into = "Box<[u8]>")]
struct Literal {
    /// The first bytes, compared in one step, and a mask of those that count among the eight.
    head: u64,
    mask: u64,
    bytes: Box<[u8]>,
}

impl From<Box<[u8]>> for Literal {
    fn from(bytes: Box<[u8]>) -> Self {
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for (at, byte) in bytes.iter().take(8).enumerate() {
            (head[at], mask[at]) = (*byte, 0xff);
        }
        Self { head: u64::from_le_bytes(head), mask: u64::from_le_bytes(mask), bytes }
    }
}

impl From<Literal> for Box<[u8]> {
    fn from(literal: Literal) -> Self {
        literal.bytes
    }
}

impl Literal {
    #[inline(always)]
    fn begins(&self, text: &[u8]) -> bool {
        match text.first_chunk() {
            Some(word) if (u64::from_le_bytes(*word) ^ self.head) & self.mask != 0 => false,
            Some(_) if self.bytes.len() <= 8 => true,
            _ => text.starts_with(&self.bytes),
        }
    }
}

/// A choice between two ways, with the bytes that each can begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Split {
    first: u16,
    second: u16,
    heads: (Set, Set),
}

/// A branch of an alternation, with the two bytes that it can begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Branch {
    to: u16,
    heads: (Set, Set),
}

/// A repeated set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Run {
    /// The step after the run.
    after: u16,
    set: Set,
    min: u32,
    max: u32,
    lazy: bool,
    /// The two bytes that what follows can begin with.
    ahead: (Set, Set),
    /// Whether what follows can begin with no byte of the set, so that the run has only one possible end.
    exact: bool,
    /// The byte that ends the run, if only one byte is outside the set.
    stop: Option<u8>,
}

/// The budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfFuel;

/// What a program is to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whether there is a match.
    Match,
    /// Where the named groups of the match are.
    Groups,
}

/// A pattern in the matcher's form.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Program {
    steps: Box<[Step]>,
    runs: Box<[Run]>,
    splits: Box<[Split]>,
    switches: Box<[Box<[Branch]>]>,
    literals: Box<[Literal]>,
    sets: Box<[Set]>,
    /// The class of each byte.
    #[serde(with = "spans")]
    classes: Box<[u8; 256]>,
    names: Box<[Box<str>]>,
    /// The entry for a match at the start of the text.
    start: Branch,
    /// The entry for a later match, without what can match only at the start. `None`: no later match is possible.
    later: Option<Branch>,
}

impl Program {
    /// Compiles `hir`; `None` when it needs more than this matcher can do.
    #[must_use]
    pub fn new(hir: &Hir, wanted: Wanted) -> Option<Self> {
        build::program(hir, wanted)
    }

    /// Returns the named groups in the order of their slots; none when only a match is wanted.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Returns whether the program matches somewhere in `text`. The named
    /// groups go to `slots`, if given; the cost is added to `spent`.
    ///
    /// # Errors
    /// The text needs more steps than its length allows.
    pub fn run(&self, text: &[u8], slots: Option<&mut Slots>, spent: &mut usize) -> Result<bool, OutOfFuel> {
        let mut thread = Thread::new(self, text, MIN_FUEL + FUEL_PER_BYTE * text.len());
        let found = thread.search(0, slots);
        *spent += thread.spent();
        found.map(|found| found.is_some())
    }

    /// Returns where the program matches in `text`, one match after the other; those that are empty are left out.
    /// Only a program that was made for groups knows where a match ends.
    ///
    /// # Errors
    /// The text needs more steps than its length allows.
    pub fn spans(&self, text: &[u8]) -> Result<Vec<Range<usize>>, OutOfFuel> {
        let mut thread = Thread::new(self, text, MIN_FUEL + FUEL_PER_BYTE * text.len());
        let (mut found, mut from) = (Vec::new(), 0);
        while from <= text.len()
            && let Some(start) = thread.search(from, None)?
        {
            let end = thread.end();
            if end > start {
                found.push(start..end);
            }
            from = end.max(start + 1);
        }
        Ok(found)
    }
}
