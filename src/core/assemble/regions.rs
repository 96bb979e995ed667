//! The regions that a stream is in: sections of a tool's output in which weak traces may begin. They end at their
//! closing line or at a border, together with their traces, or after a maximum number of lines, which cuts no trace.

use super::{Assembler, Context};
use crate::core::confirm::Confirm;
use crate::core::event::{Event, Timestamp};
use crate::core::line::{Line, Place, Position, View};
use crate::core::shown;
use crate::core::trace::{OpenTrace, start_row};
use crate::core::writer::Writer;
use crate::rules::{Kind, Region};
use crate::words::Level;

/// Maximum nesting depth of one writer's regions: runs with a verdict, and inside them one section that lists what failed.
const MAX_DEPTH: usize = MAX_RUNS + 1;
/// Maximum nesting depth of those with a verdict: a command, the runner that it calls, and a part of that one's output.
const MAX_RUNS: usize = 3;
/// Maximum number of regions of all writers.
pub(super) const MAX_REGIONS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenRegion {
    pub(super) entry: u16,
    pub(super) left: u32,
    /// The line that opened the region.
    /// Earlier lines are not part of the region, even if a trace gives them back later.
    pub(super) since: Position,
    /// Who wrote that line. Another writer's lines are not part of the region.
    pub(super) writer: Writer,
    /// Whether it was opened after a writer's name in brackets: then its lines have such a name, too.
    pub(super) after_writer: bool,
    /// Whether a logger's record opened it: what a service says may read like a tool's report.
    pub(super) logged: bool,
    /// Whether no line opened it: the log is finished, and began with it.
    pub(super) implied: bool,
}

impl OpenRegion {
    /// Whether the line is an error of its own although it is in the region: a logger's record opened the region, and this is another record, of level error.
    fn is_beside(&self, line: &Line) -> bool {
        self.logged && line.prefix().level >= Some(Level::Error) && line.is_of_a_logger()
    }

    /// Whether lines of `writer` are part of the region.
    pub(super) fn is_of(&self, writer: Writer) -> bool {
        self.writer.may_be(writer)
    }

    /// Whether verdicts in the region are `writer`'s to give: what has no name may be anybody's error, but is no named writer's verdict.
    pub(super) fn hears(&self, writer: Writer) -> bool {
        self.writer.is_unnamed() || self.writer == writer
    }

    fn holds(&self, line: &Line) -> bool {
        self.holds_from(line.place.position(), line.writer())
    }

    /// Whether what begins at this line, which `writer` wrote, is part of the region.
    pub(super) fn holds_from(&self, line: Position, writer: Writer) -> bool {
        self.since < line && self.is_of(writer)
    }

    /// Whether the region stands for whatever runner is called: its verdicts are that runner's words.
    pub(super) fn is_for_any_runner(&self, cx: &Context) -> bool {
        region(cx, self.entry).is_some_and(|region| region.implied.is_some())
    }

    /// Returns the parts of a line in which the region's traces may begin.
    fn views(&self, line: &Line) -> &'static [View] {
        match (self.after_writer, line.prefix().body) {
            (true, _) => &[View::Text, View::Body, View::AfterWriter],
            (false, 0) => &[View::Text],
            (false, _) => &[View::Text, View::Body, View::Padded],
        }
    }

    /// Returns the part of a line that may end the region.
    fn view(&self) -> View {
        if self.after_writer { View::AfterWriter } else { View::Body }
    }
}

impl Assembler {
    /// Returns the weak traces that begin at the line, innermost
    /// region first: at the line as it stands, or after its prefix.
    pub(super) fn weak_starts(&self, cx: &Context, line: &Line) -> (Vec<u16>, View) {
        let entries = &cx.engine.rules.entries;
        for open in self.regions.iter().rev().filter(|open| open.holds(line)) {
            let Some(region) = region(cx, open.entry) else { continue };
            for &view in open.views(line) {
                let begins = |entry: u16| matches!(&entries[usize::from(entry)].kind, Kind::Trace(machine) if start_row(machine, entry, line, view).is_some());
                let found: Vec<u16> = region.weak.iter().copied().filter(|&entry| begins(entry)).collect();
                if !found.is_empty() {
                    return (found, view);
                }
            }
        }
        (Vec::new(), View::Text)
    }

