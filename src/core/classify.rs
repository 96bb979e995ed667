//! What a confirmed error is: category, severity, cause and retry advice, by the tables of `config/classify.toml`. Runs
//! after `redact` and before `signature`. Uses the error's line, its exception and, for the cause, its whole text. It never
//! looks into frames or context for the category, never decides whether something is an error, and never applies overrides.

use super::event::{Category, Cause, Link, Retry, RetryClass, Severity};
use super::gate::is_word;
use super::keywords::Seen;
use super::retry;
use super::table::{Asked, CategoryRow, Hits, Table};

/// Longest line that is searched byte by byte, in bytes: quadratic, but short.
const MAX_SHORT_LINE: usize = 256;

/// The error to classify.
#[derive(Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The line that names the error.
    pub text: &'a str,
    /// Exception type.
    pub kind: Option<&'a str>,
    /// Exception message.
    pub message: Option<&'a str>,
    /// What it was caused by, outermost first; used for category and
    /// retry advice if the error itself says nothing of its own.
    pub causes: &'a [Link],
    /// The event's whole text, its lines joined by `\n`; used for the cause. If empty, `text` is all.
    pub whole: &'a str,
    /// Language or tool.
    pub language: Option<&'a str>,
    /// The category that a fault's own rule names; it takes precedence.
    pub rule_category: Option<Category>,
    /// Whether the rule is a test runner's.
    pub is_test_rule: bool,
    /// Exit code of a finished command.
    pub exit_code: Option<i64>,
    /// HTTP status from a structured record.
    pub status: Option<u16>,
    /// Whether the run was ended for taking too long.
    pub timed_out: bool,
    /// Whether it was thrown: a stack came with it.
    pub has_frames: bool,
    /// What [`Keywords::seek`](super::keywords::Keywords::seek) found in `whole`, if that was read already.
    pub seen: Option<&'a Seen>,
}

/// The classification of one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Category.
    pub category: Category,
    /// Severity by the category's row.
    pub severity: Severity,
    /// Cause.
    pub cause: Cause,
    /// Retry advice.
    pub retry: Retry,
}

/// Classifies one error. The caller applies `severity_overrides` to the result.
#[must_use]
pub fn classify(subject: &Subject) -> Verdict {
    let asked = asked_of(subject);
    let (category, severity) = category_of(subject, &asked);
    let cause = cause_of(subject, &asked, category);
    Verdict { category, severity, cause, retry: retry_of(subject, &asked, cause) }
}

/// Runs the gate once over the line, and over type and message if the line does not hold them.
fn asked_of<'a>(subject: &Subject<'a>) -> Asked<'a> {
    let table = Table::builtin();
    let mut hits = Hits::default();
    table.hits(subject.text, &mut hits);
    let mut texts = [subject.text, "", ""];
    for (slot, part) in texts[1..].iter_mut().zip([subject.kind, subject.message]) {
        let part = part.unwrap_or_default();
        if !holds(subject.text, part) {
            // A reset time is taken from the line only: offsets of another text would mislead.
            let line = hits;
            table.hits(part, &mut hits);
            (hits.reset, hits.pipeline) = (line.reset, line.pipeline);
            *slot = part;
        }
    }
    let status = subject.status.or_else(|| texts.iter().find_map(|text| retry::http_status(text)));
    Asked { texts, hits, status, exit_code: subject.exit_code, alone: false }
}

/// Whether the line already says `part`; mostly it begins or ends with it.
fn holds(line: &str, part: &str) -> bool {
    line.starts_with(part) || line.ends_with(part) || (part.len() < line.len() && contains(line.as_bytes(), part.as_bytes()))
}

/// Whether `line` holds `part`. For one short line, making a searcher costs more than the search.
fn contains(line: &[u8], part: &[u8]) -> bool {
    match part.first() {
        Some(first) if line.len() <= MAX_SHORT_LINE => memchr::memchr_iter(*first, line).any(|at| line[at..].starts_with(part)),
        _ => memchr::memmem::find(line, part).is_some(),
    }
}

