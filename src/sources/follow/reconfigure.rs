//! Changing sources or rules while files are followed. A file that its source still includes continues where it
//! is; a file that no source includes any more is read to its end and dropped; new files are met as at a start.

use std::sync::Arc;

use super::{FileId, Follower};
use crate::core::engine::Engine;
use crate::core::event::Timestamp;
use crate::delivery::{Label, Mark, Uid};
use crate::sources::discover::Spec;

impl Follower {
    /// Follows these sources from now on, by these rules. `is_first` says whether a source was
    /// never followed. Returns what is known of the newly added files, before their first turn.
    pub fn reconfigure(&mut self, engine: &Arc<Engine>, specs: Vec<Spec>, is_first: impl Fn(&str) -> bool, now: Timestamp) -> Vec<(Uid, Arc<Label>, Mark)> {
        let old = std::mem::replace(&mut self.specs, specs);
        let has_other_rules = !Arc::ptr_eq(&self.engine, engine);
        self.engine = engine.clone();
        self.start.first = self.specs.iter().map(|spec| is_first(&spec.name) && !old.iter().any(|known| known.name == spec.name)).collect();
        for id in self.files.keys().copied().collect::<Vec<_>>() {
            self.assign(id, &old);
            if let Some(file) = self.files.get_mut(&id) {
                // A file without a name cannot be opened again, so its last lines are read by the old rules.
                file.errands.is_changed |= has_other_rules && file.life.retired.is_none() && !file.life.is_last;
            }
            if !self.turns.is_running(id) {
                self.change(id);
            }
        }
        let next = self.index.next_id;
        self.said.troubles.clear();
        // As at a start: a new source begins with the files that exist now.
        self.start.begun = false;
        self.discover(now);
        self.files.range(next..).map(|(_, file)| (file.uid, file.names.label.clone(), file.mark.clone())).collect()
    }

    /// Finds the source of a file again, or drops the file.
    fn assign(&mut self, id: FileId, old: &[Spec]) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let name = &old[file.spec].name;
        let index = self.specs.iter().position(|spec| spec.name == *name);
        let is_meant = index.is_some_and(|index| file.life.retired.is_some() || self.specs[index].means(&file.names.path));
        // A source that is gone keeps its name as long as its files are read.
        file.spec = index.unwrap_or_else(|| {
            self.specs.push(old[file.spec].without_files());
            self.start.first.push(false);
            self.specs.len() - 1
        });
        if is_meant {
            file.errands.is_changed = true;
        } else if !file.life.is_last {
            file.life.is_last = true;
            self.turns.queue(id);
        }
    }

    /// Applies pending changes to a reader that is not in use.
    pub(super) fn change(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id).filter(|file| file.errands.is_changed) else { return };
        let Ok(mut reader) = file.reader.shared.try_lock() else { return };
        file.errands.is_changed = false;
        if file.life.retired.is_none() {
            reader.rename(file.names.path.clone(), self.specs[file.spec].trust(&file.names.path));
            if reader.set_rules(&self.engine) && file.reader.is_open {
                file.reader.is_open = false;
                self.descriptors.open -= 1;
            }
        }
    }
}
