//! What lines say about what runs in a region: that it passed or failed, or that the region ends; and which errors wait for that.

use super::regions::{OpenRegion, region};
use super::{Assembler, Context};
use crate::core::event::Event;
use crate::core::line::{Line, Position, View};
use crate::core::patience::Patience;
use crate::core::trace::{OpenTrace, Outcome};
use crate::core::writer::Writer;
use crate::rules::{Entry, Kind, Region};
use crate::words::Category;

/// What a line says about a region with verdicts; a failure if neither holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    /// Who says it.
    pub(super) writer: Writer,
    /// What began before this line has nothing to do with it.
    pub(super) since: Position,
    /// What began before this line was read as if tests had run: it is only about its writer's, none of what a build says,
    /// and a line without a name is not anybody's.
    pub(super) known_since: Position,
    pub(super) is_passed: bool,
    pub(super) is_end: bool,
    /// Whether it is about tests, and not about a command that may fail.
    pub(super) is_of_tests: bool,
}

impl OpenRegion {
    pub(super) fn has_verdicts(&self, cx: &Context) -> bool {
        region(cx, self.entry).is_some_and(Region::has_verdicts)
    }

    /// Returns what the line says about the region, and nothing that a runner's caller says if it is implied: that may call
    /// anything. `None` if the line is neither a verdict nor the region's end, or of another writer.
    fn judged(&self, cx: &Context, line: &Line) -> Option<Judged> {
        let region = region(cx, self.entry).filter(|_| self.hears(line.writer()))?;
        let verdicts = region.verdicts.as_ref()?;
        let said = |text: &[u8], view: View| {
            let by_caller = || !self.implied && verdicts.pass_by_caller.as_ref().is_some_and(|pass| pass.is_match(text));
            let (is_passed, is_end) = (verdicts.pass.is_match(text) || by_caller(), region.close.is_match(text));
            let is_failed = || verdicts.fail.as_ref().is_some_and(|fail| fail.is_match(text));
            (is_passed || is_end || is_failed()).then(|| Judged {
                writer: line.writer_before(view),
                // Where the first line comes late, some of what the region is about stands above it.
                since: if region.late { Position::BEFORE_ALL } else { self.since },
                known_since: if self.implied { Position::AFTER_ALL } else { self.since },
                is_passed,
                is_end,
                is_of_tests: !region.allowed,
            })
        };
        let said_inside = || said(line.marked()?, View::AfterWriter);
        said(line.body(), View::Body).or_else(|| said(line.padded()?, View::Padded)).or_else(said_inside)
    }
}

impl Region {
    pub(super) fn has_verdicts(&self) -> bool {
        self.verdicts.is_some()
    }

    /// Whether `text` ends the region. Regions with verdicts are checked in `judged` instead.
    pub(super) fn ends_before(&self, text: &[u8]) -> bool {
        !self.has_verdicts() && self.close.is_match(text)
    }
}

/// Whether a build says it. Where nothing says that tests run, that is its own.
pub(super) fn is_builds(category: Category) -> bool {
    matches!(category, Category::BuildError | Category::DependencyError | Category::SyntaxError)
}

/// Whether the entry is what a test runner says of a test: that waits for no verdict.
pub(super) fn is_runners(cx: &Context, entry: &Entry) -> bool {
    let is_report = entry.fault.category == Some(Category::TestFailure) && !entry.generic && !matches!(entry.kind, Kind::Rule(_));
    is_report || cx.engine.rules.families[usize::from(entry.family)].test
}

/// Whether the entry may be what is said of a test, by a runner or anybody else.
pub(super) fn may_tell_of_test(cx: &Context, entry: &Entry) -> bool {
    entry.fault.category == Some(Category::TestFailure) || is_runners(cx, entry)
}

impl Assembler {
    /// Returns how long the event of `category` that `trace` became by `entry` waits for a verdict; `None`: it waits for none.
    pub(super) fn wait_for_verdict(&self, cx: &Context, trace: &OpenTrace, entry: u16, category: Option<Category>) -> Option<Patience> {
        if is_runners(cx, &cx.engine.rules.entries[usize::from(entry)]) { None } else { self.wait_on_trial(cx, trace, category) }
    }

    /// The same for an open trace, which may have no outcome yet.
    pub(super) fn may_wait_for_verdict(&self, cx: &Context, trace: &OpenTrace, outcome: Option<Outcome>) -> Option<Patience> {
        outcome.map_or_else(|| self.wait_on_trial(cx, trace, None), |outcome| self.wait_for_verdict(cx, trace, outcome.entry, None))
    }

    fn wait_on_trial(&self, cx: &Context, trace: &OpenTrace, category: Option<Category>) -> Option<Patience> {
        let head = trace.lines.from(trace.lead).next()?;
        self.wait(cx, head.place.position(), trace.setting.writer, category)
    }

    /// Returns how long errors of `category`, if it is known, wait for a verdict: they begin
    /// at this line, which `writer` wrote.
    fn wait(&self, cx: &Context, head: Position, writer: Writer, category: Option<Category>) -> Option<Patience> {
        let holds = |open: &&OpenRegion| open.holds_from(head, writer) && !(open.implied && category.is_some_and(is_builds));
        let around = self.regions.iter().filter(|open| holds(open) && open.has_verdicts(cx));
        around.map(|open| if open.implied { Patience::Long } else { Patience::Verdict }).max()
    }

    /// The same for an error in a line that is being read.
    pub(super) fn wait_at(&self, cx: &Context, line: &Line) -> Option<Patience> {
        self.wait(cx, line.place.position(), line.writer(), None)
    }

    /// Handles what the line says about its regions: a verdict or an end.
    pub(super) fn verdicts(&mut self, cx: &Context, line: &Line, out: &mut Vec<Event>) {
        for at in 0..self.regions.len() {
            let Some(judged) = self.regions[at].judged(cx, line) else { continue };
            // What still waited for continuation lines comes first.
            self.end_unadopted(cx, line, out);
            self.held.judge(line.place.num, judged, line.now());
            self.release_certain(out);
            if judged.is_end {
                self.end_region(cx, at, out);
                return;
            }
        }
    }

    /// Returns who says with this line whether what an open region holds back is an error, or that the region ends;
    /// if `passed`, only who says that it is none.
    pub(super) fn verdict_of(&self, cx: &Context, line: &Line, passed: bool) -> Option<Writer> {
        let verdict = |open: &OpenRegion| open.judged(cx, line).filter(|judged| judged.is_passed || !passed);
        self.regions.iter().find_map(verdict).map(|judged| judged.writer)
    }

    /// Lets nothing wait for a verdict whose writer is in no region with verdicts any more.
    pub(super) fn release_outside(&mut self, cx: &Context, out: &mut Vec<Event>) {
        let is_outside = |writer: Writer| !self.regions.iter().any(|open| open.is_of(writer) && open.has_verdicts(cx));
        self.held.make_certain(|waiting| is_outside(waiting.writer));
        let waits = |trace: &&mut OpenTrace| trace.pauses.next == Some(Patience::Verdict) && is_outside(trace.setting.writer);
        self.open.iter_mut().filter(waits).for_each(|trace| trace.pauses.next = Some(Patience::Short));
        self.release_certain(out);
    }
}
