//! One pass over an error for what words say about all its lines: whether they hold secrets,
//! and what caused the error. Owns no rule: `redact` and `table` know what a word means.

use std::sync::OnceLock;

use super::gate::Gate;
use super::redact::{Redactor, Touch};
use super::table::{Hits, Table};

/// The keywords of redaction and of causes.
pub struct Keywords {
    gate: Gate,
    /// Number of keywords of redaction, which come first.
    secrets: usize,
    /// The ids of the others in the table.
    causes: Vec<usize>,
}

/// What was found in an error.
#[derive(Default)]
pub struct Seen {
    /// Where secrets may be.
    pub touched: Vec<Touch>,
    /// Words that causes ask for.
    pub(super) causes: Hits,
}

impl Keywords {
    /// Returns the keywords of the built-in tables.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static KEYWORDS: OnceLock<Keywords> = OnceLock::new();
        KEYWORDS.get_or_init(|| {
            let (redactor, table) = (Redactor::builtin(), Table::builtin());
            let words = redactor.words().chain(table.words_of_causes().map(|(_, word, exact)| (word, exact)));
            let causes = table.words_of_causes().map(|(id, ..)| id).collect();
            Self { gate: Gate::new(words), secrets: redactor.words().count(), causes }
        })
    }

    /// Scans the lines of an error.
    #[must_use]
    pub fn seek(&self, whole: &str) -> Seen {
        let mut seen = Seen::default();
        let (redactor, table) = (Redactor::builtin(), Table::builtin());
        self.gate.scan(whole.as_bytes(), |id, word| {
            match id.checked_sub(self.secrets) {
                None => seen.touched.extend(redactor.touch(id, whole, word)),
                Some(index) => table.add(self.causes[index], word.end, &mut seen.causes),
            }
            true
        });
        seen
    }
}
