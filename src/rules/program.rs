//! Matches the patterns of rules: a backtracking matcher over runs of bytes, with a budget.
//!
//! The lines that rules look at are short and mostly fit. On them a backtracker that swallows a whole
//! run of a class at once, and retreats only to places where the next two bytes fit, costs a fifth of a
//! lazy automaton, reads the groups in the same pass, and is built in a twentieth of the time. What it
//! cannot do it leaves to `regex`: Unicode classes, look-around other than `^`, `$` and `\b`, and any
//! text on which the budget, linear in its length, runs out. So matching stays linear in the text.
//!
//! It finds what `regex` finds: the leftmost match, alternatives in their order (Perl's rules).

use regex_syntax::hir::Hir;
use serde::{Deserialize, Serialize};

mod build;
mod spans;
mod thread;
use thread::Thread;

/// Most named groups.
pub const MAX_NAMED: usize = 12;
/// Budget for each byte of the text; looking at a byte costs one.
const FUEL_PER_BYTE: usize = 32;
/// Budget for the shortest text.
const MIN_FUEL: usize = 2048;
/// Sets of bytes, one bit each. A byte's value says to which sets of the program it belongs; two
/// sets together are one value.
type Sets = u64;
/// The set of every byte and of the end of the text: nothing need be there.
const NOTHING: Sets = 1;
/// The set of the end of the text alone.
const END: Sets = 2;
/// The bit of a program's first own set; those that a program uses are low, which keeps what the build leaves small.
const FIRST_SET: usize = 2;
/// Most sets of a program.
const MAX_SETS: usize = 62;
/// Where each named group begins and ends; [`UNSET`] when it took no part.
pub type Slots = [u32; 2 * MAX_NAMED];
/// A group that took no part in the match.
pub const UNSET: u32 = u32::MAX;

/// One step; what needs more room than a number stands in a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum Step {
    Byte(u8),
    Literal(u16),
    /// The number of the set.
    Set(u8),
    Run(u16),
    Split(u16),
    Switch(u16),
    Jump(u16),
    Save(u8),
    Look(Look),
    Match,
}

/// What holds between two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum Look {
    Start,
    End,
    /// An end of an ASCII word.
    Word,
    NoWord,
}

/// Bytes that stand there as they are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Box<[u8]>", into = "Box<[u8]>")]
struct Literal {
    /// The first bytes, for a comparison in one step, and which of its eight bytes count.
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

/// A choice, with the bytes with which each way can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Split {
    first: u16,
    second: u16,
    heads: (Sets, Sets),
}

/// A branch of an alternation, and with which two bytes it can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Branch {
    to: u16,
    heads: (Sets, Sets),
}

/// A set of bytes, repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Run {
    /// The step after it.
    after: u16,
    set: Sets,
    min: u32,
    max: u32,
    lazy: bool,
    /// With which two bytes that which follows can begin.
    ahead: (Sets, Sets),
    /// What follows can begin with no byte of the set: the run ends where it must.
    exact: bool,
    /// The only byte that is not of the set.
    stop: Option<u8>,
}

/// The budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfFuel;

/// What a program is to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whether there is a match.
    Match,
    /// Where the named groups of the match stand.
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
    /// The sets of each byte.
    #[serde(with = "spans")]
    sets: Box<[Sets; 256]>,
    names: Box<[Box<str>]>,
    /// Where a match at the start of the text begins.
    start: Branch,
    /// Where one behind it does: without what can match at the start only. `None`: nothing can.
    later: Option<Branch>,
}

impl Program {
    /// The program of `hir`; `None` when it needs more than this matcher can do.
    #[must_use]
    pub fn new(hir: &Hir, wanted: Wanted) -> Option<Self> {
        build::program(hir, wanted)
    }

    /// Named groups, in the order of their slots; none, when only a match is wanted.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Whether it matches somewhere in `text`; the named groups go to `slots` when there are any. What
    /// that costs is added to `spent`.
    ///
    /// # Errors
    /// The text needs more steps than its length allows.
    pub fn run(&self, text: &[u8], slots: Option<&mut Slots>, spent: &mut usize) -> Result<bool, OutOfFuel> {
        let mut thread = Thread::new(self, text, MIN_FUEL + FUEL_PER_BYTE * text.len());
        let found = thread.search(slots);
        *spent += thread.spent();
        found
    }
}
