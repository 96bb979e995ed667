//! Rules are data: `config/rules/*.toml` and a user's files become one [`RuleSet`], the tables that the core walks.
//!
//! `spec` is the shape of a file; `load` reads and checks it into `entry`'s types; `prove` shows that the prefilter
//! cannot miss a rule, and `literal` prepares the prefilter's part. `set` puts the files together. `builtin` holds
//! the compiled-in rules, and `shelf` the compiled forms that the build made of their patterns. `source` parses
//! regexes, `pattern` runs them; `matcher` turns problem matchers into rules. Nothing here looks at a log.

mod builtin;
mod clue;
mod compiled;
mod ends;
mod entries;
mod entry;
mod files;
mod forms;
mod join;
mod keys;
mod left;
mod library;
mod literal;
mod load;
mod located;
pub mod matcher;
mod one_or_many;
mod padding;
mod parsed;
mod pattern;
mod program;
mod prove;
mod set;
mod shelf;
mod signs;
mod source;
pub mod spec;
mod state;

pub use builtin::{Examples, builtin_files, entries_with, leads as compiled_leads, literals as compiled_literals};
pub use clue::{Clue, Clues, Looks};
pub use ends::{Margin, PLACES, first_visible, is_indented, place, placed};
pub use entries::Entries;
pub use entry::{Before, Cancel, Entry, Family, Fault, Kind, Labels, Machine, Note, Region, Row, Verdicts};
pub use files::{FILES as BUILTIN_FILES, WARNINGS as WARNING_FILE};
pub use library::Library;
pub use literal::{Gate, Leads, LiteralForm, Literals, MIN_LITERAL_BYTES};
pub use load::{RulesFile, parse, parse_beside};
pub use parsed::Problem;
pub use pattern::{Groups, Pattern};
pub use prove::longest_required_literal;
pub use set::RuleSet;
pub use signs::Signs;
pub use spec::{ExampleSpec, FactKind, Table, Take};
pub use state::{Shown, State};

/// Most entries that one literal may lead to; bounds the cost of a candidate line.
pub const MAX_ENTRIES_PER_LITERAL: usize = 8;
