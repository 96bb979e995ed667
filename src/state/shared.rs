//! The state file as other commands use it, alongside a `run` that may be active: they read, and write only the
//! history and the breakers. Each change is one short transaction; a process that holds the file for longer is named.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Transaction, TransactionBehavior};

use super::breakers::{self, Kept};
use super::damaged;
use super::folder;
use super::history::{self, Choice, Entry, Sign, Sum};
use super::holder::holder;
use super::ledger::{Ledger, Made, Rules, tell};
use super::store::{Store, StoreError, Tx};
use crate::core::breaker::{Breaker, State, Transition, Unit};
use crate::core::event::Timestamp;
use crate::delivery::{Label, Notice, Record, Sighting, Status, WriteSeen};

/// Pause between two tries, where SQLite does not wait by itself.
const AGAIN: Duration = Duration::from_millis(20);

/// Most joins to follow one after the other: an older version let two rows continue as each other.
const MAX_JOINS: usize = 64;

/// Writes a notice as one NDJSON line.
pub type WriteNotice<'a> = &'a dyn Fn(&mut Vec<u8>, &Label, &Notice, Timestamp);

/// What causes a change of a breaker.
#[derive(Clone, Copy)]
pub struct Trigger<'a> {
    /// Its id.
    pub id: &'a str,
    /// Writes the records of the change.
    pub write: WriteNotice<'a>,
    /// When it happens.
    pub now: Timestamp,
}

/// The open state file, with the part of it that is in use.
pub struct Shared {
    folder: PathBuf,
    store: Store,
    ledger: Ledger,
    patience: Duration,
    /// It was opened for queries only.
    is_reader: bool,
    /// What was set aside when the file was opened, in words for the user.
    pub aside: Option<String>,
}

/// The result of changing a breaker.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The breaker after the change.
    pub kept: Kept,
    /// The records of the transitions, one line each.
    pub records: Vec<Vec<u8>>,
    /// The last of these records that opened the breaker.
    pub opened: Option<Vec<u8>>,
}

impl Shared {
    /// Opens the state of a folder, and creates both if they do not exist. A damaged state is set aside.
    ///
    /// # Errors
    /// A text for the user: the folder may not be written, or the named process holds the file.
    pub fn open(folder: &Path, rules: Rules, patience: Duration) -> Result<Self, String> {
        folder::make(folder).map_err(|error| {
            let why = error.to_string();
            // A read-only file system may have no free block as well, but room would not help there.
            let why = if matches!(error, StoreError::Later(_)) { folder::reason(folder, &why) } else { why };
            format!("state folder {}: {why}", folder.display())
        })?;
        let (store, aside) = retried(folder, patience, || damaged::join(folder, patience))?;
        Ok(Self { folder: folder.to_owned(), store, ledger: Ledger::new(rules), patience, is_reader: false, aside })
    }

    /// Sets how long to wait for other processes from now on.
    pub fn set_patience(&mut self, patience: Duration) {
        if self.patience != patience && self.store.db().busy_timeout(patience).is_ok() {
            self.patience = patience;
        }
    }

