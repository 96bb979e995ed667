//! For processors with wide registers: which four bytes may begin at a place, told by what each of them is. Literals share
//! [`BUCKETS`] buckets; a bucket has, for each byte of a window, the set of its values, and lets a place through when each
//! byte is in its set. A few instructions ask that of 64 places. Because every place is looked at, one window a literal is enough.
//! Which bucket a literal joins, and with which of its windows, is chosen by what that lets through of ordinary text.

use serde::{Deserialize, Serialize};

use super::WINDOW;
use super::guarded::{Byte, Guarded};
use super::windows::{self, SAMPLE};

/// Groups of buckets: a byte has a bit for each bucket of a group.
pub const GROUPS: usize = 3;
const GROUP_BUCKETS: usize = u8::BITS as usize;
const BUCKETS: usize = GROUPS * GROUP_BUCKETS;
/// Values of a byte without its highest bit, which is left out: what it tells is not worth a second table.
pub const VALUES: usize = 128;
/// Of this many lines of the sample one is asked.
const EVERY: usize = 2;
/// What it costs that a place of these is let through, and that a hash stands in the sample, where 1 is what a hash costs. Measured:
/// what has the hash of a window takes twice the time that dropping a place by its hash takes.
const THROUGH_COST: u64 = 6;
const SEEN_COST: u64 = 2;
/// A choice that takes more windows is not looked at closely.
const MOST_WINDOWS: u64 = 200;

/// By group, byte of a window and value, a bit for each bucket whose set has it.
pub type Tables = [[[u8; VALUES]; WINDOW]; GROUPS];

/// For each byte of a window a set of values, a bit for each.
type Sets = [u128; WINDOW];

/// Its buckets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Sieve {
    buckets: Vec<Sets>,
}

impl Sieve {
    /// One that lets nothing through.
    pub(super) fn new() -> Self {
        Self { buckets: vec![Sets::default(); BUCKETS] }
    }

    /// Chooses a window for each of `literals` that [is long enough](windows::is_long_enough) and makes room for it; returns their
    /// offsets.
    pub(super) fn extend(&mut self, literals: &[Guarded]) -> Vec<isize> {
        let seen = windows::seen();
        let mut order: Vec<usize> = (0..literals.len()).filter(|at| windows::is_long_enough(&literals[*at])).collect();
        // Those first that leave the least choice: the others mostly find room in what these need.
        order.sort_by_key(|at| windows::last_offset(&literals[*at]));
        let (mut chosen, mut text) = (vec![0; literals.len()], None);
        for index in order {
            let mut choices: Vec<Choice> = (0..=windows::last_offset(&literals[index])).map(|at| Choice::new(&literals[index], at, &seen)).collect();
            choices.sort_by_key(|choice| choice.cost);
            let free = choices.iter().position(|choice| self.takes(&choice.window)).unwrap_or(choices.len());
            let most = choices.get(free).map_or(u64::MAX, |choice| choice.cost);
            let mut best = free;
            // Room for one that costs less may be worth what it lets through.
            if choices[0].cost < most {
                let text = text.get_or_insert_with(|| Text::new(&self.buckets));
                if let Some((choice, bucket)) = text.cheapest(&choices[..free], most) {
                    text.add(bucket, &choices[choice].window);
                    self.buckets[bucket].iter_mut().zip(choices[choice].window).for_each(|(set, more)| *set |= more);
                    best = choice;
                }
            }
            chosen[index] = choices[best].at;
        }
        chosen
    }

    /// Whether all that a window may be is let through.
    fn takes(&self, window: &Sets) -> bool {
        self.buckets.iter().any(|bucket| bucket.iter().zip(window).all(|(set, more)| more & !set == 0))
    }

    /// For the loop that asks it.
    pub(super) fn tables(&self) -> Tables {
        let mut tables = [[[0; VALUES]; WINDOW]; GROUPS];
        for (number, bucket) in self.buckets.iter().enumerate() {
            for (place, set) in bucket.iter().enumerate() {
                for (value, of_value) in tables[number / GROUP_BUCKETS][place].iter_mut().enumerate() {
                    *of_value |= ((set >> value & 1) as u8) << (number % GROUP_BUCKETS);
                }
            }
        }
        tables
    }
}

/// A window that may stand for a literal.
struct Choice {
    at: isize,
    window: Sets,
    /// That ordinary text has these hashes.
    cost: u64,
}

