//! Rules are data: `config/rules/*.toml` and a user's files become one [`RuleSet`], the tables that
//! the core walks. `spec` is the shape of a file, `load` reads and checks it, `prove` shows that the
//! prefilter cannot miss a rule, `literal` prepares its part. Nothing here looks at a log.

mod builtin;
mod library;
mod literal;
mod load;
mod pattern;
mod program;
mod prove;
pub mod spec;

use std::collections::HashMap;
use std::sync::Arc;

pub use builtin::{FILES as BUILTIN_FILES, WARNINGS as WARNING_FILE};
pub use library::Library;
pub use literal::MIN_LITERAL_BYTES;
pub use load::{Problem, RulesFile, parse, parse_beside};
pub use pattern::{Groups, Pattern, first_visible};
pub use prove::longest_required_literal;
pub use spec::{ExampleSpec, FactKind, Take};

use crate::words::{Category, Cause, Depth, RetryClass, Severity};

/// Most entries that one literal may lead to; keeps the cost of a candidate line bounded.
pub const MAX_ENTRIES_PER_LITERAL: usize = 8;

/// Everything that the core needs to know about errors.
#[derive(Debug, Default)]
pub struct RuleSet {
    /// Families, in order of loading.
    pub families: Vec<Family>,
    /// Entries in the order in which a line is offered to them.
    pub entries: Vec<Entry>,
    /// Cancels, in order of loading.
    pub cancels: Vec<Cancel>,
    /// The prefilter's literals.
    pub literals: Vec<LiteralForm>,
    /// For each literal, the entries it leads to.
    pub targets: Vec<Vec<u16>>,
    /// Noise patterns that need no literal, because they are asked only of a line with a hit.
    pub noise: Vec<u16>,
}

/// A literal as the prefilter takes it: exact bytes and the neighbours that it may not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LiteralForm {
    /// The bytes to find.
    pub bytes: Vec<u8>,
    /// Positions in it, in their order, at which any of these bytes may stand.
    pub classes: Vec<(u8, Vec<u8>)>,
    /// An occurrence is a hit only before one of these bytes, a quote, an escape or the line's end;
    /// empty: before any byte.
    pub after: Vec<u8>,
    /// An occurrence that is followed by one of these bytes is no hit.
    pub not_after: Vec<u8>,
    /// An occurrence that follows one of these bytes is no hit, unless an escape stands near.
    pub not_before: Vec<u8>,
    /// An occurrence that follows this text is no hit; empty: none.
    pub not_behind: Vec<u8>,
}

impl LiteralForm {
    /// The byte at a position, where no other may stand.
    #[must_use]
    pub fn only(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied().filter(|_| !self.classes.iter().any(|(place, _)| usize::from(*place) == at))
    }
}

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
    /// Holds on lines that read as source code, too.
    pub code: bool,
    /// Sees the line as it stands, time stamp and writer included; a user's pattern may name them.
    pub whole: bool,
    /// The prefilter's part.
    pub gate: Gate,
    /// Region in which a weak trace is tried.
    pub region: Option<String>,
    /// Families whose events claim a note.
    pub claimed_by: Vec<String>,
    /// Texts to try.
    pub examples: ExampleSpec,
}

/// The literals of an entry, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Every match contains one of these.
    pub literals: Vec<String>,
    /// Literals that count only at the end of the line.
    pub at_end: Vec<String>,
    /// Their other cases count too.
    pub ignore_case: bool,
    /// Bytes that may follow; empty: all.
    pub after: String,
    /// Bytes that may not follow.
    pub not_after: String,
    /// Bytes that may not precede.
    pub not_before: String,
    /// Text that may not precede.
    pub not_behind: String,
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
    /// Whether its events settle notes: what is hardly an error explains no failure.
    #[must_use]
    pub fn claims(&self) -> bool {
        !matches!(self.kind, Kind::Note(_)) && self.fault.severity != Some(Severity::Low)
    }
}

