//! Status lines and what claims them: `--- FAIL: TestX`, `3 failed`, `exited with 1` are events only
//! when no detail says the same. Owns the claims since the last border and the notes that wait.

use std::collections::{HashSet, VecDeque};

use super::trace::OpenTrace;

/// Most notes that wait in one stream, and most claims that are remembered.
const MAX_WAITING: usize = 256;
const MAX_CLAIMS: usize = 4096;

/// Claims and waiting notes of one stream.
#[derive(Default)]
pub struct Notes {
    families: HashSet<u16>,
    keys: HashSet<(u16, Vec<u8>)>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    claimed_by: Vec<u16>,
    key: Option<Vec<u8>>,
    trace: OpenTrace,
}

fn covers(claimed_by: &[u16], family: u16) -> bool {
    claimed_by.is_empty() || claimed_by.contains(&family)
}

impl Notes {
    /// An event of `family` about `key` was found: it claims the notes that wait for it, and those
    /// that come after it.
    pub fn claim(&mut self, family: u16, key: Option<&[u8]>) {
        self.families.insert(family);
        if let Some(key) = key
            && self.keys.len() < MAX_CLAIMS
        {
            self.keys.insert((family, key.to_vec()));
        }
        self.waiting.retain(|note| {
            let same = note.key.is_none() || note.key.as_deref() == key;
            !(same && covers(&note.claimed_by, family))
        });
    }

    /// Whether an earlier event said the same.
    #[must_use]
    pub fn is_claimed(&self, claimed_by: &[u16], key: Option<&[u8]>) -> bool {
        match key {
            None => self.families.iter().any(|family| covers(claimed_by, *family)),
            Some(key) => self.keys.iter().any(|(family, known)| covers(claimed_by, *family) && known == key),
        }
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
