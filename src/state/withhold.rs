//! What is held back on purpose and reported: events beyond `max_events_per_second`, and equal errors within `repeat_window`. Time is an
//! argument. Held counts are kept in the state, so that none is lost. If the clock is set back, whatever began later than the new time ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::core::event::{Category, Severity, Timestamp};
use crate::delivery::{Label, Missed, Notice, Record, Why, derived_id};

/// A source's flood is over once the source has kept within its limit for this long.
const SECOND_US: i64 = 1_000_000;
/// A flood that does not end is reported at this interval.
const MAX_FLOOD_US: i64 = 60 * SECOND_US;
/// Signatures to remember at most; beyond that, the oldest is reported and forgotten.
const MAX_REPEATS: usize = 10_000;

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

#[derive(Clone, Debug)]
struct Second {
    begun: i64,
    passed: u32,
    held_at: i64,
}

/// Floods and repeats being held back.
#[derive(Debug, Default)]
pub struct Withhold {
    rules: Rules,
    seconds: HashMap<String, Second>,
    held: BTreeMap<Key, Held>,
    /// Repeats, by the time of their first event.
    oldest: BTreeSet<(Timestamp, Key)>,
    /// Sources with a flood.
    floods: BTreeSet<String>,
    before: Before,
}

/// The entries that a transaction has changed, as they were before.
#[derive(Debug, Default)]
struct Before {
    held: BTreeMap<Key, Option<Held>>,
    seconds: HashMap<String, Second>,
}

impl Withhold {
    /// Continues with what was held.
    #[must_use]
    pub fn new(rules: Rules, held: BTreeMap<Key, Held>) -> Self {
        let mut all = Self { rules, ..Self::default() };
        held.into_iter().for_each(|(key, held)| drop(all.put(key, Some(held))));
        all
    }

    /// Replaces the rules.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Begins a transaction: later changes can be taken back.
    pub fn begin(&mut self) {
        self.before = Before { held: BTreeMap::new(), seconds: self.seconds.clone() };
    }

    /// Restores everything to its state at [`begin`](Self::begin).
    pub fn take_back(&mut self) {
        let Before { held, seconds } = std::mem::take(&mut self.before);
        self.seconds = seconds;
        held.into_iter().for_each(|(key, held)| drop(self.put(key, held)));
    }

    /// Returns what has changed since [`begin`](Self::begin); `None` for an entry that was removed.
    pub fn changed(&self) -> impl Iterator<Item = (&Key, Option<&Held>)> {
        self.before.held.keys().map(|key| (key, self.held.get(key)))
    }

    /// Replaces an entry, and returns the old one.
    fn put(&mut self, key: Key, held: Option<Held>) -> Option<Held> {
        let old = self.held.remove(&key);
        let is_flood = key.signature.is_empty();
        match &old {
            Some(_) if is_flood => self.floods.remove(&key.source),
            Some(old) => self.oldest.remove(&(old.since, key.clone())),
            None => false,
        };
        if let Some(held) = held {
            if is_flood {
                self.floods.insert(key.source.clone())
            } else {
                self.oldest.insert((held.since, key.clone()))
            };
            self.held.insert(key, held);
        }
        old
    }

    /// As [`put`](Self::put), but can be taken back.
    fn change(&mut self, key: Key, held: Option<Held>) -> Option<Held> {
        let old = self.put(key.clone(), held);
        self.before.held.entry(key).or_insert_with(|| old.clone());
        old
    }

    /// Counts one more event as held back. Returns `false` if nothing is held under this key.
    fn count(&mut self, key: &Key, now: Timestamp) -> bool {
        let Some(held) = self.held.get_mut(key) else { return false };
        if !self.before.held.contains_key(key) {
            self.before.held.insert(key.clone(), Some(held.clone()));
        }
        (held.count, held.to) = (held.count + 1, held.to.max(now));
        true
    }

    /// Whether an event may pass.
    pub fn passes(&mut self, label: &Label, record: &Record, now: Timestamp) -> bool {
        self.is_first(label, record, now) && self.is_within(label, record, now)
    }

