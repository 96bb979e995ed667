//! `siftd digest`: summarises a log, or records that siftd wrote earlier, in few characters. Reads its input like `scan`.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::args::{DigestArgs, DigestFormat};
use super::{Exit, Failure, out, setup, stdin_is_given};
use crate::core::event::Event;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::digest::{Digest, Form, Format, Item, render, report};
use crate::sources::clock::now;
use crate::sources::expand::Trouble;
use crate::sources::foreign::{self, Foreign};
use crate::sources::input::{self, Opened, Watched};
use crate::sources::interrupt::Interrupt;
use crate::sources::own::Own;
use crate::words::counted;

/// Maximum length of a record, in bytes.
const MAX_RECORD_BYTES: usize = 1 << 20;

pub fn digest(args: &DigestArgs) -> Result<Exit, Failure> {
    let interrupt = Arc::new(Interrupt::take()?);
    let mut opened = open(args, interrupt.clone())?;
    let setup = setup::load(&args.setup, setup::Reading::default())?;
    let mut digest = Digest { least: args.min_severity, ..Digest::default() };
    let fault = |error: io::Error| Failure::new(format!("reading ended early: {error}"));
    let mut ended_early = None;
    let own = Own::of(&opened.first().map_err(fault)?);
    if own == Some(Own::Records) {
        let broken = records(&mut opened.bytes, &mut digest).map_err(fault)?;
        if broken > 0 {
            ended_early = Some(Failure::new(format!("{} no whole record: what {} said is missing", are(broken), if broken == 1 { "it" } else { "they" })));
        }
    } else if own == Some(Own::Report) {
        let limit = setup.config.limits.max_document_bytes;
        let broken = |error| Failure::new(format!("the report is broken, or larger than {limit} bytes (limits.max_document_bytes): {error}"));
        report(opened.bytes.take(limit), &mut digest).map_err(broken)?;
    } else {
        let mut stream = Stream::new(setup.engine, Origin::default()).with_documents(setup.config.limits.max_document_bytes);
        let mut events: Vec<Event> = Vec::new();
        let mut is_unseen = true;
        loop {
            let space = stream.space();
            let count = match input::fill(&mut opened.bytes, space) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => {
                    ended_early = Some(fault(error));
                    break;
                }
            };
            if std::mem::take(&mut is_unseen) {
                refuse_foreign(args, &space[..count])?;
            }
            stream.advance(count, now(), &mut events);
            events.drain(..).for_each(|event| digest.event(&event));
        }
        stream.finish(now(), &mut events);
        events.iter().for_each(|event| digest.event(event));
    }
    digest.order();
    let done = out::print(&render(&digest, &args.form()));
    out::heed(&interrupt);
    ended_early.map_or(done, Err)
}

/// Refuses input that is no log: it would give an empty digest that looks like an answer.
fn refuse_foreign(args: &DigestArgs, first: &[u8]) -> Result<(), Failure> {
    let why = match foreign::judge(first, true) {
        Some(Foreign::Packed(archive)) => archive.advice("digest"),
        Some(Foreign::Binary) => "is a binary file and was not read".to_owned(),
        Some(Foreign::Written) => "is siftd's own output, but none that a digest can sum up: digest the log, or the records of `--format ndjson`".to_owned(),
        Some(Foreign::Own) | None => return Ok(()),
    };
    let path = args.file.as_deref().filter(|path| *path != Path::new("-")).unwrap_or(Path::new("stdin"));
    let trouble = Trouble::new(path, why);
    Err(Failure::new(format!("{}: {}", trouble.path, trouble.why)))
}

fn open(args: &DigestArgs, interrupt: Arc<Interrupt>) -> Result<Opened, Failure> {
    let watched = Watched { interrupt: Some(interrupt), ..Watched::default() };
    let path = args.file.as_deref().unwrap_or(Path::new("-"));
    if path != Path::new("-") {
        let fault = |trouble: Trouble| Failure::new(format!("{}: {}", trouble.path, trouble.why));
        return input::file(path, watched).map_err(|error| fault(Trouble::new(path, error)));
    }
    if !stdin_is_given() {
        return Err(Failure::new("nothing to sum up: name a file, or pipe a log in (siftd digest --help)"));
    }
    Ok(input::stdin(watched)?)
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
            Ok(record) => Item::of_record(&record).into_iter().for_each(|item| digest.add(item)),
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
        Form { format: self.format.into(), max_chars: self.max_chars }
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
