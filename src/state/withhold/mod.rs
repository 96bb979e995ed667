//! What is held back on purpose and reported: `floods` are events beyond `max_events_per_second`, `repeats` equal errors within
//! `repeat_window`; each keeps its counts in a `tally`. This module asks both, and writes the notices. Time is an argument. Held
//! counts are kept in the state, so that none is lost. If the clock is set back, whatever began later than the new time ends.

mod floods;
mod repeats;
mod tally;

use std::collections::{BTreeMap, HashMap};

use crate::core::event::{Category, Severity, Timestamp};
use crate::delivery::{Label, Missed, Notice, Record, Why, derived_id};
use floods::Floods;
use repeats::Repeats;

/// The limits.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Name of a source → events per second.
    pub per_second: HashMap<String, u32>,
    /// Length of the window in microseconds; 0: off.
    pub repeat_window_us: i64,
}

/// What is held back under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Id of the first event concerned.
    pub first_id: String,
    /// When that event occurred.
    pub since: Timestamp,
    /// When the last one occurred.
    pub to: Timestamp,
    /// How many were held back.
    pub count: u64,
    /// Kind of the first event, which the others share; `None` for a flood, which has all kinds.
    pub kind: Option<(Severity, Category)>,
}

/// The key of what is held back: the source, and a signature, which is empty for a flood.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Name of the source.
    pub source: String,
    /// The signature that the events share; empty for a flood.
    pub signature: String,
}

/// Floods and repeats being held back.
#[derive(Debug, Default)]
pub struct Withhold {
    floods: Floods,
    repeats: Repeats,
}

impl Withhold {
    /// Continues with what was held.
    #[must_use]
    pub fn new(rules: Rules, held: BTreeMap<Key, Held>) -> Self {
        let (floods, repeats) = held.into_iter().partition(|(key, _)| key.signature.is_empty());
        Self { floods: Floods::new(rules.per_second, floods), repeats: Repeats::new(rules.repeat_window_us, repeats) }
    }

    /// Replaces the rules.
    pub fn set_rules(&mut self, rules: Rules) {
        self.floods.set_limits(rules.per_second);
        self.repeats.set_window(rules.repeat_window_us);
    }

    /// Begins a transaction: later changes can be taken back.
    pub fn begin(&mut self) {
        self.floods.begin();
        self.repeats.held.begin();
    }

    /// Restores everything to its state at [`begin`](Self::begin).
    pub fn take_back(&mut self) {
        self.floods.take_back();
        self.repeats.held.take_back();
    }

    /// Returns what has changed since [`begin`](Self::begin); `None` for an entry that was removed.
    pub fn changed(&self) -> impl Iterator<Item = (&Key, Option<&Held>)> {
        self.floods.held.changed().chain(self.repeats.held.changed())
    }

    /// Counts an event, and returns whether it may pass.
    pub fn passes(&mut self, label: &Label, record: &Record, now: Timestamp) -> bool {
        self.repeats.passes(label, record, now) && self.floods.passes(label, record, now)
    }

    /// Ends what is over, and returns each source with the notice to write.
    pub fn due(&mut self, now: Timestamp) -> Vec<(String, Notice)> {
        let floods = self.floods.over(now).into_iter().filter_map(|key| self.floods.held.remove(&key).map(|held| (key, held)));
        let mut over: Vec<(Key, Held)> = floods.collect();
        over.extend(self.repeats.over(now).into_iter().filter_map(|key| self.repeats.held.remove(&key).map(|held| (key, held))));
        over.retain(|(_, held)| held.count > 0);
        over.into_iter().map(|(key, held)| (key.source.clone(), notice(&key, &held))).collect()
    }

    /// Returns when the next entry is over at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.floods.deadline().into_iter().chain(self.repeats.deadline()).min()
    }

    /// Returns everything that is held.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Held)> {
        self.floods.held.all().chain(self.repeats.held.all())
    }
}

fn notice(key: &Key, held: &Held) -> Notice {
    let count = held.count.to_be_bytes();
    if key.signature.is_empty() {
        let id = derived_id("gap", &[held.first_id.as_bytes(), &count]);
        return Notice::Gap { id, why: Why::RateLimit, missed: Missed::Events(held.count), from: held.since, to: held.to };
    }
    let id = derived_id("repeat", &[held.first_id.as_bytes(), &count]);
    Notice::Repeat { id, signature: key.signature.clone(), kind: held.kind, count: held.count, since: held.since, to: held.to }
}

#[cfg(test)]
mod tests {
    use super::floods::SECOND_US;
    use super::repeats::MAX_REPEATS;
    use super::*;
    use crate::core::event::Hex;

    fn record(n: u64, signature: &str) -> Record {
        let (severity, category) = (Severity::High, Category::ALL[0]);
        let signature = Hex::new([signature.as_bytes()[0]; 16]);
        let (at, seen_at, weight, session) = Default::default();
        Record { len: 0, generation: 0, offset: n, inner: 0, id: format!("{n:032x}"), signature, severity, category, at, seen_at, weight, session }
    }

    fn label() -> Label {
        Label { source: "agent".into(), kind: "file", path: String::new(), ..Label::default() }
    }

    const S: i64 = SECOND_US;

