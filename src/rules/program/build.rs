//! Turns a parsed regex into the steps of a program.

mod ahead;

use regex_syntax::hir::{self, Class, ClassUnicode, Hir, HirKind, Repetition};

use super::classes::Classes;
use super::{Branch, Literal, Look, MAX_NAMED, Program, Run, Split, Step, Wanted};
use ahead::Seen;

/// The sets of the program under way, one bit each. The value of a byte tells which
/// of them it belongs to; the union of two sets is one value.
pub(super) type Sets = u64;
/// The set of every byte and of the end of the text: anything may follow.
pub(super) const NOTHING: Sets = 1;
/// The set of only the end of the text.
pub(super) const END: Sets = 2;
/// The bit of a program's first own set.
const FIRST_SET: usize = 2;
/// Most sets of a program.
const MAX_SETS: usize = 62;

/// Most steps of a program; a longer pattern is left to `regex`.
const MAX_STEPS: usize = 1024;
/// Most characters of a class with non-ASCII characters.
const MAX_CHARACTERS: usize = 8;

/// How many sets there may be for the look-ahead to add one for a byte that it meets. The more it adds, the fewer
/// choices are tried in vain; but all sets together may tell more bytes apart than a finished program can.
const MOST_BEFORE_AHEAD: [usize; 3] = [MAX_SETS, MAX_SETS / 2, 0];

/// Returns the program of `hir`; `None` when it needs more than the matcher can do.
pub(super) fn program(hir: &Hir, wanted: Wanted) -> Option<Program> {
    MOST_BEFORE_AHEAD.into_iter().find_map(|most| build(hir, Builder::new(wanted, most)))
}

fn build(hir: &Hir, mut builder: Builder) -> Option<Program> {
    let wanted = builder.wanted;
    if wanted == Wanted::Match {
        builder.tail(hir)?
    } else {
        builder.hir(hir)?
    }
    builder.push(Step::Match)?;
    let later = builder.later(hir)?;
    builder.look_ahead();
    let start = builder.entry(0);
    let later = later.map(|step| builder.entry(step));
    finish(builder, start, later)
}

/// Puts the classes of bytes in the place of the sets.
fn finish(builder: Builder, start: Branch, later: Option<Branch>) -> Option<Program> {
    let Builder { steps, runs, splits, switches, sets, known, literals, names, .. } = builder;
    let classes = Classes::of(&sets)?;
    let both = |(first, second): (Sets, Sets)| (classes.set(first), classes.set(second));
    let entry = |branch: Branch| Branch { heads: both(branch.heads), ..branch };
    Some(Program {
        steps: steps.into(),
        runs: runs.into_iter().map(|run| Run { set: classes.set(run.set), ahead: both(run.ahead), ..run }).collect(),
        splits: splits.into_iter().map(|split| Split { heads: both(split.heads), ..split }).collect(),
        switches: switches.into_iter().map(|branches| branches.into_iter().map(entry).collect()).collect(),
        literals: literals.into(),
        sets: (0..known.len() as u8).map(|number| classes.set(bit(number))).collect(),
        names: names.into(),
        start: entry(start),
        later: later.map(entry),
        classes: classes.of_byte,
    })
}

/// Whether `hir` as a whole matches only at the start of the text.
fn is_anchored(hir: &Hir) -> bool {
    hir.properties().look_set_prefix().contains(hir::Look::Start)
}

/// A set of bytes while a program is built.
type Bytes = [bool; 256];

struct Builder {
    wanted: Wanted,
    most_before_ahead: usize,
    steps: Vec<Step>,
    runs: Vec<Run>,
    splits: Vec<Split>,
    switches: Vec<Vec<Branch>>,
    literals: Vec<Literal>,
    sets: Box<[Sets; 256]>,
    /// The sets that have a bit, in the order of their bits.
    known: Vec<Bytes>,
    names: Vec<Box<str>>,
    seen: Seen,
}

