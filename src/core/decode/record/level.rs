//! The level of a structured record: a word or a number, in a field that some logger uses for
//! it. Each logger gives the same number another meaning; the record's other fields tell which.

use super::has;
use crate::core::decode::json::{Leaf, Leaves, Scalar, first};
use crate::core::decode::level::{letter, level_word, severity};
use crate::core::event::Level;

const LEVELS: [&str; 40] = [
    "level",
    "severity",
    "lvl",
    "loglevel",
    "log_level",
    "log.level",
    "log.lvl",
    "log.severity",
    "levelname",
    "level_name",
    "logginglvl",
    "logging_level",
    "logginglevel",
    "sev",
    "severitylevel",
    "severity_level",
    "message_severity",
    "leveldisplayname",
    "@l",
    "@level",
    "severity_text",
    "severitytext",
    "severitynumber",
    "severity_number",
    "levelno",
    "priority",
    "syslog.priority",
    "syslog.severity",
    "log.syslog.severity.name",
    "log.syslog.severity.code",
    "fields.level",
    "labels.level",
    "attributes.level",
    "jsonpayload.level",
    "record.level.name",
    "event.system.level",
    "level.name",
    "level_value",
    "error_severity",
    "messagetype",
];

/// Returns the level that a field states, or that the record's shape implies.
pub(super) fn level(leaves: &Leaves<'_>) -> Option<Level> {
    first(leaves, &LEVELS, |leaf| match &leaf.value {
        Scalar::Text(text) => word_level(text).or_else(|| number_level(leaf, leaf.int()?, leaves)),
        Scalar::Int(number) => number_level(leaf, *number, leaves),
        _ => None,
    })
    .or_else(|| mongo_level(leaves))
    // Serilog leaves out `@l` for its default level.
    .or_else(|| (has(leaves, "@t") && (has(leaves, "@m") || has(leaves, "@mt"))).then_some(Level::Info))
}

/// Reads a level word, a logger's single letter, or slog's `ERROR+2`.
fn word_level(text: &str) -> Option<Level> {
    let text = text.trim().trim_matches(['[', ']']);
    let word = text.split(['+', '-']).next().unwrap_or(text).as_bytes();
    match word {
        [one] => letter(*one),
        // Apple's unified log.
        b"Fault" => Some(Level::Fatal),
        // winston's below debug.
        b"silly" => Some(Level::Trace),
        b"http" => Some(Level::Debug),
        _ => level_word(word),
    }
}

/// Returns what a number means to its logger: the same 3 is an error to syslog and Nextcloud, and nothing to others.
fn number_level(leaf: &Leaf<'_>, number: i64, leaves: &Leaves<'_>) -> Option<Level> {
    if leaf.is("severitynumber") || leaf.is("severity_number") {
        return otel_level(number);
    }
    let syslog =
        leaf.name().eq_ignore_ascii_case("priority") || has(leaves, "short_message") || has(leaves, "syslog.facility") || leaf.is("log.syslog.severity.code");
    // Python's 10 is debug, 50 critical; Application Insights' 0 is debug, 4 critical.
    if leaf.is("levelno") || leaf.is("severitylevel") {
        let index = if leaf.is("levelno") { number / 10 } else { number.checked_add(1)? };
        return Level::ALL.get(usize::try_from(index).ok()?).copied();
    }
    // Logback's 10000 is debug, 40000 an error.
    if leaf.is("level_value") {
        return Level::ALL.get(usize::try_from(number / 10_000).ok()?).copied();
    }
    match number {
        // Windows' and Azure's 1 is critical, 2 an error, 3 a warning.
        1..=5 if ["eventid", "event.system.eventid", "operationname"].iter().any(|name| has(leaves, name)) => Some(severity(number + 1)),
        // Monolog's 100 is debug, 400 an error, 500 critical.
        100..=600 if has(leaves, "channel") => Level::ALL.get(usize::try_from(number / 100).ok()?.min(5)).copied(),
        0..=7 if syslog => Some(severity(number)),
        // Nextcloud's 0 is debug.
        0..=4 if has(leaves, "reqid") => Level::ALL.get(usize::try_from(number + 1).ok()?).copied(),
        100..=800 if leaf.is("severity") => Some(google_level(number)),
        10..=19 => Some(Level::Trace),
        20..=29 => Some(Level::Debug),
        30..=39 => Some(Level::Info),
        40..=49 => Some(Level::Warn),
        50..=59 => Some(Level::Error),
        60..=69 => Some(Level::Fatal),
        _ => None,
    }
}

/// OpenTelemetry gives each level four numbers, from 1 trace to 24 fatal.
fn otel_level(number: i64) -> Option<Level> {
    let index = usize::try_from(number).ok()?.checked_sub(1)? / 4;
    Level::ALL.get(index).copied()
}

/// Google Cloud counts in hundreds: 100 debug, 200 info, 300 notice, 400 warning, 500 error, then worse.
fn google_level(number: i64) -> Level {
    match number / 100 {
        ..=1 => Level::Debug,
        2 | 3 => Level::Info,
        4 => Level::Warn,
        5 => Level::Error,
        _ => Level::Fatal,
    }
}

/// Reads MongoDB's `{"t":{"$date":…},"s":"E","c":…}`
fn mongo_level(leaves: &Leaves<'_>) -> Option<Level> {
    let mongo = has(leaves, "t.$date") && has(leaves, "c");
    first(leaves, &["s"], |leaf| leaf.text()?.bytes().next().and_then(letter)).filter(|_| mongo)
}
