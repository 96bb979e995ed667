//! Chooses the bucket of the sieve for each literal, and which of its windows represents it. The aim is the
//! lowest cost of what the buckets let through in ordinary text, and of what then has the hash of a window.
//! Each literal in turn takes the best place; once all have one, each may be taken out and given a better one.

use std::borrow::Cow;

use super::WINDOW;
use super::guarded::Guarded;
use super::sieve::{Sets, VALUES, sets};
use super::windows::{self, SAMPLE};

/// Cost of a position of ordinary text that is let through, and of one whose hash is in the table; looking up a hash
/// costs 1. A position with the hash of a window takes about six times as long as one that its hash drops; of the costs
/// tried, this one is cheapest by that measure, though not by the aim: each literal takes the best place that is left.
const THROUGH_COST: u64 = 3;
const SEEN_COST: u64 = 6;
/// A window that may be more values than this is not examined closely.
const MOST_WINDOWS: u64 = 200;

/// The buckets and what is in them.
pub(super) struct Fill {
    text: Text,
    buckets: Vec<Bucket>,
    literals: Vec<Literal>,
    /// The literals that can be searched for, in the order in which they are placed.
    order: Vec<usize>,
}

/// The windows of a literal, cheapest first, and its place: one of the windows, and a bucket.
struct Literal {
    choices: Vec<Choice>,
    place: Option<(usize, usize)>,
}

/// A window that may represent a literal.
struct Choice {
    at: isize,
    sets: Sets,
    /// Cost of ordinary text having the window's hashes.
    cost: u64,
}

/// A bucket of the sieve.
struct Bucket {
    /// By byte of a window and value: the number of windows that need it.
    needed: [[u32; VALUES]; WINDOW],
    /// By byte of a window: where ordinary text has a value of the bucket's set.
    has: [Vec<u64>; WINDOW],
    /// The positions of ordinary text that the bucket lets through.
    through: Vec<u64>,
}

/// The positions of ordinary text, one bit each, 64 to a word.
struct Text {
    /// By byte of a window and value: where ordinary text has that value.
    of: Vec<Vec<Vec<u64>>>,
    words: usize,
}

impl Fill {
    /// Prepares placing `literals`, in addition to what `buckets` already let through.
    pub(super) fn new(buckets: &[Sets], literals: &[Guarded]) -> Self {
        let text = Text::new();
        let buckets = buckets.iter().map(|sets| Bucket::new(sets, &text)).collect();
        let seen = windows::seen();
        let literals: Vec<Literal> = literals.iter().map(|literal| Literal::new(literal, &seen)).collect();
        // Literals with the fewest choices go first: the others mostly find room in what these need.
        let mut order: Vec<usize> = (0..literals.len()).filter(|at| !literals[*at].choices.is_empty()).collect();
        order.sort_by_key(|at| literals[*at].choices.len());
        Self { text, buckets, literals, order }
    }

    /// Gives each literal the best place available.
    pub(super) fn place_each(&mut self) {
        for index in 0..self.order.len() {
            let literal = self.order[index];
            if let Some((choice, bucket)) = self.literals[literal].place.take() {
                self.buckets[bucket].remove(&self.literals[literal].choices[choice].sets, &self.text);
            }
            let (choice, bucket) = self.cheapest(&self.literals[literal].choices);
            self.literals[literal].place = Some((choice, bucket));
            self.buckets[bucket].add(&self.literals[literal].choices[choice].sets, &self.text);
        }
    }

    /// Returns what each bucket lets through, and the offset of each literal's window.
    pub(super) fn finish(self) -> (Vec<Sets>, Vec<isize>) {
        let offset = |literal: &Literal| literal.place.map_or(0, |(choice, _)| literal.choices[choice].at);
        (self.buckets.iter().map(Bucket::sets).collect(), self.literals.iter().map(offset).collect())
    }

    /// Returns the window and the bucket with the lowest cost.
    fn cheapest(&self, choices: &[Choice]) -> (usize, usize) {
        let (mut best, mut least) = ((0, 0), u64::MAX);
        for (index, choice) in choices.iter().enumerate() {
            if choice.cost >= least {
                break;
            }
            if let Some(free) = self.buckets.iter().position(|bucket| bucket.takes(&choice.sets)) {
                return (index, free);
            }
            let places = self.text.places(&choice.sets);
            for (number, bucket) in self.buckets.iter().enumerate() {
                let cost = bucket.cost(&places, choice.cost, least);
                if cost < least {
                    (best, least) = ((index, number), cost);
                }
            }
        }
        best
    }
}

