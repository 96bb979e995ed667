//! Which bucket of a sieve each literal joins, and with which of its windows: so that what the buckets let through of
//! ordinary text, and what of that has the hash of a window, costs least. Each literal in turn takes the best place there
//! is; once all have one, each may be taken out and given a better one.

use std::borrow::Cow;

use super::WINDOW;
use super::guarded::Guarded;
use super::sieve::{Sets, VALUES, sets};
use super::windows::{self, SAMPLE};

/// What it costs that a place of ordinary text is let through, and that one has a hash, where 1 is what a hash costs. Measured: what
/// has the hash of a window takes some four times the time that dropping a place by its hash takes.
const THROUGH_COST: u64 = 3;
const SEEN_COST: u64 = 12;
/// A window that may be so many others is not looked at closely.
const MOST_WINDOWS: u64 = 200;

/// Buckets and what is in them.
pub(super) struct Fill {
    text: Text,
    buckets: Vec<Bucket>,
    literals: Vec<Literal>,
    /// Those that can be looked for, in the order in which they are given a place.
    order: Vec<usize>,
}

/// The windows of a literal, those first that cost least, and which of them is in which bucket.
struct Literal {
    choices: Vec<Choice>,
    place: Option<(usize, usize)>,
}

/// A window that may stand for a literal.
struct Choice {
    at: isize,
    sets: Sets,
    /// That ordinary text has these hashes.
    cost: u64,
}

/// A bucket of the sieve.
struct Bucket {
    /// By byte of a window and value: how many windows need it.
    needed: [[u32; VALUES]; WINDOW],
    /// By byte of a window: where ordinary text has a value of its set.
    has: [Vec<u64>; WINDOW],
    /// Which places of that it lets through.
    through: Vec<u64>,
}

/// The places of ordinary text, a bit for each, 64 to a word.
struct Text {
    /// By byte of a window and value: where it stands.
    of: Vec<Vec<Vec<u64>>>,
    words: usize,
}

impl Fill {
    /// `literals` without a place beside what `buckets` let through already.
    pub(super) fn new(buckets: &[Sets], literals: &[Guarded]) -> Self {
        let text = Text::new();
        let buckets = buckets.iter().map(|sets| Bucket::new(sets, &text)).collect();
        let seen = windows::seen();
        let literals: Vec<Literal> = literals.iter().map(|literal| Literal::new(literal, &seen)).collect();
        // Those first that leave the least choice: the others mostly find room in what these need.
        let mut order: Vec<usize> = (0..literals.len()).filter(|at| !literals[*at].choices.is_empty()).collect();
        order.sort_by_key(|at| literals[*at].choices.len());
        Self { text, buckets, literals, order }
    }

    /// Gives each literal the best place that there is.
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

    /// What each bucket lets through, and the offset of each literal's window.
    pub(super) fn finish(self) -> (Vec<Sets>, Vec<isize>) {
        let offset = |literal: &Literal| literal.place.map_or(0, |(choice, _)| literal.choices[choice].at);
        (self.buckets.iter().map(Bucket::sets).collect(), self.literals.iter().map(offset).collect())
    }

    /// The window and the bucket that cost least.
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
        let offsets = if windows::is_long_enough(literal) { 0..=windows::last_offset(literal) } else { 0..=-1 };
        let mut choices: Vec<Choice> = offsets.map(|at| Choice::new(literal, at, seen)).collect();
        choices.sort_by_key(|choice| choice.cost);
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

/// The values of a set.
fn values(set: u128) -> impl Iterator<Item = usize> {
    (0..VALUES).filter(move |value| set >> value & 1 != 0)
}

impl Bucket {
    /// One that holds what lets these values through, for good.
    fn new(sets: &Sets, text: &Text) -> Self {
        let mut bucket = Self { needed: [[0; VALUES]; WINDOW], has: std::array::from_fn(|_| vec![0; text.words]), through: vec![0; text.words] };
        bucket.add(sets, text);
        bucket
    }

    fn sets(&self) -> Sets {
        self.needed.map(|needed| (0..VALUES).filter(|value| needed[*value] > 0).fold(0, |set, value| set | 1 << value))
    }

    /// Whether all that a window may be is let through.
    fn takes(&self, window: &Sets) -> bool {
        self.needed.iter().zip(window).all(|(needed, set)| values(*set).all(|value| needed[value] > 0))
    }

    fn add(&mut self, window: &Sets, text: &Text) {
        self.change(window, text, |needed| *needed += 1, |has, places| *has |= places);
    }

    /// Takes out what [`add`](Self::add) has put in: at a place stands one value only, so another value's places stay.
    fn remove(&mut self, window: &Sets, text: &Text) {
        self.change(window, text, |needed| *needed -= 1, |has, places| *has &= !places);
    }

    fn change(&mut self, window: &Sets, text: &Text, count: impl Fn(&mut u32), join: impl Fn(&mut u64, u64)) {
        let mut is_changed = false;
        for place in 0..WINDOW {
            for value in values(window[place]) {
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

    /// What it costs that it lets these places through, too, added to `cost`; counted no further than `most`.
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

    /// Where values of these sets stand.
    fn places(&self, window: &Sets) -> [Cow<'_, [u64]>; WINDOW] {
        std::array::from_fn(|place| {
            let mut places = values(window[place]).map(|value| &self.of[place][value]);
            let mut all = Cow::from(places.next().map_or(&[][..], Vec::as_slice));
            places.for_each(|more| all.to_mut().iter_mut().zip(more).for_each(|(all, more)| *all |= more));
            all
        })
    }
}
