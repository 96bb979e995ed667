//! Runs a program over one text: follows its steps, keeps the choices that are left to try, and counts the cost.

use super::{Branch, END, Look, OutOfFuel, Program, Run, Set, Slots, Split, Step};

/// Cost of a step besides the bytes that it looks at.
const STEP_FUEL: usize = 4;
/// This many branches that cannot begin cost as much as one byte.
const BRANCHES_PER_FUEL: usize = 2;
/// Most choices open at once, and how many of them need no heap memory.
const MAX_CHOICES: usize = 48;
const NEAR_CHOICES: usize = 8;

/// A choice that is left to try.
#[derive(Clone, Copy)]
enum Choice {
    Try {
        step: u16,
        at: u32,
    },
    /// A branch of an alternation that can begin at `at`.
    Branch {
        switch: u16,
        branch: u16,
        at: u32,
    },
    /// A greedy run may end earlier: before `at`, but not before `low`.
    Shorter {
        run: u16,
        low: u32,
        at: u32,
    },
    /// A lazy run may go on from `at`, up to `high`.
    Longer {
        run: u16,
        at: u32,
        high: u32,
    },
    Restore {
        slot: u8,
        value: u32,
    },
}

/// The choices left to try. Most attempts leave few, so only further ones are kept on the heap.
struct Stack {
    near: [Choice; NEAR_CHOICES],
    far: Vec<Choice>,
    depth: usize,
}

impl Stack {
    fn new() -> Self {
        Self { near: [Choice::Restore { slot: 0, value: 0 }; NEAR_CHOICES], far: Vec::new(), depth: 0 }
    }

    fn clear(&mut self) {
        self.far.clear();
        self.depth = 0;
    }

    #[inline(always)]
    fn push(&mut self, choice: Choice) -> Result<(), OutOfFuel> {
        match self.near.get_mut(self.depth) {
            Some(place) => *place = choice,
            None if self.depth < MAX_CHOICES => self.far.push(choice),
            None => return Err(OutOfFuel),
        }
        self.depth += 1;
        Ok(())
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Choice> {
        self.depth = self.depth.checked_sub(1)?;
        self.near.get(self.depth).copied().or_else(|| self.far.pop())
    }
}

/// A search in progress.
pub(super) struct Thread<'a> {
    program: &'a Program,
    classes: &'a [u8; 256],
    text: &'a [u8],
    stack: Stack,
    /// Where the last match ends.
    end: usize,
    spent: usize,
    fuel: usize,
}

impl<'a> Thread<'a> {
    /// Starts a search in `text` that may cost `fuel`.
    #[inline(always)]
    pub(super) fn new(program: &'a Program, text: &'a [u8], fuel: usize) -> Self {
        Self { program, classes: &program.classes, text, stack: Stack::new(), end: 0, spent: 0, fuel }
    }

    /// Returns the cost so far.
    pub(super) fn spent(&self) -> usize {
        self.spent
    }

    /// Returns where the last match that was found ends.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Returns where the first match begins that begins at `from` or after it; its named groups go to `slots`.
    pub(super) fn search(&mut self, from: usize, mut slots: Option<&mut Slots>) -> Result<Option<usize>, OutOfFuel> {
        if from == 0 && self.attempt(self.program.start, 0, slots.as_deref_mut())? {
            return Ok(Some(0));
        }
        let Some(later) = self.program.later else { return Ok(None) };
        let (first, second) = later.heads;
        let from = from.max(1);
        // Most places fail at their first two bytes; this way each byte is looked up only once.
        let mut here = self.class(from);
        for start in from..self.text.len() {
            let next = self.class(start + 1);
            if here & first != 0 && next & second != 0 && self.try_from(later.to, start, slots.as_deref_mut())? {
                return Ok(Some(start));
            }
            here = next;
        }
        let end = self.text.len();
        let is_at_end = end >= from && self.attempt(later, end, slots)?;
        Ok(is_at_end.then_some(end))
    }

    /// Returns the class of the byte, or the end of the text, at `at`.
    #[inline(always)]
    fn class(&self, at: usize) -> Set {
        self.text.get(at).map_or(1 << END, |byte| self.class_of(*byte))
    }

    #[inline(always)]
    fn class_of(&self, byte: u8) -> Set {
        1 << (self.classes[usize::from(byte)] & (Set::BITS as u8 - 1))
    }