    #[test]
    fn a_flood_is_one_gap_with_the_count() {
        let rules = Rules { per_second: HashMap::from([("agent".into(), 3)]), repeat_window_us: 0 };
        let mut withhold = Withhold::new(rules, BTreeMap::new());
        let mut passed = 0;
        for n in 0..100 {
            let now = Timestamp(n * S / 20);
            passed += u64::from(withhold.passes(&label(), &record(n as u64, "s"), now));
            assert_eq!(withhold.due(now), []);
        }
        assert_eq!(passed, 15);
        let notices = withhold.due(Timestamp(7 * S));
        assert!(matches!(notices[..], [(_, Notice::Gap { missed: Missed::Events(85), why: Why::RateLimit, from: Timestamp(150_000), .. })]), "{notices:?}");
        assert_eq!(withhold.deadline(), None);
        assert!(withhold.passes(&label(), &record(1, "s"), Timestamp(9 * S)));
    }

    #[test]
    fn repeats_are_the_first_and_a_count() {
        let rules = Rules { per_second: HashMap::new(), repeat_window_us: 10 * S };
        let mut withhold = Withhold::new(rules.clone(), BTreeMap::new());
        let pass = |withhold: &mut Withhold, n: i64, signature| withhold.passes(&label(), &record(n as u64, signature), Timestamp(n * S));
        assert!(pass(&mut withhold, 0, "a") && pass(&mut withhold, 1, "b") && !pass(&mut withhold, 2, "a"));
        // A restart keeps the count.
        let held = withhold.all().map(|(key, held)| (key.clone(), held.clone())).collect();
        let mut withhold = Withhold::new(rules, held);
        assert!(!pass(&mut withhold, 3, "a"));
        assert_eq!(withhold.deadline(), Some(Timestamp(10 * S)));
        let notices = withhold.due(Timestamp(10 * S));
        assert!(
            matches!(notices[..], [(_, Notice::Repeat { count: 2, since: Timestamp(0), to: Timestamp(3_000_000), kind: Some(kind), .. })] if kind == (Severity::High, Category::ALL[0])),
            "{notices:?}"
        );
        assert!(pass(&mut withhold, 10, "a"));
        assert_eq!(withhold.due(Timestamp(11 * S)), [], "b came once");
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_back_for_longer() {
        let rules = Rules { per_second: HashMap::from([("agent".into(), 2)]), repeat_window_us: 10 * S };
        let mut withhold = Withhold::new(rules, BTreeMap::new());
        let pass = |withhold: &mut Withhold, at: i64, n: u8| withhold.passes(&label(), &record(u64::from(n), &char::from(n).to_string()), Timestamp(at));
        let later = 3600 * S;
        assert!([b'a', b'b'].iter().all(|n| pass(&mut withhold, later, *n)) && !pass(&mut withhold, later + S / 2, b'c'));
        // A batch that another thread took slightly earlier belongs to the same second.
        assert!(!pass(&mut withhold, later - S / 2, b'd'));
        assert_eq!(withhold.due(Timestamp(later + S / 2)), []);

        assert!([b'e', b'f'].iter().all(|n| pass(&mut withhold, 60 * S, *n)), "a second of its own");
        assert!(!pass(&mut withhold, 60 * S, b'g'), "and one as before");
        let at = Timestamp(later + S / 2);
        let notices = withhold.due(Timestamp(60 * S));
        assert!(matches!(notices[..], [(_, Notice::Gap { missed: Missed::Events(3), from, to, .. })] if (from, to) == (at, at)), "{notices:?}");
        assert!(pass(&mut withhold, 62 * S, b'a'), "its window is over");
    }

    /// A failed transaction has held nothing back: the same events find everything as it was.
    #[test]
    fn what_a_transaction_has_changed_is_known_and_can_be_taken_back() {
        let rules = Rules { per_second: HashMap::from([("agent".into(), 2)]), repeat_window_us: 10 * S };
        let mut withhold = Withhold::new(rules, BTreeMap::new());
        let all = |withhold: &Withhold| withhold.all().map(|(key, held)| (key.clone(), held.clone())).collect::<Vec<_>>();
        let pass = |withhold: &mut Withhold, at: i64, signature| withhold.passes(&label(), &record(at as u64, signature), Timestamp(at));
        withhold.begin();
        assert!(pass(&mut withhold, 1, "a"));
        let before = (all(&withhold), withhold.deadline());
        for _ in 0..2 {
            withhold.begin();
            assert!(pass(&mut withhold, 2, "b") && !pass(&mut withhold, 3, "c") && !pass(&mut withhold, 4, "a"));
            assert_eq!(withhold.changed().filter(|(_, held)| held.is_some()).count(), 4, "a, b, c and a flood");
            assert_eq!(withhold.due(Timestamp(20 * S)).len(), 2);
            assert_eq!(withhold.changed().filter(|(_, held)| held.is_none()).count(), 4);
            withhold.take_back();
            assert_eq!((all(&withhold), withhold.deadline()), before);
        }
    }

    #[test]
    fn the_oldest_are_reported_where_there_are_too_many() {
        let rules = Rules { per_second: HashMap::new(), repeat_window_us: i64::MAX / 2 };
        let mut withhold = Withhold::new(rules, BTreeMap::new());
        for n in 0..MAX_REPEATS as u64 + 3 {
            let mut record = record(n, "a");
            record.signature = Hex::new(u128::from(n).to_be_bytes());
            assert!(withhold.passes(&label(), &record, Timestamp(n as i64)) && !withhold.passes(&label(), &record, Timestamp(n as i64)));
        }
        assert_eq!(withhold.due(Timestamp(S)).len(), 3);
        assert_eq!((withhold.all().count(), withhold.deadline()), (MAX_REPEATS, Some(Timestamp(i64::MAX / 2 + 3))));
    }
}