impl Builder {
    fn new(wanted: Wanted, most_before_ahead: usize) -> Self {
        Self {
            wanted,
            most_before_ahead,
            steps: Vec::new(),
            runs: Vec::new(),
            splits: Vec::new(),
            switches: Vec::new(),
            literals: Vec::new(),
            sets: Box::new([NOTHING; 256]),
            known: Vec::new(),
            names: Vec::new(),
            seen: Seen::default(),
        }
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

    /// Returns the number of a set; `None` when no bit is left.
    fn set(&mut self, bytes: &Bytes) -> Option<u8> {
        if let Some(known) = self.known.iter().position(|known| known == bytes) {
            return Some(known as u8);
        }
        if self.known.len() == MAX_SETS {
            return None;
        }
        let number = self.known.len() as u8;
        self.known.push(*bytes);
        self.sets.iter_mut().zip(bytes).for_each(|(sets, has)| *sets |= if *has { bit(number) } else { 0 });
        Some(number)
    }

    /// Writes the part of a pattern with which a match ends, when the length of the match does not matter.
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
            HirKind::Look(look) => {
                self.push(Step::Look(supported(*look)?))?;
            }
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
        self.literals.push(Literal::from(Box::from(bytes)));
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

    /// Writes an alternation; `each` writes one branch.
    fn alternation(&mut self, branches: &[Hir], each: fn(&mut Self, &Hir) -> Option<()>) -> Option<()> {
        let number = self.switches.len();
        self.push(Step::Switch(number as u16))?;
        self.switches.push(Vec::new());
        let (mut ways, mut ends) = (Vec::new(), Vec::new());
        for (index, branch) in branches.iter().enumerate() {
            ways.push(Branch { to: self.here(), heads: (NOTHING, NOTHING) });
            each(self, branch)?;
            if index + 1 < branches.len() {
                ends.push(self.push(Step::Jump(0))?);
            }
        }
        let end = self.here();
        ends.into_iter().for_each(|jump| self.steps[usize::from(jump)] = Step::Jump(end));
        self.switches[number] = ways;
        Some(())
    }

    /// Returns the step where a match after the start of the text begins: for an alternation, only
    /// the branches that are not anchored at the start. The inner `None`: there is no such match.
    fn later(&mut self, hir: &Hir) -> Option<Option<u16>> {
        if is_anchored(hir) {
            return Some(None);
        }
        let (HirKind::Alternation(branches), Step::Switch(_)) = (hir.kind(), self.steps[0]) else { return Some(Some(0)) };
        let free = self.switches[0].iter().zip(branches).filter(|(_, branch)| !is_anchored(branch)).map(|(way, _)| *way).collect();
        let step = self.push(Step::Switch(self.switches.len() as u16))?;
        self.switches.push(free);
        Some(Some(step))
    }

    fn repetition(&mut self, repetition: &Repetition) -> Option<()> {
        if let Some(bytes) = single(&repetition.sub) {
            return self.run(&bytes, repetition);
        }
        // A body that may be empty would loop forever.
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
        let set = bit(self.set(bytes)?);
        let mut outside = (0..=u8::MAX).filter(|byte| !bytes[usize::from(*byte)]);
        let stop = outside.next().filter(|_| outside.next().is_none());
        let number = self.runs.len() as u16;
        let at = self.push(Step::Run(number))?;
        let (min, max) = (repetition.min, repetition.max.unwrap_or(u32::MAX));
        // Where a run ends decides what the groups hold, but not whether there is a match. That of few bytes mostly ends where
        // what follows begins; that of nearly all bytes would go far beyond.
        let lazy = !repetition.greedy && (self.wanted == Wanted::Groups || stop.is_some());
        self.runs.push(Run { after: at + 1, set, min, max, lazy, ahead: (NOTHING, NOTHING), exact: false, stop });
        Some(())
    }

    /// Turns the step at `split` into a choice between a body and what comes after it.
    fn split(&mut self, split: u16, (body, out): (u16, u16), greedy: bool) {
        let (first, second) = if greedy { (body, out) } else { (out, body) };
        self.steps[usize::from(split)] = Step::Split(self.splits.len() as u16);
        self.splits.push(Split { first, second, heads: (NOTHING, NOTHING) });
    }
}

/// Returns the bit of the set with this number.
fn bit(number: u8) -> Sets {
    1 << (FIRST_SET + usize::from(number))
}

fn supported(look: hir::Look) -> Option<Look> {
    match look {
        hir::Look::Start => Some(Look::Start),
        hir::Look::End => Some(Look::End),
        hir::Look::WordAscii => Some(Look::Word),
        hir::Look::WordAsciiNegate => Some(Look::NoWord),
        _ => None,
    }
}

/// Whether a part at the end of a pattern decides nothing: there is a match without it, too.
fn may_be_left_out(hir: &Hir) -> bool {
    hir.properties().minimum_len() == Some(0) && hir.properties().look_set().is_empty()
}

/// Returns the few characters of a non-ASCII class, each as its UTF-8 bytes.
fn characters(class: &ClassUnicode) -> Option<Vec<Hir>> {
    let all = class.iter().flat_map(|range| range.start()..=range.end()).take(MAX_CHARACTERS + 1);
    let all: Vec<Hir> = all.map(|character| Hir::literal(character.to_string().into_bytes())).collect();
    (all.len() <= MAX_CHARACTERS).then_some(all)
}

/// Returns the bytes of a class, or of a one-byte literal.
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
