//! Matches the patterns of rules: a backtracking matcher over runs of bytes, with a budget.
//!
//! The lines that rules look at are short and mostly fit. On them a backtracker that swallows a whole
//! run of a class at once, and retreats only to places where the next two bytes fit, costs a fifth of a
//! lazy automaton, reads the groups in the same pass, and is built in a twentieth of the time. What it
//! cannot do it leaves to `regex`: Unicode classes, look-around other than `^`, `$` and `\b`, and any
//! text on which the budget, linear in its length, runs out. So matching stays linear in the text.
//!
//! It finds what `regex` finds: the leftmost match, alternatives in their order (Perl's rules).

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look, Repetition};

/// Most steps of a program; a longer pattern is left to `regex`.
const MAX_STEPS: usize = 1024;
/// Most named groups.
pub const MAX_NAMED: usize = 12;
/// Most characters of a class that is not ASCII.
const MAX_CHARACTERS: usize = 8;
/// Budget for each byte of the text; looking at a byte costs one.
const FUEL_PER_BYTE: usize = 32;
/// Budget for the shortest text.
const MIN_FUEL: usize = 2048;
/// What a step costs beside the bytes that it looks at.
const STEP_FUEL: usize = 4;
/// Most choices that are left open at once, and those that need no memory of their own.
const MAX_CHOICES: usize = 48;
const NEAR_CHOICES: usize = 8;

/// Sets of bytes, one bit each. A byte's value says to which sets of the program it belongs; two
/// sets together are one value.
type Sets = u64;
/// Most sets of a program.
const MAX_SETS: usize = 62;
/// The set of every byte and of the end of the text: nothing need be there.
const NOTHING: Sets = 1 << MAX_SETS;
/// The set of the end of the text alone.
const END: Sets = 2 << MAX_SETS;
/// Where each named group begins and ends; [`UNSET`] when it took no part.
pub type Slots = [u32; 2 * MAX_NAMED];
/// A group that took no part in the match.
pub const UNSET: u32 = u32::MAX;

/// One step; what needs more room than a number stands in a list of its own.
#[derive(Clone, Copy, Debug)]
enum Step {
    Byte(u8),
    Literal(u16),
    /// The number of the set.
    Set(u8),
    Run(u16),
    Split(u16),
    Jump(u16),
    Save(u8),
    Look(Look),
    Match,
}

/// Bytes that stand there as they are.
#[derive(Clone, Debug)]
struct Literal {
    /// The first bytes, for a comparison in one step, and which of its eight bytes count.
    head: u64,
    mask: u64,
    bytes: Box<[u8]>,
}

