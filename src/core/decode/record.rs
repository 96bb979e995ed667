//! The meaning of a structured record's fields, by the names that loggers give them.
//! Input is the flat list of leaves from `json`; names are matched in any case, nested or
//! dotted alike. The record states what is there; others decide whether it is an error.

use super::json::{Leaf, Leaves, Scalar, first, text_at, time_of};
use crate::core::event::{Level, Timestamp};

mod level;
mod words;
use level::level;
pub use words::with_error;
use words::{is_none, words};

/// Maximum number of string values kept besides message and stack.
const MAX_STRINGS: usize = 64;

const TIMES: [&str; 16] = [
    "time",
    "timestamp",
    "ts",
    "@timestamp",
    "@t",
    "t.$date",
    "t",
    "datetime",
    "date",
    "asctime",
    "eventtime",
    "__realtime_timestamp",
    "timeunixnano",
    "time_unix_nano",
    "_time",
    "@time",
];
const MESSAGES: [&str; 19] = [
    "message",
    "msg",
    "@m",
    "@message",
    "short_message",
    "jsonpayload.message",
    "jsonpayload.msg",
    "textpayload",
    "fields.message",
    "event",
    "body",
    "body.stringvalue",
    "@mt",
    "log",
    "error.message",
    "err.message",
    "exception.message",
    "eventmessage",
    "error",
];
const KINDS: [&str; 15] = [
    "error.type",
    "err.type",
    "exception.type",
    "error.name",
    "err.name",
    "exception.name",
    "error.class",
    "exception.class",
    "error.kind",
    "exception_class",
    "error_type",
    "exc_type",
    "errortype",
    "exceptiontype",
    "attributes.exception.type",
];
/// Last keys under which a stack trace is printed; `exception` and `error` only if their text has several lines.
const STACKS: [&str; 9] = ["stack", "stacktrace", "stack_trace", "traceback", "backtrace", "@x", "exc_info", "full_message", "errorverbose"];
const ERRORS: [&str; 13] =
    ["error", "err", "errors", "is_error", "iserror", "failure", "exception", "error_message", "errormessage", "errmsg", "err_msg", "error_msg", "exc_info"];
const KEYS: [&str; 8] =
    ["container_name", "container", "kubernetes.container_name", "kubernetes.pod_name", "pod", "worker", "syslog_identifier", "_systemd_unit"];

/// A string value and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// JSON pointer (RFC 6901).
    pub pointer: String,
    /// The value, unescaped, line breaks kept.
    pub text: String,
}

/// What a JSON object says as a log record; a field is `None` if the object has nothing of the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The level that a field states.
    pub level: Option<Level>,
    /// When it was logged.
    pub time: Option<Timestamp>,
    /// The message.
    pub message: Option<Text>,
    /// The stack trace, or the error printed over several lines.
    pub stack: Option<Text>,
    /// The words of the error beside the message, unless the level says that it is none.
    pub error: Option<String>,
    /// Type or name of the error.
    pub kind: Option<String>,
    /// All other string values in document order, at most 64.
    pub strings: Vec<Text>,
    /// Whether a field named as an error has a value that says there is one.
    pub truthy_error: bool,
    /// Source file and 1-based line (0 when unknown) of the log statement.
    pub caller: Option<(String, u32)>,
    /// Where a checker found what the record reports: file, line and column, from 1.
    pub finding: Option<(String, u32, u32)>,
    /// Error code, such as `ENOENT`; a number as its digits.
    pub code: Option<String>,
    /// The top-level `name`: an error's name, or the logger's.
    pub name: Option<String>,
    /// What the program was doing: `context.operation`.
    pub operation: Option<String>,
    /// HTTP status, 100 to 599.
    pub status: Option<u16>,
    /// Exit code of a process.
    pub exit_code: Option<i64>,
    /// The writer: container, pod, worker, systemd unit.
    pub key: Option<String>,
}

