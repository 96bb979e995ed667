//! What has changed since rows were last put into the table. Each transaction appends the rows it has changed, as they
//! are then: it writes a few pages sequentially, where a thousand new errors would touch a thousand pages of an index.
//! A process that finds a tail it did not write folds it into the table first, so lookups only ever go to the table.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::hours::{push_number, take_number};
use super::table::{Sample, find, grow, insert, update};
use super::{Hours, Row, Sign};
use crate::core::event::{Hex, Timestamp};
use crate::state::store::StoreError;

/// The table, as version 5 of the state file has it.
pub(in crate::state) const TABLE: &str = "
CREATE TABLE history_tail (seq INTEGER PRIMARY KEY, rows BLOB NOT NULL);
";

/// A row, and its sample if it is not yet in the table.
type Line = (Row, Option<Sample>);

/// Appends a row to `out`.
pub(in crate::state) fn put(out: &mut Vec<u8>, sign: Sign, row: &Row, sample: Option<&Sample>) {
    out.extend_from_slice(&sign.signature.digest());
    let some = |at: Option<Timestamp>| at.map_or(0, |at| (at.0 as u64).wrapping_add(1));
    let numbers = [u64::from(sign.recipe), row.first.0 as u64, row.last.0 as u64, row.count, u64::from(row.is_resolved), some(row.muted_until), some(row.back)];
    numbers.into_iter().for_each(|number| push_number(out, number));
    push_bytes(out, row.streams.join("\n").as_bytes());
    push_bytes(out, &row.hours.pack());
    push_number(out, u64::from(sample.is_some()));
    if let Some(sample) = sample {
        [&sample.severity, &sample.category, &sample.rule, &sample.text].into_iter().for_each(|text| push_bytes(out, text.as_bytes()));
    }
}

/// Takes the first of the rows that [`put`] wrote; `None` at the end.
fn take(bytes: &mut &[u8]) -> Option<(Sign, Line)> {
    let (signature, rest) = bytes.split_first_chunk::<16>()?;
    *bytes = rest;
    let recipe = u32::try_from(take_number(bytes)?).ok()?;
    let sign = Sign { signature: Hex::new(*signature), recipe };
    let time = |number: u64| Timestamp(number as i64);
    let some = |number: u64| number.checked_sub(1).map(|at| Timestamp(at as i64));
    let row = Row {
        first: time(take_number(bytes)?),
        last: time(take_number(bytes)?),
        count: take_number(bytes)?,
        is_resolved: take_number(bytes)? != 0,
        muted_until: some(take_number(bytes)?),
        back: some(take_number(bytes)?),
        streams: take_text(bytes)?.lines().map(str::to_owned).collect(),
        hours: Hours::unpack(take_bytes(bytes)?),
    };
    let sample = match take_number(bytes)? {
        0 => None,
        _ => Some(Sample { severity: take_text(bytes)?, category: take_text(bytes)?, rule: take_text(bytes)?, text: take_text(bytes)? }),
    };
    Some((sign, (row, sample)))
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_number(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    take_bytes(bytes).map(|text| String::from_utf8_lossy(text).into_owned())
}

/// Appends the rows that one transaction has changed.
pub(in crate::state) fn append(db: &Connection, rows: &[u8]) -> Result<(), StoreError> {
    db.prepare_cached("INSERT INTO history_tail (rows) VALUES (?1)")?.execute([rows])?;
    Ok(())
}

/// Empties the tail: all of it is in the table.
pub(in crate::state) fn clear(db: &Connection) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM history_tail")?.execute([])?;
    Ok(())
}

/// Whether the tail is empty.
pub(in crate::state) fn is_empty(db: &Connection) -> Result<bool, StoreError> {
    Ok(!db.prepare_cached("SELECT EXISTS (SELECT 1 FROM history_tail)")?.query_row([], |row| row.get::<_, bool>(0))?)
}

