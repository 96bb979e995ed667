//! The TOML shapes of `config/rules/*.toml`: what a rules file may contain. Serde fills them; `load` checks what
//! types cannot. The page `config/rules/README.md` and the comments in the files beside it describe the same keys for users.

mod row;

use serde::{Deserialize, Serialize};

use super::literal::Gate;
use super::located::Located;
use crate::words::{Category, Cause, Depth, RetryClass, Severity, word_set};

pub use row::{BeforeSpec, RowSpec, Shape, Take};

word_set! {
    /// The tables of entries, in the order in which a line is offered to them.
    Table { Border = "border", Noise = "noise", Region = "region", Trace = "trace", Note = "note", Rule = "rule", Fact = "fact" }
}

/// One rules file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// What the rules of this file have in common.
    pub family: FamilySpec,
    /// Errors that a single line shows.
    #[serde(default)]
    pub rule: Vec<EntrySpec>,
    /// Lines whose decoded facts (level, flag) make them errors.
    #[serde(default)]
    pub fact: Vec<EntrySpec>,
    /// False positives: each cancels the hits that its match covers.
    #[serde(default)]
    pub cancel: Vec<EntrySpec>,
    /// Lines, and blocks of lines, that are never an error.
    #[serde(default)]
    pub noise: Vec<EntrySpec>,
    /// Errors that span several lines.
    #[serde(default)]
    pub trace: Vec<EntrySpec>,
    /// Sections that own what is in them.
    #[serde(default)]
    pub region: Vec<EntrySpec>,
    /// Status lines that a detail claims.
    #[serde(default)]
    pub note: Vec<EntrySpec>,
    /// Ends of steps and sessions, successes.
    #[serde(default)]
    pub border: Vec<EntrySpec>,
}

impl FileSpec {
    /// Returns the entries of a table.
    pub fn table(&mut self, table: Table) -> &mut Vec<EntrySpec> {
        match table {
            Table::Border => &mut self.border,
            Table::Noise => &mut self.noise,
            Table::Region => &mut self.region,
            Table::Trace => &mut self.trace,
            Table::Note => &mut self.note,
            Table::Rule => &mut self.rule,
            Table::Fact => &mut self.fact,
        }
    }

    /// Returns all entries and cancels, in no meaningful order.
    pub fn all(&self) -> impl Iterator<Item = &EntrySpec> {
        let Self { family: _, rule, fact, cancel, noise, trace, region, note, border } = self;
        [rule, fact, cancel, noise, trace, region, note, border].into_iter().flatten()
    }

    /// Removes the example texts.
    #[must_use]
    pub fn without_examples(mut self) -> Self {
        let forget = |entry: &mut EntrySpec| entry.examples = Default::default();
        Table::ALL.iter().for_each(|&table| self.table(table).iter_mut().for_each(forget));
        self.cancel.iter_mut().for_each(forget);
        self
    }
}

/// `[family]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FamilySpec {
    /// First part of every id in the file.
    pub id: Located,
    /// The name that people use.
    pub title: String,
    /// `full`: machine, location and fixtures of real output; `head`: only the confirmed line.
    pub depth: Depth,
    /// `language` of the family's events.
    pub language: Option<String>,
    /// Whether the events are failed tests, which are never worth a retry.
    #[serde(default)]
    pub test: bool,
    /// Parts of a frame's file or function that mark a library's frame.
    #[serde(default)]
    pub library: Vec<String>,
    /// Languages and tools that the family covers, for the catalogue.
    #[serde(default)]
    pub covers: Vec<String>,
}

