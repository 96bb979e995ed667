//! `siftd run --dry-run`: shows what would be followed, from which position, and where
//! records would go. It looks at files as `run` does at its start, and changes nothing.

use std::path::Path;

use super::super::setup::Setup;
use super::super::state::amount;
use super::super::{Exit, Failure, identity, out, say};
use super::plan::{ends, state_dir};
use super::{RunArgs, output, refused, services};
use crate::core::transcript::Mode;
use crate::sinks::human::sanitise;
use crate::sources::bytes::Bytes;
use crate::sources::clock::now;
use crate::sources::content::bytes_at;
use crate::sources::discover::Spec;
use crate::sources::follow::{Follower, Known};
use crate::sources::foreign;
use crate::sources::open::{OpenFile, open};
use crate::state::store::{Store, StoreError};

pub fn run(args: &RunArgs, setup: &Setup) -> Result<Exit, Failure> {
    let (sources, sinks) = match ends(args, &setup.config) {
        Ok(ends) => ends,
        Err(wrong) => return Ok(refused(&wrong)),
    };
    let folder = state_dir(args, &setup.config);
    let tried = services::check(&sources.services, folder.as_deref().unwrap_or(&setup.config.state_dir));
    if !tried.wrong.is_empty() {
        return Ok(refused(&tried.wrong));
    }
    tried.hints.iter().for_each(|hint| say(&format!("hint: {hint}")));
    let store = match &folder {
        Some(folder) => asked(folder)?,
        None => None,
    };
    let fault = |error: StoreError| Failure::new(error.to_string());
    let rows = store.as_ref().map_or(Ok(Vec::new()), Store::streams).map_err(fault)?;
    let known_sources = store.as_ref().map_or(Ok(Vec::new()), Store::sources).map_err(fault)?;
    let known =
        rows.iter().filter(|row| row.is_file()).map(|row| Known { uid: row.uid, label: row.label.clone(), mark: row.mark.clone(), seen: row.seen }).collect();
    let mut follower =
        Follower::new(setup.engine.clone(), identity::of_followed, sources.specs, known, |name| !known_sources.iter().any(|known| known == name));
    follower.discover(now());

    let mut text = String::new();
    for source in &sources.services {
        text += &format!("source {}: {}\n", source.name, sanitise(&services::described(source)));
    }
    text += &followed(&follower, setup.engine.limits.mode);
    for sink in &sinks {
        text += &format!("{}\n", output::described(sink));
    }
    match folder {
        Some(folder) => text += &format!("state: {}\n", folder.display()),
        None => text += "state: none, positions are not kept (--state-dir)\n",
    }
    out::print(&text)?;
    Ok(if follower.is_hindered() { Exit::Trouble } else { Exit::Done })
}

/// Returns the state of a folder. One that is damaged would be set aside; with any other obstacle `run` would not start.
fn asked(folder: &Path) -> Result<Option<Store>, Failure> {
    let why = |error: &StoreError| format!("the state in {} cannot be read: {error}", folder.display());
    match Store::ask(folder) {
        Err(error @ StoreError::Unreadable(_)) => {
            say(&format!("{}; files would be read as at a first start", why(&error)));
            Ok(None)
        }
        asked => asked.map_err(|error| Failure::new(why(&error))),
    }
}

/// Returns why a file of which nothing has been read would be left out, if it is no log.
fn left_out(path: &Path, spec: &Spec, read: u64, mode: Mode) -> Option<String> {
    let OpenFile { file, .. } = open(path, &spec.trust(path)).ok().filter(|_| read == 0)?;
    let first = bytes_at(&Bytes::new(file, path), 0, foreign::BLOCK_BYTES).ok()?;
    foreign::left_out(path, &first, mode)
}

/// Describes the files of each source, and the positions from which they would be read.
fn followed(follower: &Follower, mode: Mode) -> String {
    let mut text = String::new();
    for spec in follower.specs() {
        let mut files: Vec<_> = follower.list().filter(|(label, ..)| label.source == spec.name).collect();
        files.sort_by(|a, b| a.1.cmp(b.1));
        text += &format!("source {}: {} file{}\n", spec.name, files.len(), if files.len() == 1 { "" } else { "s" });
        for (_, path, mark, is_rotated) in files {
            let size = std::fs::metadata(path).map_or(mark.size, |meta| meta.len());
            let from = mark.read.max(mark.start).min(size);
            let left = size - from;
            let place = match (from, left) {
                (0, _) => "from its beginning".to_owned(),
                (_, 0) if mark.read >= from => format!("read to its end, byte {from}"),
                (_, 0) => "from its end".to_owned(),
                _ => format!("from byte {from}"),
            };
            if let Some(why) = left_out(path, spec, mark.read, mode) {
                text += &format!("  {}  {why}\n", sanitise(&spec.shown(path)));
                continue;
            }
            let rotated = if is_rotated { ", rotated: to its end" } else { "" };
            text += &format!("  {}  {place}, {} to read{rotated}\n", sanitise(&spec.shown(path)), amount(left));
        }
    }
    text
}