    fn is_first(&mut self, label: &Label, record: &Record, now: Timestamp) -> bool {
        if self.rules.repeat_window_us == 0 {
            return true;
        }
        let key = Key { source: label.source.clone(), signature: record.signature.to_string() };
        if self.count(&key, now) {
            return false;
        }
        let kind = Some((record.severity, record.category));
        self.change(key, Some(Held { first_id: record.id.clone(), since: now, to: now, count: 0, kind }));
        true
    }

    fn is_within(&mut self, label: &Label, record: &Record, now: Timestamp) -> bool {
        let Some(&limit) = self.rules.per_second.get(&label.source).filter(|limit| **limit > 0) else { return true };
        let second = self.seconds.entry(label.source.clone()).or_insert(Second { begun: now.0, passed: 0, held_at: i64::MIN });
        if Timestamp(second.begun).is_past(SECOND_US, now) {
            (second.begun, second.passed) = (now.0, 0);
        }
        if second.passed < limit {
            second.passed += 1;
            return true;
        }
        second.held_at = now.0;
        let key = Key { source: label.source.clone(), signature: String::new() };
        if !self.count(&key, now) {
            self.change(key, Some(Held { first_id: record.id.clone(), since: now, to: now, count: 1, kind: None }));
        }
        false
    }

    /// Ends what is over, and returns each source with the notice to write.
    pub fn due(&mut self, now: Timestamp, all: bool) -> Vec<(String, Notice)> {
        let mut notices = Vec::new();
        let flood = |source: &String| Key { source: source.clone(), signature: String::new() };
        let is_over = |held: &Held| held.to.is_past(SECOND_US, now) || held.since.is_past(MAX_FLOOD_US, now);
        let mut over: Vec<Key> = self.floods.iter().map(flood).filter(|key| all || self.held.get(key).is_some_and(is_over)).collect();
        let excess = self.oldest.len().saturating_sub(MAX_REPEATS);
        let window = self.rules.repeat_window_us;
        let repeats = self.oldest.iter().enumerate().take_while(|(at, (since, _))| *at < excess || now.0 - since.0 >= window);
        let to_come = self.oldest.iter().rev().take_while(|(since, _)| since.0 - now.0 >= window);
        over.extend(repeats.map(|(_, (_, key))| key).chain(to_come.map(|(_, key)| key)).cloned());
        for key in over {
            let Some(held) = self.change(key.clone(), None) else { continue };
            if held.count > 0 {
                notices.push((key.source.clone(), notice(&key, &held)));
            }
        }
        notices
    }

    /// Returns when the next entry is over at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let repeat = self.oldest.first().map(|(since, _)| since.0 + self.rules.repeat_window_us);
        let flood = |source: &String| self.held.get(&Key { source: source.clone(), signature: String::new() });
        let floods = self.floods.iter().filter_map(flood).map(|held| held.to.0 + SECOND_US);
        floods.chain(repeat).min().map(Timestamp)
    }

    /// Returns everything that is held.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Held)> {
        self.held.iter()
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
            assert_eq!(withhold.due(now, false), []);
        }
        assert_eq!(passed, 15);
        let notices = withhold.due(Timestamp(7 * S), false);
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
        let notices = withhold.due(Timestamp(10 * S), false);
        assert!(
            matches!(notices[..], [(_, Notice::Repeat { count: 2, since: Timestamp(0), to: Timestamp(3_000_000), kind: Some(kind), .. })] if kind == (Severity::High, Category::ALL[0])),
            "{notices:?}"
        );
        assert!(pass(&mut withhold, 10, "a"));
        assert_eq!(withhold.due(Timestamp(11 * S), false), [], "b came once");
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
        assert_eq!(withhold.due(Timestamp(later + S / 2), false), []);

        assert!([b'e', b'f'].iter().all(|n| pass(&mut withhold, 60 * S, *n)), "a second of its own");
        assert!(!pass(&mut withhold, 60 * S, b'g'), "and one as before");
        let at = Timestamp(later + S / 2);
        let notices = withhold.due(Timestamp(60 * S), false);
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
            assert_eq!(withhold.due(Timestamp(20 * S), false).len(), 2);
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
        assert_eq!(withhold.due(Timestamp(S), false).len(), 3);
        assert_eq!((withhold.all().count(), withhold.deadline()), (MAX_REPEATS, Some(Timestamp(i64::MAX / 2 + 3))));
    }
}
