//! What the user has asked for when a command has had its last run: the output that is kept, the digest, the verdict.

use std::io;

use super::journal::Journal;
use super::{Order, Outcome, raw_output, tell};
use crate::core::event::Io;
use crate::digest::{self, Digest};
use crate::sinks::record;
use crate::verdict;

/// Writes the requested results. A failure is reported and does not stop the others. Returns whether all were written.
pub(super) fn write(order: &mut Order, journal: &Journal, outcome: &Outcome) -> bool {
    journal.exit(&outcome.verdict, &outcome.said);
    let written = [
        ("--keep-output", keep_output(order, journal, outcome)),
        ("--digest", digest(order, journal, outcome)),
        ("--verdict", verdict(order, journal, outcome)),
    ];
    let lost = written.iter().filter_map(|(flag, written)| Some((flag, written.as_ref().err()?)));
    // A reader that has closed its pipe wants nothing more.
    let lost = lost.filter(|(_, error)| error.kind() != io::ErrorKind::BrokenPipe);
    let count = lost.inspect(|(flag, error)| tell(&format!("{flag}: {error}"))).count();
    count == 0 && !journal.has_lost()
}

fn keep_output(order: &Order, journal: &Journal, outcome: &Outcome) -> io::Result<()> {
    let Some(folder) = order.keep_output.as_ref().filter(|_| !outcome.verdict.is_success()) else { return Ok(()) };
    let outputs = [(Io::Stdout, &outcome.stdout.kept), (Io::Stderr, &outcome.stderr.kept)];
    raw_output::keep(folder, &journal.envelope().argv, order.task.as_deref(), &outputs)
}

fn digest(order: &mut Order, journal: &Journal, outcome: &Outcome) -> io::Result<()> {
    let Some((file, form)) = &mut order.digest else { return Ok(()) };
    let made = Digest::of_run(&outcome.verdict, &outcome.said, &journal.envelope().argv);
    file.write(digest::render(&made, form).as_bytes())
}

fn verdict(order: &mut Order, journal: &Journal, outcome: &Outcome) -> io::Result<()> {
    let Some(file) = &mut order.verdict else { return Ok(()) };
    let (mut errors, mut line) = (Vec::new(), Vec::new());
    let write = |event| record::write(&mut errors, journal.envelope(), event, journal.ready().max_event_bytes);
    outcome.said.errors.iter().for_each(write);
    verdict::write(&mut line, &outcome.verdict, &errors, &outcome.said.summary);
    line.push(b'\n');
    file.write(&line)
}
