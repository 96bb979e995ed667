//! What a rules file may say: the TOML shapes of `config/rules/*.toml`.
//! Serde fills them; `load` checks what types cannot. The README's chapter on rules and the comments
//! in `config/rules/` describe the same keys for people.

use serde::{Deserialize, Serialize};

use super::literal::Gate;
use super::located::Located;
use super::one_or_many::OneOrMany;
use crate::words::{Category, Cause, Depth, RetryClass, Severity, word_set};

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
    /// Errors that one line shows.
    #[serde(default)]
    pub rule: Vec<EntrySpec>,
    /// Lines whose decoded facts (level, flag) make them errors.
    #[serde(default)]
    pub fact: Vec<EntrySpec>,
    /// False positives: each cancels the hits that its match covers.
    #[serde(default)]
    pub cancel: Vec<EntrySpec>,
    /// Lines that are never an error, and blocks of them.
    #[serde(default)]
    pub noise: Vec<EntrySpec>,
    /// Errors of several lines.
    #[serde(default)]
    pub trace: Vec<EntrySpec>,
    /// Sections that own what is in them.
    #[serde(default)]
    pub region: Vec<EntrySpec>,
    /// Status lines that a detail claims.
    #[serde(default)]
    pub note: Vec<EntrySpec>,
    /// Ends of steps, sessions, successes.
    #[serde(default)]
    pub border: Vec<EntrySpec>,
}

impl FileSpec {
    /// The entries of a table.
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

    /// All entries and cancels, in no order that means anything.
    pub fn all(&self) -> impl Iterator<Item = &EntrySpec> {
        let Self { family: _, rule, fact, cancel, noise, trace, region, note, border } = self;
        [rule, fact, cancel, noise, trace, region, note, border].into_iter().flatten()
    }

    /// The same without the texts to try.
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
    /// What people call it.
    pub title: String,
    /// `full`: machine, location and fixtures of real output; `head`: the confirmed line only.
    pub depth: Depth,
    /// `language` of its events.
    pub language: Option<String>,
    /// Its events are failed tests: never worth a retry.
    #[serde(default)]
    pub test: bool,
    /// Parts of a frame's file or function that mark a library's frame.
    #[serde(default)]
    pub library: Vec<String>,
    /// Languages and tools that the family covers, for the catalogue.
    #[serde(default)]
    pub covers: Vec<String>,
}

/// An entry of any table. Which keys a table takes is checked by `load`, so that a key in the wrong
/// table is named as such.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EntrySpec {
    /// `family.slug`
    pub id: Located,
    /// Every match contains one of these. In a fact's, `‹0-9›` stands for each of its characters.
    #[serde(default)]
    pub literals: Vec<Located>,
    /// Literals that count only at the end of the line: a word that is rare there and common elsewhere.
    #[serde(default)]
    pub at_end: Vec<Located>,
    /// lower, Capitalised and UPPER forms count too, in literals and regexes.
    #[serde(default)]
    pub ignore_case: bool,
    /// The only bytes that may follow a literal, beside quotes, escapes and the line's end. It makes
    /// a short word cheap to find.
    #[serde(default)]
    pub after: String,
    /// Bytes that may not follow a literal.
    #[serde(default)]
    pub not_after: String,
    /// Bytes that may not precede a literal; a blank may not where it stands behind a word of prose.
    #[serde(default)]
    pub not_before: String,
    /// Text that may not stand before a literal.
    #[serde(default)]
    pub not_behind: String,
    /// Confirms the line, prefix removed. Named groups: `type message name key file line column`.
    pub regex: Option<Located>,
    /// A line above that names the file (group `file`) in which the line of the error counts: the nearest that matches, with no
    /// empty line between. It is no part of the error.
    pub above: Option<Located>,
    /// A word that prose uses too: cancelled by a level tag of info or warn.
    #[serde(default)]
    pub generic: bool,
    /// A fault by name, of which a log tells at every level: it is what its line's level says.
    #[serde(default)]
    pub leveled: bool,
    /// Holds on lines that read as source code, too.
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
    /// Which fact of the line.
    pub fact: Option<FactKind>,
    /// Why this is no error.
    pub reason: Option<String>,
    /// Further lines of a noise block.
    pub block: Option<BlockSpec>,
    /// Rows of a trace, tried in order.
    #[serde(default)]
    pub rows: Vec<RowSpec>,
    /// Look-back before the start row or the status line, nearest line first.
    #[serde(default)]
    pub before: Vec<BeforeSpec>,
    /// A line that ends the trace and does not belong to it.
    pub stop: Option<Located>,
    /// Weak: only tried inside this region.
    pub region: Option<Located>,
    /// No event until a row with `take = "frame"` was seen.
    #[serde(default)]
    pub needs_frame: bool,
    /// The crash, and the outermost exception, stand last (Python).
    #[serde(default)]
    pub crash_last: bool,
    /// A runner that repeats its failures: no second event with the same group `key` or `name`.
    #[serde(default)]
    pub once: bool,
    /// Opens a region.
    pub open: Option<Located>,
    /// Ends a region; the line itself is no part of it.
    pub close: Option<Located>,
    /// A region ends after so many lines; what ended so many lines before a note does not claim it.
    pub max_lines: Option<u32>,
    /// The region owns everything in it: only its own weak traces are tried.
    #[serde(default)]
    pub absorb: bool,
    /// Of what stands in a region only its end is looked for: it is another run's output, whole.
    #[serde(default)]
    pub seal: bool,
    /// The verdict of what runs in a region: what it printed is no error.
    pub pass: Option<Located>,
    /// The verdict that what it printed may be one.
    pub fail: Option<Located>,
    /// Families whose events claim a note; its own by default; `*` is all.
    #[serde(default)]
    pub claimed_by: Vec<String>,
    /// A note that waits for a later detail instead of asking for an earlier one.
    #[serde(default)]
    pub waits: bool,
    /// A note that is never an event: it only claims.
    #[serde(default)]
    pub silent: bool,
    /// Texts to try.
    #[serde(default)]
    pub examples: ExampleSpec,
}

