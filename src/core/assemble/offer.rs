//! What open traces do with a line: take it, leave it to another writer's trace, or end
//! before it. A one-line error with a time stamp also stays open for what follows it.

use std::borrow::Cow;

use super::ending::{self, Ending};
use super::verdicts::{is_runners, may_tell_of_test};
use super::{Assembler, Context, lead_in_of, needs_lead, pointed};
use crate::core::confirm::Confirm;
use crate::core::decode;
use crate::core::engine::Candidate;
use crate::core::event::Event;
use crate::core::leadin;
use crate::core::line::{Line, Tried, View};
use crate::core::record;
use crate::core::shown;
use crate::core::trace::{MAX_SEEN_LINES, OpenTrace, start_row};
use crate::core::writer::Writer;
use crate::rules::{Kind, Machine};

/// Maximum number of lines for which a trace stays open while only other writers write.
const MAX_SILENT_LINES: u64 = 1000;

/// Maximum number of log lines that may interrupt a trace without time stamps.
const MAX_INTERRUPTION_LINES: u64 = 16;

impl Assembler {
    /// Offers the line to the open traces, newest first, and returns whether one takes
    /// it. A trace that does not continue ends. `candidates` are the line's, if known.
    pub(super) fn continue_open(&mut self, cx: &Context, line: &Line, candidates: Option<&[Candidate]>, out: &mut Vec<Event>) -> bool {
        // A one-line error owns the indented lines after it, but not what the runner says that ran the tests which printed it.
        let ends = |judged: Option<Writer>, trace: &OpenTrace| judged.is_some_and(|writer| writer.may_be(trace.setting.writer));
        let reports = || is_report(cx, line, candidates).then(|| line.writer());
        let of_runner = if self.open.iter().any(OpenTrace::is_single) { self.verdict_of(cx, line, false).or_else(reports) } else { None };
        // What a test printed may begin a trace that takes any line, but not that the test passed.
        let is_of_test = |trace: &OpenTrace| trace.is_on_trial() && !tell_of_test(cx, trace.rivals());
        let passes = if !self.regions.is_empty() && self.open.iter().any(is_of_test) { self.verdict_of(cx, line, true) } else { None };
        let mut at = self.open.len();
        while at > 0 {
            at -= 1;
            let trace = &mut self.open[at];
            let is_over = ends(of_runner, trace) && trace.is_single() || ends(passes, trace) && is_of_test(trace);
            let mut offered = if is_over { Offer::Ended } else { offer(cx, trace, line, candidates) };
            if matches!(offered, Offer::Ended) && of_runner.is_none() && passes.is_none() && pointed::takes(cx, trace, line, candidates) {
                offered = Offer::Taken;
            }
            match offered {
                Offer::Taken => {
                    self.note_crossing(self.open[at].anchor(), line.place.offset);
                    return true;
                }
                Offer::Elsewhere if line.place.num.saturating_sub(self.open[at].last_num) <= MAX_SILENT_LINES => {}
                Offer::Elsewhere | Offer::Ended => {
                    if self.adoptable(at, line) {
                        continue;
                    }
                    self.close(cx, at, out);
                    if !self.again.is_empty() {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// Whether the trace at `at` is a one-line error that waits for `line`: a
    /// stack trace without a time stamp belongs to it. `fresh` settles that.
    pub(super) fn adoptable(&self, at: usize, line: &Line) -> bool {
        let trace = &self.open[at];
        let same_writer = || (line.key() == trace.key.as_deref() || is_bare(line)) && !leadin::names_differ(trace.lines.get(0).text, line.text);
        trace.waits
            && trace.is_followed_by(line)
            && trace.is_single()
            && !trace.is_on_trial_beyond_blanks()
            && (trace.prefix.is_stamped() || !trace.is_on_trial())
            && line.tried == Tried::No
            && line.place.io == trace.lines.get(0).place.io
            && (trace.outranks(line) || trace.is_stamped_alike(line))
            && same_writer()
    }

    /// Returns the index of the one-line error that waits for `line`.
    pub(super) fn record_above(&self, line: &Line) -> Option<usize> {
        (0..self.open.len()).rev().find(|&at| self.adoptable(at, line))
    }

    /// Whether what begins at `line` may belong to the record before it. A record that announces a trace takes
    /// whatever comes. Otherwise, only those machines remain that begin with what loggers print below their records,
    /// and those that a line before theirs begins which is an error by words that any program uses.
    pub(super) fn keep_under_record(&self, cx: &Context, line: &Line, view: View, rivals: &mut Vec<u16>) -> bool {
        let Some(record) = self.record_above(line) else { return true };
        let (lead_in, back) = (lead_in_of(cx, rivals, line, view), self.look_back(cx, line));
        let record = &self.open[record];
        let stamped = record.prefix.is_stamped();
        let announces = stamped && record.announces();
        // If both are records of an error, what begins at the second must not be an event by its first line.
        let is_alike = !record.outranks(line);
        let is_generic = record.rivals().all(|entry| cx.engine.rules.entries[usize::from(entry)].generic);
        let begun_by_it = |entry: u16| is_generic && self.lead_of(cx, entry, line, &lead_in, back).shares(&record.lines);
        let fits = |entry: &u16| {
            let kind = &cx.engine.rules.entries[usize::from(*entry)].kind;
            let Kind::Trace(machine) = kind else { return false };
            let Some(row) = start_row(machine, *entry, line, view) else { return false };
            // A record without a time stamp can only be the head of a trace that has none of its own.
            let belongs = announces || row.under_record && (stamped || needs_lead(kind));
            belongs && (!is_alike || record.prefix.levels > 0 && (machine.needs_frame || !row.accept)) || begun_by_it(*entry)
        };
        if !rivals.iter().any(fits) {
            return false;
        }
        rivals.retain(fits);
        true
    }

    /// Removes the one-line error that `line` follows from the open traces and returns it.
    pub(super) fn adopt(&mut self, line: &Line) -> Option<OpenTrace> {
        let at = self.record_above(line)?;
        self.note_crossing(self.open[at].anchor(), line.place.offset);
        Some(self.open.remove(at))
    }

    pub(super) fn end_unadopted(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) {
        while let Some(at) = (0..self.open.len()).find(|&at| self.adoptable(at, line)) {
            self.close(cx, at, out);
        }
    }
}

/// Whether the line says nothing about its writer: it continues where the line before it left off.
fn is_bare(line: &Line) -> bool {
    !line.prefix().shaped && line.place.key.is_none()
}

/// Whether the line belongs to a log: it has a time stamp, or the time of a request in brackets.
fn is_logged(line: &Line) -> bool {
    let request = || memchr::memmem::find(line.text, b" [").is_some_and(|at| decode::parse_time_at(line.text, at + 2, line.now()).is_some());
    line.is_stamped() || request()
}

enum Offer {
    /// The line belongs to the trace.
    Taken,
    /// The line is another writer's and says nothing about the trace.
    Elsewhere,
    /// The line is the same writer's and does not belong to the trace.
    Ended,
}

fn offer(cx: &Context, trace: &mut OpenTrace, line: &Line, candidates: Option<&[Candidate]>) -> Offer {
    if let Some(settled) = settled(trace, line) {
        return settled;
    }
    if trace.is_single() { offer_single(cx, trace, line, candidates) } else { offer_machines(cx, trace, line, candidates) }
}

/// Returns the answer to a line that nothing of the trace need be shown.
fn settled(trace: &OpenTrace, line: &Line) -> Option<Offer> {
    // A line that another trace gave back may precede what this one has taken.
    if line.place.num < trace.last_num {
        return Some(Offer::Elsewhere);
    }
    let head = trace.lines.get(0);
    if leadin::names_differ(head.text, line.text) {
        return Some(Offer::Elsewhere);
    }
    if line.place.io != head.place.io {
        // What waits for nothing but its source has ended.
        return Some(if trace.is_single() && !trace.waits { Offer::Ended } else { Offer::Elsewhere });
    }
    shown::stands_alone(line.text).then_some(Offer::Ended)
}

/// Offers the line to the machines of a trace.
fn offer_machines(cx: &Context, trace: &mut OpenTrace, line: &Line, candidates: Option<&[Candidate]>) -> Offer {
    let restamped = trace.restamped(&cx.engine.rules.entries, line);
    if is_of_another_envelope(cx, trace, line) {
        return Offer::Elsewhere;
    }
    if begins_elsewhere(cx, trace, line) || trace.unproven && !trace.proves_head(restamped) {
        return Offer::Ended;
    }
    if trace.prefers_restamped() && restamped.is_some() {
        if takes_restamped(cx, trace, line, restamped) {
            return Offer::Taken;
        }
        if trace.is_restamped() {
            return Offer::Ended;
        }
    }
    offer_part(cx, trace, (line, restamped), candidates)
}

/// Whether the line came in another envelope than the trace.
fn is_of_another_envelope(cx: &Context, trace: &OpenTrace, line: &Line) -> bool {
    // A line without an envelope is none of what a test in one has printed.
    let is_wrapped = trace.lines.get(0).place.key.is_some() && tell_of_test(cx, trace.rivals());
    let keyed = is_wrapped || trace.key.is_some() && line.prefix().key.is_some() || line.place.key.is_some();
    keyed && trace.key.as_deref() != line.key()
}

/// Whether a command or a step of a build begins with the line: it ends the trace. A command shows that the error is over.
fn begins_elsewhere(cx: &Context, trace: &mut OpenTrace, line: &Line) -> bool {
    // Few lines of a trace are decoded for anything else.
    if shown::may_be_prompt(line.text) && shown::is_prompt(line.body()) && !trace.shows_commands(&cx.engine.rules.entries) {
        trace.keep_loose();
        return true;
    }
    shown::may_begin_step(line.text) && shown::begins_step(line.body())
}

/// Offers the machines the part of the line that may be theirs, as the head's was, then the part behind the head's stamp.
fn offer_part(cx: &Context, trace: &mut OpenTrace, (line, restamped): (&Line, Option<(&[u8], usize)>), candidates: Option<&[Candidate]>) -> Offer {
    let view = if trace.prefix.shaped && line.prefix().shaped { trace.view.at_least_body() } else { View::Text };
    let whole = trace.shown(line, view);
    let own = trace.own_part(whole);
    if own.is_none() && (trace.is_marked() || trace.is_others(whole)) {
        return Offer::Elsewhere;
    }
    if own.is_none() && trace.is_quoted() {
        return Offer::Ended;
    }
    let part = own.unwrap_or(whole);
    let is_loose = trace.may_be_loose(&cx.engine.rules.entries);
    let ending = if is_loose { ending::of(cx, trace, (line, restamped.is_some()), candidates) } else { Ending::Begun };
    if !is_record_of_its_own(cx, trace, line) && takes(cx, trace, line, (part, ending == Ending::Open)) {
        if own.is_some() {
            trace.mark();
        }
        return Offer::Taken;
    }
    if !trace.prefers_restamped() && takes_restamped(cx, trace, line, restamped) {
        return Offer::Taken;
    }
    if own.is_none() && is_interruption(trace, line) {
        return Offer::Elsewhere;
    }
    if ending == Ending::Over {
        trace.keep_loose();
    }
    Offer::Ended
}

/// Whether one of the machines may tell of a test.
fn tell_of_test(cx: &Context, mut rivals: impl Iterator<Item = u16>) -> bool {
    rivals.any(|entry| may_tell_of_test(cx, &cx.engine.rules.entries[usize::from(entry)]))
}

/// Whether the line is a log's record, and the trace is none: then it is no part of the trace, even if a row takes any
/// line. Only what a test has logged is part of the test's report. (Frames are indented, and most lines are frames.)
fn is_record_of_its_own(cx: &Context, trace: &OpenTrace, line: &Line) -> bool {
    if trace.prefix.levels > 0 || is_indented_as_written(line) {
        return false;
    }
    // A collector's stamp stands before the trace's lines, too.
    let prefix = line.prefix();
    let is_stamped = prefix.levels > 0 && prefix.times > trace.prefix.times;
    (is_stamped || begins_as_structured(line.body()) && record::is_one(line))
        && !trace.shows_records(&cx.engine.rules.entries)
        && !tell_of_test(cx, trace.still_competing())
}

/// Whether the text begins like a JSON object or with `key=`: most lines do not.
fn begins_as_structured(text: &[u8]) -> bool {
    let first = text.iter().find(|byte| !byte.is_ascii_alphanumeric() && **byte != b'_');
    matches!(first, Some(b'=')) || text.first() == Some(&b'{')
}

fn is_indented_as_written(line: &Line) -> bool {
    matches!(line.text.first(), Some(b' ' | b'\t'))
}

/// Whether the trace takes `part` of the line. `plain`: nothing begins with it.
fn takes(cx: &Context, trace: &mut OpenTrace, line: &Line, (part, plain): (&[u8], bool)) -> bool {
    let entries = &cx.engine.rules.entries;
    let is_taken = trace.offer(entries, line, part, plain);
    if is_taken {
        trace.push(entries, line, part, cx.engine.limits.room());
    }
    is_taken
}

/// Whether the line is of a log that interrupts a trace which has no time stamps and is yet to be named.
fn is_interruption(trace: &OpenTrace, line: &Line) -> bool {
    trace.is_unnamed() && !trace.prefix.shaped && is_logged(line) && line.place.num.saturating_sub(trace.last_num) <= MAX_INTERRUPTION_LINES
}

/// Whether the trace takes the part of `line`, a record of its own, that follows the same stamp as the head's.
fn takes_restamped(cx: &Context, trace: &mut OpenTrace, line: &Line, restamped: Option<(&[u8], usize)>) -> bool {
    let Some((part, stamp)) = restamped else { return false };
    let is_taken = takes(cx, trace, line, (part, false));
    if is_taken {
        trace.mark_stamp(line, stamp);
    }
    is_taken
}

/// Offers the line to a one-line error. One with a time stamp owns the indented lines without one that follow it.
fn offer_single(cx: &Context, trace: &mut OpenTrace, line: &Line, candidates: Option<&[Candidate]>) -> Offer {
    // It is open only for the source that may be shown below it.
    if !trace.waits {
        return Offer::Ended;
    }
    if line.prefix().shaped && line.key() != trace.key.as_deref() {
        return Offer::Elsewhere;
    }
    if !trace.is_followed_by(line) {
        return Offer::Ended;
    }
    // An arrow marks the further lines of a record of VMware's.
    let is_further = is_indented(line) || trace.prefix.time.is_some() && line.body().starts_with(b"-->");
    if is_further && trace.taken() == 1 && line.tried == Tried::No && begins_trace(cx, line, candidates) {
        return Offer::Ended;
    }
    let is_of_record = trace.outranks(line) && trace.prefix.is_stamped();
    let is_accepted = if is_of_record && is_further && trace.taken() < MAX_SEEN_LINES {
        // An indented blank line belongs to the error only if a further line does.
        !line.is_blank()
    } else if is_of_record && trace.is_closed_by(line) || is_announced(cx, trace, line, candidates) {
        true
    } else if is_of_record && line.body().is_empty() && !trace.is_on_trial() {
        // Its causes may follow after a blank line, in a trace that adopts it.
        false
    } else {
        return Offer::Ended;
    };
    trace.extend_single(&cx.engine.rules.entries, line, is_accepted, cx.engine.limits.room());
    Offer::Taken
}

fn is_indented(line: &Line) -> bool {
    matches!(line.body().first(), Some(b' ' | b'\t'))
}

/// Whether the line says what the one-line error announces, whose only line so far ends with a colon (`Error:`): a line
/// that begins nothing, or all that are indented.
fn is_announced(cx: &Context, trace: &OpenTrace, line: &Line, candidates: Option<&[Candidate]>) -> bool {
    let is_next = trace.announces_next() && (trace.taken() == 1 || is_indented(line) && trace.is_told_below() && trace.taken() < MAX_SEEN_LINES);
    let same_record = || trace.outranks(line) || line.prefix().levels == 0 && trace.is_stamped_alike(line);
    is_next && !line.is_blank() && line.tried == Tried::No && same_record() && ending::of(cx, trace, (line, false), candidates) == Ending::Open
}

/// Whether a trace that needs no line before it begins at the line.
fn begins_trace(cx: &Context, line: &Line, candidates: Option<&[Candidate]>) -> bool {
    asked(cx, line, candidates, |confirm| {
        let begins = |entry: &u16| !needs_lead(&cx.engine.rules.entries[usize::from(*entry)].kind);
        confirm.starts().0.iter().any(begins)
    })
}

/// Whether the line is the head of a failure that a test runner reports, indented as it numbers them, or of a list of them.
fn is_report(cx: &Context, line: &Line, candidates: Option<&[Candidate]>) -> bool {
    if line.tried != Tried::No || !is_indented(line) {
        return false;
    }
    let is_head = |entry: &u16| {
        let entry = &cx.engine.rules.entries[usize::from(*entry)];
        let needs_nothing_before = |machine: &Machine| machine.before.iter().all(|before| before.optional);
        is_runners(cx, entry) && matches!(&entry.kind, Kind::Trace(machine) if needs_nothing_before(machine))
    };
    asked(cx, line, candidates, |confirm| confirm.starts().0.iter().any(is_head))
}

/// Asks what the literals of the line lead to; `candidates` are the line's, if known.
fn asked(cx: &Context, line: &Line, candidates: Option<&[Candidate]>, ask: impl Fn(&mut Confirm) -> bool) -> bool {
    let candidates = candidates.map_or_else(|| cx.engine.candidates_of(line.text).into(), Cow::from);
    !candidates.is_empty() && ask(&mut Confirm::new(cx.engine, line, &candidates))
}
