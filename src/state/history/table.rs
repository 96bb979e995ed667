//! The rows of the history in the state file, and the queries on them. A query for a page of the list uses an index, whatever the number of rows.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params, params_from_iter};

use super::{Hours, MAX_SAMPLE_CHARS, Row, Rules, Sign};
use crate::core::event::{Hex, Timestamp};
use crate::delivery::Record;
use crate::state::store::StoreError;

/// The tables, as version 2 of the state file has them.
pub(in crate::state) const TABLES: &str = "
CREATE TABLE history (id INTEGER PRIMARY KEY, signature BLOB NOT NULL, recipe INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    count INTEGER NOT NULL, resolved INTEGER NOT NULL, muted INTEGER, back INTEGER, severity TEXT NOT NULL, category TEXT NOT NULL, rule TEXT NOT NULL,
    sample TEXT NOT NULL, streams TEXT NOT NULL, hours BLOB NOT NULL);
CREATE UNIQUE INDEX history_signature ON history (signature, recipe);
CREATE INDEX history_last ON history (last);
CREATE INDEX history_first ON history (first);
CREATE TABLE history_size (rows INTEGER NOT NULL);
INSERT INTO history_size VALUES (0);
CREATE TABLE history_alias (signature BLOB NOT NULL, recipe INTEGER NOT NULL, is_now BLOB NOT NULL, recipe_now INTEGER NOT NULL,
    PRIMARY KEY (signature, recipe)) WITHOUT ROWID;
CREATE INDEX history_alias_now ON history_alias (is_now, recipe_now);
CREATE TABLE history_recipe (version INTEGER NOT NULL);
CREATE TABLE history_former (form BLOB PRIMARY KEY, signature BLOB NOT NULL, recipe INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE hour (hour INTEGER PRIMARY KEY, events INTEGER NOT NULL, new INTEGER NOT NULL, regressed INTEGER NOT NULL);
";

macro_rules! columns {
    () => {
        "id, signature, recipe, first, last, count, resolved, muted, back, streams, hours, severity, category, rule, sample"
    };
}

/// The columns of a row, in the order in which they are read.
pub(in crate::state) const COLUMNS: &str = columns!();

/// A query for whole rows.
macro_rules! rows {
    ($rest:expr) => {
        concat!("SELECT ", columns!(), " FROM history ", $rest)
    };
}

/// Members to look for in a record.
static TEXT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b",\"text\":\""));
static RULE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b",\"rule\":\""));
/// Old rows to delete in one call.
const PRUNE_ROWS: i64 = 5000;

/// A row with what people want to see of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub sign: Sign,
    /// What is known of the error.
    pub row: Row,
    /// Its severity when it was first seen.
    pub severity: String,
    /// Its category when it was first seen.
    pub category: String,
    /// The rule that found it.
    pub rule: String,
    /// Its text when it was first seen, without secrets.
    pub sample: String,
}

/// What the first event of an error says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::state) struct Sample {
    pub severity: String,
    pub category: String,
    pub rule: String,
    pub text: String,
}

impl Sample {
    /// Takes the sample from a record as written. The record is searched, not parsed:
    /// quotes within texts are escaped, so whatever looks like a member is one.
    pub fn of_record(record: &Record, bytes: &[u8]) -> Self {
        let mut text = member(bytes, &TEXT);
        if let Some((end, _)) = text.char_indices().nth(MAX_SAMPLE_CHARS) {
            text.truncate(end);
            // It stays in memory until it is put into the table.
            text.shrink_to_fit();
        }
        let (severity, category) = (record.severity.as_str().to_owned(), record.category.as_str().to_owned());
        Self { severity, category, rule: member(bytes, &RULE), text }
    }
}

/// Returns the text of the first such member; `head` ends with the text's opening quote.
fn member(record: &[u8], head: &Finder<'_>) -> String {
    let Some(quoted) = head.find(record).map(|at| &record[at + head.needle().len() - 1..]) else { return String::new() };
    // Most texts have no escapes.
    match memchr::memchr2(b'"', b'\\', &quoted[1..]) {
        Some(end) if quoted[1 + end] == b'"' => String::from_utf8_lossy(&quoted[1..=end]).into_owned(),
        _ => serde_json::Deserializer::from_slice(quoted).into_iter().next().and_then(Result::ok).unwrap_or_default(),
    }
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Last seen, newest first.
    #[default]
    Last,
    /// First seen, newest first.
    First,
    /// Most often seen first.
    Count,
}

/// Which rows a list shows.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Seen at or after this time.
    pub seen_since: Option<Timestamp>,
    /// First seen at or after this time.
    pub new_since: Option<Timestamp>,
    /// Came back at or after this time.
    pub back_since: Option<Timestamp>,
    /// Not seen at or after this time.
    pub gone_since: Option<Timestamp>,
    /// Includes rows that are muted or resolved.
    pub all: bool,
    /// Their order.
    pub order: Order,
    /// The maximum number of rows.
    pub limit: usize,
}