/// Folds the whole tail into the table.
pub(in crate::state) fn fold(db: &Connection) -> Result<(), StoreError> {
    if is_empty(db)? {
        return Ok(());
    }
    let mut newest: BTreeMap<Sign, Line> = BTreeMap::new();
    let mut all = db.prepare("SELECT rows FROM history_tail ORDER BY seq")?;
    let mut blobs = all.query([])?;
    while let Some(blob) = blobs.next()? {
        let mut rows = blob.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        newest.extend(std::iter::from_fn(|| take(&mut rows)));
    }
    let mut inserted = 0;
    for (sign, (row, sample)) in newest {
        match find(db, sign)? {
            Some((id, old)) => update(db, id, &row, row.first != old.first)?,
            None => {
                insert(db, sign, &row, &sample.unwrap_or_default())?;
                inserted += 1;
            }
        }
    }
    grow(db, inserted)?;
    clear(db)
}

/// As [`fold`], in a transaction of its own, for a process that only wants to read.
pub(in crate::state) fn settle(db: &Connection) -> Result<(), StoreError> {
    if is_empty(db)? {
        return Ok(());
    }
    let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    fold(&tx)?;
    Ok(tx.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn db() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(super::super::TABLES).unwrap();
        db.execute_batch(TABLE).unwrap();
        db
    }

    fn sign(n: u8) -> Sign {
        Sign { signature: Hex::new([n; 16]), recipe: u32::from(n) }
    }

    fn rows() -> [Row; 2] {
        let mut hours = Hours::default();
        hours.add(Timestamp(77 * super::super::HOUR_US));
        let first = Row {
            first: Timestamp(-5),
            last: Timestamp(i64::MAX),
            count: 300,
            is_resolved: true,
            muted_until: Some(Timestamp(i64::MAX)),
            back: Some(Timestamp(0)),
            hours,
            streams: vec!["a.log".to_owned(), "ü b".to_owned()],
        };
        [first, Row::default()]
    }

    fn sample(text: &str) -> Sample {
        Sample { severity: "high".to_owned(), category: "c".to_owned(), rule: "r.x".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn rows_come_back_as_they_were_put() {
        let (mut out, sample) = (Vec::new(), sample("said \"no\""));
        let [one, two] = rows();
        put(&mut out, sign(1), &one, Some(&sample));
        put(&mut out, sign(2), &two, None);
        let mut rest = &out[..];
        assert_eq!(take(&mut rest), Some((sign(1), (one, Some(sample)))));
        assert_eq!(take(&mut rest), Some((sign(2), (two, None))));
        assert_eq!(take(&mut rest), None);
        (0..out.len()).for_each(|len| drop(take(&mut &out[..len])));
    }

    #[test]
    fn folded_it_is_the_table_with_the_newest_of_each_row() {
        let db = db();
        let [one, two] = rows();
        insert(&db, sign(2), &two, &sample("known")).unwrap();
        grow(&db, 1).unwrap();
        let later = Row { count: 301, ..one.clone() };
        for lines in [vec![(1, &one), (2, &two)], vec![(1, &later), (2, &one)]] {
            let mut out = Vec::new();
            lines.into_iter().for_each(|(n, row)| put(&mut out, sign(n), row, (n == 1).then_some(&sample("new"))));
            append(&db, &out).unwrap();
        }
        assert!(!is_empty(&db).unwrap());
        fold(&db).unwrap();
        assert!(is_empty(&db).unwrap());
        assert_eq!(find(&db, sign(1)).unwrap().unwrap().1, later);
        assert_eq!(find(&db, sign(2)).unwrap().unwrap().1, one);
        assert_eq!(super::super::table::size(&db).unwrap(), 2);
        let text = |n: u8| db.query_row("SELECT sample FROM history WHERE recipe = ?1", [n], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!((text(1), text(2)), ("new".to_owned(), "known".to_owned()));
    }
}
