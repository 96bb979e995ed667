//! One pass over an error for all that words decide: whether secrets stand in it, and what it is.
//! Owns no rule: what a word means, `redact` and `table` know.

use std::ops::Range;
use std::sync::OnceLock;

use super::gate::Gate;
use super::redact::{Redactor, Touch};
use super::table::{Hits, Table};

/// The keywords of redaction and of classification.
pub struct Keywords {
    gate: Gate,
    /// The first so many are those of redaction.
    secrets: usize,
}

/// What stands in an error.
#[derive(Default)]
pub struct Seen {
    /// Where secrets may be.
    pub touched: Vec<Touch>,
    /// Words of the line that names the error.
    pub(super) line: Hits,
    /// Words of all of it.
    pub(super) whole: Hits,
}

impl Keywords {
    /// Those of the built-in tables.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static KEYWORDS: OnceLock<Keywords> = OnceLock::new();
        KEYWORDS.get_or_init(|| {
            let (redactor, table) = (Redactor::builtin(), Table::builtin());
            let words = redactor.words().chain(table.words());
            Self { gate: Gate::new(words), secrets: redactor.words().count() }
        })
    }

    /// Reads `whole`, in which the line that names the error is `line`.
    #[must_use]
    pub fn seek(&self, whole: &str, line: &Range<usize>) -> Seen {
        let mut seen = Seen::default();
        let (redactor, table) = (Redactor::builtin(), Table::builtin());
        self.gate.scan(whole.as_bytes(), |id, word| {
            match id.checked_sub(self.secrets) {
                None => seen.touched.push(redactor.touch(id, word.start)),
                Some(id) => {
                    table.add(id, word.end, &mut seen.whole);
                    if line.start <= word.start && word.end <= line.end {
                        table.add(id, word.end - line.start, &mut seen.line);
                    }
                }
            }
            true
        });
        seen
    }
}