/// The sums over all errors of an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Events.
    pub events: u64,
    /// Errors that were new.
    pub new: u64,
    /// Errors that had come back.
    pub regressed: u64,
}

/// Finds a row and its number in the table.
pub(in crate::state) fn find(db: &Connection, sign: Sign) -> Result<Option<(i64, Row)>, StoreError> {
    let mut one = db.prepare_cached(rows!("WHERE signature = ?1 AND recipe = ?2"))?;
    let found = one.query_row(params![sign.signature.digest(), sign.recipe], |row| Ok((row.get(0)?, row_of(row)?))).optional()?;
    Ok(found)
}

/// Calls `each` with the signatures of all rows, of whatever recipe; reads only the index.
pub(super) fn signatures(db: &Connection, mut each: impl FnMut(Hex)) -> Result<(), StoreError> {
    let mut all = db.prepare_cached("SELECT signature FROM history INDEXED BY history_signature")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        each(Hex::new(row.get(0)?));
    }
    Ok(())
}

/// Returns the columns muted until, back since, streams, hours.
fn columns(row: &Row) -> (Option<i64>, Option<i64>, String, Vec<u8>) {
    (row.muted_until.map(|at| at.0), row.back.map(|at| at.0), row.streams.join("\n"), row.hours.pack())
}

pub(in crate::state) fn insert(db: &Connection, sign: Sign, row: &Row, sample: &Sample) -> Result<i64, StoreError> {
    let mut put = db.prepare_cached(
        "INSERT INTO history (signature, recipe, severity, category, rule, sample, first, last, count, resolved, muted, back, streams, hours)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    let (digest, (muted, back, streams, hours)) = (sign.signature.digest(), columns(row));
    let Sample { severity, category, rule, text } = sample;
    let count = row.count as i64;
    put.execute(params![digest, sign.recipe, severity, category, rule, text, row.first.0, row.last.0, count, row.is_resolved, muted, back, streams, hours])?;
    Ok(db.last_insert_rowid())
}

/// Counts inserted rows, once per transaction.
pub(in crate::state) fn grow(db: &Connection, rows: u64) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE history_size SET rows = rows + ?1")?.execute([rows as i64])?;
    Ok(())
}

/// Writes what events have changed. `is_earlier`: the error was seen before the first time known so far; otherwise the index on that time is left alone.
pub(in crate::state) fn update(db: &Connection, id: i64, row: &Row, is_earlier: bool) -> Result<(), StoreError> {
    if is_earlier {
        db.prepare_cached("UPDATE history SET first = ?2 WHERE id = ?1")?.execute(params![id, row.first.0])?;
    }
    let mut put =
        db.prepare_cached("UPDATE history SET last = ?2, count = ?3, resolved = ?4, muted = ?5, back = ?6, streams = ?7, hours = ?8 WHERE id = ?1")?;
    let (muted, back, streams, hours) = columns(row);
    put.execute(params![id, row.last.0, row.count as i64, row.is_resolved, muted, back, streams, hours])?;
    Ok(())
}

/// Adds to the sums of an hour.
pub(in crate::state) fn add_hour(db: &Connection, hour: i64, sum: Sum) -> Result<(), StoreError> {
    let mut put = db.prepare_cached(
        "INSERT INTO hour VALUES (?1, ?2, ?3, ?4) ON CONFLICT (hour) DO UPDATE SET events = events + ?2, new = new + ?3, regressed = regressed + ?4",
    )?;
    put.execute(params![hour, sum.events as i64, sum.new as i64, sum.regressed as i64])?;
    Ok(())
}

/// Returns the number of rows.
pub(in crate::state) fn size(db: &Connection) -> Result<u64, StoreError> {
    Ok(db.query_row("SELECT rows FROM history_size", [], |row| row.get::<_, i64>(0))? as u64)
}

/// If there are too many rows, deletes those unseen for longest. Returns when the last of these was seen; all rows seen later are still there.
pub(in crate::state) fn prune_rows(db: &Connection, rules: &Rules) -> Result<Option<Timestamp>, StoreError> {
    let rows = size(db)?;
    if rows <= rules.max_rows {
        return Ok(None);
    }
    // Delete a few more, so that not every further event has to delete one.
    let gone = (rows - rules.max_rows + rules.max_rows / 100) as i64;
    let last: Option<i64> = db.query_row("SELECT last FROM history ORDER BY last LIMIT 1 OFFSET ?1", [gone - 1], |row| row.get(0)).optional()?;
    forget(db, "SELECT id FROM history ORDER BY last LIMIT ?1", gone)?;
    Ok(last.map(Timestamp))
}