impl Choice {
    fn new(literal: &Guarded, at: isize, seen: &[u16]) -> Self {
        let of_hash = |hash: &usize| SEEN_COST * u64::from(seen[*hash]) + 1;
        let cost = match windows::count(literal, at) {
            count if count > MOST_WINDOWS => count,
            _ => windows::hashes(literal, at).iter().map(of_hash).sum(),
        };
        Self { at, window: sets(literal, at), cost }
    }
}

/// What the bytes of a window may be.
fn sets(literal: &Guarded, at: isize) -> Sets {
    std::array::from_fn(|place| match literal.byte(at + place as isize) {
        Byte::Only(byte) => bit(byte),
        Byte::Any => u128::MAX,
        set @ Byte::Of(_) => set.values().into_iter().map(bit).fold(0, |all, one| all | one),
    })
}

fn bit(byte: u8) -> u128 {
    1 << (usize::from(byte) % VALUES)
}

/// The places of ordinary text, a bit for each, 64 to a word.
struct Text {
    /// By byte of a window and value: where it stands.
    of: Vec<Vec<Vec<u64>>>,
    /// By bucket and byte of a window: where a value of its set stands.
    sets: Vec<[Vec<u64>; WINDOW]>,
    /// By bucket: what is let through.
    through: Vec<Vec<u64>>,
}

impl Text {
    fn new(buckets: &[Sets]) -> Self {
        let bytes: Vec<u8> = SAMPLE.split_inclusive('\n').step_by(EVERY).flat_map(str::bytes).collect();
        let words = bytes.len().saturating_sub(WINDOW).div_ceil(u64::BITS as usize);
        let mut of = vec![vec![vec![0; words]; VALUES]; WINDOW];
        for (at, window) in bytes.windows(WINDOW).enumerate().take(words * u64::BITS as usize) {
            for (place, byte) in window.iter().enumerate() {
                of[place][usize::from(*byte) % VALUES][at / 64] |= 1 << (at % 64);
            }
        }
        let none = || vec![0; words];
        let mut text = Self { of, sets: buckets.iter().map(|_| std::array::from_fn(|_| none())).collect(), through: buckets.iter().map(|_| none()).collect() };
        buckets.iter().enumerate().for_each(|(bucket, sets)| text.add(bucket, sets));
        text
    }

    /// With which of these windows, in the order of their costs, which bucket lets the fewest places more through, all counted
    /// as costs; `None` when each costs `most`.
    fn cheapest(&self, choices: &[Choice], most: u64) -> Option<(usize, usize)> {
        let (mut best, mut found) = (most, None);
        for (index, choice) in choices.iter().enumerate().take_while(|(_, choice)| choice.cost <= most) {
            let places = self.places(&choice.window);
            for bucket in 0..self.through.len() {
                let cost = self.cost(bucket, &places, choice.cost, best);
                if cost < best {
                    (best, found) = (cost, Some((index, bucket)));
                }
            }
        }
        found
    }

    /// Where values of these sets stand.
    fn places(&self, window: &Sets) -> [Vec<u64>; WINDOW] {
        std::array::from_fn(|place| {
            let mut values = (0..VALUES).filter(|value| window[place] >> value & 1 != 0).map(|value| &self.of[place][value]);
            let mut all = values.next().cloned().unwrap_or_default();
            values.for_each(|more| all.iter_mut().zip(more).for_each(|(all, more)| *all |= more));
            all
        })
    }

    /// What it costs that a bucket lets more places through, behind the cost so far; counted no further than `most`.
    fn cost(&self, bucket: usize, more: &[Vec<u64>; WINDOW], mut cost: u64, most: u64) -> u64 {
        let sets = &self.sets[bucket];
        for (word, through) in self.through[bucket].iter().enumerate() {
            if cost >= most {
                break;
            }
            let all = (0..WINDOW).fold(u64::MAX, |all, place| all & (sets[place][word] | more[place][word]));
            cost += THROUGH_COST * u64::from((all & !through).count_ones());
        }
        cost
    }

    fn add(&mut self, bucket: usize, window: &Sets) {
        let places = self.places(window);
        for (set, more) in self.sets[bucket].iter_mut().zip(places) {
            set.iter_mut().zip(more).for_each(|(set, more)| *set |= more);
        }
        for (word, through) in self.through[bucket].iter_mut().enumerate() {
            *through = self.sets[bucket].iter().fold(u64::MAX, |all, set| all & set[word]);
        }
    }
}
