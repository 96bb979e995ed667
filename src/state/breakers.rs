//! The breakers in the state file: one row per name, plus the last transitions of all of them. This
//! module defines the name of a stream, task or session; what a breaker does is in `core::breaker`.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::store::StoreError;
use crate::core::breaker::{Breaker, Count, State, Trip, Unit};
use crate::core::event::{Hex, Timestamp};
use crate::delivery::Label;

/// The tables, as version 2 of the state file has them.
pub(super) const TABLES: &str = "
CREATE TABLE breaker (name TEXT PRIMARY KEY, unit INTEGER NOT NULL, state INTEGER NOT NULL, since INTEGER NOT NULL, trip INTEGER NOT NULL,
    trip_signature BLOB, is_probe INTEGER NOT NULL, transient INTEGER NOT NULL, transient_last INTEGER NOT NULL, last INTEGER NOT NULL,
    counts BLOB NOT NULL, source TEXT NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, last_id TEXT NOT NULL, why TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE transition (seq INTEGER PRIMARY KEY, name TEXT NOT NULL, body BLOB NOT NULL, waits INTEGER NOT NULL);
CREATE INDEX transition_waits ON transition (seq) WHERE waits = 1;
";

/// How many transitions were left out before a `run` could write their records, and since when; since version 7. It has at most one row.
pub(super) const LEFT_OUT: &str = "CREATE TABLE left_out (count INTEGER NOT NULL, since INTEGER NOT NULL);";

/// The columns of a row.
pub(super) const COLUMNS: &str =
    "name, unit, state, since, trip, trip_signature, is_probe, transient, transient_last, last, counts, source, kind, path, last_id, why";
/// Breakers to keep; those whose last failure is oldest are dropped first.
const MAX_BREAKERS: i64 = 10_000;
/// Transitions to keep.
const MAX_TRANSITIONS: i64 = 1000;
/// Maximum length of a name, in bytes.
pub const MAX_NAME_BYTES: usize = 500;

/// Returns the name of the breaker of a task, session or stream; a plain name stands for itself.
#[must_use]
pub fn name_of(kind: &str, value: &str) -> String {
    let mut name = format!("{kind}:{value}");
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
    name
}

/// Returns the label of what belongs to no stream: the breakers of runs.
pub(super) fn label() -> Label {
    Label { source: "breaker".to_owned(), kind: "command", ..Label::default() }
}

/// A breaker and what is stored with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The breaker.
    pub breaker: Breaker,
    /// The label of its transitions' records.
    pub label: Label,
    /// Id of the last transition's record; the ids of transitions caused by time alone are derived from it.
    pub last_id: String,
    /// Why the breaker is in its state, as the record words it.
    pub why: String,
}

impl Kept {
    /// Returns a closed breaker.
    #[must_use]
    pub fn new(unit: Unit, label: Label, now: Timestamp) -> Self {
        Self { breaker: Breaker::new(unit, now), label, last_id: String::new(), why: String::new() }
    }

    /// Whether the breaker says no more than a new one would.
    fn is_blank(&self) -> bool {
        self.breaker.state == State::Closed && self.breaker.counts.is_empty() && self.breaker.transient == 0
    }
}

pub(super) fn find(db: &Connection, name: &str) -> Result<Option<Kept>, StoreError> {
    let mut one = db.prepare_cached("SELECT * FROM breaker WHERE name = ?1")?;
    Ok(one.query_row([name], |row| kept_of(row).map(|(_, kept)| kept)).optional()?)
}

/// Returns all breakers, by name.
pub(super) fn all(db: &Connection) -> Result<Vec<(String, Kept)>, StoreError> {
    let mut all = db.prepare("SELECT * FROM breaker ORDER BY name")?;
    Ok(all.query_map([], kept_of)?.collect::<Result<_, _>>()?)
}

pub(super) fn put(db: &Connection, name: &str, kept: &Kept) -> Result<(), StoreError> {
    let breaker = &kept.breaker;
    let (trip, signature) = match breaker.trip {
        None => (0, None),
        Some(Trip::Signature(signature)) => (1, Some(signature)),
        Some(Trip::Transient) => (2, None),
        Some(Trip::Fatal(signature)) => (3, signature),
    };
    let mut put = db.prepare_cached("INSERT OR REPLACE INTO breaker VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)")?;
    put.execute(params![
        name,
        breaker.unit as i64,
        breaker.state as i64,
        breaker.since.0,
        trip,
        signature.map(|signature| signature.digest()),
        breaker.is_probe,
        breaker.transient,
        breaker.transient_last.0,
        breaker.last.0,
        packed(&breaker.counts),
        kept.label.source,
        kept.label.kind,
        kept.label.path,
        kept.last_id,
        kept.why,
    ])?;
    Ok(())
}