/// Deletes some of the rows that are too old; returns as [`prune_rows`] does.
pub(in crate::state) fn prune_age(db: &Connection, rules: &Rules, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let oldest = now.0.saturating_sub(rules.max_age_us);
    let gone = forget(db, &format!("SELECT id FROM history WHERE last < ?1 LIMIT {PRUNE_ROWS}"), oldest)?;
    db.execute("DELETE FROM hour WHERE hour < ?1", [oldest.div_euclid(super::HOUR_US)])?;
    if gone == 0 {
        return Ok(None);
    }
    db.execute("DELETE FROM history_alias WHERE NOT EXISTS (SELECT 1 FROM history WHERE history.signature = is_now AND history.recipe = recipe_now)", [])?;
    Ok(Some(Timestamp(oldest)))
}

fn forget(db: &Connection, which: &str, value: i64) -> Result<usize, StoreError> {
    let gone = db.execute(&format!("DELETE FROM history WHERE id IN ({which})"), [value])?;
    db.execute("UPDATE history_size SET rows = rows - ?1", [gone as i64])?;
    Ok(gone)
}

/// Returns a page of the list.
pub(in crate::state) fn list(db: &Connection, choice: &Choice, now: Timestamp) -> Result<Vec<Entry>, StoreError> {
    let (query, values) = page(choice, now);
    let mut all = db.prepare(&query)?;
    Ok(all.query_map(params_from_iter(values), entry_of)?.collect::<Result<_, _>>()?)
}

/// Returns the query for a page of the list, and the values of its parameters.
fn page(choice: &Choice, now: Timestamp) -> (String, Vec<i64>) {
    let order = match choice.order {
        Order::Last => "last DESC",
        Order::First => "first DESC",
        Order::Count => "count DESC, last DESC",
    };
    let (wanted, values) = clause(choice, now);
    (format!("{}WHERE {wanted} ORDER BY {order} LIMIT {}", rows!(""), choice.limit), values)
}

/// Returns how many rows a list without a limit would have. Reads all of them.
pub(in crate::state) fn count(db: &Connection, choice: &Choice, now: Timestamp) -> Result<u64, StoreError> {
    let (wanted, values) = clause(choice, now);
    let count: i64 = db.query_row(&format!("SELECT count(*) FROM history WHERE {wanted}"), params_from_iter(values), |row| row.get(0))?;
    Ok(count as u64)
}

/// Returns the condition of a list, and the values of its parameters.
fn clause(choice: &Choice, now: Timestamp) -> (String, Vec<i64>) {
    // A row that goes on as another one is part of that one.
    let mut wanted =
        vec!["NOT EXISTS (SELECT 1 FROM history_alias WHERE history_alias.signature = history.signature AND history_alias.recipe = history.recipe)".to_owned()];
    let mut values: Vec<i64> = Vec::new();
    let mut add = |clause: &str, value: Option<Timestamp>| {
        if let Some(value) = value {
            values.push(value.0);
            wanted.push(clause.replace('?', &format!("?{}", values.len())));
        }
    };
    add("last >= ?", choice.seen_since);
    add("first >= ?", choice.new_since);
    add("back >= ?", choice.back_since);
    add("last < ?", choice.gone_since);
    add("resolved = 0 AND (muted IS NULL OR muted <= ?)", (!choice.all).then_some(now));
    (wanted.join(" AND "), values)
}

