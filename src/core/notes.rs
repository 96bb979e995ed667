//! Status lines and what claims them: `--- FAIL: TestX`, `3 failed`, `exited with 1` are events
//! only if no detail says the same. Owns the claims since the last border and the waiting notes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use md5::{Digest, Md5};

use super::line::Place;
use super::trace::OpenTrace;
use super::writer::Writer;
use crate::rules::{Entry, Note};

/// Maximum number of waiting notes in one stream, and of remembered claims.
const MAX_WAITING: usize = 256;
const MAX_CLAIMS: usize = 4096;
/// Number of lines for which a claim holds. A runner's summary comes soon after its
/// details, and a service that runs for months is not silenced by what it said yesterday.
const CLAIM_LINES: u64 = 20_000;
/// Number of lines within which a fault that may have passed explains a failure:
/// a download that was tried again is not why the build failed an hour later.
const PASSING_LINES: u64 = 3;
/// Maximum number of bytes in the lines of all waiting notes.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// Maximum length of a key; a longer one is no name of a test or step and is not remembered.
const MAX_KEY_BYTES: usize = 1024;

/// Claims and waiting notes of one stream.
#[derive(Default)]
pub struct Notes {
    /// Shared with the places where the stream can be resumed.
    claims: Arc<Claims>,
    waiting: VecDeque<WaitingNote>,
    waiting_bytes: usize,
}

/// What events have claimed since the last border.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// By family.
    pub families: Vec<Claim>,
    /// By the hash of a key, or of a key and its status line: log content is not kept longer than needed.
    pub keys: HashMap<u64, Vec<Claim>>,
    /// Number of claims made.
    pub count: u64,
    /// The first and the last line of the current block of consecutive status lines with a key.
    pub block: Option<(u64, u64)>,
}

/// The claim of a family that had an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The family.
    pub family: u16,
    /// Line at which the latest event ended; if a status line claims, the first line of its block.
    pub num: u64,
    /// Line at which the first of these events ended: what is above it has nothing to do with them.
    pub first: u64,
    /// Number of the first of these claims, counted from the start of the stream; 0 if a status line claims.
    pub number: u64,
    /// Whether the fault [may have passed](crate::rules::Entry::is_passing).
    pub passing: bool,
    /// The service that wrote of it: what another's status lines report is something else.
    pub service: Writer,
}

/// Who claims: a family, whether its fault may have passed, and the service.
#[derive(Clone, Copy, Debug)]
pub struct Claimant {
    /// The family.
    pub family: u16,
    /// Whether the fault may have passed.
    pub passing: bool,
    /// The [service](super::line::Line::service) that wrote of it.
    pub service: Writer,
}

impl Claimant {
    /// Returns the claimant of an event of `entry` that `service` wrote.
    #[must_use]
    pub fn of(entry: &Entry, service: Writer) -> Self {
        Self { family: entry.family, passing: entry.is_passing(), service }
    }
}

struct WaitingNote {
    family: u16,
    claimed_by: Vec<u16>,
    /// What the note is about.
    key: Option<Vec<u8>>,
    /// Whether the note is about one test or check: it has a key, or its rule says so.
    of_one: bool,
    trace: OpenTrace,
}

fn covers(claimed_by: &[u16], family: u16) -> bool {
    claimed_by.is_empty() || claimed_by.contains(&family)
}

/// Whether an error of `who` that ended `lines` lines before a note by `service` may be what the note reports.
#[must_use]
pub fn explains(who: Claimant, (note, service): (&Note, Writer), lines: u64) -> bool {
    let near = note.max_lines.is_none_or(|most| lines <= u64::from(most)) && (!who.passing || !note.claimed_by.is_empty() || lines <= PASSING_LINES);
    near && covers(&note.claimed_by, who.family) && who.service.may_be(service)
}

impl Claim {
    /// Whether a status line made the claim. It then claims only word-for-word repeats in its
    /// block: a later one is of another run, one with other words of another test with that name.
    fn is_brief(self) -> bool {
        self.number == 0
    }

    fn holds_at(self, num: u64) -> bool {
        self.num + CLAIM_LINES >= num
    }

    fn who(self) -> Claimant {
        Claimant { family: self.family, passing: self.passing, service: self.service }
    }
}

fn remember(claims: &mut Vec<Claim>, new: Claim) {
    let kind = |claim: &Claim| (claim.family, claim.is_brief(), claim.passing, claim.service);
    match claims.iter_mut().find(|claim| kind(claim) == kind(&new)) {
        Some(claim) if claim.holds_at(new.num) => claim.num = claim.num.max(new.num),
        Some(claim) => *claim = new,
        None => {
            if claims.len() >= MAX_CLAIMS {
                claims.retain(|claim| claim.holds_at(new.num));
            }
            if claims.len() < MAX_CLAIMS {
                claims.push(new);
            }
        }
    }
}

