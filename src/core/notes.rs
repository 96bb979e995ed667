//! Status lines and what claims them: `--- FAIL: TestX`, `3 failed`, `exited with 1` are events only
//! when no detail says the same. Owns the claims since the last border and the notes that wait.

use std::collections::{HashMap, HashSet, VecDeque};

use super::trace::OpenTrace;

/// Most notes that wait in one stream, and most claims that are remembered.
const MAX_WAITING: usize = 256;
const MAX_CLAIMS: usize = 4096;
/// Most bytes of the lines of the notes that wait.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// A longer key is no name of a test or step: it is not remembered.
const MAX_KEY_BYTES: usize = 1024;

/// Claims and waiting notes of one stream.
#[derive(Default)]
pub struct Notes {
    families: HashSet<u16>,
    /// What was claimed, and which claim it was, counted from the start of the stream.
    keys: HashMap<(u16, Vec<u8>), u64>,
    claims: u64,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
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
        self.claims += 1;
        if let Some(key) = key
            && self.keys.len() < MAX_CLAIMS
            && key.len() <= MAX_KEY_BYTES
        {
            self.keys.entry((family, key.to_vec())).or_insert(self.claims);
        }
        self.waiting.retain(|note| {
            let same = note.key.is_none() || note.key.as_deref() == key;
            let claimed = same && covers(&note.claimed_by, family);
            self.waiting_bytes -= if claimed { note.trace.kept_bytes() } else { 0 };
            !claimed
        });
    }

    /// How many claims were made.
    #[must_use]
    pub fn claims(&self) -> u64 {
        self.claims
    }

    /// Whether one of the first `claims` claims was that of `family` to `key`.
    #[must_use]
    pub fn was_claimed(&self, family: u16, key: &[u8], claims: u64) -> bool {
        self.keys.get(&(family, key.to_vec())).is_some_and(|&number| number <= claims)
    }

    /// Whether an earlier event said the same.
    #[must_use]
    pub fn is_claimed(&self, claimed_by: &[u16], key: Option<&[u8]>) -> bool {
        match key {
            None => self.families.iter().any(|family| covers(claimed_by, *family)),
            Some(key) => self.keys.keys().any(|(family, known)| covers(claimed_by, *family) && known == key),
        }
    }

    /// Keeps a note until something claims it; returns the oldest ones when there are too many.
    pub fn wait(&mut self, claimed_by: Vec<u16>, key: Option<Vec<u8>>, trace: OpenTrace) -> Vec<OpenTrace> {
        self.waiting_bytes += trace.kept_bytes();
        self.waiting.push_back(Waiting { claimed_by, key, trace });
        let mut old = Vec::new();
        while self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_WAITING_BYTES {
            let Some(note) = self.waiting.pop_front() else { break };
            self.waiting_bytes -= note.trace.kept_bytes();
            old.push(note.trace);
        }
        old
    }

    /// A border: the notes that nothing claimed are events; the claims are forgotten.
    pub fn settle(&mut self) -> Vec<OpenTrace> {
        self.families.clear();
        self.keys.clear();
        self.waiting_bytes = 0;
        self.waiting.drain(..).map(|note| note.trace).collect()
    }
}
