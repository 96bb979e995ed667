//! Reports a state file that was set aside before this start. The positions of its files are lost, so lines written meanwhile may be
//! skipped or found a second time. A `gap` record of each source reports this, committed together with the note that it was reported.

use std::sync::Arc;

use super::committer::Committer;
use super::queue::ControlMessage;
use super::store::StoreError;
use crate::core::event::Timestamp;
use crate::delivery::{Batch, Label, Missed, Notice, Uid, Why, derived_id};

impl Committer {
    /// Reports for each of these sources that an earlier state is lost, if one is and no `run` has reported it yet.
    ///
    /// # Errors
    /// Those of the store: nothing was reported then.
    pub fn say_loss(&mut self, sources: &[Label], now: Timestamp) -> Result<(), StoreError> {
        let Some(since) = self.store.as_ref().map_or(Ok(None), |store| store.loss())? else { return Ok(()) };
        let gaps: Vec<Batch> = sources.iter().map(|label| gap(label, since, now)).collect();
        self.commit(&gaps, &[ControlMessage::LossIsSaid], now)
    }
}

fn gap(label: &Label, since: Timestamp, now: Timestamp) -> Batch {
    let id = derived_id("gap", &[b"state", label.source.as_bytes(), &since.0.to_be_bytes()]);
    let notice = Notice::Gap { id, why: Why::StateLost, missed: Missed::Unknown, from: since, to: now };
    let (records, body) = Default::default();
    Batch { uid: Uid::default(), label: Arc::new(label.clone()), records, body, notices: vec![notice], mark: None, at: now }
}
