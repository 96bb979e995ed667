//! `siftd state`: what `run` knows of its files. Looking is possible while it runs; forgetting is not, for
//! it would say it again at once.

use std::path::PathBuf;

use super::args::{ListFormat, StateArgs, StateCommand, StatePlace};
use super::{Exit, Failure, out, setup};
use crate::core::assemble::Facts;
use crate::core::event::Hex;
use crate::sinks::human::sanitise;
use crate::sinks::record::rfc3339;
use crate::sources::discover::is_packed;
use crate::sources::open::look;
use crate::state::lock::{Lock, LockError};
use crate::state::store::{Store, StreamRow};

pub fn state(args: &StateArgs) -> Result<Exit, Failure> {
    match &args.command {
        StateCommand::List { format, place } => list(&folder(place)?, *format),
        StateCommand::Show { file, place } => show(&folder(place)?, file),
        StateCommand::Forget { file, place } => forget(&folder(place)?, file),
    }
}

/// The state's folder, as flags or the configuration name it.
pub fn folder(place: &StatePlace) -> Result<PathBuf, Failure> {
    if let Some(folder) = &place.state_dir {
        return Ok(folder.clone());
    }
    let args = super::args::SetupArgs { config: place.config.clone(), ..Default::default() };
    Ok(setup::config(&args)?.state_dir)
}

fn rows(folder: &std::path::Path) -> Result<Vec<StreamRow>, Failure> {
    let fault = |error| Failure::new(format!("the state in {} cannot be read: {error}; the next `siftd run` sets it aside", folder.display()));
    match Store::look(folder).map_err(fault)? {
        Some(store) => store.streams().map_err(fault),
        None => Err(Failure::new(format!("no state in {}: name its folder with --state-dir, or the configuration with --config", folder.display()))),
    }
}

/// Bytes that are not read yet; `None`: the file is not where it was.
fn lag(row: &StreamRow) -> Option<u64> {
    let seen = look(&row.mark.path)?;
    // Of a compressed file nobody knows what is left: all of it, until it was read.
    let read = match is_packed(&row.mark.path) {
        true if row.mark.size < seen.size => 0,
        true => seen.size,
        false => row.mark.read,
    };
    (seen.node.ino == row.mark.node.ino).then(|| seen.size.saturating_sub(read))
}

fn list(folder: &std::path::Path, format: ListFormat) -> Result<Exit, Failure> {
    let rows = rows(folder)?;
    if format == ListFormat::Json {
        let all: Vec<serde_json::Value> = rows.iter().map(json).collect();
        return out::print(&format!("{}\n", serde_json::Value::Array(all)));
    }
    let mut cells = vec![["SOURCE", "FILE", "READ", "LEFT", "GENERATION", "IDENTITY"].map(str::to_owned)];
    for row in &rows {
        let left = lag(row).map_or("gone".to_owned(), amount);
        let [name, path] = [&row.label.source, &row.label.path].map(|text| sanitise(text).into_owned());
        cells.push([name, path, amount(row.mark.read), left, row.mark.generation.to_string(), Hex::new(row.uid)[..12].to_owned()]);
    }
    let widths: Vec<usize> = (0..6).map(|at| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &cells {
        let padded: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += &format!("{}\n", padded.join("  ").trim_end());
    }
    out::print(&text)
}

fn json(row: &StreamRow) -> serde_json::Value {
    let mark = &row.mark;
    serde_json::json!({
        "uid": Hex::new(row.uid).as_str(), "source": row.label.source, "path": mark.path.to_string_lossy(), "shown": row.label.path,
        "generation": mark.generation, "read": mark.read, "safe": mark.safe, "size": mark.size, "left": lag(row),
        "device": mark.node.dev, "inode": mark.node.ino, "seen": rfc3339(row.seen),
    })
}

fn show(folder: &std::path::Path, wanted: &str) -> Result<Exit, Failure> {
    let rows = rows(folder)?;
    let row = find(&rows, wanted)?;
    let mark = &row.mark;
    let lines = serde_json::from_str::<Facts>(&mark.facts).map_or(0, |facts| facts.lines());
    let born = if mark.node.born == 0 { "unknown".to_owned() } else { rfc3339(crate::core::event::Timestamp(mark.node.born)) };
    let fields = [
        ("source", sanitise(&row.label.source).into_owned()),
        ("file", sanitise(&mark.path.to_string_lossy()).into_owned()),
        ("identity", Hex::new(row.uid).to_string()),
        ("generation", mark.generation.to_string()),
        ("inode", format!("{} on device {}, made {born}", mark.node.ino, mark.node.dev)),
        ("read", format!("{} bytes", mark.read)),
        ("left", lag(row).map_or("the file is not there any more".to_owned(), |left| format!("{left} bytes"))),
        ("goes on at", format!("byte {}, line {}", mark.safe, lines + 1)),
        ("last seen", rfc3339(row.seen)),
    ];
    let text: String = fields.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect();
    out::print(&text)
}

fn forget(folder: &std::path::Path, wanted: &str) -> Result<Exit, Failure> {
    let rows = rows(folder)?;
    let row = find(&rows, wanted)?;
    let _lock = Lock::take(folder).map_err(|error| match error {
        LockError::Held { pid } => Failure::new(format!("`siftd run` uses this state (process {pid}): stop it first")),
        LockError::Io(error) => Failure::new(format!("{}: {error}", folder.display())),
    })?;
    let fault = |error: crate::state::store::StoreError| Failure::new(error.to_string());
    let (mut store, _) = Store::open(folder).map_err(fault)?;
    let tx = store.begin().map_err(fault)?;
    tx.forget(&row.uid).map_err(fault)?;
    tx.commit().map_err(fault)?;
    out::print(&format!("forgotten: {}; the next start reads it from its beginning\n", sanitise(&row.label.path)))
}

fn find<'r>(rows: &'r [StreamRow], wanted: &str) -> Result<&'r StreamRow, Failure> {
    let absolute = std::path::absolute(wanted).ok();
    let is_wanted = |row: &&StreamRow| {
        row.label.path == wanted || absolute.as_ref() == Some(&row.mark.path) || (wanted.len() >= 6 && Hex::new(row.uid).starts_with(wanted))
    };
    let found: Vec<&StreamRow> = rows.iter().filter(is_wanted).collect();
    match found[..] {
        [row] => Ok(row),
        [] => Err(Failure::new(format!("{wanted}: no such file in the state: `siftd state list` shows all"))),
        _ => Err(Failure::new(format!("{wanted}: {} entries: name one by its identity, as `siftd state list` shows it", found.len()))),
    }
}

/// Bytes for people.
pub fn amount(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}
