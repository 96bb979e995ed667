//! `siftd digest`: summarises logs, or records that siftd wrote earlier, in few characters. Reads its inputs like `scan`.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{DigestArgs, DigestFormat};
use super::scan::once;
use super::{Exit, Failure, out, say, setup, stdin};
use crate::core::event::Event;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::digest::{Digest, Form, Format, render, report};
use crate::sources::clock::now;
use crate::sources::expand::{Input, Trouble, expand};
use crate::sources::foreign::{self, Foreign};
use crate::sources::input::{self, Opened, Watched};
use crate::sources::interrupt::Interrupt;
use crate::sources::own::Own;
use crate::words::counted;

/// Maximum length of a record, in bytes.
const MAX_RECORD_BYTES: usize = 1 << 20;

pub fn digest(args: &DigestArgs) -> Result<Exit, Failure> {
    let interrupt = Arc::new(Interrupt::take()?);
    let (mut inputs, troubles) = expand(&names(args)?);
    once(&mut inputs);
    let digest = Digest { least: args.min_severity, ..Digest::default() };
    let mut reading = Reading { setup: setup::load(&args.setup, setup::Reading::default())?, interrupt, digest, was_read: false, is_troubled: false };
    troubles.iter().for_each(|trouble| reading.trouble(trouble));
    for input in &inputs {
        if reading.interrupt.caught().is_some() {
            break;
        }
        reading.read(input).unwrap_or_else(|trouble| reading.trouble(&trouble));
    }
    let Reading { interrupt, mut digest, was_read, is_troubled, .. } = reading;
    // Of inputs none of which could be read, "no errors" would be an answer that is wrong.
    if was_read || !is_troubled {
        digest.order();
        out::print(&render(&digest, &args.form()))?;
    }
    out::heed(&interrupt);
    Ok(if is_troubled { Exit::Trouble } else { Exit::Done })
}

fn names(args: &DigestArgs) -> Result<Vec<PathBuf>, Failure> {
    if args.files.is_empty() {
        stdin::needed("sum up", "name files or folders, or pipe a log in", "digest")?;
        return Ok(vec![PathBuf::from("-")]);
    }
    Ok(args.files.clone())
}

/// What is read into one digest.
struct Reading {
    setup: setup::Setup,
    interrupt: Arc<Interrupt>,
    digest: Digest,
    /// Some input could be read.
    was_read: bool,
    /// Some input could not be read, or not to its end.
    is_troubled: bool,
}

impl Reading {
    /// Reports an input that cannot be read; the others continue.
    fn trouble(&mut self, trouble: &Trouble) {
        self.is_troubled = true;
        say(&format!("{}: {}", trouble.path, trouble.why));
    }

    /// Adds an input. The error tells why nothing of it could be read.
    fn read(&mut self, input: &Input) -> Result<(), Trouble> {
        let watched = Watched { interrupt: Some(self.interrupt.clone()), ..Watched::default() };
        let (path, opened) = match input {
            Input::Stdin => (Path::new("stdin"), input::stdin(watched)),
            Input::Named(path) | Input::Found(path) => (path.as_path(), input::file(path, watched)),
        };
        let fault = |error: io::Error| Trouble::new(path, error);
        let mut opened = opened.map_err(fault)?;
        let own = Own::of(&opened.first().map_err(|error| ended_early(path, &error))?);
        // As for `scan`: the errors of records in a folder are those of the logs beside them.
        if own.is_some() && matches!(input, Input::Found(_)) {
            say(&format!("{}: holds siftd's own records and was not read: name it to sum it up", path.display()));
            return Ok(());
        }
        let told = match own {
            Some(Own::Records) => self.records(path, opened),
            Some(Own::Report) => self.report(path, opened),
            None => return self.log(input, path, opened),
        };
        self.was_read = true;
        told.unwrap_or_else(|trouble| self.trouble(&trouble));
        Ok(())
    }