/// What an entry does with a line, in the order in which a line is offered.
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
    /// Name of the TOML table.
    #[must_use]
    pub fn table(&self) -> &'static str {
        match self {
            Self::Border(_) => "border",
            Self::Noise { .. } => "noise",
            Self::Region(_) => "region",
            Self::Trace(_) => "trace",
            Self::Note(_) => "note",
            Self::Rule(_) => "rule",
            Self::Fact(_) => "fact",
        }
    }

    fn patterns(&self) -> Vec<&Pattern> {
        match self {
            Self::Border(regex) | Self::Rule(regex) => vec![regex],
            Self::Noise { regex, block, .. } => std::iter::once(regex).chain(block.as_ref().map(|(regex, _)| regex)).collect(),
            Self::Region(region) => vec![&region.open, &region.close],
            Self::Note(note) => vec![&note.regex],
            Self::Trace(machine) => {
                let rows = machine.rows.iter().map(|row| &row.regex);
                rows.chain(machine.before.iter().map(|before| &before.regex)).chain(&machine.stop).collect()
            }
            Self::Fact(_) => Vec::new(),
        }
    }

    fn order(&self) -> u8 {
        match self {
            Self::Border(_) => 0,
            Self::Noise { .. } => 1,
            Self::Region(_) => 2,
            Self::Trace(_) => 3,
            Self::Note(_) => 4,
            Self::Rule(_) => 5,
            Self::Fact(_) => 6,
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
    /// Entries of the traces that are tried only in it.
    pub weak: Vec<u16>,
}

/// A multi-line machine: states are bits of a mask, rows are tried in order.
#[derive(Debug)]
pub struct Machine {
    /// Rows.
    pub rows: Vec<Row>,
    /// For each state, the rows that are tried in it.
    pub rows_of: Vec<Vec<u16>>,
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
    /// How its frame is read by bytes.
    pub shape: Option<spec::Shape>,
    /// The line belongs to the trace for sure.
    pub accept: bool,
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
}

impl RuleSet {
    /// The rules that are compiled in.
    #[must_use]
    pub fn builtin() -> Self {
        Self::with_files(builtin::parse_all())
    }

    /// Joins files into one set. Later files add; an entry with a known id replaces the earlier one.
    #[must_use]
    pub fn with_files(files: Vec<RulesFile>) -> Self {
        let mut set = Self::default();
        for file in files {
            set.add(file);
        }
        set.finish();
        set
    }

    /// Every pattern of every entry and cancel.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.entries.iter().flat_map(|entry| entry.kind.patterns()).chain(self.cancels.iter().map(|cancel| &cancel.regex))
    }

    fn add(&mut self, file: RulesFile) {
        let family = match self.families.iter().position(|f| f.id == file.family.id) {
            Some(known) => known,
            None => {
                self.families.push(file.family);
                self.families.len() - 1
            }
        } as u16;
        for mut entry in file.entries {
            entry.family = family;
            self.entries.retain(|known| known.id != entry.id);
            self.entries.push(entry);
        }
        for cancel in file.cancels {
            self.cancels.retain(|known| known.id != cancel.id);
            self.cancels.push(cancel);
        }
    }

    /// Removes entries and cancels by id, or whole families by theirs.
    pub fn disable(&mut self, ids: &[String]) {
        let off = |id: &str| ids.iter().any(|d| d == id || id.strip_prefix(d.as_str()).is_some_and(|rest| rest.starts_with('.')));
        self.entries.retain(|entry| !off(&entry.id));
        self.cancels.retain(|cancel| !off(&cancel.id));
        self.finish();
    }

    fn finish(&mut self) {
        self.entries.sort_by_key(|entry| (entry.kind.order(), entry.generic));
        self.link_names();
        self.collect_literals();
    }

    /// Regions and notes name regions and families by id; the core wants indexes.
    fn link_names(&mut self) {
        let mut weak: HashMap<String, Vec<u16>> = HashMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            if let Some(region) = &entry.region {
                weak.entry(region.clone()).or_default().push(index as u16);
            }
        }
        let family = |name: &String| self.families.iter().position(|f| f.id == *name).map(|i| i as u16);
        for entry in &mut self.entries {
            let language = entry.fault.language.as_deref().or(self.families[usize::from(entry.family)].language.as_deref());
            entry.labels = Labels { rule: entry.id.as_str().into(), language: language.map(Arc::from), hint: entry.fault.hint.as_deref().map(Arc::from) };
            match &mut entry.kind {
                Kind::Region(region) => region.weak = weak.remove(&entry.id).unwrap_or_default(),
                Kind::Note(note) if entry.claimed_by.is_empty() => note.claimed_by = vec![entry.family],
                Kind::Note(note) => note.claimed_by = entry.claimed_by.iter().filter_map(family).collect(),
                _ => {}
            }
        }
    }

    fn collect_literals(&mut self) {
        let mut forms: Vec<(LiteralForm, u16)> = Vec::new();
        self.noise.clear();
        for (index, entry) in self.entries.iter().enumerate() {
            if let Kind::Noise { .. } = entry.kind {
                self.noise.push(index as u16);
            }
            forms.extend(literal::forms(&entry.gate, matches!(entry.kind, Kind::Fact(_))).into_iter().map(|form| (form, index as u16)));
        }
        forms.sort_unstable();
        (self.literals, self.targets) = (Vec::new(), Vec::new());
        for (form, entry) in forms {
            match self.targets.last_mut().filter(|_| self.literals.last() == Some(&form)) {
                Some(targets) => targets.push(entry),
                None => {
                    self.literals.push(form);
                    self.targets.push(vec![entry]);
                }
            }
        }
    }
}
