//! What can follow each choice and each run of a program under way: the first two bytes of every match from a step on.

use super::{Branch, Builder, END, Look, NOTHING, Run, Sets, Split, Step, bit};

/// The steps that a look-ahead has visited: their mark is the number of its round.
#[derive(Default)]
pub(super) struct Seen {
    first: (u32, Vec<u32>),
    second: (u32, Vec<u32>),
}

/// Marks `step`; returns whether it was already marked in this round.
fn mark((round, marks): &mut (u32, Vec<u32>), step: usize) -> bool {
    std::mem::replace(&mut marks[step], *round) == *round
}

impl Builder {
    /// Returns an entry at `step`, with the bytes that a match from there begins with.
    pub(super) fn entry(&mut self, step: u16) -> Branch {
        Branch { to: step, heads: (self.first(step), self.second(step)) }
    }

    /// Computes for each run and each choice the bytes that it can go on with.
    pub(super) fn look_ahead(&mut self) {
        for number in 0..self.runs.len() {
            let Run { after, set, max, .. } = self.runs[number];
            let ahead = (self.first(after), self.second(after));
            let both = |sets: &Sets| sets & set != 0 && sets & ahead.0 != 0;
            // A maximum may stop the run before another byte of its own set.
            let exact = max == u32::MAX && !self.sets.iter().any(both);
            let run = &mut self.runs[number];
            (run.ahead, run.exact) = (ahead, exact);
        }
        for number in 0..self.splits.len() {
            let Split { first, second, .. } = self.splits[number];
            self.splits[number].heads = (self.first(first), self.first(second));
        }
        for number in 0..self.switches.len() {
            for branch in 0..self.switches[number].len() {
                self.switches[number][branch] = self.entry(self.switches[number][branch].to);
            }
        }
    }

    /// Returns the bytes that a match from `step` on can begin with.
    fn first(&mut self, step: u16) -> Sets {
        let (round, marks) = &mut self.seen.first;
        marks.resize(self.steps.len(), 0);
        *round += 1;
        self.first_from(step.into())
    }

    /// Returns the possible second bytes of a match from `step` on.
    fn second(&mut self, step: u16) -> Sets {
        let (round, marks) = &mut self.seen.second;
        marks.resize(self.steps.len(), 0);
        *round += 1;
        self.second_from(step.into())
    }

    fn first_from(&mut self, step: usize) -> Sets {
        if mark(&mut self.seen.first, step) {
            return 0;
        }
        match self.steps[step] {
            Step::Byte(byte) => self.byte(byte),
            Step::Literal(number) => self.byte(self.literals[usize::from(number)].bytes[0]),
            Step::Set(number) => bit(number),
            Step::Run(run) => {
                let Run { set, min, .. } = self.runs[usize::from(run)];
                set | if min > 0 { 0 } else { self.first_from(step + 1) }
            }
            Step::Split(number) => {
                let Split { first, second, .. } = self.splits[usize::from(number)];
                self.first_from(first.into()) | self.first_from(second.into())
            }
            Step::Switch(number) => self.all_of(number, Self::first_from),
            Step::Jump(to) => self.first_from(to.into()),
            Step::Look(Look::End) => END,
            Step::Save(_) | Step::Look(_) => self.first_from(step + 1),
            Step::Match => NOTHING,
        }
    }

    fn second_from(&mut self, step: usize) -> Sets {
        if mark(&mut self.seen.second, step) {
            return 0;
        }
        match self.steps[step] {
            Step::Byte(_) | Step::Set(_) => self.first(step as u16 + 1),
            Step::Literal(number) => self.byte(self.literals[usize::from(number)].bytes[1]),
            Step::Run(run) => {
                let Run { set, min, .. } = self.runs[usize::from(run)];
                let after = set | self.first(step as u16 + 1);
                after | if min > 0 { 0 } else { self.second_from(step + 1) }
            }
            Step::Split(number) => {
                let Split { first, second, .. } = self.splits[usize::from(number)];
                self.second_from(first.into()) | self.second_from(second.into())
            }
            Step::Switch(number) => self.all_of(number, Self::second_from),
            Step::Jump(to) => self.second_from(to.into()),
            Step::Match | Step::Look(Look::End) => NOTHING,
            Step::Save(_) | Step::Look(_) => self.second_from(step + 1),
        }
    }

    /// Returns the union of `of` over all branches.
    fn all_of(&mut self, switch: u16, of: fn(&mut Self, usize) -> Sets) -> Sets {
        let switch = usize::from(switch);
        (0..self.switches[switch].len()).fold(0, |all, branch| all | of(self, self.switches[switch][branch].to.into()))
    }

    /// Returns the set of one byte; when there may be no further set, that of all bytes.
    fn byte(&mut self, byte: u8) -> Sets {
        let mut bytes = [false; 256];
        bytes[usize::from(byte)] = true;
        let may_add = self.known.len() < self.most_before_ahead || self.known.contains(&bytes);
        if may_add { self.set(&bytes) } else { None }.map_or(NOTHING, bit)
    }
}