/// Gives the leaves of one object their meaning.
pub fn record(leaves: &Leaves<'_>, now: Timestamp) -> Record {
    let stack = leaves.iter().find(|leaf| is_stack(leaf));
    let message = rendered(leaves).or_else(|| first(leaves, &MESSAGES, |leaf| leaf.text().map(|_| leaf))).filter(|m| !same(Some(*m), stack));
    let other = |leaf: &&Leaf<'_>| !same(Some(*leaf), stack) && !same(Some(*leaf), message);
    let level = level(leaves);
    // Of most records, nobody wants to know.
    let error = if level.is_some_and(|level| level < Level::Error) { None } else { words(leaves).filter(|error| other(error)) };
    Record {
        level,
        time: time(leaves, now),
        message: message.and_then(text).or_else(|| journal_bytes(leaves)),
        stack: stack.and_then(text),
        error: error.and_then(|error| Some(error.text()?.to_owned())),
        kind: text_at(leaves, &KINDS),
        strings: leaves.iter().filter(other).filter_map(text).take(MAX_STRINGS).collect(),
        truthy_error: leaves.iter().any(is_truthy_error),
        caller: caller(leaves),
        finding: finding(leaves),
        code: first(leaves, &["code", "error.code", "err.code", "errno", "error_code", "errorcode"], code),
        name: text_at(leaves, &["name"]),
        operation: text_at(leaves, &["context.operation"]),
        status: status(leaves),
        exit_code: first(leaves, &["exit_code", "exitcode", "exit_status", "process.exit_code", "returncode"], Leaf::int),
        key: text_at(leaves, &KEYS),
    }
}

/// Returns the level and the time of the record that the leaves make.
pub fn stamp(leaves: &Leaves<'_>, now: Timestamp) -> (Option<Level>, Option<Timestamp>) {
    (level(leaves), time(leaves, now))
}

fn time(leaves: &Leaves<'_>, now: Timestamp) -> Option<Timestamp> {
    first(leaves, &TIMES, |leaf| time_of(leaf, now))
}

fn same(a: Option<&Leaf<'_>>, b: Option<&Leaf<'_>>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if std::ptr::eq(a, b))
}

fn text(leaf: &Leaf<'_>) -> Option<Text> {
    Some(Text { pointer: leaf.pointer.clone(), text: leaf.text()?.to_owned() })
}

/// Returns the diagnostic as rustc and Cargo would print it, with its place: the message beside it is a part of it.
fn rendered<'a, 'b>(leaves: &'a Leaves<'b>) -> Option<&'a Leaf<'b>> {
    first(leaves, &["rendered", "message.rendered"], |leaf| leaf.text().filter(|text| text.contains('\n')).map(|_| leaf))
}

fn has(leaves: &Leaves<'_>, path: &str) -> bool {
    leaves.at(path).next().is_some()
}

fn is_stack(leaf: &Leaf<'_>) -> bool {
    let Some(text) = leaf.text() else {
        return false;
    };
    let named = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(leaf.name()));
    (named(&STACKS) && text.contains(char::is_whitespace)) || (named(&["exception", "error", "err"]) && text.contains('\n'))
}

/// Whether the leaf, or an object around it, is named as an error, and its value is not a way to say "none".
fn is_truthy_error(leaf: &Leaf<'_>) -> bool {
    let named = leaf.pointer.split('/').any(|key| ERRORS.iter().any(|name| name.eq_ignore_ascii_case(key)));
    named
        && match &leaf.value {
            Scalar::Text(text) => !is_none(text),
            Scalar::Int(number) => *number != 0,
            Scalar::Float(number) => *number != 0.0,
            Scalar::Bool(value) => *value,
            Scalar::Null => false,
        }
}