    /// Opens the state of a folder if it exists.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn existing(folder: &Path, rules: Rules, patience: Duration) -> Result<Option<Self>, String> {
        let is_there = retried(folder, patience, || Store::is_in(folder))?;
        is_there.then(|| Self::open(folder, rules, patience)).transpose()
    }

    /// Opens the state of a folder, if it exists, for queries only: nothing about it changes.
    ///
    /// # Errors
    /// A text for the user: it may not be read, or is not a state file.
    pub fn ask_of(folder: &Path, rules: Rules, patience: Duration) -> Result<Option<Self>, String> {
        let store = retried(folder, patience, || Store::ask_history(folder))?;
        Ok(store.map(|store| Self { folder: folder.to_owned(), store, ledger: Ledger::new(rules), patience, is_reader: true, aside: None }))
    }

    fn change<T>(&mut self, now: Timestamp, mut change: impl FnMut(&mut Ledger, &Tx<'_>) -> Result<T, StoreError>) -> Result<T, String> {
        let (store, ledger) = (&mut self.store, &mut self.ledger);
        retried(&self.folder, self.patience, || {
            let done = store.begin().and_then(|tx| {
                ledger.begin(&tx)?;
                let value = change(ledger, &tx)?;
                ledger.end(&tx, now)?;
                tx.commit()?;
                Ok(value)
            });
            if done.is_err() {
                ledger.forget();
            }
            done
        })
    }

    /// Runs a query; other processes may write meanwhile.
    fn ask<T>(&self, ask: impl Fn(&rusqlite::Connection) -> Result<T, StoreError>) -> Result<T, String> {
        retried(&self.folder, self.patience, || ask(self.store.db()))
    }

    /// Runs a query on the history, whose tail is folded first: in the file, or in a copy if the file is open for queries only.
    fn ask_history<T>(&self, ask: impl Fn(&rusqlite::Connection) -> Result<T, StoreError>) -> Result<T, String> {
        self.ask(|db| {
            if !self.is_reader {
                history::tail::settle(db)?;
                return ask(db);
            }
            if let Some(answer) = settled(db, &ask)? {
                return Ok(answer);
            }
            let busy = || StoreError::Busy("its history changes all the time".to_owned());
            let copy = Store::ask_history(&self.folder)?.ok_or_else(busy)?;
            settled(copy.db(), &ask)?.ok_or_else(busy)
        })
    }

    /// Adds records to the history, and writes what it says of each into its line. The result holds the new lines and the status of each error.
    ///
    /// # Errors
    /// As [`open`](Self::open); nothing was added then.
    pub fn take_in(&mut self, new: Incoming, write_seen: WriteSeen, now: Timestamp) -> Result<Taken, String> {
        let Incoming { label, records, body } = new;
        self.change(now, |ledger, tx| {
            let mut out = Vec::with_capacity(body.len() + 160 * records.len());
            let (mut statuses, mut at) = (Vec::with_capacity(records.len()), 0);
            for record in records {
                let line = &body[at..at + record.len as usize];
                at += record.len as usize;
                let seen = ledger.seen(tx, Sighting { label, record, line })?;
                statuses.push(seen.map(|seen| seen.status));
                match seen {
                    Some(seen) => record.append_with(&mut out, line, |out| write_seen(out, &seen)),
                    None => out.extend_from_slice(line),
                }
            }
            Ok((out, statuses))
        })
    }

    /// Returns a breaker; `None` if nothing was ever recorded for it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn breaker(&self, name: &str) -> Result<Option<Kept>, String> {
        self.ask(|db| breakers::find(db, name))
    }

    /// Returns all breakers, by name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn breakers(&self) -> Result<Vec<(String, Kept)>, String> {
        self.ask(breakers::all)
    }

    /// Returns the records of the last transitions, oldest first.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn transitions(&self, name: Option<&str>, limit: usize) -> Result<Vec<Vec<u8>>, String> {
        self.ask(|db| breakers::transitions(db, name, limit))
    }

    /// Changes a breaker; an unknown one is created. The records of the transitions wait for a `run` on this state to write them.
    ///
    /// # Errors
    /// As [`open`](Self::open); nothing has changed then.
    pub fn step(&mut self, name: &str, trigger: Trigger<'_>, step: &dyn Fn(&mut Breaker) -> Vec<Transition>) -> Result<Changed, String> {
        let Trigger { id, write, now } = trigger;
        self.change(now, |_, tx| {
            let mut kept = breakers::find(tx.db(), name)?.unwrap_or_else(|| Kept::new(Unit::Run, breakers::label(), now));
            let before = kept.clone();
            let transitions = step(&mut kept.breaker);
            let mut made: Vec<Made> = Vec::new();
            tell(name, &mut kept, &transitions, id, &mut made);
            let (mut records, mut opened) = (Vec::new(), None);
            for Made { label, notice, opens, .. } in made {
                let mut record = Vec::new();
                write(&mut record, &label, &notice, now);
                breakers::add_transition(tx.db(), &breakers::Addition { name, body: &record, now, waits: true })?;
                if opens {
                    opened = Some(record.clone());
                }
                records.push(record);
            }
            if kept != before {
                breakers::put(tx.db(), name, &kept)?;
                breakers::prune(tx.db())?;
            }
            if kept.breaker.state != State::Open {
                opened = None;
            }
            Ok(Changed { kept, records, opened })
        })
    }

    /// Returns a page of the history.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn list(&self, choice: &Choice, now: Timestamp) -> Result<Vec<Entry>, String> {
        self.ask_history(|db| history::list(db, choice, now))
    }

    /// Returns how many errors [`list`](Self::list) would return without its limit.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn count(&self, choice: &Choice, now: Timestamp) -> Result<u64, String> {
        self.ask_history(|db| history::count(db, choice, now))
    }

    /// Returns at most ten rows whose signature begins with `digits`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn begin_with(&self, digits: &str) -> Result<Vec<Entry>, String> {
        self.ask_history(|db| history::begin_with(db, digits))
    }

    /// Returns what a row continues: the signature of an older recipe, or one it was joined with.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn former(&self, sign: Sign) -> Result<Option<Sign>, String> {
        self.ask_history(|db| history::former(db, sign))
    }

    /// Returns the row that a row continues as in the end; `None`: it continues as itself.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn goes_on_as(&self, sign: Sign) -> Result<Option<Entry>, String> {
        self.ask_history(|db| {
            let end = end_of(db, sign)?;
            let rows = if end == sign { Vec::new() } else { history::begin_with(db, &end.signature)? };
            Ok(rows.into_iter().find(|entry| entry.sign == end))
        })
    }

    /// Returns the hourly sums of all errors since an hour.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn sums(&self, since: i64) -> Result<Vec<(i64, Sum)>, String> {
        self.ask(|db| history::sums(db, since))
    }

    /// Changes a row's user marks, such as resolved or muted. Returns `false` if there is no such row.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn mark(&mut self, sign: Sign, now: Timestamp, mark: &dyn Fn(&mut history::Row)) -> Result<bool, String> {
        self.change(now, |_, tx| {
            let Some((id, mut row)) = history::find(tx.db(), sign)? else { return Ok(false) };
            mark(&mut row);
            history::update(tx.db(), id, &row, true)?;
            Ok(true)
        })
    }

    /// Lets one row continue as another, or as what that one continues as: from now on they have one count. Returns
    /// `false`, and changes nothing, if it continues as another already, or the other one as it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn join(&mut self, old: Sign, now_as: Sign, now: Timestamp) -> Result<bool, String> {
        self.change(now, |_, tx| {
            let end = end_of(tx.db(), now_as)?;
            if end == old || history::goes_on_as(tx.db(), old)?.is_some() {
                return Ok(false);
            }
            history::alias(tx.db(), old, end)?;
            let (Some((_, old)), Some((id, mut row))) = (history::find(tx.db(), old)?, history::find(tx.db(), end)?) else { return Ok(true) };
            // Each of them was counted as new when it was first seen; the one that they are now was new but once.
            history::one_less_new(tx.db(), row.first.max(old.first).0.div_euclid(history::HOUR_US))?;
            row.first = row.first.min(old.first);
            row.last = row.last.max(old.last);
            row.count += old.count;
            row.hours.join(&old.hours);
            history::update(tx.db(), id, &row, true)?;
            Ok(true)
        })
    }
}

