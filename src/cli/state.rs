//! `siftd state`: shows what `run` knows of its files. Entries can be shown while
//! it runs but not forgotten: it would report the same errors again at once.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::args::{StateArgs, StateCommand, StatePlace};
use super::table::Columns;
use super::{Exit, Failure, out, say, setup};
use crate::core::assemble::Facts;
use crate::core::event::Hex;
use crate::delivery::{Mark, Node};
use crate::diag::Diagnostics;
use crate::sinks::human::sanitise;
use crate::sinks::record::rfc3339;
use crate::sources::discover::is_packed;
use crate::sources::open::{Seen, look};
use crate::sources::reader::Folders;
use crate::state::lock::{Lock, LockError};
use crate::state::store::{Store, StoreError, StreamRow};

/// With fewer digits, an argument is not taken for an identity.
const MIN_IDENTITY: usize = 6;

pub fn state(args: &StateArgs) -> Result<Exit, Failure> {
    match &args.command {
        StateCommand::List { form, place } => list(&folder(place)?, form.is_json()),
        StateCommand::Show { file, place } => show(&folder(place)?, file),
        StateCommand::Forget { file, all, place } => forget(&folder(place)?, file, *all),
    }
}

pub fn folder(place: &StatePlace) -> Result<PathBuf, Failure> {
    if let Some(folder) = &place.state_dir {
        return Ok(folder.clone());
    }
    let args = super::args::SetupArgs { config: place.config.clone(), ..Default::default() };
    // A running daemon uses the configuration it has read, so it can be inspected while the file is being fixed.
    let note = |why: Diagnostics| Failure::new(format!("{}\n  = note: --state-dir FOLDER names the state without a configuration", why.to_string().trim_end()));
    Ok(setup::config(&args).map_err(note)?.state_dir)
}

fn rows(folder: &Path) -> Result<Vec<StreamRow>, Failure> {
    let fault = |error| {
        let then = if matches!(error, StoreError::Unreadable(_)) { "; the next `siftd run` sets it aside" } else { "" };
        setup::state_failure(folder, &format!("the state in {} cannot be read: {error}{then}", folder.display()))
    };
    match Store::ask(folder).map_err(fault)? {
        Some(store) => store.streams().map_err(fault),
        None => Err(Failure::new(format!("no state in {}: name its folder with --state-dir, or the configuration with --config", folder.display()))),
    }
}

/// A row, and the file's current path; `None` if the file is gone.
struct Entry {
    row: StreamRow,
    now: Option<PathBuf>,
}

fn entries(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let mut folders = Folders::default();
    // The journal has no path.
    let mut entry = |row: StreamRow| Entry { now: row.is_file().then(|| place(&row.mark, &mut folders)).flatten(), row };
    Ok(rows(folder)?.into_iter().map(&mut entry).collect())
}

/// Finds the file under its last name, or under another name in the same folder.
fn place(mark: &Mark, folders: &mut Folders) -> Option<PathBuf> {
    // Device numbers may change after a reboot.
    let is_it = |seen: Seen| Node { dev: seen.node.dev, ..mark.node }.is(&seen.node);
    if look(&mark.path).is_some_and(is_it) { Some(mark.path.clone()) } else { folders.find(mark.path.parent()?, mark.node) }
}

impl Entry {
    /// The current path, or the last known one.
    fn path(&self) -> &Path {
        self.now.as_deref().unwrap_or(&self.row.mark.path)
    }

    /// The path as the user would write it.
    fn shown(&self) -> PathBuf {
        if !self.row.is_file() {
            return "(journal)".into();
        }
        let shown = Path::new(&self.row.label.path);
        self.path().file_name().map_or(shown.to_owned(), |name| shown.with_file_name(name))
    }

    /// Whether its records use another file name.
    fn is_renamed(&self) -> bool {
        self.path().file_name() != Path::new(&self.row.label.path).file_name()
    }

    /// Returns the number of unread bytes.
    fn left(&self) -> Option<u64> {
        let (seen, mark) = (look(self.now.as_deref()?)?, &self.row.mark);
        // How much of a compressed file is left is unknown, so it counts as all of it until it has been read.
        let read = match is_packed(&mark.path) {
            true if mark.size < seen.size => 0,
            true => seen.size,
            false => mark.read,
        };
        Some(seen.size.saturating_sub(read))
    }

    fn identity(&self) -> Hex {
        Hex::new(self.row.uid)
    }
}

/// A file is named by its path or by its identity: one of them stays whole as long as possible.
const LIST: Columns<6> =
    Columns { heads: ["SOURCE", "FILE", "READ", "LEFT", "GENERATION", "IDENTITY"], widest: 1, least: 30, left_out: &[4, 2, 0, 3], numbers: &[] };

fn list(folder: &Path, as_json: bool) -> Result<Exit, Failure> {
    let entries = entries(folder)?;
    if as_json {
        let all: Vec<serde_json::Value> = entries.iter().map(json).collect();
        return out::print(&format!("{}\n", serde_json::Value::Array(all)));
    }
    let rows = entries.iter().map(|entry| {
        let gone = if entry.row.is_file() { "gone" } else { "-" };
        let left = entry.left().map_or(gone.to_owned(), amount);
        let [name, path] = [&entry.row.label.source, &entry.shown().to_string_lossy().into_owned()].map(|text| sanitise(text).into_owned());
        [name, path, amount(entry.row.mark.read), left, entry.row.mark.generation.to_string(), entry.identity()[..12].to_owned()]
    });
    out::print(&LIST.table(&rows.collect::<Vec<_>>()))
}