    /// Handles the border `entry`. That of a test runner stands inside the run that a command has begun.
    pub(super) fn border(&mut self, cx: &Context, line: &Line, entry: u16, out: &mut Vec<Event>) {
        let rules = &cx.engine.rules;
        let family = |entry: u16| rules.entries[usize::from(entry)].family;
        let is_runner = rules.families[usize::from(family(entry))].test;
        let is_around =
            |open: &OpenRegion| is_runner && !open.implied && family(open.entry) != family(entry) && region(cx, open.entry).is_some_and(Region::has_verdicts);
        if let Some(first) = self.regions.iter().position(|open| open.is_of(line.writer()) && !is_around(open)) {
            self.end_region(cx, first, out);
        }
        for unclaimed in self.notes.settle(line.service()) {
            self.publish(cx, &unclaimed, out);
        }
    }

    /// Whether only the traces of a region may begin at the line.
    pub(super) fn absorbed(&self, cx: &Context, line: &Line) -> bool {
        self.regions.iter().any(|open| open.holds(line) && region(cx, open.entry).is_some_and(|region| region.absorb) && !open.is_beside(line))
    }

    /// Whether the line is in a sealed region, of which only the end is looked for.
    pub(super) fn sealed(&self, cx: &Context, line: &Line) -> bool {
        self.regions.iter().any(|open| open.holds(line) && region(cx, open.entry).is_some_and(|region| region.seal))
    }

    /// Handles the first line of the region `entry`. Beyond [`MAX_REGIONS`], the oldest one of a named writer ends: that
    /// one is most likely gone, and what it wrote holds no other writer's sections.
    pub(super) fn enter(&mut self, cx: &Context, (entry, region): (u16, &Region), line: &Line, view: View, out: &mut Vec<Event>) {
        let writer = line.writer_before(view);
        self.implies &= !region.has_verdicts() || region.late;
        if region.has_verdicts() && !region.late {
            self.end_implied(cx, out);
        }
        if region.implied.is_some() {
            self.held.begin(cx, &self.regions, writer);
            self.release_certain(out);
        }
        if let Some(open) = self.regions.iter_mut().find(|open| (open.entry, open.writer) == (entry, writer)) {
            open.left = region.max_lines;
            return;
        }
        if self.depth(writer) >= if region.has_verdicts() { MAX_RUNS } else { MAX_DEPTH } {
            self.cut_sections += 1;
            return;
        }
        if self.regions.len() >= MAX_REGIONS {
            let oldest = self.regions.iter().position(|open| !open.writer.is_unnamed());
            self.end_region(cx, oldest.unwrap_or_default(), out);
            self.cut_sections += 1;
        }
        self.regions.push(OpenRegion {
            entry,
            left: region.max_lines,
            since: line.place.position(),
            writer,
            after_writer: view == View::AfterWriter,
            logged: line.is_of_a_logger(),
            implied: false,
        });
    }

    /// Ends the implied region where a runner says that it begins: what stands above is none of its.
    fn end_implied(&mut self, cx: &Context, out: &mut Vec<Event>) {
        if let Some(at) = self.regions.iter().position(|open| open.implied) {
            self.end_region(cx, at, out);
        }
    }

    /// Says that the log is finished: what its end tells counts from its beginning.
    pub fn finished(&mut self) {
        self.implies = true;
    }

    /// Opens the region that a finished log implies at its first error, unless there was a section with verdicts before:
    /// all of the log may be what tests printed whose runner is silent until its summary.
    pub(super) fn imply(&mut self, cx: &Context) {
        if !std::mem::take(&mut self.implies) {
            return;
        }
        let implied = cx.engine.rules.entries.implied();
        if let Some((entry, left)) = implied.and_then(|entry| Some((entry, region(cx, entry)?.implied?))) {
            let of_log = OpenRegion { entry, left, since: Position::BEFORE_ALL, writer: Writer::default(), after_writer: false, logged: false, implied: true };
            self.regions.insert(0, of_log);
            self.open.iter_mut().for_each(|trace| trace.setting.depth += 1);
        }
    }

    /// Opens the region that a shell's line with this command opens: what follows is printed by it.
    /// If it opens none, the command may still run tests: it opens what a finished log implies.
    pub fn open_for(&mut self, cx: &Context, command: &str) {
        let text = format!("$ {command}");
        let line = Line::new(Place::default(), text.as_bytes(), Timestamp::default());
        let candidates = cx.engine.candidates_of(line.text);
        match Confirm::new(cx.engine, &line, &candidates).region() {
            // Nothing has been read yet, so nothing comes out.
            Some((entry, region, view)) => self.enter(cx, (entry, region), &line, view, &mut Vec::new()),
            None => {
                self.implies = true;
                self.imply(cx);
            }
        }
    }

