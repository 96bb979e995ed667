//! Whether trying again can help: the retry rows over a log line, structured errors, HTTP statuses, reset times, backoff.
//! Called by `classify` for events and by the verdict on finished runs; the rows are data (`config/classify.toml`).
//! It never retries anything, never reads a clock, and never takes a bare number for an HTTP status.

use super::classify;
use super::event::{Category, Cause, Remedy, Retry, RetryClass, Severity};
use super::table::{Asked, Hits, StructuredRow, Table};

/// Reason for an error that no row matched.
pub const UNMATCHED: &str = "unmatched";
/// Reason for a run that its caller ended for taking too long.
pub const TIMED_OUT: &str = "timed_out";
/// Reason for an error whose own rule names the class.
pub const RULE: &str = "rule";
/// Reason for a structured error with a code of the operating system that no row has.
const SYSTEM_CODE: &str = "system_code";

/// Returns class and reason of the first row that matches. `asked`
/// carries the text; `implementation` says that row 1 matches already.
pub(crate) fn retry(asked: &Asked, implementation: bool) -> (RetryClass, &'static str) {
    let table = Table::builtin();
    table
        .retries
        .iter()
        .find(|row| (implementation && row.reason == "implementation") || table.matches(&row.row, asked))
        .map_or((RetryClass::Unknown, UNMATCHED), |row| (row.class, row.reason.as_str()))
}

/// Returns every reason that [`Retry`] can have: those of the tables, and those that no row gives.
pub fn reasons() -> impl Iterator<Item = &'static str> {
    let table = Table::builtin();
    let rows = table.retries.iter().map(|row| row.reason.as_str()).chain(table.structured.iter().map(|row| row.reason.as_str()));
    rows.chain([TIMED_OUT, UNMATCHED, RULE, SYSTEM_CODE])
}

/// Returns who can fix it.
#[must_use]
pub fn remedy(class: RetryClass, cause: Cause) -> Remedy {
    match (class, cause) {
        (RetryClass::Fatal, _) => Remedy::Operator,
        (RetryClass::Transient, _) => Remedy::Rerun,
        (_, Cause::CodeBug | Cause::DataPathError) => Remedy::Fix,
        (_, Cause::EnvironmentError | Cause::StatisticalError) => Remedy::Operator,
        _ => Remedy::None,
    }
}

/// Whether to try again: the class is `transient`.
#[must_use]
pub fn is_transient(class: RetryClass) -> bool {
    class == RetryClass::Transient
}

/// Whether to stop the whole run: the class is `fatal`.
#[must_use]
pub fn is_fatal(class: RetryClass) -> bool {
    class == RetryClass::Fatal
}

/// Returns the delay `min(cap, base · 2^(attempt−1))` in milliseconds; `attempt` counts retries from 1.
#[must_use]
pub fn backoff_ms(attempt: u32, base_ms: u64, cap_ms: u64) -> u64 {
    let doublings = attempt.saturating_sub(1);
    if doublings >= 64 && base_ms > 0 { cap_ms } else { base_ms.saturating_mul(1u64.checked_shl(doublings).unwrap_or(0)).min(cap_ms) }
}

/// A structured error: any subset of the fields of one object.
#[derive(Clone, Copy, Debug, Default)]
pub struct StructuredError<'a> {
    /// Type of the error, such as `SessionError`.
    pub name: Option<&'a str>,
    /// System or pipeline code; a number as text.
    pub code: Option<&'a str>,
    /// Message.
    pub message: Option<&'a str>,
    /// `response.status`.
    pub status: Option<u16>,
    /// `context.operation`.
    pub operation: Option<&'a str>,
    /// Exit code.
    pub exit_code: Option<i64>,
    /// Whether the caller ended the run.
    pub timed_out: bool,
    /// What the run wrote to stderr, filtered.
    pub stderr: Option<&'a str>,
}

/// The verdict on a structured error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructuredVerdict {
    /// Its category.
    pub category: Category,
    /// Its severity.
    pub severity: Severity,
    /// Its cause.
    pub cause: Cause,
    /// Whether the whole run must stop.
    pub fatal: bool,
    /// Whether another attempt is worth making.
    pub retryable: bool,
    /// Class, reason, remedy and reset time.
    pub retry: Retry,
}

/// Judges a structured error. The first that applies decides: a row for name, code and operation, a timeout, a retry row
/// over code and message, a system code. With `continue_on_error` nothing is fatal: what would be becomes permanent.
#[must_use]
pub fn classify_structured(error: &StructuredError, continue_on_error: bool) -> StructuredVerdict {
    let joined = [error.code, error.message].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let text = if joined.is_empty() { error.stderr.unwrap_or_default() } else { &joined };
    let seen = classify::classify(&classify::Subject {
        text,
        kind: error.name,
        message: None,
        causes: &[],
        whole: error.stderr.unwrap_or(text),
        language: None,
        rule_category: None,
        is_test_rule: false,
        exit_code: numeric_exit(error),
        status: error.status,
        timed_out: error.timed_out,
        has_frames: false,
        seen: None,
    });
    let (mut class, reason, retryable, mut fatal) = decide(error, text);
    if continue_on_error && (fatal || is_fatal(class)) {
        (class, fatal) = (RetryClass::Permanent, false);
    }
    let retry = Retry { class, reason: reason.into(), remedy: remedy(class, seen.cause), reset_at: seen.retry.reset_at };
    StructuredVerdict { category: seen.category, severity: seen.severity, cause: seen.cause, fatal, retryable, retry }
}