fn json(entry: &Entry) -> serde_json::Value {
    let Entry { row, now } = entry;
    let mark = &row.mark;
    serde_json::json!({
        "uid": entry.identity().as_str(), "source": row.label.source, "path": mark.path.to_string_lossy(), "shown": row.label.path,
        "found_at": now.as_ref().map(|path| path.to_string_lossy()), "generation": mark.generation, "read": mark.read, "safe": mark.safe,
        "size": mark.size, "left": entry.left(), "device": mark.node.dev, "inode": mark.node.ino, "seen": rfc3339(row.seen),
    })
}

fn show(folder: &Path, wanted: &OsStr) -> Result<Exit, Failure> {
    let texts: Vec<String> = find(entries(folder)?, wanted, false)?.iter().map(described).collect();
    out::print(&texts.join("\n"))
}

/// Describes all that is known of a file, for people.
fn described(entry: &Entry) -> String {
    let (row, mark) = (&entry.row, &entry.row.mark);
    let lines = serde_json::from_str::<Facts>(&mark.facts).map_or(0, |facts| facts.lines());
    let born = if mark.node.born == 0 { "unknown".to_owned() } else { rfc3339(crate::core::event::Timestamp(mark.node.born)) };
    let was = if entry.is_renamed() { format!(", once {}", sanitise(&row.label.path)) } else { String::new() };
    let fields = [
        ("source", sanitise(&row.label.source).into_owned()),
        (if row.is_file() { "file" } else { "cursor" }, format!("{}{was}", sanitise(&entry.path().to_string_lossy()))),
        ("identity", entry.identity().to_string()),
        ("generation", mark.generation.to_string()),
        ("inode", format!("{} on device {}, made {born}", mark.node.ino, mark.node.dev)),
        ("read", format!("{} bytes", mark.read)),
        ("left", entry.left().map_or("the file is gone".to_owned(), |left| format!("{left} bytes"))),
        ("goes on at", format!("byte {}, line {}{}", mark.safe, lines + 1, again(mark))),
        ("last seen", rfc3339(row.seen)),
    ];
    let is_known = |name: &str| row.is_file() || !["generation", "inode", "left"].contains(&name);
    fields.iter().filter(|(name, _)| is_known(name)).map(|(name, value)| format!("{name:<12}{value}\n")).collect()
}

/// Says why reading goes on before the end of what was read, if it does.
fn again(mark: &Mark) -> String {
    match mark.read.saturating_sub(mark.safe) {
        0 => String::new(),
        bytes => format!(": the last {bytes} bytes are read again, as an error in them may not be over; none is reported twice"),
    }
}

fn forget(folder: &Path, wanted: &OsStr, all: bool) -> Result<Exit, Failure> {
    let found = find(entries(folder)?, wanted, all)?;
    let _lock = Lock::take(folder).map_err(|error| match error {
        LockError::Held { pid } => Failure::new(format!("`siftd run` uses this state (process {pid}): stop it first")),
        LockError::Io(error) => Failure::new(format!("{}: {error}", folder.display())),
    })?;
    let fault = |error: StoreError| Failure::new(error.to_string());
    let (mut store, said) = Store::open(folder).map_err(fault)?;
    said.iter().for_each(say);
    let tx = store.begin().map_err(fault)?;
    found.iter().try_for_each(|entry| tx.forget(&entry.row.uid)).map_err(fault)?;
    tx.commit().map_err(fault)?;
    let mut text = String::new();
    for entry in &found {
        let what = match entry.now {
            None if !entry.row.is_file() => "; the next start begins as the first one did",
            None => ", which is gone",
            Some(_) if entry.is_renamed() => ", an older generation",
            Some(_) => "; the next start reads it from its beginning",
        };
        text += &format!("forgotten: {}{what}\n", sanitise(&entry.shown().to_string_lossy()));
    }
    out::print(&text)
}

/// Returns the entries of a file. A name selects the file that exists now and those that are
/// gone; with `older`, also files that have been renamed since. An identity selects one entry.
fn find(entries: Vec<Entry>, wanted: &OsStr, older: bool) -> Result<Vec<Entry>, Failure> {
    let absolute = std::path::absolute(wanted).unwrap_or_default();
    // Records hold names as text, with a mark in place of each byte that is none.
    let text = &*wanted.to_string_lossy();
    let is_journal = |entry: &Entry| !entry.row.is_file() && entry.row.label.source == text;
    let is_named = |entry: &Entry| is_journal(entry) || entry.path() == absolute || entry.shown() == Path::new(wanted);
    let was_named = |entry: &Entry| entry.row.mark.path == absolute || entry.row.label.path == text;
    let is_identity = |entry: &Entry| text.len() >= MIN_IDENTITY && entry.identity().starts_with(text);
    let (by_name, rest): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| is_named(entry) || older && was_named(entry));
    if !by_name.is_empty() {
        return Ok(by_name);
    }
    let generations = rest.iter().filter(|entry| was_named(entry)).count();
    let by_identity: Vec<Entry> = rest.into_iter().filter(is_identity).collect();
    match by_identity.len() {
        1 => Ok(by_identity),
        0 if generations > 0 => Err(Failure::new(format!("{text}: only older generations of it are known, under other names: `siftd state list` shows all"))),
        0 => Err(Failure::new(format!("{text}: no such file in the state: `siftd state list` shows all"))),
        count => Err(Failure::new(format!("{text}: {count} identities begin so: add digits, as `siftd state list --format json` shows them"))),
    }
}

/// Formats a number of bytes for people.
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