/// An entry of any table. `load` checks which keys a table takes, so that a key in the wrong table is reported as such.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EntrySpec {
    /// `family.slug`
    pub id: Located,
    /// Every match contains one of these. In a fact's literal, `‹0-9›` stands for any of its characters.
    #[serde(default)]
    pub literals: Vec<Located>,
    /// Literals that count only at the end of the line: words that are rare there and common elsewhere.
    #[serde(default)]
    pub at_end: Vec<Located>,
    /// Whether lower, Capitalised and UPPER forms count too, in literals and regexes.
    #[serde(default)]
    pub ignore_case: bool,
    /// The only bytes that may follow a literal, besides quotes, escapes and the line's end. Makes a short word cheap to find.
    #[serde(default)]
    pub after: String,
    /// Bytes that may not follow a literal.
    #[serde(default)]
    pub not_after: String,
    /// The only bytes that may follow a number behind a literal, besides quotes, escapes and the line's end.
    #[serde(default)]
    pub after_number: String,
    /// The same behind a word of ASCII letters.
    #[serde(default)]
    pub after_word: String,
    /// Bytes that may not precede a literal; a blank among them counts only after a word of prose.
    #[serde(default)]
    pub not_before: String,
    /// Text that may not precede a literal.
    #[serde(default, alias = "not_behind")]
    pub not_preceded_by: String,
    /// Confirms the line, without its prefix. Named groups: `type message name key file line column`.
    pub regex: Option<Located>,
    /// A line above that names the file (group `file`) to which the error's line number refers:
    /// the nearest that matches, with no empty line between. It is not part of the error.
    pub above: Option<Located>,
    /// Whether this is a word that prose uses too: a level tag of info or warn cancels it.
    #[serde(default)]
    pub generic: bool,
    /// Whether this names a fault that logs mention at every level, so that the level of its line decides.
    #[serde(default)]
    pub leveled: bool,
    /// Whether the entry also applies to lines that read as source code.
    #[serde(default)]
    pub code: bool,
    /// Category.
    pub category: Option<Category>,
    /// Severity.
    pub severity: Option<Severity>,
    /// Cause.
    pub cause: Option<Cause>,
    /// Retry class.
    pub retry: Option<RetryClass>,
    /// What usually fixes it.
    pub hint: Option<String>,
    /// `language`, where it differs from the family's.
    pub language: Option<String>,
    /// The fact of the line.
    pub fact: Option<FactKind>,
    /// Why this is not an error.
    pub reason: Option<String>,
    /// Further lines of a noise block.
    pub block: Option<BlockSpec>,
    /// Whether later lines decide if this noise belongs to an error: `siftd filter`, which does not wait for them, keeps it.
    #[serde(default)]
    pub undecided: bool,
    /// Rows of a trace, tried in order.
    #[serde(default)]
    pub rows: Vec<RowSpec>,
    /// Look-back lines before the start row or the status line, nearest first.
    #[serde(default)]
    pub before: Vec<BeforeSpec>,
    /// A line that ends the trace and does not belong to it.
    pub stop: Option<Located>,
    /// Makes the trace weak: it is tried only inside this region.
    pub region: Option<Located>,
    /// Whether there is no event until a row with `take = "frame"` was seen.
    #[serde(default)]
    pub needs_frame: bool,
    /// Whether the crash and the outermost exception stand last (Python).
    #[serde(default)]
    pub crash_last: bool,
    /// For a runner that repeats its failures: no second event with the same group `key` or `name`.
    #[serde(default)]
    pub once: bool,
    /// For a report that shows commands to run next: a bare prompt (`$ `) in it does not end the trace.
    #[serde(default)]
    pub shows_commands: bool,
    /// For a report that holds records of a log: such a record does not end the trace.
    #[serde(default)]
    pub shows_records: bool,
    /// The line that opens a region.
    pub open: Option<Located>,
    /// The line that ends a region and is not part of it.
    pub close: Option<Located>,
    /// A region ends after this many lines; an event that ended this many lines above a note does not claim it.
    pub max_lines: Option<u32>,
    /// The first error of a finished log opens the region, too, and it ends after this many lines.
    pub implied: Option<u32>,
    /// Whether the region's first line stands below what the first of its tests printed.
    #[serde(default)]
    pub late: bool,
    /// Whether what runs in the region may fail: its verdicts are about that alone, and say nothing of tests.
    #[serde(default)]
    pub allowed: bool,
    /// Whether the region owns everything in it: only its own weak traces are tried.
    #[serde(default)]
    pub absorb: bool,
    /// Whether only the region's end is looked for inside it, because it is entirely another run's output.
    #[serde(default)]
    pub seal: bool,
    /// A verdict on what runs in a region: what it printed is not an error.
    pub pass: Option<Located>,
    /// The same in the words of whoever called the runner: no verdict in a region that no line has opened.
    pub pass_by_caller: Option<Located>,
    /// The verdict that what it printed may be an error.
    pub fail: Option<Located>,
    /// Families whose events claim a note; by default its own; `*` means all.
    #[serde(default)]
    pub claimed_by: Vec<String>,
    /// Whether a note waits for a later detail instead of looking for an earlier one.
    #[serde(default)]
    pub waits: bool,
    /// Whether a note is never an event: it only claims.
    #[serde(default)]
    pub silent: bool,
    /// Whether a status line is said by the runner of all commands: a bare prompt does not part it from what one of them has said.
    #[serde(default)]
    pub of_job: bool,
    /// Whether a status line without a key is about one test or check: a later status line that sums up says nothing new.
    #[serde(default)]
    pub of_one: bool,
    /// Example texts.
    #[serde(default)]
    pub examples: ExampleSpec,
}