/// Makes room if there are too many breakers: closed ones go first.
pub(super) fn prune(db: &Connection) -> Result<(), StoreError> {
    let rows: i64 = db.query_row("SELECT count(*) FROM breaker", [], |row| row.get(0))?;
    if rows > MAX_BREAKERS {
        let gone = rows - MAX_BREAKERS + MAX_BREAKERS / 100;
        db.execute("DELETE FROM breaker WHERE name IN (SELECT name FROM breaker ORDER BY state <> 0, last LIMIT ?1)", [gone])?;
    }
    Ok(())
}

pub(super) fn remove(db: &Connection, name: &str) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM breaker WHERE name = ?1")?.execute([name])?;
    Ok(())
}

/// A transition's record, to be kept.
pub(super) struct Addition<'a> {
    /// Name of the breaker.
    pub name: &'a str,
    /// The record.
    pub body: &'a [u8],
    /// When the transition was made.
    pub now: Timestamp,
    /// A `run` on this state is to write the record.
    pub waits: bool,
}

/// Keeps the record of a transition. The oldest make room; those of them that still wait are counted.
pub(super) fn add_transition(db: &Connection, addition: &Addition) -> Result<(), StoreError> {
    let Addition { name, body, now, waits } = *addition;
    db.prepare_cached("INSERT INTO transition (name, body, waits) VALUES (?1, ?2, ?3)")?.execute(params![name, body, waits])?;
    let last = db.last_insert_rowid() - MAX_TRANSITIONS;
    let unwritten: i64 = db.prepare_cached("SELECT count(*) FROM transition WHERE waits = 1 AND seq <= ?1")?.query_row([last], |row| row.get(0))?;
    if unwritten > 0 && db.prepare_cached("UPDATE left_out SET count = count + ?1")?.execute([unwritten])? == 0 {
        db.prepare_cached("INSERT INTO left_out VALUES (?1, ?2)")?.execute([unwritten, now.0])?;
    }
    db.prepare_cached("DELETE FROM transition WHERE seq <= ?1")?.execute([last])?;
    Ok(())
}

/// What other processes have left for a `run` to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// The records, oldest first.
    pub records: Vec<Vec<u8>>,
    /// How many older ones found no room, and since when.
    pub left_out: Option<(u64, Timestamp)>,
}

/// Takes what other processes have left for this one; from now on this process writes it.
pub(super) fn take_waiting(db: &Connection) -> Result<Waiting, StoreError> {
    let mut all = db.prepare_cached("SELECT body FROM transition WHERE waits = 1 ORDER BY seq")?;
    let records: Vec<Vec<u8>> = all.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if records.is_empty() {
        return Ok(Waiting::default());
    }
    db.prepare_cached("UPDATE transition SET waits = 0 WHERE waits = 1")?.execute([])?;
    let mut left_out = db.prepare_cached("SELECT count, since FROM left_out")?;
    let left_out = left_out.query_row([], |row| Ok((row.get::<_, i64>(0)? as u64, Timestamp(row.get(1)?)))).optional()?;
    if left_out.is_some() {
        db.prepare_cached("DELETE FROM left_out")?.execute([])?;
    }
    Ok(Waiting { records, left_out })
}

