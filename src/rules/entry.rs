//! What a checked rule is: families, entries and their parts, as the core asks them. `load` makes them,
//! `set` puts them together; nothing here decides anything.

use std::sync::Arc;

use super::spec::{FamilySpec, Shape, Table};
use super::{ExampleSpec, FactKind, Gate, Library, Pattern, State, Take};
use crate::words::{Category, Cause, Depth, RetryClass, Severity};

/// What the rules of one file have in common.
#[derive(Clone, Debug)]
pub struct Family {
    /// First part of its ids.
    pub id: String,
    /// What people call it.
    pub title: String,
    /// How deep it goes.
    pub depth: Depth,
    /// `language` of its events.
    pub language: Option<String>,
    /// Its events are failed tests.
    pub test: bool,
    /// Parts of a frame that mark it as a library's.
    pub library: Library,
    /// Languages and tools that it covers.
    pub covers: Vec<String>,
    /// File it came from.
    pub file: String,
}

impl Family {
    /// What file `name` says of its family.
    pub(super) fn new(name: &str, spec: FamilySpec) -> Self {
        Self {
            id: spec.id.into_text(),
            title: spec.title,
            depth: spec.depth,
            language: spec.language,
            test: spec.test,
            library: Library::new(spec.library),
            covers: spec.covers,
            file: name.to_owned(),
        }
    }
}

/// One row of the catalogue.
#[derive(Debug)]
pub struct Entry {
    /// `family.slug`
    pub id: String,
    /// Index into `families`.
    pub family: u16,
    /// What its events share.
    pub labels: Labels,
    /// What it does.
    pub kind: Kind,
    /// What it says about the fault.
    pub fault: Fault,
    /// A word that prose uses too.
    pub generic: bool,
    /// Cancelled by a level of info or warn, though it names a fault.
    pub leveled: bool,
    /// Holds on lines that read as source code, too.
    pub code: bool,
    /// Sees the line as it stands, time stamp and writer included; a user's pattern may name them.
    pub whole: bool,
    /// A line above that names the file in which the rule's line counts.
    pub above: Option<Pattern>,
    /// The prefilter's part.
    pub gate: Gate,
    /// Region in which a weak trace is tried.
    pub region: Option<String>,
    /// Families whose events claim a note.
    pub claimed_by: Vec<String>,
    /// Texts to try.
    pub examples: ExampleSpec,
}

/// The names that every event of an entry carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Id of the entry.
    pub rule: Arc<str>,
    /// Language or tool.
    pub language: Option<Arc<str>>,
    /// What usually mends it.
    pub hint: Option<Arc<str>>,
}

/// What a rule says about the fault; the tables decide the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Category.
    pub category: Option<Category>,
    /// Severity.
    pub severity: Option<Severity>,
    /// Cause.
    pub cause: Option<Cause>,
    /// Retry class.
    pub retry: Option<RetryClass>,
    /// Hint.
    pub hint: Option<String>,
    /// Language, where it differs from the family's.
    pub language: Option<String>,
}

impl Entry {
    /// Itself as a member of a rule set: regions and notes name entries and families by id, the core wants numbers.
    pub(super) fn linked(mut self, family: u16, families: &[Family], weak: Vec<u16>) -> Self {
        let language = self.fault.language.as_deref().or(families[usize::from(family)].language.as_deref());
        let labels = Labels { rule: self.id.as_str().into(), language: language.map(Arc::from), hint: self.fault.hint.as_deref().map(Arc::from) };
        match &mut self.kind {
            Kind::Region(region) => region.weak = weak,
            Kind::Note(note) if self.claimed_by.is_empty() => note.claimed_by = vec![family],
            Kind::Note(note) => {
                let number = |name: &String| families.iter().position(|family| family.id == *name).map(|at| at as u16);
                note.claimed_by = self.claimed_by.iter().filter_map(number).collect();
            }
            _ => {}
        }
        Self { family, labels, ..self }
    }

    /// Whether its events settle notes: what is hardly an error explains no failure.
    #[must_use]
    pub fn claims(&self) -> bool {
        !matches!(self.kind, Kind::Note(_)) && self.fault.severity != Some(Severity::Low)
    }

    /// Its events tell of a network or a service that was not there just then: programs try again, and go on.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self.fault.category, Some(Category::NetworkError | Category::RateLimit))
    }
}

/// What an entry does with a line.
#[derive(Debug)]
pub enum Kind {
    /// Ends steps and sessions.
    Border(Pattern),
    /// Never an error; perhaps with further lines.
    Noise {
        /// The line.
        regex: Pattern,
        /// Further lines and how many.
        block: Option<(Pattern, u32)>,
        /// Why.
        reason: String,
    },
    /// A section.
    Region(Region),
    /// A multi-line machine.
    Trace(Machine),
    /// A status line.
    Note(Note),
    /// A one-line error.
    Rule(Pattern),
    /// A decoded fact.
    Fact(FactKind),
}

