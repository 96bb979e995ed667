//! Checked rules: families, entries and their parts, as the core uses them.
//! `load` makes them, `set` puts them together; nothing here decides anything.

use std::sync::Arc;

use super::spec::{FamilySpec, Shape, Table};
use super::{ExampleSpec, FactKind, Gate, Library, Pattern, State, Take};
use crate::words::{Category, Cause, Depth, RetryClass, Severity};

/// What the rules of one file have in common.
#[derive(Clone, Debug)]
pub struct Family {
    /// First part of the ids.
    pub id: String,
    /// The name that people use.
    pub title: String,
    /// How deep the rules go.
    pub depth: Depth,
    /// `language` of the family's events.
    pub language: Option<String>,
    /// Whether the events are failed tests.
    pub test: bool,
    /// Parts of a frame that mark it as a library's.
    pub library: Library,
    /// Languages and tools that the family covers.
    pub covers: Vec<String>,
    /// File that the family came from.
    pub file: String,
}

impl Family {
    /// Makes the family that the file `name` describes.
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
    /// What all events of the entry share.
    pub labels: Labels,
    /// What the entry does.
    pub kind: Kind,
    /// What the entry says about the fault.
    pub fault: Fault,
    /// Whether the entry is a word that prose uses too.
    pub generic: bool,
    /// Whether a level of info or warn cancels the entry, though it names a fault.
    pub leveled: bool,
    /// Whether the entry also applies to lines that read as source code.
    pub code: bool,
    /// Whether the entry sees the whole line, with time stamp and writer, which a user's pattern may name.
    pub whole: bool,
    /// A line above that names the file to which the error's line number refers.
    pub above: Option<Pattern>,
    /// What the prefilter looks for.
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
    /// What usually fixes the fault.
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
    /// Links the entry into a rule set: regions and notes name entries and families by id, but the core needs numbers.
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

    /// Whether the entry's events claim notes: an event of low severity explains no failure.
    #[must_use]
    pub fn claims(&self) -> bool {
        !matches!(self.kind, Kind::Note(_)) && self.fault.severity != Some(Severity::Low)
    }

    /// Whether the events report a network or service that was unavailable just then: programs retry and go on.
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
    /// Never an error; possibly a block of lines.
    Noise {
        /// The first line.
        regex: Pattern,
        /// The pattern of further lines, and how many there may be.
        block: Option<(Pattern, u32)>,
        /// Whether later lines decide if it belongs to an error.
        undecided: bool,
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
    /// Returns the table that the entry belongs to.
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
                let verdicts =
                    region.verdicts.iter().flat_map(|verdicts| std::iter::once(&verdicts.pass).chain(&verdicts.pass_by_caller).chain(&verdicts.fail));
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
    /// The line that opens the region.
    pub open: Pattern,
    /// The line that ends the region.
    pub close: Pattern,
    /// The region ends after this many lines.
    pub max_lines: u32,
    /// Set if the first error of a finished log opens the region, too: after how many lines it then ends.
    pub implied: Option<u32>,
    /// Whether the line that opens the region stands below what the first of its tests printed.
    pub late: bool,
    /// Whether what runs in the region may fail, and its verdicts say nothing of tests.
    pub allowed: bool,
    /// Whether only the region's own weak traces are tried in it.
    pub absorb: bool,
    /// Whether only the region's end is looked for in it.
    pub seal: bool,
    /// Verdicts on what was found in the region since it opened or since the last verdict; events are held back until then.
    pub verdicts: Option<Box<Verdicts>>,
    /// Entries of the traces that are tried only in this region.
    pub weak: Vec<u16>,
}

/// What a runner reports about what it ran.
#[derive(Debug)]
pub struct Verdicts {
    /// The verdict that what was printed is no error.
    pub pass: Pattern,
    /// The same in the words of whoever called the runner, which mean nothing in a region that no line has opened.
    pub pass_by_caller: Option<Pattern>,
    /// The verdict that what was printed may be an error.
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
    /// Look-back lines, nearest first.
    pub before: Vec<Before>,
    /// A line before which the trace ends.
    pub stop: Option<Pattern>,
    /// Whether there is no event until a frame was seen.
    pub needs_frame: bool,
    /// Whether crash and outermost exception stand last.
    pub crash_last: bool,
    /// Whether the trace is tried only in a region.
    pub weak: bool,
    /// Whether a second event with the same key is dropped.
    pub once: bool,
    /// Whether lines of the trace may show commands behind a bare prompt.
    pub shows_commands: bool,
    /// Whether records of a log may stand in it.
    pub shows_records: bool,
}

/// A row of a machine.
#[derive(Debug)]
pub struct Row {
    /// Bit mask of the states in which the row is tried.
    pub from: u32,
    /// The pattern of the line.
    pub regex: Pattern,
    /// State after the line.
    pub to: u8,
    /// What to read from the line.
    pub take: Take,
    /// How the frame or exception is parsed by bytes.
    pub shape: Option<Shape>,
    /// Whether the line certainly belongs to the trace.
    pub accept: bool,
    /// Whether the record right before the line also belongs to the trace.
    pub under_record: bool,
    /// Whether a record of a low level right before the line says that the trace is no error.
    pub takes_level: bool,
    /// Whether the row takes any matching line with which nothing else begins, on trial until a line shows that the error is over.
    pub loose: bool,
    /// Whether this line voids the trace: there is no event, whatever the trace has taken.
    pub void: bool,
}

/// A look-back line.
#[derive(Debug)]
pub struct Before {
    /// The pattern of the line.
    pub regex: Pattern,
    /// Whether the line may be missing.
    pub optional: bool,
    /// Most such lines.
    pub max: u32,
    /// What a trace reads from the line.
    pub take: Take,
}

impl Before {
    /// Returns `true` if any number of such lines may stand here, even none: they end where the next required line stands.
    #[must_use]
    pub fn may_be_skipped(&self) -> bool {
        self.optional && self.max > 1
    }
}

/// A status line.
#[derive(Debug)]
pub struct Note {
    /// The pattern of the line; group `key` says what the note is about.
    pub regex: Pattern,
    /// Families whose events claim the note; empty: all.
    pub claimed_by: Vec<u16>,
    /// Whether the note waits for a later detail.
    pub waits: bool,
    /// Whether the note is never an event.
    pub silent: bool,
    /// Whether the runner of all commands says so, not the one that ran last.
    pub of_job: bool,
    /// Whether the note, which has no key, is about one test or check: what only sums up says nothing new.
    pub of_one: bool,
    /// An event that ended more than this many lines above does not claim the note; `None`: only the general bound applies.
    pub max_lines: Option<u32>,
    /// Look-back lines that belong to the note when it is an event, nearest first.
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
    /// Its number among the compiled-in cancels, if it is one of them and unchanged.
    pub compiled: Option<u16>,
}
