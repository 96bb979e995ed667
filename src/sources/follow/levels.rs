//! How far behind the sources are, as gauges for monitoring; decides nothing.

use std::collections::BTreeMap;

use super::Follower;
use crate::sources::open::look;
use crate::telemetry::metrics;

/// The lag of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Number of followed files.
    pub files: u64,
    /// Bytes in these files that were not read.
    pub lag_bytes: u64,
}

impl Follower {
    /// Returns the level of each source. Checks the size of files that may have grown since their last turn.
    #[must_use]
    pub fn levels(&self) -> BTreeMap<&str, Level> {
        let mut all: BTreeMap<&str, Level> = self.specs.iter().filter(|spec| !spec.is_empty()).map(|spec| (spec.name.as_str(), Level::default())).collect();
        for (id, file) in &self.files {
            let grown = self.active.contains(id) || file.activity.is_new || !self.turns.is_idle(*id);
            let size = grown.then(|| look(&file.names.path).filter(|seen| seen.node.is(&file.node))).flatten().map_or(file.mark.size, |seen| seen.size);
            let level = all.entry(&self.specs[file.spec].name).or_default();
            level.files += 1;
            if file.life.is_left_out {
                continue;
            }
            level.lag_bytes += size.saturating_sub(file.mark.read.max(file.mark.start));
        }
        all
    }

    /// Sets the gauges of all sources; returns how many bytes they have left to read.
    pub fn tell_levels(&self) -> u64 {
        let mut lag_bytes = 0;
        for (name, level) in self.levels() {
            lag_bytes += level.lag_bytes;
            let source = metrics().sources.of(name);
            source.files.set(level.files);
            source.lag_bytes.set(level.lag_bytes);
            let trouble = self.specs.iter().find(|spec| spec.name == name).and_then(|spec| self.said.troubles.iter().find(|(path, _)| spec.means(path)));
            match trouble {
                Some((path, why)) => source.trouble.set(format!("{}: {why}", path.display())),
                None => source.trouble.clear(),
            }
            source.kind.set("file");
        }
        metrics().open_files.set(self.open_files() as u64);
        lag_bytes
    }
}