fn category_of(subject: &Subject, asked: &Asked) -> (Category, Severity) {
    let table = Table::builtin();
    let row_of = |category: Category| table.categories.iter().find(|row| row.category == category);
    if let Some(category) = subject.rule_category.or(subject.is_test_rule.then_some(Category::TestFailure)) {
        return row_of(category).map_or((category, table.unknown.severity), |row| (category, severity_of(row, subject.text)));
    }
    let own = row_that_matches(asked).map(|row| (row, subject.text));
    let found = own
        .filter(|(row, _)| is_specific(row))
        .or_else(|| row_of_causes(subject.causes))
        .or(own)
        .or_else(|| has_type(subject).then(|| row_of(Category::RuntimeError)).flatten().map(|row| (row, subject.text)));
    found.map_or((Category::UnknownError, table.unknown.severity), |(row, text)| (row.category, severity_of(row, text)))
}

fn row_that_matches(asked: &Asked) -> Option<&'static CategoryRow> {
    let table = Table::builtin();
    table.categories.iter().find(|row| table.matches(&row.row, asked))
}

/// Whether the row says more than that something was thrown or crashed, which holds for any error with a cause.
fn is_specific(row: &CategoryRow) -> bool {
    row.category != Category::RuntimeError
}

/// Returns the row of the innermost cause that says what the fault is, and the text that says it.
fn row_of_causes(causes: &[Link]) -> Option<(&'static CategoryRow, &str)> {
    let row = |cause| row_that_matches(&asked_of_cause(cause)).filter(|row| is_specific(row));
    causes.iter().rev().find_map(|cause| Some((row(cause)?, cause.message.as_str())))
}

/// Treats a cause like a line of its own.
fn asked_of_cause(cause: &Link) -> Asked<'_> {
    asked_of(&Subject { text: &cause.message, kind: Some(&cause.kind), ..Subject::default() })
}

/// Returns the row's severity, or its lower one if a path in the line names a test, spec or mock.
fn severity_of(row: &CategoryRow, text: &str) -> Severity {
    let lowered = row.lowered_to.filter(|_| names_part(text, &row.lowered_by));
    lowered.unwrap_or(row.severity)
}

/// Whether a path in the text has one of `parts` as a component or as a part of a file name.
fn names_part(text: &str, parts: &[String]) -> bool {
    let is_path = |word: &&str| word.contains(['/', '\\', '.', '_']);
    let ends_word = |c: char| {
        c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '‘' | '’' | '“' | '”' | '(' | ')' | ':' | ',' | ';' | '=' | '<' | '>' | '[' | ']' | '{' | '}')
    };
    text.split(ends_word)
        .filter(is_path)
        .any(|path| path.split(|c: char| !c.is_ascii_alphanumeric()).any(|piece| parts.iter().any(|part| piece.eq_ignore_ascii_case(part))))
}

/// Whether the error has an exception type that says more than "an error", or a stack that shows that it was thrown.
fn has_type(subject: &Subject) -> bool {
    match subject.kind {
        Some(kind) if !kind.is_empty() => subject.has_frames || !is_bare(kind),
        _ => exception_type(subject.text).is_some(),
    }
}

fn is_bare(kind: &str) -> bool {
    let name = last_segment(kind.trim());
    Table::builtin().unknown.bare.iter().any(|bare| name.eq_ignore_ascii_case(bare))
}

fn last_segment(name: &str) -> &str {
    let start = name.bytes().rposition(|b| matches!(b, b'.' | b':' | b'\\' | b'$')).map_or(0, |at| at + 1);
    &name[start..]
}

/// Returns the first exception type that a line names: a name before a colon, or the whole line.
fn exception_type(text: &str) -> Option<&str> {
    let ends = memchr::memchr_iter(b':', text.as_bytes()).chain(std::iter::once(text.trim_end().len()));
    ends.filter_map(|end| name_before(text, end)).find(|name| is_type(name))
}