impl Literal {
    fn new(bytes: &[u8]) -> Self {
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for (at, byte) in bytes.iter().take(8).enumerate() {
            (head[at], mask[at]) = (*byte, 0xff);
        }
        Self { head: u64::from_le_bytes(head), mask: u64::from_le_bytes(mask), bytes: bytes.into() }
    }

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
#[derive(Clone, Copy, Debug)]
struct Split {
    first: u16,
    second: u16,
    heads: (Sets, Sets),
}

/// A set of bytes, repeated.
#[derive(Clone, Copy, Debug)]
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

/// A way that is left to try.
#[derive(Clone, Copy)]
enum Choice {
    Try {
        step: u16,
        at: u32,
    },
    /// A greedy run may end earlier: before `at`, not before `low`.
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

/// What is left to try. Most attempts leave little: only more than that is kept in memory of its own.
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
#[derive(Debug)]
pub struct Program {
    steps: Box<[Step]>,
    runs: Box<[Run]>,
    splits: Box<[Split]>,
    literals: Box<[Literal]>,
    /// The sets of each byte.
    sets: Box<[Sets; 256]>,
    names: Box<[Box<str>]>,
    /// Matches at the start of the text only.
    anchored: bool,
    /// The two bytes with which a match begins.
    heads: (Sets, Sets),
}

impl Program {
    /// The program of `hir`; `None` when it needs more than this matcher can do.
    #[must_use]
    pub fn new(hir: &Hir, wanted: Wanted) -> Option<Self> {
        let mut builder = Builder::new(wanted);
        if wanted == Wanted::Match {
            builder.tail(hir)?
        } else {
            builder.hir(hir)?
        }
        builder.push(Step::Match)?;
        let heads = builder.look_ahead();
        let anchored = hir.properties().look_set_prefix().contains(Look::Start);
        let Builder { steps, runs, splits, sets, literals, names, .. } = builder;
        let (steps, runs, splits, literals, names) = (steps.into(), runs.into(), splits.into(), literals.into(), names.into());
        Some(Self { steps, runs, splits, literals, sets, names, anchored, heads })
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
        let fuel = MIN_FUEL + FUEL_PER_BYTE * text.len();
        let mut thread = Thread { program: self, sets: &self.sets, text, stack: Stack::new(), spent: 0, fuel };
        let found = thread.search(slots);
        *spent += thread.spent;
        found
    }
}

/// A search under way.
struct Thread<'a> {
    program: &'a Program,
    sets: &'a [Sets; 256],
    text: &'a [u8],
    stack: Stack,
    spent: usize,
    fuel: usize,
}

impl Thread<'_> {
    fn search(&mut self, mut slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        let last = if self.program.anchored { 0 } else { self.text.len() };
        let heads = self.program.heads;
        for start in 0..=last {
            if self.fit(heads, start) && self.attempt(start, slots.as_deref_mut())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The sets of what stands at `at`.
    #[inline(always)]
    fn sets(&self, at: usize) -> Sets {
        self.text.get(at).map_or(NOTHING | END, |byte| self.sets[usize::from(*byte)])
    }

    /// Whether the bytes at `at` and behind it belong to these sets.
    #[inline(always)]
    fn fit(&self, (first, second): (Sets, Sets), at: usize) -> bool {
        self.sets(at) & first != 0 && self.sets(at + 1) & second != 0
    }

    /// Whether a match begins at `start`.
    fn attempt(&mut self, start: usize, mut slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        self.stack.clear();
        let (mut step, mut at) = (0, start);
        loop {
            if self.follow(step, at, slots.as_deref_mut())? {
                return Ok(true);
            }
            // A way that goes on without a choice is as long as the text at most: it is enough to count here.
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

    /// Follows the steps from `step` until they match or fail.
    #[inline]
    fn follow(&mut self, mut step: u16, mut at: usize, mut slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        let program = self.program;
        let begun = step;
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
                    self.sets(at - 1) & (1 << number) != 0
                }
                Step::Run(run) => match self.begin_run(run, at)? {
                    Some(place) => {
                        at = place;
                        true
                    }
                    None => false,
                },
                Step::Split(number) => {
                    let Split { first, second, heads } = program.splits[usize::from(number)];
                    let here = self.sets(at);
                    step = if here & heads.0 == 0 { second } else { first };
                    if here & heads.0 != 0 && here & heads.1 != 0 {
                        self.stack.push(Choice::Try { step: second, at: at as u32 })?;
                    }
                    self.spent += STEP_FUEL;
                    continue;
                }
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
                Step::Match => return Ok(true),
            };
            if !fits {
                self.spent += STEP_FUEL * usize::from(1 + step.saturating_sub(begun));
                return Ok(false);
            }
            step += 1;
        }
    }

    /// Where a run that begins at `at` ends first; the other ends are left as a choice.
    fn begin_run(&mut self, number: u16, at: usize) -> Result<Option<usize>, OutOfFuel> {
        let run = &self.program.runs[usize::from(number)];
        let limit = self.text.len().min(at.saturating_add(run.max as usize));
        let low = at + run.min as usize;
        if low > limit {
            return Ok(None);
        }
        if run.lazy && !run.exact {
            self.spent += low - at;
            let fits = self.text[at..low].iter().all(|byte| self.sets[usize::from(*byte)] & run.set != 0);
            return if fits { self.longer(number, low, limit) } else { Ok(None) };
        }
        let end = self.end_of(run, at, limit);
        self.spent += end - at;
        if end < low {
            return Ok(None);
        }
        if run.exact {
            return Ok((self.sets(end) & run.ahead.0 != 0).then_some(end));
        }
        self.shorter(number, low, end)
    }

    /// Where the bytes of the run end that begins at `at`.
    #[inline(always)]
    fn end_of(&self, run: &Run, at: usize, limit: usize) -> usize {
        let text = &self.text[at..limit];
        let length = match run.stop {
            Some(stop) => memchr::memchr(stop, text),
            None => text.iter().position(|byte| self.sets[usize::from(*byte)] & run.set == 0),
        };
        length.map_or(limit, |length| at + length)
    }

    /// The last place from `high` down to `low` where what follows can begin.
    fn shorter(&mut self, number: u16, low: usize, high: usize) -> Result<Option<usize>, OutOfFuel> {
        let (first, second) = self.program.runs[usize::from(number)].ahead;
        let mut behind = self.sets(high + 1);
        let found = (low..=high).rev().find(|at| {
            let here = self.sets(*at);
            let behind = std::mem::replace(&mut behind, here);
            here & first != 0 && behind & second != 0
        });
        self.spent += 1 + high - found.unwrap_or(low);
        if let Some(at) = found.filter(|at| *at > low) {
            self.stack.push(Choice::Shorter { run: number, low: low as u32, at: at as u32 })?;
        }
        Ok(found)
    }

    /// The first place from `at` on where what follows can begin, as long as the run's bytes last.
    fn longer(&mut self, number: u16, at: usize, high: usize) -> Result<Option<usize>, OutOfFuel> {
        let Run { set, ahead: (first, second), .. } = self.program.runs[usize::from(number)];
        let (mut place, mut here) = (at, self.sets(at));
        loop {
            let behind = self.sets(place + 1);
            if here & first != 0 && behind & second != 0 {
                break;
            }
            if place >= high || here & set == 0 {
                self.spent += 1 + place - at;
                return Ok(None);
            }
            (place, here) = (place + 1, behind);
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
            Look::WordAscii => boundary(),
            _ => !boundary(),
        }
    }
}

/// A set of bytes while a program is built.
type Bytes = [bool; 256];

struct Builder {
    wanted: Wanted,
    steps: Vec<Step>,
    runs: Vec<Run>,
    splits: Vec<Split>,
    literals: Vec<Literal>,
    sets: Box<[Sets; 256]>,
    /// The sets that have a bit, in the order of their bits.
    known: Vec<Bytes>,
    names: Vec<Box<str>>,
    seen: Seen,
}

/// Which steps a look ahead has come by: those whose mark is the number of its round.
#[derive(Default)]
struct Seen {
    first: (u32, Vec<u32>),
    second: (u32, Vec<u32>),
}

/// Marks `step`; whether it was marked in this round.
fn mark((round, marks): &mut (u32, Vec<u32>), step: usize) -> bool {
    std::mem::replace(&mut marks[step], *round) == *round
}

impl Builder {
    fn new(wanted: Wanted) -> Self {
        let (steps, runs, splits, literals, known, names, seen) = Default::default();
        Self { wanted, steps, runs, splits, literals, sets: Box::new([NOTHING; 256]), known, names, seen }
    }