    fn records(&mut self, path: &Path, mut opened: Opened) -> Result<(), Trouble> {
        let broken = records(&mut opened.bytes, &mut self.digest).map_err(|error| ended_early(path, &error))?;
        if broken == 0 {
            return Ok(());
        }
        Err(Trouble::new(path, format!("{} no whole record: what {} said is missing", are(broken), if broken == 1 { "it" } else { "they" })))
    }

    fn report(&mut self, path: &Path, opened: Opened) -> Result<(), Trouble> {
        let limit = self.setup.config.limits.max_document_bytes;
        let broken = |error| Trouble::new(path, format!("the report is broken, or larger than {limit} bytes (limits.max_document_bytes): {error}"));
        report(opened.bytes.take(limit), &mut self.digest).map_err(broken)
    }

    fn log(&mut self, input: &Input, path: &Path, mut opened: Opened) -> Result<(), Trouble> {
        let mut stream = Stream::new(self.setup.engine.clone(), Origin::default()).of_finished().with_documents(self.setup.config.limits.max_document_bytes);
        let mut events: Vec<Event> = Vec::new();
        let mut is_unseen = true;
        loop {
            let space = stream.space();
            let count = match input::fill(&mut opened.bytes, space) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => {
                    self.trouble(&ended_early(path, &error));
                    break;
                }
            };
            if std::mem::take(&mut is_unseen)
                && let Some(why) = why_foreign(input, &space[..count])
            {
                if matches!(input, Input::Found(_)) {
                    say(&format!("{}: {why}", path.display()));
                    return Ok(());
                }
                return Err(Trouble::new(path, why));
            }
            if stream.counts().bytes == 0 {
                let head = stream.space()[..count].to_vec();
                stream.begins_with(&head, now());
            }
            stream.advance(count, now(), &mut events);
            events.drain(..).for_each(|event| self.digest.event(&event));
        }
        stream.finish(now(), &mut events);
        events.iter().for_each(|event| self.digest.event(event));
        self.was_read = true;
        Ok(())
    }
}

fn ended_early(path: &Path, error: &io::Error) -> Trouble {
    Trouble::new(path, format!("reading ended early: {error}"))
}

/// Returns why an input is no log: it would give an empty digest that looks like an answer.
fn why_foreign(input: &Input, first: &[u8]) -> Option<String> {
    let path = input.path();
    match foreign::judge(first, true)? {
        Foreign::Packed(archive) => Some(archive.advice("digest", path)),
        Foreign::Binary => Some("is a binary file and was not read".to_owned()),
        Foreign::Written => Some("is siftd's own output, but none that a digest can sum up: digest the log, or the records of `--format ndjson`".to_owned()),
        Foreign::Own => None,
    }
}

/// Adds records, one per line. Returns the number of lines that are no record.
fn records(bytes: &mut dyn Read, digest: &mut Digest) -> io::Result<u64> {
    let mut reader = io::BufReader::new(bytes);
    let (mut line, mut broken) = (Vec::new(), 0);
    loop {
        line.clear();
        let count = io::BufRead::read_until(&mut (&mut reader).take(MAX_RECORD_BYTES as u64), b'\n', &mut line)?;
        if count == 0 {
            return Ok(broken);
        }
        match serde_json::from_slice::<serde_json::Value>(&line) {
            Ok(record) => digest.record(&record),
            Err(_) => broken += u64::from(!line.trim_ascii().is_empty()),
        }
    }
}

/// Returns `1 line is`, `2 lines are`.
fn are(count: u64) -> String {
    format!("{} {}", counted(count, "line"), if count == 1 { "is" } else { "are" })
}

impl DigestArgs {
    fn form(&self) -> Form {
        let format = if self.json { DigestFormat::Json } else { self.format };
        Form { format: format.into(), max_chars: self.max_chars }
    }
}

impl From<DigestFormat> for Format {
    fn from(format: DigestFormat) -> Self {
        match format {
            DigestFormat::Text => Self::Text,
            DigestFormat::Json => Self::Json,
            DigestFormat::Markdown => Self::Markdown,
        }
    }
}