/// Returns the name that ends at `end`.
fn name_before(text: &str, end: usize) -> Option<&str> {
    let head = text.as_bytes().get(..end)?;
    let length = head.iter().rev().take_while(|&&b| is_word(b) || matches!(b, b'.' | b'$' | b'\\')).count();
    text.get(end - length..end)
}

fn is_type(name: &str) -> bool {
    let last = last_segment(name);
    last.starts_with(|c: char| c.is_ascii_uppercase())
        && Table::builtin().unknown.type_ends.iter().any(|end| last.len() > end.len() && last.ends_with(end.as_str()))
}

fn cause_of(subject: &Subject, asked: &Asked, category: Category) -> Cause {
    if subject.timed_out {
        return Cause::Timeout;
    }
    let table = Table::builtin();
    let whole = whole_of(subject, asked);
    let is_r = match subject.language {
        Some(language) => language.eq_ignore_ascii_case("r"),
        None => table.matches(&table.r_looks, &whole),
    };
    let found = table.causes.iter().find(|(_, row)| (is_r || !row.r_only) && table.matches(row, &whole));
    found.map_or_else(|| by_category(category), |(cause, _)| *cause)
}

/// The same questions about the whole text; a single line has been read already.
fn whole_of<'a>(subject: &Subject<'a>, asked: &Asked<'a>) -> Asked<'a> {
    let (mut hits, mut texts) = (asked.hits, asked.texts);
    if subject.whole.len() > subject.text.len() {
        match subject.seen {
            Some(seen) => hits.merge(seen.causes),
            None => Table::builtin().hits(subject.whole, &mut hits),
        }
        texts[0] = subject.whole;
    }
    Asked { texts, hits, status: None, exit_code: None, alone: false }
}

/// Returns the cause that the category suggests if no row for causes matches.
fn by_category(category: Category) -> Cause {
    match category {
        Category::TestFailure | Category::SyntaxError | Category::TypeError | Category::ReferenceError | Category::BuildError | Category::RuntimeError => {
            Cause::CodeBug
        }
        Category::DependencyError | Category::AuthError => Cause::EnvironmentError,
        Category::FilesystemError => Cause::DataPathError,
        Category::NetworkError | Category::RateLimit | Category::ResourceError | Category::UnknownError => Cause::Unknown,
    }
}

fn retry_of(subject: &Subject, asked: &Asked, cause: Cause) -> Retry {
    let implementation = subject.is_test_rule || subject.rule_category == Some(Category::TestFailure);
    let (class, reason) = match pipeline_row(subject, asked) {
        Some(found) => found,
        None if subject.timed_out => (RetryClass::Unknown, retry::TIMED_OUT),
        None => match retry::retry(asked, implementation) {
            (RetryClass::Unknown, _) => retry_of_causes(subject.causes),
            found => found,
        },
    };
    let reset_at = asked.hits.reset.and_then(|end| retry::reset_at(subject.text, end));
    Retry { class, reason: reason.into(), remedy: retry::remedy(class, cause), reset_at }
}

/// Returns the retry advice of the innermost cause that has any.
fn retry_of_causes(causes: &[Link]) -> (RetryClass, &'static str) {
    let mut asked = causes.iter().rev().map(|cause| retry::retry(&asked_of_cause(cause), false));
    asked.find(|(class, _)| *class != RetryClass::Unknown).unwrap_or((RetryClass::Unknown, retry::UNMATCHED))
}

/// Returns the structured row of a line that carries a `PIPELINE_*` code.
fn pipeline_row(subject: &Subject, asked: &Asked) -> Option<(RetryClass, &'static str)> {
    let end = asked.hits.pipeline?;
    let start = end.checked_sub("PIPELINE_".len())?;
    let length = subject.text.as_bytes().get(start..)?.iter().take_while(|&&b| is_word(b)).count();
    let name = subject.kind.or_else(|| exception_type(subject.text));
    let row = retry::structured_row(name, subject.text.get(start..start + length), None)?;
    Some((row.class, &row.reason))
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