    fn push(&mut self, step: Step) -> Option<u16> {
        (self.steps.len() < MAX_STEPS).then(|| {
            self.steps.push(step);
            (self.steps.len() - 1) as u16
        })
    }

    fn here(&self) -> u16 {
        self.steps.len() as u16
    }

    /// The number of a set, which is that of its bit; `None` when there is none left.
    fn set(&mut self, bytes: &Bytes) -> Option<u8> {
        if let Some(bit) = self.known.iter().position(|known| known == bytes) {
            return Some(bit as u8);
        }
        let bit = self.known.len();
        if bit == MAX_SETS {
            return None;
        }
        self.known.push(*bytes);
        self.sets.iter_mut().zip(bytes).for_each(|(sets, has)| *sets |= Sets::from(*has) << bit);
        Some(bit as u8)
    }

    /// The part of a pattern with which a match ends, when its length does not matter.
    fn tail(&mut self, hir: &Hir) -> Option<()> {
        match hir.kind() {
            HirKind::Capture(group) => self.tail(&group.sub),
            HirKind::Alternation(branches) => self.alternation(branches, Self::tail),
            HirKind::Concat(parts) => {
                let Some((last, before)) = parts.split_last() else { return Some(()) };
                if may_be_left_out(last) {
                    return self.tail(&Hir::concat(before.to_vec()));
                }
                before.iter().try_for_each(|part| self.hir(part))?;
                self.tail(last)
            }
            HirKind::Repetition(repetition) if repetition.max != Some(repetition.min) => {
                (1..repetition.min).try_for_each(|_| self.hir(&repetition.sub))?;
                if repetition.min > 0 { self.tail(&repetition.sub) } else { Some(()) }
            }
            _ => self.hir(hir),
        }
    }