/// Runs a query if the tail of the history is empty: both see the same state, whatever other processes write meanwhile.
fn settled<T>(db: &rusqlite::Connection, ask: impl Fn(&rusqlite::Connection) -> Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    let tx = Transaction::new_unchecked(db, TransactionBehavior::Deferred)?;
    if history::tail::is_empty(&tx)? { ask(&tx).map(Some) } else { Ok(None) }
}

/// Returns the row that a row continues as in the end, or itself.
fn end_of(db: &rusqlite::Connection, sign: Sign) -> Result<Sign, StoreError> {
    let mut end = sign;
    for _ in 0..MAX_JOINS {
        let Some(next) = history::goes_on_as(db, end)? else { break };
        end = next;
    }
    Ok(end)
}

/// Lines of records, and the history's status of each.
pub type Taken = (Vec<u8>, Vec<Option<Status>>);

/// Records to take in, and their lines in the same order.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    /// Where they come from.
    pub label: &'a Label,
    /// The records.
    pub records: &'a [Record],
    /// Their lines.
    pub body: &'a [u8],
}

/// Tries until others are done, for at most `patience`; then names them.
fn retried<T>(folder: &Path, patience: Duration, mut step: impl FnMut() -> Result<T, StoreError>) -> Result<T, String> {
    let until = Instant::now() + patience;
    loop {
        match step() {
            Ok(value) => return Ok(value),
            Err(StoreError::Busy(_)) if Instant::now() < until => std::thread::sleep(AGAIN),
            Err(StoreError::Busy(_)) => {
                let who = holder(folder).map_or_else(|| "by another process".to_owned(), |who| format!("by {who}"));
                return Err(format!("the state in {} is held {who}; waited {} s: try again when it is done", folder.display(), patience.as_secs()));
            }
            Err(StoreError::Unreadable(why)) => {
                return Err(format!("the state in {} cannot be read: {why}; the next `siftd run` sets it aside", folder.display()));
            }
            Err(StoreError::Later(why)) => return Err(format!("the state in {}: {}", folder.display(), folder::reason(folder, &why))),
            Err(StoreError::Fatal(why)) => return Err(format!("the state in {}: {why}", folder.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{Category, Hex, Severity};
    use crate::delivery::Weight;
    use crate::state::history::Row;

    fn happens(shared: &mut Shared, signature: u8) {
        let (severity, category, weight) = (Severity::High, Category::ALL[0], Weight::None);
        let (at, session) = (Timestamp(1), None);
        let record = Record {
            len: 3,
            generation: 0,
            offset: 0,
            inner: 0,
            id: String::new(),
            signature: Hex::new([signature; 16]),
            severity,
            category,
            at,
            seen_at: 1,
            weight,
            session,
        };
        shared.take_in(Incoming { label: &Label::default(), records: &[record], body: b"{}\n" }, |_, _| {}, at).unwrap();
    }

    fn counts(shared: &Shared) -> Vec<u64> {
        let choice = Choice { limit: 9, all: true, ..Choice::default() };
        shared.list(&choice, Timestamp(1)).unwrap().iter().map(|entry| entry.row.count).collect()
    }

    #[test]
    fn joined_errors_have_one_count_however_often_they_are_joined_and_seen() {
        let folder = tempfile::tempdir().unwrap();
        let rules = Rules { history: Some(Default::default()), ..Rules::default() };
        let mut shared = Shared::open(folder.path(), rules, Duration::ZERO).unwrap();
        [1, 2, 2, 2].into_iter().for_each(|signature| happens(&mut shared, signature));
        let (a, b) = (Sign::now(Hex::new([1; 16])), Sign::now(Hex::new([2; 16])));
        assert_eq!(shared.join(a, b, Timestamp(1)), Ok(true));
        assert_eq!((shared.join(a, b, Timestamp(1)), shared.join(b, a, Timestamp(1))), (Ok(false), Ok(false)));
        assert_eq!(counts(&shared), [4]);
        let mut other = Shared::open(folder.path(), rules, Duration::ZERO).unwrap();
        happens(&mut other, 1);
        assert_eq!(counts(&other), [5]);
    }

    #[test]
    fn who_only_asks_sees_what_another_process_has_written_since() {
        let folder = tempfile::tempdir().unwrap();
        let rules = Rules { history: Some(Default::default()), ..Rules::default() };
        let mut writer = Shared::open(folder.path(), rules, Duration::ZERO).unwrap();
        happens(&mut writer, 1);
        assert_eq!(counts(&writer), [1], "folded");
        let reader = Shared::ask_of(folder.path(), rules, Duration::ZERO).unwrap().unwrap();
        assert_eq!(counts(&reader), [1]);
        // As a daemon leaves it after a transaction.
        let known = writer.list(&Choice { limit: 9, all: true, ..Choice::default() }, Timestamp(1)).unwrap().remove(0);
        let mut rows = Vec::new();
        history::tail::put(&mut rows, Sign::now(Hex::new([1; 16])), &Row { count: 2, ..known.row }, None);
        history::tail::append(writer.store.db(), &rows).unwrap();
        assert!(!history::tail::is_empty(writer.store.db()).unwrap());
        assert_eq!(counts(&reader), [2]);
    }
}