/// Returns class, reason, retryable, fatal.
fn decide(error: &StructuredError, text: &str) -> (RetryClass, &'static str, bool, bool) {
    if let Some(row) = structured_row(error.name, error.code, error.operation) {
        return (row.class, &row.reason, row.retryable, row.fatal);
    }
    if error.timed_out {
        return (RetryClass::Unknown, TIMED_OUT, false, false);
    }
    match retry(&asked_of(error, text), false) {
        (RetryClass::Unknown, _) if error.code.is_some_and(is_system_code) => (RetryClass::Unknown, SYSTEM_CODE, false, false),
        (RetryClass::Unknown, reason) => (RetryClass::Unknown, reason, true, false),
        (class, reason) => (class, reason, is_transient(class), is_fatal(class)),
    }
}

fn asked_of<'a>(error: &StructuredError, text: &'a str) -> Asked<'a> {
    let mut hits = Hits::default();
    Table::builtin().hits(text, &mut hits);
    let status = error.status.or_else(|| http_status(text));
    Asked { texts: [text, "", ""], hits, status, exit_code: numeric_exit(error), alone: true }
}

/// Returns the exit code, even if it is in `code`.
fn numeric_exit(error: &StructuredError) -> Option<i64> {
    error.exit_code.or_else(|| error.code?.parse().ok())
}

/// Returns the first row for a name, code and operation.
pub(crate) fn structured_row(name: Option<&str>, code: Option<&str>, operation: Option<&str>) -> Option<&'static StructuredRow> {
    Table::builtin().structured.iter().find(|row| {
        row.name.as_deref().is_none_or(|n| name.is_some_and(|got| last_part(got) == n))
            && row.code.as_deref().is_none_or(|c| code.is_some_and(|got| code_fits(c, got)))
            && row.operation.as_deref().is_none_or(|o| operation == Some(o))
    })
}

fn last_part(name: &str) -> &str {
    name.rsplit(['.', ':', '\\']).next().unwrap_or(name)
}

fn code_fits(wanted: &str, got: &str) -> bool {
    wanted.strip_suffix('*').map_or(got == wanted, |prefix| got.starts_with(prefix))
}

/// Whether the code is an errno name: `ENOENT`, `EAI_AGAIN`.
fn is_system_code(code: &str) -> bool {
    code.len() >= 3 && code.starts_with('E') && code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_') && !code.starts_with("ERR")
}

/// Returns the reason for an HTTP status alone.
#[must_use]
pub fn reason_of_status(status: u16) -> &'static str {
    retry(&Asked { texts: ["", "", ""], hits: Hits::default(), status: Some(status), exit_code: None, alone: true }, false).1
}

/// Reason phrases of RFC 9110 and of known servers, in lower case, that mark the number before them as a status.
const PHRASES: &[&str] = &[
    "bad request",
    "unauthorized",
    "payment required",
    "forbidden",
    "not found",
    "method not allowed",
    "not acceptable",
    "request timeout",
    "conflict",
    "gone",
    "payload too large",
    "unprocessable",
    "too many requests",
    "client error",
    "internal server error",
    "not implemented",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
    "gateway time-out",
    "server error",
    "overloaded",
];

/// Words, in lower case, after which a three-digit number is a status; `/1.1` and the like in between are skipped.
const BEFORE: &[&str] = &[
    "http",
    "http error",
    "httperror",
    "http code",
    "http status",
    "status",
    "status code",
    "statuscode",
    "status_code",
    "api error",
    "returned error",
    "response code",
    "http error! status",
    "http_status",
    "httpstatus",
];

/// Returns the HTTP error status (400–599) that a text states, judged by the words around the number.
#[must_use]
pub fn http_status(text: &str) -> Option<u16> {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'4', b'5', bytes).find_map(|at| {
        let digits = bytes.get(at..at + 3)?;
        let free = |b: Option<&u8>| !b.is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'_' || b == b'%');
        let alone = digits.iter().all(u8::is_ascii_digit) && (at == 0 || free(bytes.get(at - 1))) && free(bytes.get(at + 3));
        (alone && (says_status(&text[..at]) || is_phrase(&text[at + 3..]) || follows_phrase(&text[..at], &text[at + 3..])))
            .then(|| text[at..at + 3].parse().ok())
            .flatten()
    })
}

