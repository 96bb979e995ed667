//! Errors that are already known: from a baseline, which is the output of an earlier scan, or from a history.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::args::ScanArgs;
use super::super::{Failure, say, setup};
use crate::config::Config;
use crate::core::event::{Event, Hex};
use crate::core::signature::SIG_VERSION;
use crate::delivery::Status;
use crate::memory::{Bounds, Memory, PATIENCE};
use crate::sinks::record::Envelope;
use crate::sources::input::{self, Watched};

/// Maximum length of a line in a baseline, in bytes.
const MAX_LINE: u64 = 16 << 20;

/// The known errors, and whether only unknown ones are shown.
#[derive(Default)]
pub struct Known {
    baseline: Option<HashSet<Hex>>,
    memory: Option<Memory>,
    new_only: bool,
    max_event_bytes: usize,
    complained: AtomicBool,
}

impl Known {
    pub fn new(args: &ScanArgs, config: &Config) -> Result<Self, Failure> {
        let memory = match &args.state_dir {
            Some(folder) => Some(Memory::open(folder, setup::ledger_rules(config), "scan").map_err(Failure)?),
            None => None,
        };
        if memory.is_some() && !config.history.enabled {
            return Err(Failure::new("--state-dir: the configuration keeps no history: set enabled = true under [history]"));
        }
        let baseline = args.baseline.as_deref().map(read).transpose()?;
        let max_event_bytes = config.limits.max_event_bytes as usize;
        Ok(Self { baseline, memory, new_only: args.new_only, max_event_bytes, complained: AtomicBool::new(false) })
    }

    /// Returns the records of events with what the history knows of them; `None` if there is no history.
    pub fn records(&self, envelope: &Envelope, events: &[Event]) -> Option<(Vec<u8>, Vec<Option<Status>>)> {
        let memory = self.memory.as_ref().filter(|_| !events.is_empty())?;
        let taken = memory.records(envelope, events, Bounds { max_event_bytes: self.max_event_bytes, patience: PATIENCE });
        taken
            .inspect_err(|why| {
                if !self.complained.swap(true, Ordering::Relaxed) {
                    say(&format!("the history does not get these errors: {why}"));
                }
            })
            .ok()
    }

    /// Whether the event is shown, as far as known errors are concerned.
    pub fn shows(&self, event: &Event, status: Option<Status>) -> bool {
        let is_old = status == Some(Status::Recurring) || self.baseline.as_ref().is_some_and(|known| known.contains(&event.signature));
        !self.new_only || !is_old
    }
}

/// Reads the signatures of a baseline.
fn read(path: &Path) -> Result<HashSet<Hex>, Failure> {
    let fault = |why: &str| Failure::new(format!("--baseline {}: {why}", path.display()));
    let opened = input::file(path, Watched::default()).map_err(|error| fault(&error.to_string()))?;
    let mut reader = BufReader::new(opened.bytes);
    let (mut known, mut line, mut is_other_recipe) = (HashSet::new(), Vec::new(), false);
    for number in 1_u64.. {
        line.clear();
        if reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(|error| fault(&error.to_string()))? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let record: Option<serde_json::Value> = serde_json::from_slice(&line).ok();
        let record = record.filter(|record| record["schema"] == 1 && record["kind"].is_string());
        let mend = "is no record of siftd: a baseline is what `siftd scan --format ndjson` has printed earlier";
        let record = record.ok_or_else(|| fault(&format!("line {number} {mend}")))?;
        is_other_recipe |= record["sig_version"].as_u64().is_some_and(|version| version != u64::from(SIG_VERSION));
        known.extend(record["signature"].as_str().filter(|_| record["kind"] == "error").and_then(Hex::parse));
    }
    if is_other_recipe {
        say(&format!("--baseline {}: another version of siftd made its signatures, and known errors may look new: make it again", path.display()));
    }
    Ok(known)
}
