//! Status lines and what claims them: `--- FAIL: TestX`, `3 failed`, `exited with 1` are events only
//! when no detail says the same. Owns the claims since the last border and the notes that wait.

use std::collections::{HashMap, VecDeque};

use super::trace::OpenTrace;

/// Most notes that wait in one stream, and most claims that are remembered.
const MAX_WAITING: usize = 256;
const MAX_CLAIMS: usize = 4096;
/// A claim holds for so many lines of the stream: a runner's summary comes soon after its details,
/// and a service that runs for months is not silenced by what it said yesterday.
const CLAIM_LINES: u64 = 20_000;

/// Claims and waiting notes of one stream.
#[derive(Default)]
pub struct Notes {
    families: Vec<Claim>,
    keys: HashMap<Vec<u8>, Vec<Claim>>,
    waiting: VecDeque<Waiting>,
}

/// A family had an event that ended at line `num`.
#[derive(Clone, Copy)]
struct Claim {
    family: u16,
    num: u64,
}

struct Waiting {
    claimed_by: Vec<u16>,
    key: Option<Vec<u8>>,
    trace: OpenTrace,
}

fn covers(claimed_by: &[u16], family: u16) -> bool {
    claimed_by.is_empty() || claimed_by.contains(&family)
}

fn remember(claims: &mut Vec<Claim>, family: u16, num: u64) {
    match claims.iter_mut().find(|claim| claim.family == family) {
        Some(claim) => claim.num = claim.num.max(num),
        None => claims.push(Claim { family, num }),
    }
}

impl Notes {
    /// An event of `family` about `key` ended at line `num`: it claims the notes that wait for it,
    /// and those that come soon after it.
    pub fn claim(&mut self, family: u16, key: Option<&[u8]>, num: u64) {
        remember(&mut self.families, family, num);
        if let Some(key) = key {
            self.claim_key(family, key, num);
        }
        self.waiting.retain(|note| {
            let same = note.key.is_none() || note.key.as_deref() == key;
            !(same && covers(&note.claimed_by, family))
        });
    }

    fn claim_key(&mut self, family: u16, key: &[u8], num: u64) {
        if self.keys.len() >= MAX_CLAIMS {
            self.keys.retain(|_, claims| claims.iter().any(|claim| claim.num + CLAIM_LINES >= num));
        }
        if let Some(claims) = self.keys.get_mut(key) {
            remember(claims, family, num);
        } else if self.keys.len() < MAX_CLAIMS {
            self.keys.insert(key.to_vec(), vec![Claim { family, num }]);
        }
    }

    /// Whether an earlier event said the same as the note at line `num`.
    #[must_use]
    pub fn is_claimed(&self, claimed_by: &[u16], key: Option<&[u8]>, num: u64) -> bool {
        let claims = match key {
            None => Some(&self.families),
            Some(key) => self.keys.get(key),
        };
        claims.is_some_and(|claims| claims.iter().any(|claim| covers(claimed_by, claim.family) && claim.num + CLAIM_LINES >= num))
    }

    /// Keeps a note until something claims it; returns the oldest one when there are too many.
    pub fn wait(&mut self, claimed_by: Vec<u16>, key: Option<Vec<u8>>, trace: OpenTrace) -> Option<OpenTrace> {
        self.waiting.push_back(Waiting { claimed_by, key, trace });
        if self.waiting.len() <= MAX_WAITING {
            return None;
        }
        self.waiting.pop_front().map(|note| note.trace)
    }

    /// A border: the notes that nothing claimed are events; the claims are forgotten.
    pub fn settle(&mut self) -> Vec<OpenTrace> {
        self.families.clear();
        self.keys.clear();
        self.waiting.drain(..).map(|note| note.trace).collect()
    }
}