    fn hir(&mut self, hir: &Hir) -> Option<()> {
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => self.literal(&literal.0)?,
            HirKind::Class(class) => match (single(hir), class) {
                (Some(bytes), _) => {
                    let set = self.set(&bytes)?;
                    self.push(Step::Set(set))?;
                }
                (None, Class::Unicode(class)) => self.alternation(&characters(class)?, Self::hir)?,
                (None, Class::Bytes(_)) => return None,
            },
            HirKind::Look(look @ (Look::Start | Look::End | Look::WordAscii | Look::WordAsciiNegate)) => {
                self.push(Step::Look(*look))?;
            }
            HirKind::Look(_) => return None,
            HirKind::Repetition(repetition) => self.repetition(repetition)?,
            HirKind::Capture(group) => match &group.name {
                Some(name) if self.wanted == Wanted::Groups => self.named(name, &group.sub)?,
                _ => self.hir(&group.sub)?,
            },
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.hir(part))?,
            HirKind::Alternation(branches) => self.alternation(branches, Self::hir)?,
        }
        Some(())
    }

    fn literal(&mut self, bytes: &[u8]) -> Option<()> {
        if let [byte] = bytes {
            self.push(Step::Byte(*byte))?;
            return Some(());
        }
        let number = self.literals.len() as u16;
        self.literals.push(Literal::new(bytes));
        self.push(Step::Literal(number)).map(drop)
    }

    fn named(&mut self, name: &str, sub: &Hir) -> Option<()> {
        let slot = 2 * self.names.len();
        if self.names.len() == MAX_NAMED || self.names.iter().any(|known| **known == *name) {
            return None;
        }
        self.names.push(name.into());
        self.push(Step::Save(slot as u8))?;
        self.hir(sub)?;
        self.push(Step::Save(slot as u8 + 1)).map(drop)
    }

    /// `each` writes a branch down.
    fn alternation(&mut self, branches: &[Hir], each: fn(&mut Self, &Hir) -> Option<()>) -> Option<()> {
        let mut ends = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            if index + 1 == branches.len() {
                each(self, branch)?;
                break;
            }
            let split = self.push(Step::Jump(0))?;
            each(self, branch)?;
            ends.push(self.push(Step::Jump(0))?);
            self.split(split, (split + 1, self.here()), true);
        }
        let end = self.here();
        ends.into_iter().for_each(|jump| self.steps[usize::from(jump)] = Step::Jump(end));
        Some(())
    }

    fn repetition(&mut self, repetition: &Repetition) -> Option<()> {
        if let Some(bytes) = single(&repetition.sub) {
            return self.run(&bytes, repetition);
        }
        // A body that may be empty would go round without end.
        if repetition.sub.properties().minimum_len().is_none_or(|least| least == 0) && repetition.max != Some(1) {
            return None;
        }
        let copies = if repetition.max.is_none() { repetition.min.saturating_sub(1) } else { repetition.min };
        (0..copies).try_for_each(|_| self.hir(&repetition.sub))?;
        match repetition.max {
            None if repetition.min > 0 => {
                let body = self.here();
                self.hir(&repetition.sub)?;
                let split = self.push(Step::Jump(0))?;
                self.split(split, (body, self.here()), repetition.greedy);
            }
            None => {
                let split = self.push(Step::Jump(0))?;
                self.hir(&repetition.sub)?;
                self.push(Step::Jump(split))?;
                self.split(split, (split + 1, self.here()), repetition.greedy);
            }
            Some(max) => {
                let mut splits = Vec::new();
                for _ in repetition.min..max {
                    splits.push(self.push(Step::Jump(0))?);
                    self.hir(&repetition.sub)?;
                }
                let end = self.here();
                splits.into_iter().for_each(|split| self.split(split, (split + 1, end), repetition.greedy));
            }
        }
        Some(())
    }

    fn run(&mut self, bytes: &Bytes, repetition: &Repetition) -> Option<()> {
        let set = 1 << self.set(bytes)?;
        let mut outside = (0..=u8::MAX).filter(|byte| !bytes[usize::from(*byte)]);
        let stop = outside.next().filter(|_| outside.next().is_none());
        let number = self.runs.len() as u16;
        let at = self.push(Step::Run(number))?;
        let (min, max) = (repetition.min, repetition.max.unwrap_or(u32::MAX));
        self.runs.push(Run { after: at + 1, set, min, max, lazy: !repetition.greedy, ahead: (NOTHING, NOTHING), exact: false, stop });
        Some(())
    }

    /// Makes the step at `split` a choice between a body and what comes after it.
    fn split(&mut self, split: u16, (body, out): (u16, u16), greedy: bool) {
        let (first, second) = if greedy { (body, out) } else { (out, body) };
        self.steps[usize::from(split)] = Step::Split(self.splits.len() as u16);
        self.splits.push(Split { first, second, heads: (NOTHING, NOTHING) });
    }

    /// Tells each run and each choice with which bytes it can go on; returns those of the whole.
    fn look_ahead(&mut self) -> (Sets, Sets) {
        for number in 0..self.runs.len() {
            let Run { after, set, max, .. } = self.runs[number];
            let ahead = (self.first(after), self.second(after));
            let both = |sets: &Sets| sets & set != 0 && sets & ahead.0 != 0;
            // A limit may stop it before another byte of its own.
            let exact = max == u32::MAX && !self.sets.iter().any(both);
            let run = &mut self.runs[number];
            (run.ahead, run.exact) = (ahead, exact);
        }
        for number in 0..self.splits.len() {
            let Split { first, second, .. } = self.splits[number];
            self.splits[number].heads = (self.first(first), self.first(second));
        }
        (self.first(0), self.second(0))
    }

    /// The bytes with which a match from `step` on can begin.
    fn first(&mut self, step: u16) -> Sets {
        let (round, marks) = &mut self.seen.first;
        marks.resize(self.steps.len(), 0);
        *round += 1;
        self.first_from(step.into())
    }

    /// The second bytes of a match from `step` on.
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
            Step::Set(number) => 1 << number,
            Step::Run(run) => {
                let Run { set, min, .. } = self.runs[usize::from(run)];
                set | if min > 0 { 0 } else { self.first_from(step + 1) }
            }
            Step::Split(number) => {
                let Split { first, second, .. } = self.splits[usize::from(number)];
                self.first_from(first.into()) | self.first_from(second.into())
            }
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
            Step::Jump(to) => self.second_from(to.into()),
            Step::Match | Step::Look(Look::End) => NOTHING,
            Step::Save(_) | Step::Look(_) => self.second_from(step + 1),
        }
    }

    /// The set of one byte; when there is no bit left for it, that of all.
    fn byte(&mut self, byte: u8) -> Sets {
        let mut bytes = [false; 256];
        bytes[usize::from(byte)] = true;
        self.set(&bytes).map_or(NOTHING, |number| 1 << number)
    }
}