/// Returns the place of the log statement: `"caller":"pkg/file.go:12"`, or a file and a line in separate fields.
fn caller(leaves: &Leaves<'_>) -> Option<(String, u32)> {
    const PAIRS: [(&str, &str); 9] = [
        ("source.file", "source.line"),
        ("log.origin.file.name", "log.origin.file.line"),
        ("pathname", "lineno"),
        ("filename", "lineno"),
        ("filename", "line_number"),
        ("sourcelocation.file", "sourcelocation.line"),
        ("logging.googleapis.com/sourcelocation.file", "logging.googleapis.com/sourcelocation.line"),
        ("file", "line"),
        ("code.file.path", "code.line.number"),
    ];
    let joined = first(leaves, &["caller", "source", "file", "@caller"], |leaf| place(leaf.text()?));
    joined.or_else(|| {
        PAIRS.iter().find_map(|(file, line)| {
            let line = first(leaves, &[line], Leaf::int).and_then(|n| u32::try_from(n).ok())?;
            Some((text_at(leaves, &[file])?, line))
        })
    })
}

/// Returns a file with a line and a column, as mypy, Ruff and Semgrep name them: loggers give no column.
fn finding(leaves: &Leaves<'_>) -> Option<(String, u32, u32)> {
    const PLACES: [(&str, &str, &str); 4] =
        [("file", "line", "column"), ("filename", "location.row", "location.column"), ("path", "line", "column"), ("path", "start.line", "start.col")];
    let number = |path: &str| first(leaves, &[path], Leaf::int).and_then(|n| u32::try_from(n).ok());
    PLACES.iter().find_map(|(file, line, column)| Some((text_at(leaves, &[file])?, number(line).filter(|line| *line > 0)?, number(column)?)))
}

fn place(text: &str) -> Option<(String, u32)> {
    let (file, line) = text.rsplit_once(':')?;
    (!file.is_empty()).then(|| Some((file.to_owned(), line.parse().ok()?)))?
}

fn code(leaf: &Leaf<'_>) -> Option<String> {
    match &leaf.value {
        Scalar::Int(number) => Some(number.to_string()),
        _ => leaf.text().map(str::to_owned),
    }
}

fn status(leaves: &Leaves<'_>) -> Option<u16> {
    const PATHS: [&str; 10] = [
        "status",
        "statuscode",
        "status_code",
        "response.status",
        "response.statuscode",
        "res.statuscode",
        "res.status",
        "http.response.status_code",
        "http_status",
        "error.status",
    ];
    first(leaves, &PATHS, |leaf| u16::try_from(leaf.int()?).ok().filter(|s| (100..600).contains(s)))
}

/// Returns the message of journald, which writes a message that is not plain text as an array of its bytes.
fn journal_bytes(leaves: &Leaves<'_>) -> Option<Text> {
    let item = |leaf: &&Leaf<'_>| leaf.pointer.starts_with("/MESSAGE/");
    let bytes: Option<Vec<u8>> = leaves.iter().filter(item).map(|leaf| u8::try_from(leaf.int()?).ok()).collect();
    let text = String::from_utf8_lossy(&bytes.filter(|b| !b.is_empty())?).into_owned();
    Some(Text { pointer: "/MESSAGE".to_owned(), text })
}

#[cfg(test)]
mod tests {
    use super::super::json::{Json, json};
    use super::*;