/// Returns at most ten rows whose signature begins with these digits.
pub(in crate::state) fn begin_with(db: &Connection, digits: &str) -> Result<Vec<Entry>, StoreError> {
    let mut all = db.prepare(rows!("WHERE signature >= ?1 AND lower(hex(signature)) LIKE ?2 ORDER BY signature LIMIT 10"))?;
    let whole: Vec<u8> = digits.as_bytes().chunks_exact(2).map_while(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let rows = all.query_map(params![whole, format!("{digits}%")], entry_of)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the row of an older recipe that a signature continues.
pub(in crate::state) fn former(db: &Connection, now: Sign) -> Result<Option<Sign>, StoreError> {
    let mut one = db.prepare_cached("SELECT signature, recipe FROM history_alias WHERE is_now = ?1 AND recipe_now = ?2")?;
    Ok(one.query_row(params![now.signature.digest(), now.recipe], |row| Ok(Sign { signature: Hex::new(row.get(0)?), recipe: row.get(1)? })).optional()?)
}

/// Returns what a row continues as; `None`: as itself.
pub(in crate::state) fn goes_on_as(db: &Connection, old: Sign) -> Result<Option<Sign>, StoreError> {
    let mut one = db.prepare_cached("SELECT is_now, recipe_now FROM history_alias WHERE signature = ?1 AND recipe = ?2")?;
    Ok(one.query_row(params![old.signature.digest(), old.recipe], |row| Ok(Sign { signature: Hex::new(row.get(0)?), recipe: row.get(1)? })).optional()?)
}

/// Two errors turned out to be one: takes one of the hour's new errors back.
pub(in crate::state) fn one_less_new(db: &Connection, hour: i64) -> Result<(), StoreError> {
    db.execute("UPDATE hour SET new = new - 1 WHERE hour = ?1 AND new > 0", [hour])?;
    Ok(())
}

/// From now on, `old` continues as `now`.
pub(in crate::state) fn alias(db: &Connection, old: Sign, now: Sign) -> Result<(), StoreError> {
    let mut put = db.prepare_cached("INSERT OR REPLACE INTO history_alias VALUES (?1, ?2, ?3, ?4)")?;
    put.execute(params![old.signature.digest(), old.recipe, now.signature.digest(), now.recipe])?;
    Ok(())
}

/// Returns the hourly sums of all errors since an hour.
pub(in crate::state) fn sums(db: &Connection, since: i64) -> Result<Vec<(i64, Sum)>, StoreError> {
    let mut all = db.prepare("SELECT hour, events, new, regressed FROM hour WHERE hour >= ?1 ORDER BY hour")?;
    let number = |row: &SqlRow, at: usize| row.get::<_, i64>(at).map(|value| value as u64);
    let rows = all.query_map([since], |row| Ok((row.get(0)?, Sum { events: number(row, 1)?, new: number(row, 2)?, regressed: number(row, 3)? })))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn row_of(row: &SqlRow) -> rusqlite::Result<Row> {
    let streams: String = row.get(9)?;
    let hours: Vec<u8> = row.get(10)?;
    Ok(Row {
        first: Timestamp(row.get(3)?),
        last: Timestamp(row.get(4)?),
        count: row.get::<_, i64>(5)? as u64,
        is_resolved: row.get(6)?,
        muted_until: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        back: row.get::<_, Option<i64>>(8)?.map(Timestamp),
        hours: Hours::unpack(&hours),
        streams: streams.lines().map(str::to_owned).collect(),
    })
}

fn entry_of(row: &SqlRow) -> rusqlite::Result<Entry> {
    let sign = Sign { signature: Hex::new(row.get(1)?), recipe: row.get(2)? };
    Ok(Entry { sign, row: row_of(row)?, severity: row.get(11)?, category: row.get(12)?, rule: row.get(13)?, sample: row.get(14)? })
}

/// Whether a row can be one that siftd wrote.
pub(in crate::state) fn is_sound(row: &SqlRow) -> bool {
    entry_of(row).is_ok()
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::core::event::{Category, Severity};

    /// SQLite counts the rows over which a query walks without being led to them.
    #[test]
    fn a_page_by_time_walks_over_its_own_rows_only() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(TABLES).unwrap();
        db.execute_batch(
            "WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < 2000)
             INSERT INTO history SELECT n, randomblob(16), 1, n, n, n % 77, 0, NULL, NULL, 'high', 'unknown_error', 'generic.error', 'x', 'a.log', x'' FROM number",
        )
        .unwrap();
        let walked = |order: Order| {
            let (query, values) = page(&Choice { order, limit: 50, ..Choice::default() }, Timestamp(0));
            let mut all = db.prepare(&query).unwrap();
            assert_eq!(all.query_map(params_from_iter(values), entry_of).unwrap().flatten().count(), 50);
            all.get_status(StatementStatus::FullscanStep)
        };
        assert!(walked(Order::Last) < 51 && walked(Order::First) < 51);
        assert!(walked(Order::Count) > 1990, "no index has the counts: this shows that all rows would be counted");
    }

    #[test]
    fn a_sample_is_found_whatever_texts_look_like() {
        let bytes =
            br#"{"source":{"path":"a\",\"text\":\"no.log"},"text":"said \"no\"\n,\"rule\":\"x\"","category":"c","rule":"r.x","context":["\"rule\":\"y"]}"#;
        let (severity, category) = (Severity::High, Category::ALL[0]);
        let record = Record {
            len: bytes.len() as u32,
            generation: 0,
            offset: 0,
            inner: 0,
            id: String::new(),
            signature: Hex::new([0; 16]),
            severity,
            category,
            at: Timestamp(0),
            seen_at: 0,
            session: None,
            weight: crate::delivery::Weight::None,
        };
        let sample = Sample::of_record(&record, bytes);
        assert_eq!((sample.text.as_str(), sample.rule.as_str()), ("said \"no\"\n,\"rule\":\"x\"", "r.x"));
        assert_eq!((sample.severity.as_str(), sample.category), ("high", category.as_str().to_owned()));
        assert_eq!(Sample::of_record(&record, b"no record").text, "");
    }
}
