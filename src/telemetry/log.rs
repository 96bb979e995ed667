//! siftd's own messages: where they go, which ones, and in which form. A command sets this up once at its start;
//! `SIFTD_LOG` chooses the level (`SIFTD_LOG=debug siftd run …`). The core never logs, and records never pass through
//! here: no message above debug quotes a log. Messages contain no secrets, not even those of a configuration, and no
//! colours, not even on a terminal.

use std::borrow::Cow;
use std::fmt;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::registry::LookupSpan;

use crate::words::is_invisible;

/// Removes the secrets from a text.
pub type Clean = fn(&str) -> Cow<'_, str>;

/// The form of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Time, level and text.
    Text,
    /// One JSON object per line.
    Json,
    /// Priority and text; the journal adds the time.
    Journald,
}

impl Form {
    /// Returns the journal's form if stderr is connected to it, as `JOURNAL_STREAM` says (systemd.exec(5)); otherwise text.
    #[must_use]
    pub fn fitting() -> Self {
        let stderr = std::io::stderr().as_fd().try_clone_to_owned().map(std::fs::File::from).and_then(|file| file.metadata());
        let said = std::env::var("JOURNAL_STREAM").unwrap_or_default();
        match stderr {
            Ok(meta) if said == format!("{}:{}", meta.dev(), meta.ino()) => Self::Journald,
            _ => Self::Text,
        }
    }
}

/// Starts writing messages to stderr, each passed through `clean`; a second call does nothing.
pub fn init(form: Form, clean: Clean) {
    let wanted = std::env::var("SIFTD_LOG").ok().filter(|wanted| !wanted.is_empty());
    let filter = wanted.as_deref().and_then(|wanted| EnvFilter::try_new(wanted).ok().filter(|_| is_filter(wanted)));
    let is_unknown = filter.is_none();
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    // If stderr cannot be written, as its disk is full or its terminal gone, there is nowhere to report that; trying would panic.
    let quiet = tracing_subscriber::fmt().log_internal_errors(false).with_env_filter(filter).with_writer(std::io::stderr);
    let started = quiet.event_format(Lines { form, clean }).try_init();
    // Only a test that starts two commands in one process comes here twice.
    drop(started);
    if let Some(unknown) = wanted.filter(|_| is_unknown) {
        tracing::warn!("SIFTD_LOG={unknown}: no such level; there are error, warn, info, debug, trace and off");
    }
}

/// Whether each part is a level, or a module with a level. The filter itself would take any word for the name of a module.
fn is_filter(wanted: &str) -> bool {
    let is_level = |level: &str| LevelFilter::from_str(level.trim()).is_ok();
    wanted.split(',').all(|part| is_level(part.rsplit('=').next().unwrap_or_default()))
}

/// Writes each message, followed by a newline.
struct Lines {
    form: Form,
    clean: Clean,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut said = Said::default();
        event.record(&mut said);
        writeln!(out, "{}", line(self.form, *event.metadata().level(), &time, &(self.clean)(&said.0)))
    }
}

/// The text of a message, followed by its fields.
#[derive(Default)]
struct Said(String);

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let gap = if self.0.is_empty() { "" } else { " " };
        self.0 += &match field.name() {
            "message" => format!("{gap}{value:?}"),
            name => format!("{gap}{name}={value:?}"),
        };
    }
}

fn line(form: Form, level: Level, time: &str, text: &str) -> String {
    let word = level.as_str().to_ascii_lowercase();
    match form {
        Form::Text => format!("{time} {:>5} {}", level.as_str(), lines(text, "  ")),
        // The journal treats each line as a message of its own, so each gets the priority.
        Form::Journald => format!("<{0}>{1}", priority(level), lines(text, &format!("<{}>  ", priority(level)))),
        Form::Json => serde_json::json!({ "timestamp": time, "level": word, "message": text }).to_string(),
    }
}

/// Returns the priority of syslog(3): 3 for an error, 4 for a warning, 6 for information, 7 for debugging.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

/// Formats a message of several lines: each line after the first begins with `head`. Characters that a terminal would
/// obey or hide are escaped: file names and what peers send are text of untrusted programs.
fn lines(text: &str, head: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c {
            '\n' => out.extend(["\n", head]),
            c if c.is_control() || is_invisible(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_levels() {
        for wanted in ["info", "WARN", "off", "siftd=debug", "warn,siftd::sources=trace"] {
            assert!(is_filter(wanted), "{wanted}");
        }
        for wanted in ["foo", "siftd=loud", "info,foo"] {
            assert!(!is_filter(wanted), "{wanted}");
        }
    }

    #[test]
    fn each_form_says_where_a_message_ends_and_obeys_nothing() {
        let text = "bad:\n\u{1b}[2J \"x\"";
        assert_eq!(line(Form::Text, Level::WARN, "T", text), "T  WARN bad:\n  \\u{1b}[2J \"x\"");
        assert_eq!(line(Form::Text, Level::WARN, "T", "fdp.\u{202e}gol\u{200b}"), "T  WARN fdp.\\u{202e}gol\\u{200b}");
        assert_eq!(line(Form::Journald, Level::ERROR, "T", text), "<3>bad:\n<3>  \\u{1b}[2J \"x\"");
        assert_eq!(line(Form::Json, Level::INFO, "T", text), r#"{"level":"info","message":"bad:\n\u001b[2J \"x\"","timestamp":"T"}"#);
        assert_eq!([Level::WARN, Level::INFO, Level::DEBUG].map(priority), [4, 6, 7]);
    }
}
