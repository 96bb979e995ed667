//! `siftd replay`: reads a log under two sets of rules at once and shows the differences. Events that
//! start at the same place are the same event; an event whose start or end merely moved has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::args::{ReadMode, ReplayArgs, SetupArgs};
use super::setup::over;
use super::unread::unread;
use super::{Exit, Failure, out, say, setup};
use crate::core::engine::Engine;
use crate::core::event::{Event, Spot};
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::sinks::human::sanitise;
use crate::sources::clock::now;
use crate::sources::expand::{Input, expand};
use crate::sources::{foreign, input};

/// Maximum number of events compared per log; that there are more is said.
const MAX_EVENTS: usize = 1_000_000;
/// Number of events on either side that may be the same event.
const NEAR: usize = 4;
/// Bytes per read.
const BLOCK: usize = 256 << 10;

/// The parts of an event that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    lines: (u64, u64),
    category: &'static str,
    severity: &'static str,
    signature: String,
    class: &'static str,
    rule: Arc<str>,
    text: String,
}

#[derive(Default)]
struct Counts {
    appear: u64,
    vanish: u64,
    change: u64,
    stay: u64,
}

pub fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    // A configuration alone is what changed. With rules, it is what both have in common.
    let is_shared = !args.rules.is_empty() || !args.against.is_empty();
    let old_config = args.against_config.as_ref().or(args.config.as_ref().filter(|_| is_shared));
    let (new, old) = (engine(args.config.as_ref(), &args.rules, args.mode)?, engine(old_config, &args.against, args.mode)?);
    let (inputs, troubles) = expand(&args.files);
    troubles.iter().for_each(|trouble| say(&format!("{}: {}", trouble.path, trouble.why)));
    let mut is_troubled = !troubles.is_empty();
    let mut counts = Counts::default();
    for input in inputs {
        let is_named = !matches!(input, Input::Found(_));
        let path = match input {
            Input::Named(path) | Input::Found(path) => path,
            Input::Stdin => PathBuf::from("-"),
        };
        let mut pair = Pair::default();
        match pair.read(&path, [&new, &old], args.mode) {
            // Like `scan`, skips files in folders that are no logs.
            Err(Fault::Foreign(_)) if !is_named => {}
            Err(fault) => {
                is_troubled = true;
                say(&format!("{}: {fault}", named(&path)));
            }
            Ok(()) => {}
        }
        for limit in &pair.limits {
            is_troubled = true;
            say(&format!("{}: {limit}", named(&path)));
        }
        // What precedes the damaged part has been read.
        out::write(compare(&path, pair, &mut counts, args.form.is_json()).as_bytes())?;
    }
    let Counts { appear, vanish, change, stay } = counts;
    if !args.form.is_json() {
        out::print(&format!("{appear} appear, {vanish} vanish, {change} change, {stay} stay\n"))?;
    }
    Ok(if is_troubled { Exit::Trouble } else { Exit::Done })
}

/// Builds an engine from the built-in rules and these.
fn engine(config: Option<&PathBuf>, rules: &[PathBuf], mode: ReadMode) -> Result<(Arc<Engine>, u64), Failure> {
    let args = SetupArgs { config: config.cloned(), rules: rules.to_vec() };
    let setup = setup::load(&args, setup::Reading { mode, ..setup::Reading::default() })?;
    Ok((setup.engine, setup.config.limits.max_document_bytes))
}

/// Why a log was not read completely.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("{0}")]
    Closed(#[from] std::io::Error),
    #[error("reading ended early: {0}")]
    Damaged(std::io::Error),
    #[error("{0}")]
    Foreign(String),
}

/// The events of a log under the new rules and under the old ones.
#[derive(Default)]
struct Pair {
    found: [BTreeMap<Spot, Found>; 2],
    /// What limits have left out.
    limits: BTreeSet<String>,
}

impl Pair {
    fn read(&mut self, path: &Path, engines: [&(Arc<Engine>, u64); 2], mode: ReadMode) -> Result<(), Fault> {
        let mut opened = if path == Path::new("-") { input::stdin(input::Watched::default())? } else { input::file(path, input::Watched::default())? };
        let mut streams = engines.map(|(engine, limit)| over(Stream::new(engine.clone(), Origin::default()).with_documents(*limit), &opened));
        let mut space = vec![0; BLOCK];
        let (mut is_unseen, mut damage) = (true, None);
        loop {
            let count = input::fill(&mut opened.bytes, &mut space).unwrap_or_else(|error| {
                damage = Some(Fault::Damaged(error));
                0
            });
            if std::mem::take(&mut is_unseen) {
                if let Some(foreign) = foreign::unread(&space[..count], count < BLOCK, mode.into()) {
                    return Err(Fault::Foreign(foreign.advice(Some(path).filter(|path| *path != Path::new("-")))));
                }
                if !opened.live {
                    streams.iter_mut().for_each(|stream| stream.begins_with(&space[..count], now()));
                }
            }
            for (stream, found) in streams.iter_mut().zip(&mut self.found) {
                let mut events = Vec::new();
                match count {
                    0 => stream.finish(now(), &mut events),
                    count => stream.push(&space[..count], now(), &mut events),
                }
                let room = MAX_EVENTS.saturating_sub(found.len());
                if events.len() > room {
                    self.limits.insert(format!("only its first {MAX_EVENTS} errors are compared"));
                    events.truncate(room);
                }
                found.extend(events.iter().map(|event| (event.spot(), Found::of(event))));
            }
            if count == 0 {
                self.limits.extend(streams.iter().flat_map(unread));
                return damage.map_or(Ok(()), Err);
            }
        }
    }
}