impl EntrySpec {
    /// Its regexes.
    pub fn regexes(&self) -> impl Iterator<Item = &Located> {
        let one = [&self.regex, &self.above, &self.stop, &self.open, &self.close, &self.pass, &self.fail];
        let more = self.block.iter().map(|block| &block.regex).chain(self.rows.iter().map(|row| &row.regex)).chain(self.before.iter().map(|line| &line.regex));
        one.into_iter().flatten().chain(more)
    }

    /// Its literals and what may stand beside them.
    #[must_use]
    pub fn gate(&self) -> Gate {
        let texts = |all: &[Located]| all.iter().map(|one| one.get().to_owned()).collect();
        Gate {
            literals: texts(&self.literals),
            at_end: texts(&self.at_end),
            ignore_case: self.ignore_case,
            after: self.after.clone(),
            not_after: self.not_after.clone(),
            not_before: self.not_before.clone(),
            not_behind: self.not_behind.clone(),
        }
    }
}

/// `examples = { match = […], no_match = […] }`
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExampleSpec {
    /// Texts of one or more lines in which the entry makes exactly one event, over all lines.
    #[serde(default, rename = "match")]
    pub matching: Vec<String>,
    /// Texts in which no event is found.
    #[serde(default)]
    pub no_match: Vec<String>,
}

impl ExampleSpec {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.matching.is_empty() && self.no_match.is_empty()
    }
}

/// What decoding says of a line, or a transcript of a step.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A level tag or field of error or above.
    Level,
    /// A level tag or field of a warning; only where warnings are wanted.
    Warning,
    /// A record with `is_error: true`.
    Flag,
    /// A piece of a record that a container runtime split.
    Partial,
    /// Escape sequences written out as text.
    Dressed,
    /// A step of a transcript: a tool failed.
    Tool,
    /// A step of a transcript: the model's API failed.
    Api,
    /// A transcript's run ended as a failure.
    Run,
}

impl FactKind {
    /// No literal leads to it: it is a record that says so.
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
    /// At most so many.
    pub max_lines: u32,
}

/// A row of a trace.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RowSpec {
    /// States in which it is tried; `start` opens the trace.
    pub from: OneOrMany,
    /// The line, prefix removed.
    pub regex: Located,
    /// The state after it.
    pub to: Located,
    /// What to read from the line.
    #[serde(default)]
    pub take: Take,
    /// How the frame or exception is read by bytes; without it the groups of the regex are read.
    pub shape: Option<Shape>,
    /// `false`: the line is taken on trial, until an accepting line follows.
    #[serde(default = "yes")]
    pub accept: bool,
    /// Of a start row: loggers print such a line right under the record that tells of it, which then is
    /// the trace's first line. What only a program's end or another program prints is an error of its own.
    #[serde(default)]
    pub under_record: bool,
    /// A further line of a message, which has no shape of its own: nothing may begin with it, and it belongs to the trace
    /// once a log line, a prompt, a rule or a status line follows.
    #[serde(default)]
    pub loose: bool,
    /// The line tells that what the trace has taken is no error of its own: its lines are read, and nothing comes of them.
    #[serde(default)]
    pub void: bool,
}

/// A look-back line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BeforeSpec {
    /// The line.
    pub regex: Located,
    /// May be missing.
    #[serde(default)]
    pub optional: bool,
    /// May repeat, at most so often.
    #[serde(default = "one")]
    pub max: u32,
    /// What a trace reads from the line: `exception`, `location` or `text`. One that names the error here does not begin without it.
    #[serde(default)]
    pub take: Take,
}

/// What a row reads from its line.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// Nothing.
    #[default]
    Nothing,
    /// Groups `type` and `message`: an exception of the chain; the outermost names the error.
    Exception,
    /// A further line of the message.
    Message,
    /// Groups `function file line column`: a frame.
    Frame,
    /// Groups `file line column`: where an editor should jump to.
    Location,
    /// The line that names the error.
    Text,
}

/// Shapes of frames and exceptions that are read by bytes.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// `File "app.py", line 3, in main`
    Python,
    /// `at f (app.js:3:5)`, `at com.acme.App.main(App.java:12)`, `at app.js:3:5`
    Call,
    /// `from app.rb:3:in 'main'`, `/srv/app/main.go:12 +0x1d`
    Place,
    /// `12: core::panicking::panic`, `12: 0x55d0c7 - core::panicking::panic`
    Numbered,
    /// An exception rather than a frame: `app.CartError: empty cart`
    Named,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}