fn is_phrase(after: &str) -> bool {
    let after = after.trim_start_matches([' ', ':', '-', '(']).as_bytes();
    PHRASES.iter().any(|phrase| after.get(..phrase.len()).is_some_and(|head| head.eq_ignore_ascii_case(phrase.as_bytes())))
}

/// Whether the number stands in brackets after its phrase: `Internal Server Error (500)`.
fn follows_phrase(before: &str, after: &str) -> bool {
    let head = before.strip_suffix(" (").filter(|_| after.starts_with(')'));
    head.is_some_and(|head| PHRASES.iter().any(|phrase| ends_with(head.as_bytes(), phrase)))
}

/// Whether the words before a number mark it as a status: `HTTP/1.1 `, `status code: `, `"status":`, `API Error: `.
fn says_status(before: &str) -> bool {
    let mut head = before.trim_end_matches([' ', ':', '=', '"', '\'', '(', '[', '\\']);
    if head.len() == before.len() {
        return false;
    }
    for filler in [" of", " is", " was", " with"] {
        head = head.strip_suffix(filler).unwrap_or(head);
    }
    let head = head.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '/').as_bytes();
    BEFORE.iter().any(|words| ends_with(head, words))
}

/// Whether `head` ends with the words, in any case, and not in the middle of another.
fn ends_with(head: &[u8], words: &str) -> bool {
    let Some(start) = head.len().checked_sub(words.len()) else { return false };
    head[start..].eq_ignore_ascii_case(words.as_bytes()) && !(start > 0 && (head[start - 1].is_ascii_alphanumeric()))
}

/// Longest reset time that is kept, in bytes.
const MAX_RESET: usize = 60;

/// What may surround a time without being part of it.
const AROUND: &[char] = &[' ', '.', ',', ';', '"', '\'', '}', ']', '\n', '\r'];

/// Returns the time after a phrase such as `resets at`, in the words
/// of the text: `3pm (Europe/Berlin)`, `2026-01-02T03:04:05Z`, `12s`.
pub(crate) fn reset_at(text: &str, lead_end: usize) -> Option<String> {
    let mut rest = text.get(lead_end..)?.trim_start_matches([' ', '"', ':', '=']);
    for filler in ["at ", "in ", "after "] {
        rest = rest.strip_prefix(filler).unwrap_or(rest);
    }
    let mut length = 0;
    for word in rest.split_inclusive(' ') {
        let bare = word.trim_end_matches(AROUND);
        // "(retry after 2 hours)" ends before the bracket, "(Europe/Berlin)" does not.
        let bare = if bare.contains('(') { bare } else { bare.trim_end_matches([')', ']', '.']) };
        let fits = if length == 0 { starts_time(bare) } else { continues_time(bare) };
        if !fits || length + bare.len() > MAX_RESET {
            break;
        }
        length += word.len();
        // "12s, sorry" ends at the comma; "Fri, 02 Jan" and "Nov 29, 7:06pm" do not.
        if bare.len() < word.trim_end().len() && !is_name(bare) && !(is_day(bare) && follows_day(&rest[length..])) {
            break;
        }
    }
    let kept = rest.get(..length)?.trim_end_matches(AROUND);
    let kept = if kept.contains('(') { kept } else { kept.trim_end_matches([')', ']', '.']) };
    kept.bytes().any(|b| b.is_ascii_digit()).then(|| kept.to_owned())
}

const NAMES: &[&str] = &[
    "mon", "tue", "wed", "thu", "fri", "sat", "sun", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "tomorrow", "midnight",
];
const UNITS: &[&str] = &[
    "am", "pm", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hour", "hours", "day", "days", "utc", "gmt",
    "cet", "est", "pst", "pt", "et", "at", "and",
];

fn starts_time(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) || is_name(word)
}

fn continues_time(word: &str) -> bool {
    starts_time(word) || UNITS.iter().any(|unit| word.eq_ignore_ascii_case(unit)) || (word.starts_with('(') && word.ends_with(')')) || word.starts_with("+0")
}

/// Whether a word may be the day or the year of a date.
fn is_day(word: &str) -> bool {
    [1, 2, 4].contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit())
}

/// Whether what follows the comma after a day goes on with the date: with its year, or with a time such as `7:06pm`, `1 pm`.
fn follows_day(rest: &str) -> bool {
    let mut words = rest.split(' ').map(|word| word.trim_end_matches(AROUND));
    let word = words.next().unwrap_or_default();
    let is_half = |end: &str| ["am", "pm"].iter().any(|half| end.eq_ignore_ascii_case(half));
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (is_year, is_hour) = (digits == 4 && word.len() == 4, (1..=2).contains(&digits));
    is_year || is_hour && (word[digits..].starts_with(':') || is_half(&word[digits..]) || digits == word.len() && words.next().is_some_and(is_half))
}

fn is_name(word: &str) -> bool {
    NAMES.iter().any(|name| word.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(&name[..3])) && word.bytes().all(|b| b.is_ascii_alphabetic()))
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
