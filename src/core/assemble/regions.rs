//! The regions that a stream is in: sections of a tool's output in which weak traces may begin. They end at their
//! closing line or at a border, together with their traces, or after a maximum number of lines, which cuts no trace.

use super::{Assembler, Context};
use crate::core::event::Event;
use crate::core::line::{Line, View};
use crate::core::shown;
use crate::core::trace::start_row;
use crate::rules::{Kind, Region};
use crate::words::Level;

/// Maximum nesting depth of regions: runs with a verdict, and inside them one section that lists what failed.
pub(super) const MAX_REGIONS: usize = MAX_RUNS + 1;
/// Maximum nesting depth of those with a verdict: a command, the runner that it calls, and a part of that one's output.
const MAX_RUNS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenRegion {
    pub(super) entry: u16,
    pub(super) left: u32,
    /// Number of the line that opened the region, and its index within a record.
    /// Earlier lines are not part of the region, even if a trace gives them back later.
    pub(super) since: (u64, u32),
    /// Whether it was opened after a writer's name in brackets: then its lines have such a name, too.
    pub(super) after_writer: bool,
    /// Whether a logger's record opened it: what a service says may read like a tool's report.
    pub(super) logged: bool,
}

impl OpenRegion {
    /// Whether the line is an error of its own although it is in the region: a logger's record opened the region, and this is another record, of level error.
    fn is_beside(&self, line: &Line) -> bool {
        self.logged && line.prefix().level >= Some(Level::Error) && line.is_of_a_logger()
    }

    fn holds(&self, line: &Line) -> bool {
        self.since < (line.place.num, line.place.inner)
    }

    /// Returns the parts of a line in which the region's traces may begin.
    fn views(&self, line: &Line) -> &'static [View] {
        match (self.after_writer, line.prefix().body) {
            (true, _) => &[View::Text, View::Body, View::AfterWriter],
            (false, 0) => &[View::Text],
            (false, _) => &[View::Text, View::Body],
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
    pub(super) fn border(&mut self, cx: &Context, entry: u16, out: &mut Vec<Event>) {
        let rules = &cx.engine.rules;
        let family = |entry: u16| rules.entries[usize::from(entry)].family;
        let is_runner = rules.families[usize::from(family(entry))].test;
        let is_around = |open: &OpenRegion| is_runner && family(open.entry) != family(entry) && region(cx, open.entry).is_some_and(Region::has_verdicts);
        let first = self.regions.iter().take_while(|open| is_around(open)).count();
        self.end_regions(cx, first, out);
        for unclaimed in self.notes.settle() {
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

    pub(super) fn enter(&mut self, entry: u16, region: &Region, line: &Line, view: View) {
        if let Some(open) = self.regions.iter_mut().find(|open| open.entry == entry) {
            open.left = region.max_lines;
        } else if self.regions.len() < if region.has_verdicts() { MAX_RUNS } else { MAX_REGIONS } {
            self.regions.push(OpenRegion {
                entry,
                left: region.max_lines,
                since: (line.place.num, line.place.inner),
                after_writer: view == View::AfterWriter,
                logged: line.is_of_a_logger(),
            });
        }
    }

    /// Ends the regions that the line ends. Returns whether it is
    /// the last line of a sealed region, which holds that line, too.
    pub(super) fn close_regions(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) -> bool {
        // Only a prompt that names a host: a page that quotes outputs, and a runner of several commands, show a command after a bare sign.
        if !self.regions.is_empty() && shown::may_be_prompt(line.text) && !self.sealed(cx, line) && shown::is_of_host(line.body()) {
            self.end_regions(cx, 0, out);
            self.redo(cx, line.now(), out);
            return false;
        }
        // What a sealed region holds does not end the regions around it.
        let asked = self.regions.iter().position(|open| region(cx, open.entry).is_some_and(|region| region.seal)).unwrap_or_default();
        for at in 0..self.regions.len() {
            let open = &mut self.regions[at];
            open.left = open.left.saturating_sub(1);
            let is_over = open.left == 0;
            if is_over || (at >= asked && region(cx, open.entry).is_none_or(|region| region.ends_before(open.view().of(line)))) {
                if is_over {
                    self.open.iter_mut().for_each(|trace| trace.setting.depth = trace.setting.depth.min(at));
                }
                let is_last = !is_over && region(cx, self.regions[at].entry).is_some_and(|region| region.seal);
                self.end_regions(cx, at, out);
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
            self.end_regions(cx, first, out);
        }
    }

    /// Ends the regions from `first` on, with the traces that began in them.
    pub(super) fn end_regions(&mut self, cx: &Context, first: usize, out: &mut Vec<Event>) {
        if self.regions.len() <= first {
            return;
        }
        self.regions.truncate(first);
        while let Some(at) = self.open.iter().position(|trace| trace.setting.depth > first) {
            self.close(cx, at, out);
        }
        self.release_outside(cx, out);
    }
}

pub(super) fn region<'e>(cx: &Context<'e>, entry: u16) -> Option<&'e Region> {
    match &cx.engine.rules.entries[usize::from(entry)].kind {
        Kind::Region(region) => Some(region),
        _ => None,
    }
}