impl Found {
    fn of(event: &Event) -> Self {
        Self {
            lines: (event.line_num, event.line_end),
            category: event.category.as_str(),
            severity: event.severity.as_str(),
            signature: event.signature.to_string(),
            class: event.retry.class.as_str(),
            rule: event.rule.clone(),
            text: event.text.chars().take(200).collect(),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.lines.0 <= other.lines.1 && other.lines.0 <= self.lines.1
    }

    /// Returns the differences between the old event and this one: name, before, after.
    fn changes(&self, old: &Self) -> Vec<(&'static str, String, String)> {
        let lines = |found: &Self| if found.lines.0 == found.lines.1 { found.lines.0.to_string() } else { format!("{}-{}", found.lines.0, found.lines.1) };
        let all = [
            ("category", old.category.to_owned(), self.category.to_owned()),
            ("severity", old.severity.to_owned(), self.severity.to_owned()),
            ("retry", old.class.to_owned(), self.class.to_owned()),
            ("signature", old.signature.clone(), self.signature.clone()),
            ("lines", lines(old), lines(self)),
            ("rule", old.rule.to_string(), self.rule.to_string()),
        ];
        let changes: Vec<_> = all.into_iter().filter(|(_, before, after)| before != after).collect();
        // A different rule alone is no difference, as it finds the same error.
        if changes.iter().all(|(name, ..)| *name == "rule") { Vec::new() } else { changes }
    }
}

/// Compares what the two engines found in a log, adds to the counts, and returns the differences in the order of its lines.
fn compare(path: &Path, Pair { found: [mut new, mut old], .. }: Pair, counts: &mut Counts, as_json: bool) -> String {
    let mut rows: Vec<(u64, String)> = Vec::new();
    let mut add = |sign, found: &Found, before: Option<&Found>| rows.push((found.lines.0, shown(path, sign, found, before, as_json)));
    let same: Vec<Spot> = new.keys().filter(|place| old.contains_key(place)).copied().collect();
    let mut pairs: Vec<(Found, Found)> = same.into_iter().filter_map(|place| Some((new.remove(&place)?, old.remove(&place)?))).collect();
    // Events that start at different places may still be the same error.
    let places: Vec<Spot> = new.keys().copied().collect();
    for place in places {
        let around = old.range(..place).rev().take(NEAR).chain(old.range(place..).take(NEAR));
        let near = around.filter(|(_, was)| new.get(&place).is_some_and(|found| found.overlaps(was))).map(|(place, _)| *place).next();
        if let Some(was) = near.and_then(|near| old.remove(&near)) {
            pairs.extend(new.remove(&place).map(|found| (found, was)));
        }
    }
    for (found, was) in &pairs {
        if found.changes(was).is_empty() {
            counts.stay += 1;
        } else {
            counts.change += 1;
            add('~', found, Some(was));
        }
    }
    counts.appear += new.len() as u64;
    counts.vanish += old.len() as u64;
    new.values().for_each(|found| add('+', found, None));
    old.values().for_each(|found| add('-', found, None));
    rows.sort_by_key(|(line, _)| *line);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Returns the name of an input for people, as `scan` writes it.
fn named(path: &Path) -> String {
    if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() }
}

fn shown(path: &Path, sign: char, found: &Found, before: Option<&Found>, as_json: bool) -> String {
    let (path, name) = (path.display().to_string(), named(path));
    let changes = before.map(|before| found.changes(before)).unwrap_or_default();
    if as_json {
        let word = match sign {
            '+' => "appears",
            '-' => "vanishes",
            _ => "changes",
        };
        let mut object = json!({
            "change": word, "path": path, "line_num": found.lines.0, "line_end": found.lines.1, "category": found.category, "severity": found.severity,
            "signature": found.signature, "rule": &*found.rule, "text": found.text,
        });
        if !changes.is_empty() {
            object["was"] = changes.iter().map(|(name, was, _)| ((*name).to_owned(), was.clone().into())).collect::<serde_json::Map<_, _>>().into();
        }
        return format!("{object}\n");
    }
    let place = format!("{}:{}", sanitise(&name), found.lines.0);
    let text = sanitise(&found.text);
    if changes.is_empty() {
        return format!("{sign} {place}  {} {} by {}: {text}\n", found.severity, found.category, sanitise(&found.rule));
    }
    let short = |name: &str, text: &str| if name == "signature" { text[..12].to_owned() } else { sanitise(text).into_owned() };
    let all: Vec<String> = changes.iter().map(|(name, was, is)| format!("{name} {} → {}", short(name, was), short(name, is))).collect();
    format!("{sign} {place}  {}: {text}\n", all.join(", "))
}
