//! Matches the patterns of rules: a backtracking matcher over runs of bytes, with a budget.
//!
//! The lines that rules look at are short and mostly fit. On them a backtracker that swallows a whole
//! run of a class at once, and retreats only to places where the next byte fits, costs a third of a
//! lazy automaton, reads the groups in the same pass, and is built in a twentieth of the time. What it
//! cannot do it leaves to `regex`: Unicode classes, look-around other than `^`, `$` and `\b`, and any
//! text on which the budget, linear in its length, runs out. So matching stays linear in the text.
//!
//! It finds what `regex` finds: the leftmost match, alternatives in their order (Perl's rules).

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// Most steps of a program; a longer pattern is left to `regex`.
const MAX_STEPS: usize = 1024;
/// Most named groups.
pub const MAX_NAMED: usize = 12;
/// Budget for each byte of the text; looking at a byte costs one.
const FUEL_PER_BYTE: usize = 32;
/// Budget for the shortest text.
const MIN_FUEL: usize = 2048;
/// What a step costs beside the bytes that it looks at.
const STEP_FUEL: usize = 4;
/// Most choices that are left open at once.
const MAX_CHOICES: usize = 48;
/// Stands for a set that any byte, or the end of the text, belongs to.
const ANY: u16 = u16::MAX;

/// A set of bytes.
type Set = [bool; 256];
/// Where each named group begins and ends; [`UNSET`] when it took no part.
pub type Slots = [u32; 2 * MAX_NAMED];
/// A group that took no part in the match.
pub const UNSET: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
enum Step {
    Byte(u8),
    Literal { from: u16, len: u16 },
    Set(u16),
    Run { set: u16, min: u32, max: u32, lazy: bool, next: u16 },
    Split { first: u16, second: u16 },
    Jump(u16),
    Save(u8),
    Look(Look),
    Match,
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

/// What is left to try, in a place of fixed size: whoever needs more is out of fuel.
struct Stack {
    choices: [Choice; MAX_CHOICES],
    depth: usize,
}

impl Stack {
    #[inline(always)]
    fn push(&mut self, choice: Choice) -> Result<(), OutOfFuel> {
        *self.choices.get_mut(self.depth).ok_or(OutOfFuel)? = choice;
        self.depth += 1;
        Ok(())
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Choice> {
        self.depth = self.depth.checked_sub(1)?;
        Some(self.choices[self.depth])
    }
}

/// The budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfFuel;

/// A pattern in the matcher's form.
#[derive(Debug)]
pub struct Program {
    steps: Box<[Step]>,
    sets: Box<[Set]>,
    literals: Box<[u8]>,
    names: Box<[Box<str>]>,
    /// Matches at the start of the text only.
    anchored: bool,
    /// Bytes with which a match begins.
    first: u16,
}

impl Program {
    /// The program of `hir`; `None` when it needs more than this matcher can do.
    #[must_use]
    pub fn new(hir: &Hir) -> Option<Self> {
        let mut builder = Builder::default();
        builder.hir(hir)?;
        builder.push(Step::Match)?;
        builder.look_ahead();
        let first = builder.first_set(0);
        let anchored = hir.properties().look_set_prefix().contains(Look::Start);
        let Builder { steps, sets, literals, names } = builder;
        Some(Self { steps: steps.into(), sets: sets.into(), literals: literals.into(), names: names.into(), anchored, first })
    }

    /// Named groups, in the order of their slots.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Whether it matches somewhere in `text`; the named groups go to `slots` when there are any.
    ///
    /// # Errors
    /// The text needs more steps than its length allows.
    pub fn run(&self, text: &[u8], slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        self.run_for(&mut Self::fuel(text), text, slots)
    }

    /// The budget for a text.
    #[must_use]
    pub fn fuel(text: &[u8]) -> usize {
        MIN_FUEL + FUEL_PER_BYTE * text.len()
    }

    /// [`run`](Self::run), which takes what it spends from `fuel`.
    ///
    /// # Errors
    /// That is not enough.
    pub fn run_for(&self, fuel: &mut usize, text: &[u8], mut slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        let mut stack = Stack { choices: [Choice::Restore { slot: 0, value: UNSET }; MAX_CHOICES], depth: 0 };
        let last = if self.anchored { 0 } else { text.len() };
        let mut found = Ok(false);
        for start in 0..=last {
            if !self.fits(self.first, text, start) {
                continue;
            }
            stack.depth = 0;
            found = Thread { program: self, text, stack: &mut stack, fuel }.run(start, slots.as_deref_mut());
            if found != Ok(false) {
                break;
            }
        }
        found
    }