/// Whether a part at the end of a pattern decides nothing: without it there is a match, too.
fn may_be_left_out(hir: &Hir) -> bool {
    hir.properties().minimum_len() == Some(0) && hir.properties().look_set().is_empty()
}

/// A few characters that are no ASCII, each as the bytes that it is written with.
fn characters(class: &ClassUnicode) -> Option<Vec<Hir>> {
    let all = class.iter().flat_map(|range| range.start()..=range.end()).take(MAX_CHARACTERS + 1);
    let all: Vec<Hir> = all.map(|character| Hir::literal(character.to_string().into_bytes())).collect();
    (all.len() <= MAX_CHARACTERS).then_some(all)
}

/// The bytes of a class, or of a literal of one byte.
fn single(hir: &Hir) -> Option<Bytes> {
    let mut set = [false; 256];
    match hir.kind() {
        HirKind::Class(Class::Bytes(class)) => class.iter().for_each(|range| set[usize::from(range.start())..=usize::from(range.end())].fill(true)),
        HirKind::Class(Class::Unicode(class)) if class.is_ascii() => {
            class.iter().for_each(|range| set[range.start() as usize..=range.end() as usize].fill(true))
        }
        HirKind::Literal(literal) if literal.0.len() == 1 => set[usize::from(literal.0[0])] = true,
        _ => return None,
    }
    Some(set)
}
