//! What is held back on purpose, and said: events beyond `max_events_per_second`, and equal errors
//! within `repeat_window`. Time is an argument; what is held is kept in the state, so that no count is lost.

use std::collections::{BTreeMap, HashMap};

use crate::core::event::{Category, Severity, Timestamp};
use crate::delivery::{Label, Notice, Record, Why, derived_id};

/// A source's flood is over when it kept within its limit for so long.
const SECOND_US: i64 = 1_000_000;
/// A flood that does not end is reported so often.
const MAX_FLOOD_US: i64 = 60 * SECOND_US;
/// Most signatures that are remembered; the oldest one is reported and forgotten.
const MAX_REPEATS: usize = 10_000;

/// What is allowed.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Name of a source → events a second.
    pub per_second: HashMap<String, u32>,
    /// Microseconds; 0: off.
    pub repeat_window_us: i64,
}

/// Something held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Id of the first event that was concerned.
    pub first_id: String,
    /// When it was.
    pub since: Timestamp,
    /// When the last one was.
    pub to: Timestamp,
    /// How many were held back.
    pub count: u64,
    /// What the first one was; the others are like it. A flood is of all kinds.
    pub kind: Option<(Severity, Category)>,
}

/// What it is held under: the label of the stream, and a signature, which is empty for a flood.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Name of the source.
    pub source: String,
    /// What the events have in common; empty for a flood.
    pub signature: String,
}

#[derive(Clone, Debug)]
struct Second {
    begun: i64,
    passed: u32,
    held_at: i64,
}

/// The state of both.
#[derive(Clone, Debug, Default)]
pub struct Withhold {
    rules: Rules,
    seconds: HashMap<String, Second>,
    held: BTreeMap<Key, Held>,
    /// Keys whose entry has changed since it was last asked for.
    changed: Vec<Key>,
}

impl Withhold {
    /// Goes on with what was held.
    #[must_use]
    pub fn new(rules: Rules, held: BTreeMap<Key, Held>) -> Self {
        Self { rules, held, ..Self::default() }
    }

    /// Goes on under other rules.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
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
        if let Some(held) = self.held.get_mut(&key) {
            held.count += 1;
            held.to = now;
            self.changed.push(key);
            return false;
        }
        let kind = Some((record.severity, record.category));
        self.held.insert(key.clone(), Held { first_id: record.id.clone(), since: now, to: now, count: 0, kind });
        self.changed.push(key);
        true
    }

    fn is_within(&mut self, label: &Label, record: &Record, now: Timestamp) -> bool {
        let Some(&limit) = self.rules.per_second.get(&label.source).filter(|limit| **limit > 0) else { return true };
        let second = self.seconds.entry(label.source.clone()).or_insert(Second { begun: now.0, passed: 0, held_at: i64::MIN });
        if now.0 - second.begun >= SECOND_US {
            (second.begun, second.passed) = (now.0, 0);
        }
        if second.passed < limit {
            second.passed += 1;
            return true;
        }
        second.held_at = now.0;
        let key = Key { source: label.source.clone(), signature: String::new() };
        let held = self.held.entry(key.clone()).or_insert_with(|| Held { first_id: record.id.clone(), since: now, to: now, count: 0, kind: None });
        held.count += 1;
        held.to = now;
        self.changed.push(key);
        false
    }

    /// What is over: its source and what is to be said of it.
    pub fn due(&mut self, now: Timestamp, all: bool) -> Vec<(String, Notice)> {
        let excess = self.held.len().saturating_sub(MAX_REPEATS);
        let mut oldest: Vec<Timestamp> = if excess > 0 { self.held.values().map(|held| held.since).collect() } else { Vec::new() };
        oldest.sort_unstable();
        let too_old = oldest.get(excess).copied().unwrap_or(Timestamp(i64::MIN));
        let is_over = |key: &Key, held: &Held| match key.signature.is_empty() {
            true => now.0 - held.to.0 >= SECOND_US || now.0 - held.since.0 >= MAX_FLOOD_US,
            false => now.0 - held.since.0 >= self.rules.repeat_window_us || held.since < too_old,
        };
        let over: Vec<Key> = self.held.iter().filter(|(key, held)| all && key.signature.is_empty() || is_over(key, held)).map(|(key, _)| key.clone()).collect();
        let mut notices = Vec::new();
        for key in over {
            let Some(held) = self.held.remove(&key) else { continue };
            self.changed.push(key.clone());
            if held.count > 0 {
                notices.push((key.source.clone(), notice(&key, &held)));
            }
        }
        notices
    }

    /// When something is over at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let over = |(key, held): (&Key, &Held)| match key.signature.is_empty() {
            true => held.to.0 + SECOND_US,
            false => held.since.0 + self.rules.repeat_window_us,
        };
        self.held.iter().map(over).min().map(Timestamp)
    }

    /// All that is held.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Held)> {
        self.held.iter()
    }

    /// What has changed since the last call; `None`: it is gone.
    pub fn take_changed(&mut self) -> Vec<(Key, Option<Held>)> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(|key| (key.clone(), self.held.get(&key).cloned())).collect()
    }
}

fn notice(key: &Key, held: &Held) -> Notice {
    let count = held.count.to_be_bytes();
    if key.signature.is_empty() {
        let id = derived_id("gap", &[held.first_id.as_bytes(), &count]);
        return Notice::Gap { id, why: Why::RateLimit, bytes: None, events: Some(held.count), datagrams: None, from: held.since, to: held.to };
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
        assert!(matches!(notices[..], [(_, Notice::Gap { events: Some(85), why: Why::RateLimit, from: Timestamp(150_000), .. })]), "{notices:?}");
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
        let held = withhold.take_changed().into_iter().filter_map(|(key, held)| Some((key, held?))).collect();
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
}