    /// Whether the bytes at `at` and after it belong to these sets.
    #[inline(always)]
    fn fit(&self, (first, second): (Set, Set), at: usize) -> bool {
        self.class(at) & first != 0 && self.class(at + 1) & second != 0
    }

    /// Returns whether a match begins at `start`, with the step of `entry`.
    #[inline(always)]
    fn attempt(&mut self, entry: Branch, start: usize, slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        if self.fit(entry.heads, start) { self.try_from(entry.to, start, slots) } else { Ok(false) }
    }

    fn try_from(&mut self, mut step: u16, mut at: usize, mut slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        self.stack.clear();
        loop {
            if self.follow(step, at, slots.as_deref_mut())? {
                return Ok(true);
            }
            // A way without choices is at most as long as the text, so checking the budget here is enough.
            if self.spent > self.fuel {
                return Err(OutOfFuel);
            }
            loop {
                match self.stack.pop() {
                    None => return Ok(false),
                    Some(Choice::Restore { slot, value }) => {
                        if let Some(slots) = slots.as_deref_mut() {
                            slots[usize::from(slot)] = value;
                        }
                    }
                    Some(Choice::Try { step: other, at: place }) => {
                        (step, at) = (other, place as usize);
                        break;
                    }
                    Some(Choice::Branch { switch, branch, at: place }) => {
                        at = place as usize;
                        step = self.take_branch(switch, branch.into(), at)?;
                        break;
                    }
                    Some(Choice::Shorter { run, low, at: before }) => {
                        if let Some(place) = self.shorter(run, low as usize, before as usize - 1)? {
                            (step, at) = (self.program.runs[usize::from(run)].after, place);
                            break;
                        }
                    }
                    Some(Choice::Longer { run, at: from, high }) => {
                        if let Some(place) = self.longer(run, from as usize, high as usize)? {
                            (step, at) = (self.program.runs[usize::from(run)].after, place);
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Follows the steps from `step` on until they match or fail.
    #[inline]
    fn follow(&mut self, mut step: u16, mut at: usize, mut slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        let program = self.program;
        let mut steps = 1;
        loop {
            let fits = match program.steps[usize::from(step)] {
                Step::Byte(byte) => {
                    at += 1;
                    self.text.get(at - 1) == Some(&byte)
                }
                Step::Literal(number) => {
                    let literal = &program.literals[usize::from(number)];
                    let fits = self.text.get(at..).is_some_and(|rest| literal.begins(rest));
                    at += literal.bytes.len();
                    fits
                }
                Step::Set(number) => {
                    at += 1;
                    self.class(at - 1) & program.sets[usize::from(number)] != 0
                }
                Step::Run(run) => match self.begin_run(run, at)? {
                    Some(place) => {
                        at = place;
                        true
                    }
                    None => false,
                },
                Step::Split(number) => {
                    step = self.take_first(number, at)?;
                    continue;
                }
                Step::Switch(number) => match self.next_branch(number, 0, at) {
                    Some(branch) => {
                        step = self.take_branch(number, branch, at)?;
                        continue;
                    }
                    None => false,
                },
                Step::Jump(to) => {
                    step = to;
                    continue;
                }
                Step::Save(slot) => {
                    if let Some(slots) = slots.as_deref_mut() {
                        let value = std::mem::replace(&mut slots[usize::from(slot)], at as u32);
                        self.stack.push(Choice::Restore { slot, value })?;
                    }
                    true
                }
                Step::Look(look) => self.looks(look, at),
                Step::Match => {
                    self.end = at;
                    return Ok(true);
                }
            };
            if !fits {
                self.spent += STEP_FUEL * steps;
                return Ok(false);
            }
            step += 1;
            steps += 1;
        }
    }

    /// Returns the step of a split that can begin at `at`; if both can, the second is left as a choice.
    #[inline(always)]
    fn take_first(&mut self, number: u16, at: usize) -> Result<u16, OutOfFuel> {
        let Split { first, second, heads } = self.program.splits[usize::from(number)];
        let here = self.class(at);
        if here & heads.0 != 0 && here & heads.1 != 0 {
            self.stack.push(Choice::Try { step: second, at: at as u32 })?;
        }
        self.spent += STEP_FUEL;
        Ok(if here & heads.0 == 0 { second } else { first })
    }

    /// Returns the first branch, from `from` on, that can begin at `at`.
    #[inline(always)]
    fn next_branch(&mut self, switch: u16, from: usize, at: usize) -> Option<usize> {
        let branches = &self.program.switches[usize::from(switch)][from..];
        let (here, next) = (self.class(at), self.class(at + 1));
        let found = branches.iter().position(|branch| here & branch.heads.0 != 0 && next & branch.heads.1 != 0);
        self.spent += 1 + found.unwrap_or(branches.len()) / BRANCHES_PER_FUEL;
        found.map(|found| from + found)
    }

    /// Returns the step of a branch; the next branch that can begin at `at` is left as a choice.
    fn take_branch(&mut self, switch: u16, branch: usize, at: usize) -> Result<u16, OutOfFuel> {
        if let Some(next) = self.next_branch(switch, branch + 1, at) {
            self.stack.push(Choice::Branch { switch, branch: next as u16, at: at as u32 })?;
        }
        Ok(self.program.switches[usize::from(switch)][branch].to)
    }

    /// Returns the first end to try for a run that begins at `at`; the other ends are left as a choice.
    fn begin_run(&mut self, number: u16, at: usize) -> Result<Option<usize>, OutOfFuel> {
        let run = &self.program.runs[usize::from(number)];
        let limit = self.text.len().min(at.saturating_add(run.max as usize));
        let low = at + run.min as usize;
        if low > limit {
            return Ok(None);
        }
        if run.lazy && !run.exact {
            self.spent += low - at;
            let fits = self.text[at..low].iter().all(|byte| self.class_of(*byte) & run.set != 0);
            return if fits { self.longer(number, low, limit) } else { Ok(None) };
        }
        let end = self.end_of(run, at, limit);
        self.spent += end - at;
        if end < low {
            return Ok(None);
        }
        if run.exact {
            return Ok((self.class(end) & run.ahead.0 != 0).then_some(end));
        }
        self.shorter(number, low, end)
    }

    /// Returns where the bytes of a run that begins at `at` end.
    #[inline(always)]
    fn end_of(&self, run: &Run, at: usize, limit: usize) -> usize {
        let text = &self.text[at..limit];
        let length = match run.stop {
            Some(stop) => memchr::memchr(stop, text),
            None => text.iter().position(|byte| self.class_of(*byte) & run.set == 0),
        };
        length.map_or(limit, |length| at + length)
    }

    /// Returns the last place from `high` down to `low` where what follows can begin.
    fn shorter(&mut self, number: u16, low: usize, high: usize) -> Result<Option<usize>, OutOfFuel> {
        let (first, second) = self.program.runs[usize::from(number)].ahead;
        let mut next = self.class(high + 1);
        let found = (low..=high).rev().find(|at| {
            let here = self.class(*at);
            let next = std::mem::replace(&mut next, here);
            here & first != 0 && next & second != 0
        });
        self.spent += 1 + high - found.unwrap_or(low);
        if let Some(at) = found.filter(|at| *at > low) {
            self.stack.push(Choice::Shorter { run: number, low: low as u32, at: at as u32 })?;
        }
        Ok(found)
    }

    /// Returns the first place from `at` on where what follows can begin, as long as the run's bytes last.
    fn longer(&mut self, number: u16, at: usize, high: usize) -> Result<Option<usize>, OutOfFuel> {
        let Run { set, ahead: (first, second), .. } = self.program.runs[usize::from(number)];
        let (mut place, mut here) = (at, self.class(at));
        loop {
            let next = self.class(place + 1);
            if here & first != 0 && next & second != 0 {
                break;
            }
            if place >= high || here & set == 0 {
                self.spent += 1 + place - at;
                return Ok(None);
            }
            (place, here) = (place + 1, next);
        }
        self.spent += 1 + place - at;
        if place < high && here & set != 0 {
            self.stack.push(Choice::Longer { run: number, at: place as u32 + 1, high: high as u32 })?;
        }
        Ok(Some(place))
    }

    fn looks(&self, look: Look, at: usize) -> bool {
        let word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let boundary = || word(at.checked_sub(1).and_then(|before| self.text.get(before))) != word(self.text.get(at));
        match look {
            Look::Start => at == 0,
            Look::End => at == self.text.len(),
            Look::Word => boundary(),
            Look::NoWord => !boundary(),
        }
    }
}