/// Returns the records of the last transitions, oldest first, of one breaker or of all.
pub(super) fn transitions(db: &Connection, name: Option<&str>, limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut all = db.prepare("SELECT body FROM transition WHERE ?1 IS NULL OR name = ?1 ORDER BY seq DESC LIMIT ?2")?;
    let mut bodies: Vec<Vec<u8>> = all.query_map(params![name, limit as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
    bodies.reverse();
    Ok(bodies)
}

/// Whether a row is not worth keeping.
pub(super) fn is_blank(kept: &Kept) -> bool {
    kept.is_blank() && kept.last_id.is_empty()
}

/// Whether a row can be one that siftd wrote.
pub(super) fn is_sound(row: &SqlRow) -> bool {
    kept_of(row).is_ok()
}

fn kept_of(row: &SqlRow) -> rusqlite::Result<(String, Kept)> {
    let signature = row.get::<_, Option<[u8; 16]>>("trip_signature")?.map(Hex::new);
    let trip = match row.get("trip")? {
        1_i64 => signature.map(Trip::Signature),
        2 => Some(Trip::Transient),
        3 => Some(Trip::Fatal(signature)),
        _ => None,
    };
    let state = row.get::<_, i64>("state")?;
    let breaker = Breaker {
        unit: if row.get::<_, i64>("unit")? == Unit::Event as i64 { Unit::Event } else { Unit::Run },
        state: State::ALL.iter().copied().find(|known| *known as i64 == state).unwrap_or(State::Closed),
        since: Timestamp(row.get("since")?),
        trip,
        is_probe: row.get("is_probe")?,
        transient: row.get("transient")?,
        transient_last: Timestamp(row.get("transient_last")?),
        counts: unpacked(&row.get::<_, Vec<u8>>("counts")?),
        last: Timestamp(row.get("last")?),
    };
    let label = Label { source: row.get("source")?, kind: known_kind(&row.get::<_, String>("kind")?), path: row.get("path")?, ..Label::default() };
    Ok((row.get("name")?, Kept { breaker, label, last_id: row.get("last_id")?, why: row.get("why")? }))
}

fn known_kind(kind: &str) -> &'static str {
    const KINDS: [&str; 7] = ["file", "stdin", "command", "tcp", "udp", "unix", "journald"];
    KINDS.into_iter().find(|known| *known == kind).unwrap_or("file")
}

/// Packs each count into 28 bytes: signature, runs, time of the last run.
fn packed(counts: &[Count]) -> Vec<u8> {
    let one = |count: &Count| [&count.signature.digest()[..], &count.runs.to_le_bytes(), &count.last.0.to_le_bytes()].concat();
    counts.iter().flat_map(one).collect()
}

fn unpacked(bytes: &[u8]) -> Vec<Count> {
    let one = |row: &[u8; 28]| {
        let (signature, rest) = row.split_first_chunk::<16>()?;
        let (runs, last) = rest.split_first_chunk::<4>()?;
        let last = Timestamp(i64::from_le_bytes(*last.first_chunk()?));
        Some(Count { signature: Hex::new(*signature), runs: u32::from_le_bytes(*runs), last })
    };
    bytes.as_chunks::<28>().0.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::breaker::{Failure, Limits};

    #[test]
    fn a_breaker_comes_back_as_it_was_kept() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(&[TABLES, LEFT_OUT].concat()).unwrap();
        let label = Label { source: "agent".into(), kind: "tcp", path: "a.log".into(), ..Label::default() };
        let mut kept = Kept { last_id: "aa".into(), why: "fatal".into(), ..Kept::new(Unit::Run, label, Timestamp(1)) };
        for (at, fatal) in [(2, None), (3, Some(None)), (4, Some(Some(Hex::new([7; 16]))))] {
            let failure = Failure { signatures: vec![Hex::new([at as u8; 16])], is_transient: at == 3, fatal };
            kept.breaker.failure(&failure, &Limits::default(), Timestamp(at));
            put(&db, "task:1", &kept).unwrap();
            assert_eq!(find(&db, "task:1").unwrap().as_ref(), Some(&kept));
        }
        assert_eq!(find(&db, "task:2").unwrap(), None);
    }

    #[test]
    fn rows_are_bounded_and_open_ones_stay_longest() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(&[TABLES, LEFT_OUT].concat()).unwrap();
        let mut kept = Kept::new(Unit::Run, Label::default(), Timestamp(0));
        kept.breaker.state = State::Open;
        put(&db, "open", &kept).unwrap();
        kept.breaker.state = State::Closed;
        db.execute_batch("BEGIN").unwrap();
        for n in 0..=MAX_BREAKERS {
            kept.breaker.last = Timestamp(n);
            put(&db, &name_of("task", &n.to_string()), &kept).unwrap();
        }
        prune(&db).unwrap();
        let left = all(&db).unwrap();
        assert!(left.len() as i64 <= MAX_BREAKERS && find(&db, "open").unwrap().is_some() && find(&db, "task:0").unwrap().is_none());
        for n in 0..2 * MAX_TRANSITIONS {
            add_transition(&db, &Addition { name: "x", body: n.to_string().as_bytes(), now: Timestamp(n), waits: n % 2 == 0 }).unwrap();
        }
        assert_eq!(transitions(&db, None, 9999).unwrap().len() as i64, MAX_TRANSITIONS);
        let waiting = take_waiting(&db).unwrap();
        let half = MAX_TRANSITIONS / 2;
        assert_eq!((waiting.records.len() as i64, waiting.left_out), (half, Some((half as u64, Timestamp(MAX_TRANSITIONS)))));
        assert_eq!(take_waiting(&db).unwrap(), Waiting::default());
        assert_eq!(transitions(&db, Some("x"), 2).unwrap(), [b"1998", b"1999"]);
    }

    #[test]
    fn names_are_bounded_at_a_character() {
        assert_eq!(name_of("task", "42"), "task:42");
        assert!(name_of("task", &"é".repeat(500)).len() <= MAX_NAME_BYTES);
    }
}
