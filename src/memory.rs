//! The history, for commands other than `run` that find errors: turns events into
//! records, each with what is known of its error. Shared by threads. Other processes are
//! waited for only briefly, and an unusable state is an error that the caller reports.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::core::event::Event;
use crate::delivery::{Label, Record, Status};
use crate::sinks::record::{self, Envelope};
use crate::sources::clock::now;
use crate::state::ledger::Rules;
use crate::state::shared::{Incoming, Shared};

/// How long to wait for other processes.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for other processes while a command prints.
pub const SHORT_PATIENCE: Duration = Duration::from_millis(500);

/// How long a record may be, and how long it may take to get it.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum length of a record, in bytes.
    pub max_event_bytes: usize,
    /// How long to wait for other processes.
    pub patience: Duration,
}

/// The state, shared by all threads.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Mutex<Shared>>,
    /// What the history keeps, and how.
    pub rules: Rules,
    label: Label,
}

impl Memory {
    /// Opens the state in a folder. `name` is the stream's name in the history if the records name no path.
    ///
    /// # Errors
    /// The state cannot be opened; the error is worded for the user.
    pub fn open(folder: &Path, rules: Rules, name: &str) -> Result<Self, String> {
        let shared = Shared::open(folder, rules, PATIENCE)?;
        // If stderr is closed or full, the message is lost.
        shared.aside.iter().for_each(|said| drop(writeln!(io::stderr(), "siftd: {said}")));
        Ok(Self { shared: Arc::new(Mutex::new(shared)), rules, label: Label { source: name.to_owned(), kind: "command", ..Label::default() } })
    }

    /// Reads or changes the state.
    ///
    /// # Errors
    /// The errors of `act`.
    pub fn with<T>(&self, patience: Duration, act: impl FnOnce(&mut Shared) -> Result<T, String>) -> Result<T, String> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.set_patience(patience);
        act(&mut shared)
    }

    /// Returns the records of events, one per line, each with what the history knows of
    /// it, and the status of each error. The status is `None` if no history is kept.
    ///
    /// # Errors
    /// Another process holds the state; the history then does not get these events.
    pub fn records(&self, envelope: &Envelope, events: &[Event], bounds: Bounds) -> Result<(Vec<u8>, Vec<Option<Status>>), String> {
        let (mut body, mut records) = (Vec::new(), Vec::new());
        for event in events {
            let from = body.len();
            let seen_at = record::write_open(&mut body, envelope, event, bounds.max_event_bytes);
            records.push(Record::new(event, 0, (body.len() - from) as u32, seen_at as u32));
        }
        let label = Label { path: envelope.path.clone().unwrap_or_default(), ..self.label.clone() };
        let new = Incoming { label: &label, records: &records, body: &body };
        self.with(bounds.patience, |shared| shared.take_in(new, record::seen, now()))
    }
}
