//! Takes over the history, the breakers and the silences that last from a state file that was set aside, row by row, as
//! far as it can be read. File positions and what waited for sinks are not taken over: a wrong position loses lines.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Row, Transaction, params_from_iter};

use super::{SilenceRow, StoreError};
use crate::core::signature::SIG_VERSION;
use crate::state::{breakers, history};

/// A table to take over: its name, its columns, the key it is sorted by, and a check whether a row can be one that siftd wrote.
type Table = (&'static str, &'static str, &'static str, fn(&Row<'_>) -> bool);

const TABLES: [Table; 7] = [
    ("history", history::COLUMNS, "id", history::is_sound),
    ("history_tail", "seq, rows", "seq", |_| true),
    ("history_alias", "signature, recipe, is_now, recipe_now", "signature, recipe", |_| true),
    ("hour", "hour, events, new, regressed", "hour", |_| true),
    ("breaker", breakers::COLUMNS, "name", breakers::is_sound),
    ("transition", "seq, name, body, waits", "seq", |_| true),
    ("silence", SilenceRow::COLUMNS, "uid", |row| SilenceRow::read(row).is_ok()),
];

/// Takes over what the file at `aside` holds into a new state, and returns a text for the user.
pub(super) fn salvage(aside: &Path, new: &mut Connection) -> Result<String, StoreError> {
    // It may have a log, which can only be read with write access.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let kept = Connection::open_with_flags(aside, flags).map_or_else(|_| Ok(told(0, 0, false)), |old| take_over(&old, new))?;
    Ok(format!("{kept}; lost are the positions of its files, and records that waited in it for sinks"))
}

/// As [`salvage`], from an open file; the text says what was taken over.
pub(super) fn take_over(old: &Connection, new: &mut Connection) -> Result<String, StoreError> {
    let tx = new.transaction()?;
    let mut is_whole = true;
    for table in &TABLES {
        is_whole &= copy(old, &tx, table)?;
    }
    history::tail::fold(&tx)?;
    tx.execute_batch("UPDATE history_size SET rows = (SELECT count(*) FROM history); DELETE FROM history_recipe;")?;
    history::prepare(&tx, SIG_VERSION)?;
    let count = |table: &str| tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
    let told = told(count("history")?, count("breaker")?, is_whole);
    tx.commit()?;
    Ok(told)
}

fn told(errors: i64, breakers: i64, is_whole: bool) -> String {
    match (errors + breakers, is_whole) {
        (_, true) => format!("its history ({errors} errors) and its breakers ({breakers}) go on"),
        (0, false) => "its history and its breakers are lost".to_owned(),
        (_, false) => format!("{errors} errors of its history and {breakers} breakers could be read and go on, the others are lost"),
    }
}

/// Copies the rows of a table from its beginning and, if one cannot be read, also from its end. Returns `true` if all rows were copied.
fn copy(old: &Connection, new: &Transaction<'_>, (table, columns, key, is_sound): &Table) -> Result<bool, StoreError> {
    let mut is_whole = true;
    for order in ["ASC", "DESC"] {
        let sorted = key.replace(',', &format!(" {order},"));
        let Ok(mut all) = old.prepare(&format!("SELECT {columns} FROM {table} ORDER BY {sorted} {order}")) else { return Ok(false) };
        let count = all.column_count();
        let mut put = new.prepare(&format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({})", vec!["?"; count].join(", ")))?;
        let Ok(mut rows) = all.query([]) else { return Ok(false) };
        loop {
            match rows.next() {
                Ok(Some(row)) if is_sound(row) => {
                    let values: Result<Vec<Value>, _> = (0..count).map(|at| row.get(at)).collect();
                    match values {
                        Ok(values) => drop(put.execute(params_from_iter(values))?),
                        Err(_) => is_whole = false,
                    }
                }
                Ok(Some(_)) => is_whole = false,
                Ok(None) => return Ok(is_whole),
                Err(_) => break,
            }
        }
        is_whole = false;
    }
    Ok(false)
}