    /// Ends the regions that the line ends. Returns whether it is
    /// the last line of a sealed region, which holds that line, too.
    pub(super) fn close_regions(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) -> bool {
        // Only a prompt that names a host: a page that quotes outputs, and a runner of several commands, show a command after a bare sign.
        if !self.regions.is_empty() && shown::may_be_prompt(line.text) && !self.sealed(cx, line) && shown::is_of_host(line.body()) {
            while let Some(first) = self.regions.iter().position(|open| open.is_of(line.writer())) {
                self.end_region(cx, first, out);
            }
            self.redo(cx, line.now(), out);
            return false;
        }
        // What a sealed region holds does not end the regions around it.
        let is_sealed = |open: &OpenRegion| region(cx, open.entry).is_some_and(|region| region.seal) && open.is_of(line.writer());
        let asked = self.regions.iter().position(is_sealed).unwrap_or_default();
        for at in 0..self.regions.len() {
            let open = &mut self.regions[at];
            open.left = open.left.saturating_sub(1);
            let is_over = open.left == 0;
            let is_asked = at >= asked && open.is_of(line.writer());
            if is_over || (is_asked && region(cx, open.entry).is_none_or(|region| region.ends_before(open.view().of(line)))) {
                if is_over {
                    self.let_go(at);
                }
                let is_last = !is_over && region(cx, self.regions[at].entry).is_some_and(|region| region.seal);
                self.end_region(cx, at, out);
                self.redo(cx, line.now(), out);
                return is_last;
            }
        }
        false
    }

    /// Ends what a reread line ends of the regions that lines before
    /// it opened while reread: all other regions have seen the line.
    pub(super) fn close_reopened(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) {
        let ends = |open: &OpenRegion| open.holds(line) && region(cx, open.entry).is_some_and(|region| region.ends_before(open.view().of(line)));
        if let Some(first) = self.regions.iter().position(ends) {
            self.end_region(cx, first, out);
        }
    }

    /// Returns the entries of the open regions, outermost first, and those of the open traces; for `explain`.
    #[must_use]
    pub fn opened(&self) -> (Vec<u16>, Vec<u16>) {
        let traces = self.open.iter().flat_map(OpenTrace::rivals);
        (self.regions.iter().map(|region| region.entry).collect(), traces.collect())
    }

    /// Records in a trace that begins at `line` who wrote it, and which regions are around it.
    pub(super) fn settle_in(&self, trace: &mut OpenTrace, line: &Line) {
        trace.setting.writer = line.writer();
        trace.setting.service = line.service();
        trace.setting.depth = self.depth(trace.setting.writer);
    }

    /// Returns how many regions hold lines of `writer`.
    fn depth(&self, writer: Writer) -> usize {
        depth(&self.regions, writer)
    }

    /// Leaves the traces in the region at `at` open when it ends.
    fn let_go(&mut self, at: usize) {
        let (ended, around) = (self.regions[at], &self.regions[..at]);
        for trace in self.open.iter_mut().filter(|trace| ended.is_of(trace.setting.writer)) {
            trace.setting.depth = trace.setting.depth.min(depth(around, trace.setting.writer));
        }
    }

    /// Ends the region at `at` and those within it, with the traces that began in them.
    pub(super) fn end_region(&mut self, cx: &Context, at: usize, out: &mut Vec<Event>) {
        let ended = self.regions[at];
        if ended.implied {
            // It is around everything, and no section of its own: what is in it goes on.
            self.regions.remove(at);
            self.open.iter_mut().for_each(|trace| trace.setting.depth = trace.setting.depth.saturating_sub(1));
            self.release_outside(cx, out);
            return;
        }
        let mut within = self.regions.split_off(at);
        within.retain(|open| !ended.is_of(open.writer));
        let is_within =
            |around: &[OpenRegion], trace: &OpenTrace| ended.is_of(trace.setting.writer) && trace.setting.depth > depth(around, trace.setting.writer);
        while let Some(at) = self.open.iter().position(|trace| is_within(&self.regions, trace)) {
            self.close(cx, at, out);
        }
        self.regions.append(&mut within);
        self.release_outside(cx, out);
    }
}

/// Returns how many of the regions hold lines of `writer`.
fn depth(regions: &[OpenRegion], writer: Writer) -> usize {
    regions.iter().filter(|open| open.is_of(writer)).count()
}

pub(super) fn region<'e>(cx: &Context<'e>, entry: u16) -> Option<&'e Region> {
    match &cx.engine.rules.entries[usize::from(entry)].kind {
        Kind::Region(region) => Some(region),
        _ => None,
    }
}
