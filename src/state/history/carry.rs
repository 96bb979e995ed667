//! Carries the history over to a new version of the signature recipe, which gives the same error another
//! signature. An error is taken to be that of an older row if both have the same rule and the same text,
//! normalised by the new recipe; the alias table records the match. Any other difference begins a new history.

use std::collections::HashMap;

use md5::{Digest, Md5};
use rusqlite::{Connection, OptionalExtension, params};

use super::table::{self, Sample};
use super::{Row, Sign};
use crate::core::event::Hex;
use crate::core::signature::{SIG_VERSION, normalise};
use crate::state::store::StoreError;

/// Hashes rule and text as today's recipe normalises them.
fn form(rule: &str, text: &str) -> [u8; 16] {
    let mut out = String::new();
    normalise(text, &mut out);
    Md5::new().chain_update(rule).chain_update([0]).chain_update(out).finalize().into()
}

/// Whether [`prepare`] has nothing to do.
pub(in crate::state) fn is_prepared(db: &Connection, version: u32) -> Result<bool, StoreError> {
    let before: Option<u32> = db.query_row("SELECT version FROM history_recipe", [], |row| row.get(0)).optional()?;
    Ok(before == Some(version))
}

/// Indexes the rows of older recipes so that new signatures can be matched to them; `version` is today's recipe.
pub(in crate::state) fn prepare(db: &Connection, version: u32) -> Result<(), StoreError> {
    if is_prepared(db, version)? {
        return Ok(());
    }
    db.execute("DELETE FROM history_former", [])?;
    let mut old = db.prepare("SELECT signature, recipe, rule, sample FROM history WHERE recipe <> ?1 ORDER BY last")?;
    let mut put = db.prepare("INSERT OR REPLACE INTO history_former VALUES (?1, ?2, ?3)")?;
    let mut rows = old.query([version])?;
    while let Some(row) = rows.next()? {
        let (signature, recipe): ([u8; 16], u32) = (row.get(0)?, row.get(1)?);
        let (rule, sample): (String, String) = (row.get(2)?, row.get(3)?);
        put.execute(params![form(&rule, &sample), signature, recipe])?;
    }
    db.execute("DELETE FROM history_recipe", [])?;
    db.execute("INSERT INTO history_recipe VALUES (?1)", [version])?;
    Ok(())
}

/// Whether any row could continue under another signature.
pub(in crate::state) fn has_past(db: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM history_alias) OR EXISTS (SELECT 1 FROM history_former)";
    Ok(db.query_row(sql, [], |row| row.get(0))?)
}

/// Returns the signatures of today's recipe that were joined with others, each with the one that it continues as in the end.
pub(in crate::state) fn joined(db: &Connection) -> Result<HashMap<Hex, Hex>, StoreError> {
    let mut all = db.prepare_cached("SELECT signature, is_now FROM history_alias WHERE recipe = ?1 AND recipe_now = ?1")?;
    let pairs = all.query_map([SIG_VERSION], |row| Ok((Hex::new(row.get(0)?), Hex::new(row.get(1)?))))?;
    let next: HashMap<Hex, Hex> = pairs.collect::<Result<_, _>>()?;
    let end = |first: Hex| {
        let steps = std::iter::successors(Some(first), |at| next.get(at).copied());
        // An older version let two rows continue as each other.
        steps.take(next.len() + 1).last().unwrap_or(first)
    };
    Ok(next.keys().map(|old| (*old, end(*old))).collect())
}

/// Returns the older row that a signature without a row of its own continues.
pub(in crate::state) fn take_over(db: &Connection, new: Sign, sample: &Sample) -> Result<Option<Row>, StoreError> {
    let old = match table::former(db, new)? {
        Some(old) => Some(old),
        None => met(db, new, sample)?,
    };
    let Some(old) = old else { return Ok(None) };
    table::alias(db, old, new)?;
    Ok(table::find(db, old)?.map(|(_, row)| row))
}

fn met(db: &Connection, new: Sign, sample: &Sample) -> Result<Option<Sign>, StoreError> {
    if new.recipe != SIG_VERSION || db.prepare_cached("SELECT 1 FROM history_former LIMIT 1")?.query_row([], |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    let mut one = db.prepare_cached("SELECT signature, recipe FROM history_former WHERE form = ?1")?;
    let form = form(&sample.rule, &sample.text);
    Ok(one.query_row([form], |row| Ok(Sign { signature: Hex::new(row.get(0)?), recipe: row.get(1)? })).optional()?)
}