impl Kind {
    /// The table that it stands in.
    #[must_use]
    pub fn table(&self) -> Table {
        match self {
            Self::Border(_) => Table::Border,
            Self::Noise { .. } => Table::Noise,
            Self::Region(_) => Table::Region,
            Self::Trace(_) => Table::Trace,
            Self::Note(_) => Table::Note,
            Self::Rule(_) => Table::Rule,
            Self::Fact(_) => Table::Fact,
        }
    }

    pub(super) fn patterns(&self) -> Vec<&Pattern> {
        match self {
            Self::Border(regex) | Self::Rule(regex) => vec![regex],
            Self::Noise { regex, block, .. } => std::iter::once(regex).chain(block.as_ref().map(|(regex, _)| regex)).collect(),
            Self::Region(region) => {
                let verdicts = region.verdicts.iter().flat_map(|verdicts| std::iter::once(&verdicts.pass).chain(&verdicts.fail));
                [&region.open, &region.close].into_iter().chain(verdicts).collect()
            }
            Self::Note(note) => std::iter::once(&note.regex).chain(note.before.iter().map(|before| &before.regex)).collect(),
            Self::Trace(machine) => {
                let rows = machine.rows.iter().map(|row| &row.regex);
                rows.chain(machine.before.iter().map(|before| &before.regex)).chain(&machine.stop).collect()
            }
            Self::Fact(_) => Vec::new(),
        }
    }
}

/// A section of a log that owns what is in it.
#[derive(Debug)]
pub struct Region {
    /// Opens it.
    pub open: Pattern,
    /// Ends it.
    pub close: Pattern,
    /// Ends after so many lines.
    pub max_lines: u32,
    /// Only its own weak traces are tried in it.
    pub absorb: bool,
    /// Only its end is looked for in it.
    pub seal: bool,
    /// Verdicts on what was found in it since its opening, or the last one: it is held back until then.
    pub verdicts: Option<Box<Verdicts>>,
    /// Entries of the traces that are tried only in it.
    pub weak: Vec<u16>,
}

/// What a runner says of what it ran.
#[derive(Debug)]
pub struct Verdicts {
    /// What was printed is no error.
    pub pass: Pattern,
    /// It is one.
    pub fail: Option<Pattern>,
}

/// A multi-line machine: states are bits of a mask, rows are tried in order.
#[derive(Debug)]
pub struct Machine {
    /// Rows.
    pub rows: Vec<Row>,
    /// For each state, the rows that are tried in it.
    pub rows_of: Vec<State>,
    /// Names of the states; `start` is the first.
    pub states: Vec<String>,
    /// Look-back, nearest line first.
    pub before: Vec<Before>,
    /// Ends the trace before its line.
    pub stop: Option<Pattern>,
    /// No event until a frame was seen.
    pub needs_frame: bool,
    /// Crash and outermost exception stand last.
    pub crash_last: bool,
    /// Tried only in a region.
    pub weak: bool,
    /// No second event with the same key.
    pub once: bool,
}

/// A row of a machine.
#[derive(Debug)]
pub struct Row {
    /// Bit mask of the states in which it is tried.
    pub from: u32,
    /// The line.
    pub regex: Pattern,
    /// State after it.
    pub to: u8,
    /// What to read from the line.
    pub take: Take,
    /// How its frame or exception is read by bytes.
    pub shape: Option<Shape>,
    /// The line belongs to the trace for sure.
    pub accept: bool,
    /// The record right before the line belongs to the trace, too.
    pub under_record: bool,
    /// It takes any line of its shape with which nothing begins, on trial until a line shows that the error is over.
    pub loose: bool,
    /// With this line the trace comes to nothing, whatever it has taken.
    pub void: bool,
}

/// A look-back line.
#[derive(Debug)]
pub struct Before {
    /// The line.
    pub regex: Pattern,
    /// May be missing.
    pub optional: bool,
    /// At most so many.
    pub max: u32,
    /// What a trace reads from it.
    pub take: Take,
}

impl Before {
    /// Lines of any number, down to none: they end where the next wanted one stands.
    #[must_use]
    pub fn may_be_skipped(&self) -> bool {
        self.optional && self.max > 1
    }
}

/// A status line.
#[derive(Debug)]
pub struct Note {
    /// The line; group `key` says what it is about.
    pub regex: Pattern,
    /// Families whose events claim it; empty means all.
    pub claimed_by: Vec<u16>,
    /// Waits for a later detail.
    pub waits: bool,
    /// Never an event.
    pub silent: bool,
    /// What ended more lines before it does not claim it, if there is such a bound besides the general one.
    pub max_lines: Option<u32>,
    /// Look-back lines that belong to it when it is an event, nearest first.
    pub before: Vec<Before>,
}

/// A false positive.
#[derive(Debug)]
pub struct Cancel {
    /// `family.slug`
    pub id: String,
    /// Cancels the hits that its match covers.
    pub regex: Pattern,
    /// Why.
    pub reason: Option<String>,
    /// Texts to try.
    pub examples: ExampleSpec,
    /// Its number among the cancels that are compiled in, if it is one of them as the build left it.
    pub compiled: Option<u16>,
}
