//! Status lines and what claims them: `--- FAIL: TestX`, `3 failed`, `exited with 1` are events only
//! when no detail says the same. Owns the claims since the last border and the notes that wait.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use md5::{Digest, Md5};

use super::line::Place;
use super::trace::OpenTrace;
use crate::rules::{Entry, Note};

/// Most notes that wait in one stream, and most claims that are remembered.
const MAX_WAITING: usize = 256;
const MAX_CLAIMS: usize = 4096;
/// A claim holds for so many lines of the stream: a runner's summary comes soon after its details,
/// and a service that runs for months is not silenced by what it said yesterday.
const CLAIM_LINES: u64 = 20_000;
/// What may have passed explains only a failure that comes so soon after it: a download that was tried again is not why
/// the build failed an hour later.
const PASSING_LINES: u64 = 3;
/// Most bytes of the lines of the notes that wait.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// A longer key is no name of a test or step: it is not remembered.
const MAX_KEY_BYTES: usize = 1024;

/// Claims and waiting notes of one stream.
#[derive(Default)]
pub struct Notes {
    /// Shared with the places where the stream may be taken up again.
    claims: Arc<Claims>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
}

/// What events have claimed since the last border.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// By family.
    pub families: Vec<Claim>,
    /// By the hash of a key, or of a key and its status line: what a log says is not kept longer than it is needed.
    pub keys: HashMap<u64, Vec<Claim>>,
    /// How many there were.
    pub count: u64,
    /// The first and the last of the status lines with a key that stand one after the other at the end.
    pub block: Option<(u64, u64)>,
}

/// A family had an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The family.
    pub family: u16,
    /// Line at which the latest one ended; where a status line claims, the first one of its block.
    pub num: u64,
    /// Which claim the first one was, counted from the start of the stream; 0 where a status line claims.
    pub number: u64,
    /// The fault [may have passed](crate::rules::Entry::is_passing).
    pub passing: bool,
}

/// Who claims: a family, and whether its fault may have passed.
#[derive(Clone, Copy, Debug)]
pub struct Claimant {
    /// The family.
    pub family: u16,
    /// The fault may have passed.
    pub passing: bool,
}

impl Claimant {
    /// That of an event of `entry`.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        Self { family: entry.family, passing: entry.is_passing() }
    }
}

struct Waiting {
    family: u16,
    claimed_by: Vec<u16>,
    key: Option<Vec<u8>>,
    trace: OpenTrace,
}

fn covers(claimed_by: &[u16], family: u16) -> bool {
    claimed_by.is_empty() || claimed_by.contains(&family)
}

/// Whether an error of `who` which ended `lines` before a note may be what the note says.
#[must_use]
pub fn explains(who: Claimant, note: &Note, lines: u64) -> bool {
    let near = note.max_lines.is_none_or(|most| lines <= u64::from(most)) && (!who.passing || !note.claimed_by.is_empty() || lines <= PASSING_LINES);
    near && covers(&note.claimed_by, who.family)
}

impl Claim {
    /// A status line that is an event claims only its repeats in its block, word by word: one that comes later is of another
    /// run, one with other words of another test with that name.
    fn is_brief(self) -> bool {
        self.number == 0
    }

    fn holds_at(self, num: u64) -> bool {
        self.num + CLAIM_LINES >= num
    }

    fn who(self) -> Claimant {
        Claimant { family: self.family, passing: self.passing }
    }
}

fn remember(claims: &mut Vec<Claim>, new: Claim) {
    match claims.iter_mut().find(|claim| claim.family == new.family && claim.is_brief() == new.is_brief() && claim.passing == new.passing) {
        Some(claim) if claim.holds_at(new.num) => claim.num = claim.num.max(new.num),
        Some(claim) => *claim = new,
        None => claims.push(new),
    }
}