impl EntrySpec {
    /// Returns the regexes of the entry.
    pub fn regexes(&self) -> impl Iterator<Item = &Located> {
        let one = [&self.regex, &self.above, &self.stop, &self.open, &self.close, &self.pass, &self.pass_by_caller, &self.fail];
        let more = self.block.iter().map(|block| &block.regex).chain(self.rows.iter().map(|row| &row.regex)).chain(self.before.iter().map(|line| &line.regex));
        one.into_iter().flatten().chain(more)
    }

    /// Returns the literals and what may stand beside them.
    #[must_use]
    pub fn gate(&self) -> Gate {
        let texts = |all: &[Located]| all.iter().map(|one| one.get().to_owned()).collect();
        Gate {
            literals: texts(&self.literals),
            at_end: texts(&self.at_end),
            ignore_case: self.ignore_case,
            after: self.after.clone(),
            not_after: self.not_after.clone(),
            after_number: self.after_number.clone(),
            after_word: self.after_word.clone(),
            not_before: self.not_before.clone(),
            not_preceded_by: self.not_preceded_by.clone(),
        }
    }
}

/// `examples = { match = […], no_match = […] }`
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExampleSpec {
    /// Texts of one or more lines, in each of which the entry makes exactly one event, over all lines.
    #[serde(default, rename = "match")]
    pub matching: Vec<String>,
    /// Texts in which no event is found.
    #[serde(default)]
    pub no_match: Vec<String>,
}

impl ExampleSpec {
    /// Whether there are no examples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.matching.is_empty() && self.no_match.is_empty()
    }
}

/// What decoding states about a line, or a transcript about a step.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A level tag or field of error or above.
    Level,
    /// A level tag or field of warning; used only where warnings are wanted.
    Warning,
    /// A record with `is_error: true`.
    Flag,
    /// A piece of a record that a container runtime split.
    Partial,
    /// Text in which escape sequences are written out.
    Dressed,
    /// A step of a transcript: a tool failed.
    Tool,
    /// A step of a transcript: the model's API failed.
    Api,
    /// A transcript's run ended as a failure.
    Run,
}

impl FactKind {
    /// Whether a transcript's record states the fact, so that no literal leads to it.
    #[must_use]
    pub fn is_step(self) -> bool {
        matches!(self, Self::Tool | Self::Api | Self::Run)
    }
}

/// Further lines of a noise block.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// Each further line matches.
    pub regex: Located,
    /// Most further lines.
    pub max_lines: u32,
}