/// Hash of a name or a key: log content is not kept longer than needed.
#[must_use]
pub fn hash(key: &[u8]) -> u64 {
    let digest = Md5::digest(key);
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Hash of a key together with the words of its status line.
fn hash_with(key: &[u8], text: &[u8]) -> u64 {
    hash(&[key, b"\n", text].concat())
}

impl Claims {
    /// Adds the claim of an event of `who` about `key` that ended at line `num`.
    pub fn add(&mut self, who: Claimant, key: Option<&[u8]>, num: u64) {
        self.count += 1;
        let claim = Claim { family: who.family, num, first: num, number: self.count, passing: who.passing, service: who.service };
        remember(&mut self.families, claim);
        if let Some(key) = key.filter(|key| key.len() <= MAX_KEY_BYTES) {
            self.add_key(hash(key), Claim { passing: false, ..claim });
        }
    }

    /// Adds the claim of `who` to `key` alone, which was settled at line `num` without an event.
    pub fn add_told(&mut self, who: Claimant, key: &[u8], num: u64) {
        self.count += 1;
        if key.len() <= MAX_KEY_BYTES {
            self.add_key(hash(key), Claim { family: who.family, num, first: num, number: self.count, passing: false, service: who.service });
        }
    }

    /// Extends the block by a status line with a key at line `num`.
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

/// A note as it stands in a line.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The note.
    pub note: &'a Note,
    /// The service whose line it is.
    pub service: Writer,
    /// What it is about.
    pub key: Option<&'a [u8]>,
    /// How the line reads.
    pub text: &'a [u8],
    /// The number of the line.
    pub num: u64,
    /// What ended before this line is of another command.
    pub since: u64,
}

impl Notes {
    /// Makes the claim of an event of `who` about `key` that ended at line `num`:
    /// on the notes that wait for it, and on those that come soon after it.
    pub fn claim(&mut self, who: Claimant, key: Option<&[u8]>, num: u64) {
        Arc::make_mut(&mut self.claims).add(who, key, num);
        self.drop_claimed(who, key, num);
    }

    /// Settles what status lines say about `key`, which `who` took back at line `num`.
    pub fn take_back(&mut self, who: Claimant, key: &[u8], num: u64) {
        Arc::make_mut(&mut self.claims).add_told(who, key, num);
        self.keep(|note| note.is_old_at(num) || note.key.as_deref() != Some(key) || !note.is_of(who));
    }

    /// Makes the claim of a status line that is an event: of `who` about
    /// `key` at line `num`, reading `text`. It claims what sums it up.
    pub fn claim_as_note(&mut self, who: Claimant, key: Option<&[u8]>, text: &[u8], num: u64) {
        let claims = Arc::make_mut(&mut self.claims);
        claims.add(who, None, num);
        if let (Some(key), Some((first, _))) = (key.filter(|key| key.len() <= MAX_KEY_BYTES), claims.block) {
            claims.add_key(hash_with(key, text), Claim { family: who.family, num: first, first, number: 0, passing: false, service: who.service });
        }
        self.drop_claimed(who, key, num);
    }

    fn drop_claimed(&mut self, who: Claimant, key: Option<&[u8]>, num: u64) {
        if self.waiting.is_empty() {
            return;
        }
        self.keep(|note| {
            let same = note.key.is_none() || note.key.as_deref() == key;
            note.is_old_at(num) || !(same && note.is_of(who))
        });
    }

    /// Drops all waiting notes but those that `is_kept`.
    fn keep(&mut self, is_kept: impl Fn(&WaitingNote) -> bool) {
        self.waiting.retain(is_kept);
        self.waiting_bytes = self.waiting.iter().map(|note| note.trace.kept_bytes()).sum();
    }

    /// Drops the notes whose lines an event has taken: the event says the same.
    pub fn drop_taken(&mut self, is_taken: impl Fn(&Place) -> bool) {
        self.keep(|note| !is_taken(note.trace.lines.get(0).place));
    }

    /// Number of claims made.
    #[must_use]
    pub fn claims(&self) -> u64 {
        self.claims.count
    }

    /// Returns what events have claimed.
    #[must_use]
    pub fn claimed(&self) -> Arc<Claims> {
        self.claims.clone()
    }

    /// Continues with what events had claimed before.
    pub fn restore(&mut self, claims: Arc<Claims>) {
        self.claims = claims;
    }

    /// Returns the smallest offset at which a waiting note began.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.waiting.iter().map(|note| note.trace.anchor()).min()
    }

    /// Whether one of the first `claims` claims was that of `who` to `key` and still holds at line `num`.
    #[must_use]
    pub fn was_claimed(&self, who: Claimant, key: &[u8], claims: u64, num: u64) -> bool {
        let is_it = |claim: &&Claim| claim.family == who.family && !claim.is_brief() && claim.number <= claims && claim.holds_at(num);
        let known = self.claims.keys.get(&hash(key));
        known.is_some_and(|known| known.iter().filter(is_it).any(|claim| claim.service.may_be(who.service)))
    }

    /// Whether an event has said the same as the note. What a block of notes with a key repeats stays known as long as the block goes on.
    pub fn find_claim(&mut self, asked: &Asked) -> bool {
        let Asked { note, service, key, text, num, since } = *asked;
        if key.is_some() {
            Arc::make_mut(&mut self.claims).extend_block(num);
        }
        let (claims, repeats) = match key {
            None => (Some(&self.claims.families), None),
            Some(key) => (self.claims.keys.get(&hash(key)), self.claims.keys.get(&hash_with(key, text))),
        };
        let is_near = |last: u64| note.max_lines.is_none_or(|lines| last + u64::from(lines) >= num);
        // A waiting note about one test becomes an event, or is claimed by one: a sum of such notes says nothing new.
        let sums_up = |waiting: &WaitingNote| {
            let is_meant = covers(&note.claimed_by, waiting.family) && waiting.trace.setting.service.may_be(service);
            waiting.of_one && is_meant && is_near(waiting.trace.last_num) && waiting.trace.last_num >= since
        };
        if key.is_none() && !note.of_one && self.waiting.iter().any(sums_up) {
            return true;
        }
        let mut claims = claims.into_iter().chain(repeats).flatten();
        claims.any(|claim| {
            claim.first <= num && claim.num >= since && explains(claim.who(), (note, service), num.saturating_sub(claim.num)) && self.claims.holds(*claim, num)
        })
    }

    /// Renews the claims of `who`: a status line at line `num` is about one of the tests that its events have told of, so what
    /// sums up near it is, too.
    pub fn renew(&mut self, who: Claimant, num: u64) {
        let is_who = |claim: &Claim| claim.family == who.family && claim.service.may_be(who.service);
        let renewed = |claim: &&mut Claim| is_who(claim) && !claim.is_brief() && !claim.passing && claim.holds_at(num);
        Arc::make_mut(&mut self.claims).families.iter_mut().filter(renewed).for_each(|claim| claim.num = claim.num.max(num));
    }

    /// Keeps a note until something claims it, unless one with the same key
    /// and text waits already. Returns the oldest notes if there are too many.
    pub fn wait(&mut self, family: u16, note: &Note, key: Option<Vec<u8>>, trace: OpenTrace) -> Vec<OpenTrace> {
        // A list at the end repeats it word for word.
        let text = trace.lines.get(0).text;
        if key.is_some() && self.waiting.iter().any(|note| note.key == key && note.trace.lines.get(0).text == text) {
            return Vec::new();
        }
        // One that begins with the line of a waiting note tells more, and would have the same id.
        self.drop_taken(|place| trace.lines.first(trace.lead).any(|taken| taken.place.spot() == place.spot()));
        self.waiting_bytes += trace.kept_bytes();
        self.waiting.push_back(WaitingNote { family, claimed_by: note.claimed_by.clone(), of_one: note.of_one || key.is_some(), key, trace });
        let mut old = Vec::new();
        while self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_WAITING_BYTES {
            old.extend(self.first());
        }
        old
    }

    /// Returns the notes that have waited in vain at line `num`: what claims a note comes soon.
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

    /// Handles a border of `service`: returns its notes that nothing claimed, which are events, and forgets its claims.
    pub fn settle(&mut self, service: Writer) -> Vec<OpenTrace> {
        let claims = Arc::make_mut(&mut self.claims);
        claims.families.retain(|claim| !claim.service.may_be(service));
        claims.keys.retain(|_, claims| {
            claims.retain(|claim| !claim.service.may_be(service));
            !claims.is_empty()
        });
        claims.block = None;
        let (settled, left): (VecDeque<_>, _) = std::mem::take(&mut self.waiting).into_iter().partition(|note| note.trace.setting.service.may_be(service));
        self.waiting_bytes = left.iter().map(|note: &WaitingNote| note.trace.kept_bytes()).sum();
        self.waiting = left;
        settled.into_iter().map(|note| note.trace).collect()
    }
}

impl WaitingNote {
    /// Whether an event of `who` may be what the note reports.
    fn is_of(&self, who: Claimant) -> bool {
        covers(&self.claimed_by, who.family) && self.trace.setting.service.may_be(who.service)
    }

    fn is_old_at(&self, num: u64) -> bool {
        self.trace.last_num + CLAIM_LINES < num
    }
}