fn hash(key: &[u8]) -> u64 {
    let digest = Md5::digest(key);
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// A key with the words of its status line.
fn hash_with(key: &[u8], text: &[u8]) -> u64 {
    hash(&[key, b"\n", text].concat())
}

impl Claims {
    /// An event of `who` about `key` ended at line `num`.
    pub fn add(&mut self, who: Claimant, key: Option<&[u8]>, num: u64) {
        self.count += 1;
        let claim = Claim { family: who.family, num, number: self.count, passing: who.passing };
        remember(&mut self.families, claim);
        if let Some(key) = key.filter(|key| key.len() <= MAX_KEY_BYTES) {
            self.add_key(hash(key), Claim { passing: false, ..claim });
        }
    }

    /// A status line with a key at line `num`.
    fn extend_block(&mut self, num: u64) {
        let first = self.block.filter(|(_, last)| (*last..=*last + 1).contains(&num)).map_or(num, |(first, _)| first);
        self.block = Some((first, num));
    }

    fn holds(&self, claim: Claim, num: u64) -> bool {
        if claim.is_brief() { self.block.is_some_and(|(first, _)| first == claim.num) } else { claim.holds_at(num) }
    }

    fn add_key(&mut self, key: u64, new: Claim) {
        if self.keys.len() >= MAX_CLAIMS {
            self.keys.retain(|_, claims| claims.iter().any(|claim| claim.holds_at(new.num)));
        }
        if let Some(claims) = self.keys.get_mut(&key) {
            remember(claims, new);
        } else if self.keys.len() < MAX_CLAIMS {
            self.keys.insert(key, vec![new]);
        }
    }
}

impl Notes {
    /// An event of `who` about `key` ended at line `num`: it claims the notes that wait for it,
    /// and those that come soon after it.
    pub fn claim(&mut self, who: Claimant, key: Option<&[u8]>, num: u64) {
        Arc::make_mut(&mut self.claims).add(who, key, num);
        self.drop_claimed(who.family, key, num);
    }

    /// A status line of `family` about `key` at line `num`, `text`, is an event: it claims what sums it up.
    pub fn claim_as_note(&mut self, family: u16, key: Option<&[u8]>, text: &[u8], num: u64) {
        let claims = Arc::make_mut(&mut self.claims);
        claims.add(Claimant { family, passing: false }, None, num);
        if let (Some(key), Some((first, _))) = (key.filter(|key| key.len() <= MAX_KEY_BYTES), claims.block) {
            claims.add_key(hash_with(key, text), Claim { family, num: first, number: 0, passing: false });
        }
        self.drop_claimed(family, key, num);
    }

    fn drop_claimed(&mut self, family: u16, key: Option<&[u8]>, num: u64) {
        if self.waiting.is_empty() {
            return;
        }
        self.waiting.retain(|note| {
            let same = note.key.is_none() || note.key.as_deref() == key;
            note.is_old_at(num) || !(same && covers(&note.claimed_by, family))
        });
        self.waiting_bytes = self.waiting.iter().map(|note| note.trace.kept_bytes()).sum();
    }

    /// Notes whose lines an event has taken: it is what they say.
    pub fn drop_taken(&mut self, is_taken: impl Fn(&Place) -> bool) {
        self.waiting.retain(|note| !is_taken(note.trace.lines.get(0).place));
        self.waiting_bytes = self.waiting.iter().map(|note| note.trace.kept_bytes()).sum();
    }

    /// How many claims were made.
    #[must_use]
    pub fn claims(&self) -> u64 {
        self.claims.count
    }

    /// What events have claimed.
    #[must_use]
    pub fn claimed(&self) -> Arc<Claims> {
        self.claims.clone()
    }

    /// Goes on with what events had claimed.
    pub fn restore(&mut self, claims: Arc<Claims>) {
        self.claims = claims;
    }

    /// Offset of the first note that waits.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.waiting.iter().map(|note| note.trace.anchor()).min()
    }

    /// Whether one of the first `claims` claims was that of `family` to `key`.
    #[must_use]
    pub fn was_claimed(&self, family: u16, key: &[u8], claims: u64, num: u64) -> bool {
        let known = self.claims.keys.get(&hash(key));
        known.is_some_and(|known| known.iter().any(|claim| claim.family == family && !claim.is_brief() && claim.number <= claims && claim.holds_at(num)))
    }

    /// Whether an earlier event said the same as `note` at line `num`, which reads `text`.
    pub fn is_claimed(&mut self, note: &Note, key: Option<&[u8]>, text: &[u8], num: u64) -> bool {
        if key.is_some() {
            Arc::make_mut(&mut self.claims).extend_block(num);
        }
        let (claims, repeats) = match key {
            None => (Some(&self.claims.families), None),
            Some(key) => (self.claims.keys.get(&hash(key)), self.claims.keys.get(&hash_with(key, text))),
        };
        let is_near = |last: u64| note.max_lines.is_none_or(|lines| last + u64::from(lines) >= num);
        // One with a key that still waits becomes an event, or what claims it is one: the sum of them says nothing new.
        let sums_up = |waiting: &Waiting| waiting.key.is_some() && covers(&note.claimed_by, waiting.family) && is_near(waiting.trace.last_num);
        if key.is_none() && self.waiting.iter().any(sums_up) {
            return true;
        }
        let mut claims = claims.into_iter().chain(repeats).flatten();
        claims.any(|claim| explains(claim.who(), note, num.saturating_sub(claim.num)) && self.claims.holds(*claim, num))
    }

    /// Keeps a note until something claims it, unless one that says the same with the same key waits already; returns the oldest
    /// ones when there are too many.
    pub fn wait(&mut self, family: u16, claimed_by: Vec<u16>, key: Option<Vec<u8>>, trace: OpenTrace) -> Vec<OpenTrace> {
        // A list at the end says it again, word by word.
        let text = trace.lines.get(0).text;
        if key.is_some() && self.waiting.iter().any(|note| note.key == key && note.trace.lines.get(0).text == text) {
            return Vec::new();
        }
        self.waiting_bytes += trace.kept_bytes();
        self.waiting.push_back(Waiting { family, claimed_by, key, trace });
        let mut old = Vec::new();
        while self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_WAITING_BYTES {
            old.extend(self.first());
        }
        old
    }

    /// The notes that have waited in vain at line `num`: what claims a note comes soon.
    pub fn expired(&mut self, num: u64) -> Vec<OpenTrace> {
        let mut old = Vec::new();
        while self.waiting.front().is_some_and(|note| note.is_old_at(num)) {
            old.extend(self.first());
        }
        old
    }

    fn first(&mut self) -> Option<OpenTrace> {
        let note = self.waiting.pop_front()?;
        self.waiting_bytes -= note.trace.kept_bytes();
        Some(note.trace)
    }

    /// A border: the notes that nothing claimed are events; the claims are forgotten.
    pub fn settle(&mut self) -> Vec<OpenTrace> {
        self.claims = Arc::new(Claims { count: self.claims.count, ..Claims::default() });
        self.waiting_bytes = 0;
        self.waiting.drain(..).map(|note| note.trace).collect()
    }
}

impl Waiting {
    fn is_old_at(&self, num: u64) -> bool {
        self.trace.last_num + CLAIM_LINES < num
    }
}