    #[inline(always)]
    fn fits(&self, set: u16, text: &[u8], at: usize) -> bool {
        set == ANY || text.get(at).is_some_and(|byte| self.sets[usize::from(set)][usize::from(*byte)])
    }
}

/// One attempt, from one place of the text.
struct Thread<'a> {
    program: &'a Program,
    text: &'a [u8],
    stack: &'a mut Stack,
    fuel: &'a mut usize,
}

impl Thread<'_> {
    fn run(&mut self, start: usize, mut slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        let (mut step, mut at) = (0, start);
        loop {
            if self.follow(step, &mut at, slots.as_deref_mut())? {
                return Ok(true);
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
                            (step, at) = (run + 1, place);
                            break;
                        }
                    }
                    Some(Choice::Longer { run, at: from, high }) => {
                        if let Some(place) = self.longer(run, from as usize, high as usize)? {
                            (step, at) = (run + 1, place);
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Follows the steps from `step` until they match or fail.
    #[inline]
    fn follow(&mut self, mut step: u16, at: &mut usize, mut slots: Option<&mut Slots>) -> Result<bool, OutOfFuel> {
        let program = self.program;
        loop {
            self.spend(STEP_FUEL)?;
            let fits = match program.steps[usize::from(step)] {
                Step::Byte(byte) => {
                    *at += 1;
                    self.text.get(*at - 1) == Some(&byte)
                }
                Step::Literal { from, len } => {
                    let literal = &program.literals[usize::from(from)..usize::from(from) + usize::from(len)];
                    let fits = self.text.get(*at..).is_some_and(|rest| rest.starts_with(literal));
                    *at += literal.len();
                    fits
                }
                Step::Set(set) => {
                    *at += 1;
                    program.fits(set, self.text, *at - 1)
                }
                Step::Run { set, min, max, lazy, .. } => match self.begin_run(step, *at, set, (min, max), lazy)? {
                    Some(place) => {
                        *at = place;
                        true
                    }
                    None => false,
                },
                Step::Split { first, second } => {
                    self.stack.push(Choice::Try { step: second, at: *at as u32 })?;
                    step = first;
                    continue;
                }
                Step::Jump(to) => {
                    step = to;
                    continue;
                }
                Step::Save(slot) => {
                    if let Some(slots) = slots.as_deref_mut() {
                        let value = std::mem::replace(&mut slots[usize::from(slot)], *at as u32);
                        self.stack.push(Choice::Restore { slot, value })?;
                    }
                    true
                }
                Step::Look(look) => self.looks(look, *at),
                Step::Match => return Ok(true),
            };
            if !fits {
                return Ok(false);
            }
            step += 1;
        }
    }

    #[inline(always)]
    fn spend(&mut self, amount: usize) -> Result<(), OutOfFuel> {
        *self.fuel = self.fuel.checked_sub(amount).ok_or(OutOfFuel)?;
        Ok(())
    }

    /// Where a run that begins at `at` ends first; the other ends are left as a choice.
    fn begin_run(&mut self, step: u16, at: usize, set: u16, (min, max): (u32, u32), lazy: bool) -> Result<Option<usize>, OutOfFuel> {
        let set = &self.program.sets[usize::from(set)];
        let limit = self.text.len().min(at.saturating_add(max as usize));
        let low = at + min as usize;
        if low > limit {
            return Ok(None);
        }
        if lazy {
            self.spend(low - at)?;
            let fits = self.text[at..low].iter().all(|byte| set[usize::from(*byte)]);
            return if fits { self.longer(step, low, limit) } else { Ok(None) };
        }
        let end = self.text[at..limit].iter().position(|byte| !set[usize::from(*byte)]).map_or(limit, |length| at + length);
        self.spend(end - at)?;
        if end < low { Ok(None) } else { self.shorter(step, low, end) }
    }

    /// The last place from `high` down to `low` where what follows can begin.
    fn shorter(&mut self, run: u16, low: usize, high: usize) -> Result<Option<usize>, OutOfFuel> {
        let Step::Run { next, .. } = self.program.steps[usize::from(run)] else { return Ok(None) };
        let found = (low..=high).rev().find(|at| self.program.fits(next, self.text, *at));
        self.spend(1 + high - found.unwrap_or(low))?;
        if let Some(at) = found.filter(|at| *at > low) {
            self.stack.push(Choice::Shorter { run, low: low as u32, at: at as u32 })?;
        }
        Ok(found)
    }

    /// The first place from `at` on where what follows can begin, as long as the run's bytes last.
    fn longer(&mut self, run: u16, at: usize, high: usize) -> Result<Option<usize>, OutOfFuel> {
        let Step::Run { set, next, .. } = self.program.steps[usize::from(run)] else { return Ok(None) };
        let set = &self.program.sets[usize::from(set)];
        let mut place = at;
        while !self.program.fits(next, self.text, place) {
            if place >= high || !set[usize::from(self.text[place])] {
                self.spend(1 + place - at)?;
                return Ok(None);
            }
            place += 1;
        }
        self.spend(1 + place - at)?;
        if place < high && set[usize::from(self.text[place])] {
            self.stack.push(Choice::Longer { run, at: place as u32 + 1, high: high as u32 })?;
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

#[derive(Default)]
struct Builder {
    steps: Vec<Step>,
    sets: Vec<Set>,
    literals: Vec<u8>,
    names: Vec<Box<str>>,
}

impl Builder {
    fn push(&mut self, step: Step) -> Option<u16> {
        (self.steps.len() < MAX_STEPS).then(|| {
            self.steps.push(step);
            (self.steps.len() - 1) as u16
        })
    }

    fn here(&self) -> u16 {
        self.steps.len() as u16
    }

    fn set(&mut self, set: Set) -> u16 {
        let known = self.sets.iter().position(|other| *other == set);
        known.unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        }) as u16
    }

    fn hir(&mut self, hir: &Hir) -> Option<()> {
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => self.literal(&literal.0)?,
            HirKind::Class(_) => {
                let set = self.set(single(hir)?);
                self.push(Step::Set(set))?;
            }
            HirKind::Look(look @ (Look::Start | Look::End | Look::WordAscii | Look::WordAsciiNegate)) => {
                self.push(Step::Look(*look))?;
            }
            HirKind::Look(_) => return None,
            HirKind::Repetition(repetition) => self.repetition(repetition)?,
            HirKind::Capture(group) => match &group.name {
                Some(name) => self.named(name, &group.sub)?,
                None => self.hir(&group.sub)?,
            },
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.hir(part))?,
            HirKind::Alternation(branches) => self.alternation(branches)?,
        }
        Some(())
    }

    fn literal(&mut self, bytes: &[u8]) -> Option<()> {
        if let [byte] = bytes {
            self.push(Step::Byte(*byte))?;
            return Some(());
        }
        let from = u16::try_from(self.literals.len()).ok()?;
        let len = u16::try_from(bytes.len()).ok()?;
        self.literals.extend_from_slice(bytes);
        self.push(Step::Literal { from, len }).map(drop)
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

    fn alternation(&mut self, branches: &[Hir]) -> Option<()> {
        let mut ends = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            if index + 1 == branches.len() {
                self.hir(branch)?;
                break;
            }
            let split = self.push(Step::Jump(0))?;
            self.hir(branch)?;
            ends.push(self.push(Step::Jump(0))?);
            self.steps[usize::from(split)] = Step::Split { first: split + 1, second: self.here() };
        }
        let end = self.here();
        ends.into_iter().for_each(|jump| self.steps[usize::from(jump)] = Step::Jump(end));
        Some(())
    }

    fn repetition(&mut self, repetition: &Repetition) -> Option<()> {
        if let Some(set) = single(&repetition.sub) {
            let set = self.set(set);
            let run = Step::Run { set, min: repetition.min, max: repetition.max.unwrap_or(u32::MAX), lazy: !repetition.greedy, next: ANY };
            return self.push(run).map(drop);
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
                let out = self.here();
                self.steps[usize::from(split)] =
                    if repetition.greedy { Step::Split { first: body, second: out } } else { Step::Split { first: out, second: body } };
            }
            None => {
                let split = self.push(Step::Jump(0))?;
                self.hir(&repetition.sub)?;
                self.push(Step::Jump(split))?;
                self.close_split(split, repetition.greedy);
            }
            Some(max) => {
                let mut splits = Vec::new();
                for _ in repetition.min..max {
                    splits.push(self.push(Step::Jump(0))?);
                    self.hir(&repetition.sub)?;
                }
                splits.into_iter().for_each(|split| self.close_split(split, repetition.greedy));
            }
        }
        Some(())
    }

    fn close_split(&mut self, split: u16, greedy: bool) {
        let (body, end) = (split + 1, self.here());
        self.steps[usize::from(split)] = if greedy { Step::Split { first: body, second: end } } else { Step::Split { first: end, second: body } };
    }

    /// Tells each run with which bytes its continuation can begin.
    fn look_ahead(&mut self) {
        for at in 0..self.steps.len() {
            if let Step::Run { .. } = self.steps[at] {
                let ahead = self.first_set(at + 1);
                if let Step::Run { next, .. } = &mut self.steps[at] {
                    *next = ahead;
                }
            }
        }
    }

    /// The bytes with which a match from `step` on can begin; [`ANY`] when it may consume nothing.
    fn first_set(&mut self, step: usize) -> u16 {
        let mut set = [false; 256];
        if self.add_first(step, &mut set, &mut vec![false; self.steps.len()]) { self.set(set) } else { ANY }
    }

    fn add_first(&self, step: usize, set: &mut Set, seen: &mut [bool]) -> bool {
        if std::mem::replace(&mut seen[step], true) {
            return true;
        }
        let add = |set: &mut Set, other: u16| set.iter_mut().zip(&self.sets[usize::from(other)]).for_each(|(mine, theirs)| *mine |= theirs);
        match self.steps[step] {
            Step::Byte(byte) => set[usize::from(byte)] = true,
            Step::Literal { from, .. } => set[usize::from(self.literals[usize::from(from)])] = true,
            Step::Set(other) => add(set, other),
            Step::Run { set: other, min, .. } => {
                add(set, other);
                return min > 0 || self.add_first(step + 1, set, seen);
            }
            Step::Split { first, second } => return self.add_first(first.into(), set, seen) && self.add_first(second.into(), set, seen),
            Step::Jump(to) => return self.add_first(to.into(), set, seen),
            Step::Save(_) | Step::Look(Look::Start) => return self.add_first(step + 1, set, seen),
            Step::Look(_) | Step::Match => return false,
        }
        true
    }
}

/// The bytes of a class, or of a literal of one byte.
fn single(hir: &Hir) -> Option<Set> {
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