impl Literal {
    fn new(literal: &Guarded, seen: &[u16]) -> Self {
        let mut choices = Vec::new();
        if windows::is_long_enough(literal) {
            choices.extend((0..=windows::last_offset(literal)).map(|at| Choice::new(literal, at, seen)));
            choices.sort_by_key(|choice| choice.cost);
        }
        Self { choices, place: None }
    }
}

impl Choice {
    fn new(literal: &Guarded, at: isize, seen: &[u16]) -> Self {
        let of_hash = |hash: &usize| SEEN_COST * u64::from(seen[*hash]) + 1;
        let cost = match windows::count(literal, at) {
            count if count > MOST_WINDOWS => count,
            _ => windows::hashes(literal, at).iter().map(of_hash).sum(),
        };
        Self { at, sets: sets(literal, at), cost }
    }
}

/// Returns the values of a set.
fn values(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let value = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (value < VALUES).then_some(value)
    })
}

impl Bucket {
    /// Makes a bucket that always lets these values through.
    fn new(sets: &Sets, text: &Text) -> Self {
        let mut bucket = Self { needed: [[0; VALUES]; WINDOW], has: std::array::from_fn(|_| vec![0; text.words]), through: vec![0; text.words] };
        bucket.add(sets, text);
        bucket
    }

    fn sets(&self) -> Sets {
        self.needed.map(|needed| (0..VALUES).filter(|value| needed[*value] > 0).fold(0, |set, value| set | 1 << value))
    }

    /// Whether the bucket lets through everything that a window may be.
    fn takes(&self, window: &Sets) -> bool {
        self.needed.iter().zip(window).all(|(needed, set)| values(*set).all(|value| needed[value] > 0))
    }

    fn add(&mut self, window: &Sets, text: &Text) {
        self.change(window, text, |needed| *needed += 1, |has, places| *has |= places);
    }

    /// Removes what [`add`](Self::add) has added. Each position has only one value, so the positions of other values stay.
    fn remove(&mut self, window: &Sets, text: &Text) {
        self.change(window, text, |needed| *needed -= 1, |has, places| *has &= !places);
    }

    fn change(&mut self, window: &Sets, text: &Text, count: impl Fn(&mut u32), join: impl Fn(&mut u64, u64)) {
        let mut is_changed = false;
        for (place, set) in window.iter().enumerate() {
            for value in values(*set) {
                let needed = &mut self.needed[place][value];
                let before = *needed;
                count(needed);
                if before == 0 || *needed == 0 {
                    is_changed = true;
                    self.has[place].iter_mut().zip(&text.of[place][value]).for_each(|(has, places)| join(has, *places));
                }
            }
        }
        if is_changed {
            let has = &self.has;
            self.through.iter_mut().enumerate().for_each(|(word, through)| *through = has.iter().fold(u64::MAX, |all, has| all & has[word]));
        }
    }

    /// Returns `cost` plus the cost of letting these positions through, too; stops counting at `most`.
    fn cost(&self, places: &[Cow<[u64]>; WINDOW], mut cost: u64, most: u64) -> u64 {
        for (word, through) in self.through.iter().enumerate() {
            let all = (0..WINDOW).fold(u64::MAX, |all, place| all & (self.has[place][word] | places[place][word]));
            cost += THROUGH_COST * u64::from((all & !through).count_ones());
            if cost >= most {
                break;
            }
        }
        cost
    }
}

impl Text {
    fn new() -> Self {
        let bytes = SAMPLE.as_bytes();
        let words = bytes.len().saturating_sub(WINDOW) / u64::BITS as usize;
        let mut of = vec![vec![vec![0; words]; VALUES]; WINDOW];
        for (at, window) in bytes.windows(WINDOW).enumerate().take(words * u64::BITS as usize) {
            for (place, byte) in window.iter().enumerate() {
                of[place][usize::from(*byte) % VALUES][at / 64] |= 1 << (at % 64);
            }
        }
        Self { of, words }
    }

    /// Returns the positions of the values of these sets.
    fn places(&self, window: &Sets) -> [Cow<'_, [u64]>; WINDOW] {
        std::array::from_fn(|place| {
            let mut places = values(window[place]).map(|value| &self.of[place][value]);
            let mut all = Cow::from(places.next().map_or(&[][..], Vec::as_slice));
            places.for_each(|more| all.to_mut().iter_mut().zip(more).for_each(|(all, more)| *all |= more));
            all
        })
    }
}
