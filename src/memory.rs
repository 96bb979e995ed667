//! The history as commands use it that find errors outside of `run`: the records of events, each with what is known of
//! its error. Shared by threads; others are waited for only shortly, and a state that cannot be used is an error for
//! the caller to tell.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::core::event::Event;
use crate::delivery::{Label, Record};
use crate::sinks::notice;
use crate::sinks::record::{self, Envelope};
use crate::sources::clock::now;
use crate::state::history::Status;
use crate::state::ledger::Rules;
use crate::state::shared::Shared;

/// How long other processes are waited for.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The same while a command prints.
pub const SHORT_PATIENCE: Duration = Duration::from_millis(500);

/// The state, for all threads.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Mutex<Shared>>,
    /// What is kept, and how.
    pub rules: Rules,
    label: Label,
}

impl Memory {
    /// Opens the state of a folder. `name` stands in the history as the stream, where the records name no path.
    ///
    /// # Errors
    /// It cannot be opened, in words for the user.
    pub fn open(folder: &Path, rules: Rules, name: &str) -> Result<Self, String> {
        let shared = Shared::open(folder, rules, PATIENCE)?;
        // Where stderr is closed or full nobody can be told.
        shared.aside.iter().for_each(|said| drop(writeln!(io::stderr(), "siftd: {said}")));
        Ok(Self { shared: Arc::new(Mutex::new(shared)), rules, label: Label { source: name.to_owned(), kind: "command", ..Label::default() } })
    }

    /// Asks or changes the state.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn with<T>(&self, patience: Duration, act: impl FnOnce(&mut Shared) -> Result<T, String>) -> Result<T, String> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.set_patience(patience);
        act(&mut shared)
    }

    /// The records of events, one a line, each with what the history says of it, and that in a word; none where no history
    /// is kept.
    ///
    /// # Errors
    /// The state is held; the history does not know these events then.
    pub fn records(&self, envelope: &Envelope, events: &[Event], (max_bytes, patience): (usize, Duration)) -> Result<(Vec<u8>, Vec<Option<Status>>), String> {
        let (mut body, mut records) = (Vec::new(), Vec::new());
        for event in events {
            let from = body.len();
            let seen_at = record::write_open(&mut body, envelope, event, max_bytes.saturating_sub(notice::SEEN_BYTES));
            records.push(Record::new(event, 0, (body.len() - from) as u32, seen_at as u32));
        }
        let label = Label { path: envelope.path.clone().unwrap_or_default(), ..self.label.clone() };
        self.with(patience, |shared| {
            shared.take_in((&label, &records), &body, &|out, seen| notice::seen(out, seen.status.as_str(), seen.count, (seen.first, seen.last)), now())
        })
    }
}
