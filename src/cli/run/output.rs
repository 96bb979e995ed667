//! Where `run` writes: stdout or files opened for appending, each record whole and at once.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::{Failure, RunArgs, identity, out};
use crate::config::{Config, Schema, SinkConfig, SinkKind, SourceConfig};
use crate::core::event::{Event, Severity};
use crate::core::redact::Redactor;
use crate::sinks::record::{self, Envelope};
use crate::sources::follow::Label;
use crate::sources::input::Identity;

/// All sinks.
pub struct Output {
    sinks: Vec<Sink>,
    host: String,
    /// Labels of the sources, by name.
    labels: BTreeMap<String, Vec<(String, String)>>,
    max_event_bytes: usize,
    buffer: Vec<u8>,
}

struct Sink {
    file: File,
    min_severity: Severity,
}

impl Output {
    /// The sinks of flags and configuration; stdout where neither names one.
    pub fn open(args: &RunArgs, config: &Config) -> Result<Self, Failure> {
        check_sinks(config)?;
        let least = args.min_severity.unwrap_or(Severity::Low);
        let mut sinks = Vec::new();
        if let Some(path) = &args.output {
            sinks.push(Sink { file: append_to(path)?, min_severity: least });
        } else {
            for sink in &config.sinks {
                let file = match &sink.path {
                    Some(path) if sink.kind == SinkKind::File => append_to(path)?,
                    _ => out::stdout()?,
                };
                sinks.push(Sink { file, min_severity: sink.min_severity.max(least) });
            }
        }
        if sinks.is_empty() {
            sinks.push(Sink { file: out::stdout()?, min_severity: least });
        }
        let labels = config.sources.iter().map(|source| (source.name.clone(), labels(source))).collect();
        Ok(Self { sinks, labels, host: identity::host(), max_event_bytes: config.limits.max_event_bytes as usize, buffer: Vec::new() })
    }

    /// The files that are written, so that nobody reads them.
    pub fn identities(&self) -> Vec<Identity> {
        let regular = self.sinks.iter().filter(|sink| sink.file.metadata().is_ok_and(|meta| meta.is_file()));
        regular.filter_map(|sink| Identity::of(&sink.file).ok()).collect()
    }

    /// Writes the events of a file that is followed.
    pub fn followed(&mut self, label: &Label, events: &mut Vec<Event>) -> io::Result<()> {
        let labels = self.labels_of(&label.source);
        let envelope = Envelope { host: self.host.clone(), name: label.source.clone(), kind: "file", path: Some(label.path.clone()), labels };
        self.write(&envelope, events)
    }

    /// The labels of a source.
    pub fn labels_of(&self, source: &str) -> Vec<(String, String)> {
        self.labels.get(source).cloned().unwrap_or_default()
    }

    /// Writes the events to every sink that wants them, and empties the list.
    pub fn write(&mut self, envelope: &Envelope, events: &mut Vec<Event>) -> io::Result<()> {
        for sink in &mut self.sinks {
            self.buffer.clear();
            for event in events.iter().filter(|event| event.severity >= sink.min_severity) {
                record::write(&mut self.buffer, envelope, event, self.max_event_bytes);
            }
            sink.file.write_all(&self.buffer)?;
        }
        events.clear();
        Ok(())
    }
}

fn labels(source: &SourceConfig) -> Vec<(String, String)> {
    let clean = |text: &String| Redactor::builtin().redact(text, &mut 0).into_owned();
    source.labels.iter().map(|(name, value)| (clean(name), clean(value))).collect()
}

fn append_to(path: &Path) -> Result<File, Failure> {
    OpenOptions::new().append(true).create(true).open(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Sinks that this version cannot write are refused, not ignored.
fn check_sinks(config: &Config) -> Result<(), Failure> {
    let known = |sink: &SinkConfig| matches!(sink.kind, SinkKind::File | SinkKind::Stdout) && sink.schema == Schema::Native;
    match config.sinks.iter().find(|sink| !known(sink)) {
        Some(sink) => Err(Failure::new(format!("sink {:?}: this version writes stdout and file, schema native", sink.name))),
        None => Ok(()),
    }
}
