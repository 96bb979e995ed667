//! What `exec` reports while the command runs: it writes error, retry and exit records, and calls the
//! hook for a blocking error. Shared by the threads of both outputs; each record is written as a whole.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::on_blocking::OnBlocking;
use super::target::Named;
use super::tell;
use crate::config::Retry as RetryConfig;
use crate::core::engine::Engine;
use crate::core::event::{Event, Severity};
use crate::core::text::Hex;
use crate::delivery::{Exit, Judged, Label, Notice, Rerun};
use crate::digest::Quoted;
use crate::memory::{Bounds, Memory, SHORT_PATIENCE};
use crate::sinks::notice;
use crate::sinks::record::{self, Envelope};
use crate::sources::clock::now;
use crate::verdict::{Said, Verdict, write_members};

/// What results from the configuration, which is read while the command is already running.
pub struct Ready {
    /// Rules and limits.
    pub engine: Arc<Engine>,
    /// Pauses and numbers of retries.
    pub retry: RetryConfig,
    /// Maximum length of a record, in bytes.
    pub max_event_bytes: usize,
}

/// Writes records.
pub struct Journal {
    ready: Arc<OnceLock<Ready>>,
    envelope: Envelope,
    /// Seed for the ids of records that have no position in a stream.
    uid: [u8; 16],
    events: Option<Mutex<Named>>,
    /// A record could not be written.
    lost: AtomicBool,
    hook: Option<OnBlocking>,
    memory: Option<Memory>,
    /// The digests that the command was given of its last run.
    quoted: Quoted,
    /// The user has been told that the state cannot be used.
    complained: AtomicBool,
}

impl Journal {
    /// Creates a journal to which nothing has been written.
    #[must_use]
    pub fn new(ready: Arc<OnceLock<Ready>>, envelope: Envelope, uid: [u8; 16], events: Option<Named>, hook: Option<OnBlocking>) -> Self {
        let (lost, complained) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { ready, envelope, uid, events: events.map(Mutex::new), lost, hook, memory: None, quoted: Quoted::default(), complained }
    }

    /// Adds the errors to a history.
    #[must_use]
    pub fn with_memory(mut self, memory: Option<Memory>) -> Self {
        self.memory = memory;
        self
    }

    /// Sets the digests that the command was given: printing them again is no error.
    #[must_use]
    pub fn with_quoted(mut self, quoted: Quoted) -> Self {
        self.quoted = quoted;
        self
    }

    /// The digests that the command was given of its last run.
    #[must_use]
    pub fn quoted(&self) -> &Quoted {
        &self.quoted
    }

    /// The configuration; waits until it has been read.
    #[must_use]
    pub fn ready(&self) -> &Ready {
        self.ready.wait()
    }

    /// The source that the records name.
    #[must_use]
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Writes the records of errors.
    pub fn errors(&self, events: &[Event]) {
        let out = self.records(events);
        if let Some(hook) = &self.hook {
            let lines = out.split_inclusive(|&byte| byte == b'\n');
            events.iter().zip(lines).filter(|(event, _)| event.severity == Severity::Blocking).for_each(|(event, line)| hook.call(event.signature, line));
        }
        self.write(&out);
    }

    /// Returns one record per line, each with what the history knows of its error.
    fn records(&self, events: &[Event]) -> Vec<u8> {
        let bounds = Bounds { max_event_bytes: self.ready().max_event_bytes, patience: SHORT_PATIENCE };
        match self.memory.as_ref().map(|memory| memory.records(&self.envelope, events, bounds)) {
            Some(Ok((records, _))) => return records,
            Some(Err(why)) if !self.complained.swap(true, Ordering::Relaxed) => tell(&format!("the history does not get these errors: {why}")),
            _ => {}
        }
        let mut out = Vec::new();
        events.iter().for_each(|event| record::write(&mut out, &self.envelope, event, bounds.max_event_bytes));
        out
    }

    /// Writes the record of a retry.
    pub fn retry(&self, rerun: Rerun) {
        self.notice(&Notice::Retry { id: self.id("retry", rerun.attempt), rerun });
    }

    /// Writes how the command ended. Errors have records of their own.
    pub fn exit(&self, verdict: &Verdict, said: &Said) {
        let facts = &verdict.facts;
        let mut judged = Judged { failures: verdict.failures, task: facts.task.clone(), verdict: Vec::new() };
        write_members(&mut judged.verdict, verdict, None, &said.summary);
        let exit = Exit {
            code: facts.exit_code,
            signal: facts.signal,
            duration_ms: facts.duration_ms,
            outcome: verdict.status.as_str(),
            attempts: u64::from(facts.attempts),
            judged: Some(judged),
        };
        self.notice(&Notice::Exit { id: self.id("exit", 0), exit });
    }

    /// The process of a hook that is running.
    #[must_use]
    pub fn stranger(&self) -> Option<rustix::process::Pid> {
        self.hook.as_ref().and_then(OnBlocking::running)
    }

    /// Whether a record could not be written, which has been reported.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits for the hook to finish.
    pub fn finish(self) {
        self.hook.into_iter().for_each(OnBlocking::finish);
    }

    /// Returns the id of a record that is no error. `number` tells those of one kind apart.
    fn id(&self, kind: &str, number: u32) -> String {
        use md5::{Digest, Md5};
        let id: [u8; 16] = Md5::new().chain_update(kind).chain_update(self.uid).chain_update(number.to_be_bytes()).finalize().into();
        Hex::new(id).to_string()
    }

    /// Writes a record that is no error.
    fn notice(&self, notice: &Notice) {
        let label = Label { source: self.envelope.name.clone(), kind: self.envelope.kind, argv: self.envelope.argv.clone(), ..Label::default() };
        let mut out = Vec::new();
        notice::write(&mut out, &self.envelope.host, &label, notice, now());
        self.write(&out);
    }

    /// Appends finished records.
    pub fn write(&self, records: &[u8]) {
        let Some(events) = self.events.as_ref().filter(|_| !records.is_empty()) else { return };
        let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = events.write(records)
            && error.kind() != ErrorKind::BrokenPipe
            && !self.lost.swap(true, Ordering::Relaxed)
        {
            super::tell(&format!("--events: {error}"));
        }
    }
}