    fn read(line: &str) -> Record {
        match json(line.as_bytes(), Timestamp(1_700_000_000_000_000)) {
            Some(Json::Record(record)) => *record,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn reads_levels() {
        let table = [
            (r#"{"level":"error"}"#, Some(Level::Error)),
            (r#"{"LOGGINGLVL":"Critical"}"#, Some(Level::Fatal)),
            (r#"{"SEVERITY":"FATAL"}"#, Some(Level::Fatal)),
            (r#"{"log.level":"WARN"}"#, Some(Level::Warn)),
            (r#"{"log":{"severity":"error"},"body":"x"}"#, Some(Level::Error)),
            (r#"{"level":"silly","message":"error: x"}"#, Some(Level::Trace)),
            (r#"{"level":"http","message":"error: x"}"#, Some(Level::Debug)),
            (r#"{"log":{"level":"ERROR"}}"#, Some(Level::Error)),
            (r#"{"level":50,"msg":"x"}"#, Some(Level::Error)),
            (r#"{"level":60}"#, Some(Level::Fatal)),
            (r#"{"level":3}"#, None),
            (r#"{"level":3,"reqId":"x"}"#, Some(Level::Error)),
            (r#"{"version":"1.1","short_message":"x","level":3}"#, Some(Level::Error)),
            (r#"{"PRIORITY":"3","MESSAGE":"x"}"#, Some(Level::Error)),
            (r#"{"severityNumber":17}"#, Some(Level::Error)),
            (r#"{"SeverityText":"Error"}"#, Some(Level::Error)),
            (r#"{"severity":500}"#, Some(Level::Error)),
            (r#"{"levelno":50}"#, Some(Level::Fatal)),
            (r#"{"levelno":40}"#, Some(Level::Error)),
            (r#"{"severityLevel":3}"#, Some(Level::Error)),
            (r#"{"severityLevel":2}"#, Some(Level::Warn)),
            (r#"{"severityLevel":"Critical"}"#, Some(Level::Fatal)),
            (r#"{"severityLevel":9223372036854775807}"#, None),
            (r#"{"level_value":40000}"#, Some(Level::Error)),
            (r#"{"level":400,"channel":"app"}"#, Some(Level::Error)),
            (r#"{"level":300,"channel":"app"}"#, Some(Level::Warn)),
            (r#"{"level":550,"channel":"app"}"#, Some(Level::Fatal)),
            (r#"{"Event":{"System":{"EventID":1,"Level":2}}}"#, Some(Level::Error)),
            (r#"{"operationName":"x","level":4}"#, Some(Level::Info)),
            (r#"{"logging_level":"ERR"}"#, Some(Level::Error)),
            (r#"{"LevelDisplayName":"Information"}"#, Some(Level::Info)),
            (r#"{"level":"ERROR+2"}"#, Some(Level::Error)),
            (r#"{"t":{"$date":"2026-03-10T20:58:09.401+00:00"},"s":"E","c":"NETWORK","msg":"x"}"#, Some(Level::Error)),
            (r#"{"@t":"2026-03-10T20:58:09Z","@mt":"x"}"#, Some(Level::Info)),
            (r#"{"@t":"2026-03-10T20:58:09Z","@mt":"x","@l":"Fatal"}"#, Some(Level::Fatal)),
            (r#"{"level":null,"severity":"error"}"#, Some(Level::Error)),
            (r#"{"severitynumber":17}"#, Some(Level::Error)),
            (r#"{"severitynumber":-9223372036854775808}"#, None),
            (r#"{"levelno":9223372036854775807}"#, None),
            (r#"{"context":{"deep":{"level":"error"}}}"#, None),
        ];
        for (line, want) in table {
            assert_eq!(read(line).level, want, "{line}");
        }
    }

    #[test]
    fn reads_messages() {
        let table = [
            (r#"{"msg":"a"}"#, "/msg", "a"),
            (r#"{"event":"a","logger":"b"}"#, "/event", "a"),
            (r#"{"fields":{"message":"a\nb"}}"#, "/fields/message", "a\nb"),
            (r#"{"jsonPayload":{"message":"a"}}"#, "/jsonPayload/message", "a"),
            (r#"{"textPayload":"a"}"#, "/textPayload", "a"),
            (r#"{"message":"","error":{"message":"a"}}"#, "/error/message", "a"),
            (r#"{"a/b":1,"@m":"a"}"#, "/@m", "a"),
            (r#"{"MESSAGE":[104,105]}"#, "/MESSAGE", "hi"),
            (r#"{"reason":"x","message":{"rendered":"error: a\n --> b.rs:1:2\n\n","message":"a"}}"#, "/message/rendered", "error: a\n --> b.rs:1:2\n\n"),
            (r#"{"message":"a","level":"error","rendered":null}"#, "/message", "a"),
        ];
        for (line, pointer, text) in table {
            let want = Text { pointer: pointer.into(), text: text.into() };
            assert_eq!(read(line).message, Some(want), "{line}");
        }
    }

    #[test]
    fn reads_a_pino_error() {
        let got = read(
            r#"{"level":50,"time":1705313400000,"msg":"failed","err":{"type":"TypeError","message":"x is undefined",
            "stack":"TypeError: x\n    at a (/b.js:1:2)","code":"EBAD"},"req":{"url":"/u"},"res":{"statusCode":503},"pid":1}"#,
        );
        assert_eq!(got.time, Some(Timestamp(1_705_313_400_000_000)));
        assert_eq!(got.kind.as_deref(), Some("TypeError"));
        assert_eq!(got.code.as_deref(), Some("EBAD"));
        assert_eq!(got.status, Some(503));
        assert_eq!(got.stack.map(|s| s.pointer).as_deref(), Some("/err/stack"));
        assert!(got.truthy_error);
        assert_eq!(got.error.as_deref(), Some("x is undefined"));
        let rest: Vec<_> = got.strings.iter().map(|s| s.pointer.as_str()).collect();
        assert_eq!(rest, ["/err/type", "/err/message", "/err/code", "/req/url"]);
    }

    #[test]
    fn reads_callers_times_and_codes() {
        let zap = read(r#"{"level":"error","ts":1716723772.6014807,"caller":"pkg/file.go:12","stacktrace":"a\nb","error":"x"}"#);
        assert_eq!((zap.message.map(|message| message.pointer).as_deref(), zap.error), (Some("/error"), None));
        assert_eq!(zap.caller, Some(("pkg/file.go".into(), 12)));
        assert_eq!(zap.time, Some(Timestamp(1_716_723_772_601_481)));
        assert_eq!(zap.stack.map(|s| s.text).as_deref(), Some("a\nb"));
        let slog = read(r#"{"source":{"function":"f","file":"/a.go","line":7},"exit_code":2,"name":"Error"}"#);
        assert_eq!(slog.caller, Some(("/a.go".into(), 7)));
        let mypy = read(r#"{"file":"a.py","line":4,"column":15,"message":"x is not defined","severity":"error"}"#);
        assert_eq!(mypy.finding, Some(("a.py".into(), 4, 15)));
        let ruff = read(r#"{"code":"F821","filename":"b.py","location":{"column":12,"row":7},"message":"x","severity":"error"}"#);
        assert_eq!(ruff.finding, Some(("b.py".into(), 7, 12)));
        assert_eq!(read(r#"{"level":"error","file":"a.py","line":4,"msg":"x"}"#).finding, None);
        assert_eq!((slog.exit_code, slog.name.as_deref()), (Some(2), Some("Error")));
    }

    #[test]
    fn knows_a_true_error() {
        let table = [
            (r#"{"error":"x"}"#, true),
            (r#"{"is_error":true}"#, true),
            (r#"{"errors":[{"m":"x"}]}"#, true),
            (r#"{"a":{"err":{"code":1}}}"#, true),
            (r#"{"error":null}"#, false),
            (r#"{"error":""}"#, false),
            (r#"{"error":{}}"#, false),
            (r#"{"errors":[]}"#, false),
            (r#"{"errors":0}"#, false),
            (r#"{"is_error":false}"#, false),
            (r#"{"error_count":3}"#, false),
            (r#"{"error":"None"}"#, false),
        ];
        for (line, want) in table {
            assert_eq!(read(line).truthy_error, want, "{line}");
        }
    }

    #[test]
    fn bounds_strings() {
        let line = format!("{{\"a\":[{}\"z\"]}}", "\"s\",".repeat(5000));
        assert_eq!(read(&line).strings.len(), MAX_STRINGS);
    }
}
